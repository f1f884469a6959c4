"""The terminal as the host of a run: output on stdout, everything else on stderr, answers from stdin."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import Sequence

from koi_lang.cli.progress import StatusLine
from koi_lang.runtime.host import Approval, NobodyToAsk

READ_SIZE = 65536
APPROVALS: dict[str, Approval] = {"y": "yes", "yes": "yes", "a": "always", "always": "always"}


class Terminal:
    """A person at a terminal, or whatever is piped in. Questions are shown only where somebody can see them."""

    def __init__(self, *, quiet: bool = False, silent: bool = False) -> None:
        self.quiet, self.silent = quiet, silent
        self.status = StatusLine(sys.stderr)
        self._pending = b""
        self._ended = False
        self._turn = asyncio.Lock()
        self._noted: set[str] = set()

    def print(self, text: str) -> None:
        """A line of output, at once; a silent terminal leaves it to events."""
        self.status.clear()
        if self.silent:
            return
        sys.stdout.write(text + "\n")
        sys.stdout.flush()

    def log(self, text: str) -> None:
        """A line that is not output."""
        self.status.clear()
        sys.stderr.write(text + "\n")

    def note(self, text: str) -> None:
        """A line about the run itself; the same line is told once."""
        if self.quiet or text in self._noted:
            return
        self._noted.add(text)
        self.log(text)

    async def ask(self, question: str, options: Sequence[str] = ()) -> str:
        """Ask one question at a time; an option may be answered by its number. Raises NobodyToAsk at the end."""
        async with self._turn:
            self._show(question, options)
            line = await self._line()
        if line is None:
            help = "Run the program in a terminal, or pipe one line for each question into it."
            raise NobodyToAsk(f"nobody answers the question `{question.strip()}`", help=help)
        return _chosen(line.strip(), options)

    def _show(self, question: str, options: Sequence[str]) -> None:
        if not sys.stderr.isatty():
            return
        self.status.clear()
        for number, option in enumerate(options, 1):
            sys.stderr.write(f"  {number}. {option}\n")
        sys.stderr.write(f"{question.rstrip()} ")
        sys.stderr.flush()

    async def approve(self, what: str, detail: str) -> Approval:
        """Ask for permission; no where nobody is at a terminal, and for every answer that is not clear."""
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            return "no"
        answer = (await self.ask(f"The agent wants to {what}: {detail}\nAllow? [y]es, [a]lways, [N]o")).lower()
        return APPROVALS.get(answer, "no")

    async def secret(self, name: str) -> str:
        """A value typed without being shown."""
        import getpass

        if not sys.stdin.isatty():
            raise NobodyToAsk(f"nobody can be asked for `{name}`")
        return await asyncio.to_thread(getpass.getpass, f"{name}: ", sys.stderr)

    async def _line(self) -> str | None:
        """The next line of standard input; None at its end. Waiting can be cancelled."""
        while b"\n" not in self._pending and not self._ended:
            await _readable(0)
            read = os.read(0, READ_SIZE)
            self._pending += read
            self._ended = not read
        line, _, self._pending = self._pending.partition(b"\n")
        return None if self._ended and not line and not self._pending else line.decode("utf-8", "replace")


def _chosen(answer: str, options: Sequence[str]) -> str:
    """The option an answer means: by number, or the first one for an empty answer; anything else is free text."""
    if not options:
        return answer
    if not answer:
        return options[0]
    if answer.isdigit() and 1 <= int(answer) <= len(options):
        return options[int(answer) - 1]
    return answer


async def _readable(descriptor: int) -> None:
    """Wait until there is something to read; files always have."""
    if stat.S_ISREG(os.fstat(descriptor).st_mode) or os.fstat(descriptor).st_rdev == os.stat(os.devnull).st_rdev:
        return
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)
