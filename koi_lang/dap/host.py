"""The host of a run that is debugged: its output goes to the debug console, and questions are answered there."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from koi_lang.dap.channel import Channel
from koi_lang.runtime.host import ApprovalDecision, ApprovalRequest, NobodyToAskError, choose_option, visible, wish

CHOICES = "answer `y`, `always` or `n`"


class ConsoleHost:
    """A host for one run.

    Args:
        shown: how many pieces of output are known to the client, since an earlier replay has shown them.
    """

    def __init__(self, channel: Channel, shown: int = 0) -> None:
        self._channel, self._shown = channel, shown
        self._loop: asyncio.AbstractEventLoop | None = None
        self._questions: list[asyncio.Future[str]] = []

    def print(self, text: str) -> None:
        """Show a piece of the program's output."""
        self._show(f"{text}\n", "stdout")

    def log(self, text: str) -> None:
        """Show a line that is no output."""
        self._show(f"{text}\n", "console")

    def _show(self, text: str, category: str) -> None:
        self._shown -= 1
        if self._shown < 0:
            self._channel.tell("output", output=text, category=category, counted=True)

    async def ask(self, question: str, options: Sequence[str] = ()) -> str:
        """Have the person answer in the debug console."""
        listed = "".join(f"\n  {number}. {visible(option)}" for number, option in enumerate(options, 1))
        answer = await self._wait(f"{visible(question)}{listed}")
        return choose_option(answer, options)

    async def approve(self, request: ApprovalRequest) -> ApprovalDecision:
        """Have the person decide in the debug console; anything but a yes is a no."""
        about = [wish(request.what, request.agent), *filter(None, (visible(request.detail), request.always)), CHOICES]
        word = (await self._wait("\n".join(about))).strip().lower()
        return ApprovalDecision("always" if word == "always" else "yes" if word in ("y", "yes") else "no")

    async def secret(self, name: str) -> str:
        """Refuse: input in a debug console is visible."""
        raise NobodyToAskError(f"`{name}` cannot be asked for in a debug console", help="Set it with `env`.")

    async def _wait(self, question: str) -> str:
        self._loop = asyncio.get_running_loop()
        answer: asyncio.Future[str] = self._loop.create_future()
        self._questions.append(answer)
        self._channel.tell("output", output=f"{question}\n", category="important")
        try:
            return await answer
        finally:
            self._questions.remove(answer)

    def take_answer(self, text: str) -> bool:
        """Take a line of the console, in any thread, as the answer to the oldest question; whether there is one."""
        if not self._questions or self._loop is None:
            return False
        self._loop.call_soon_threadsafe(self._answer, text)
        return True

    def _answer(self, text: str) -> None:
        for question in self._questions:
            if not question.done():
                question.set_result(text)
                return
