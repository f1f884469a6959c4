"""The entries of a session to the calls its client made: which of them were ended from outside, which are in doubt.

The calls of a session come from outside of its program, so that they are recorded with what they were given; who goes
on with the session makes them again, in order, and their outcomes are known.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from koi_lang.errors import JournalError
from koi_lang.events import CallEnded, CallStarted, HandlerStarted
from koi_lang.runtime.journal.entries import Header, JournalEntry
from koi_lang.runtime.journal.history import in_doubt, is_cut
from koi_lang.runtime.journal.reader import lines, program_of, read_header
from koi_lang.runtime.journal.store import journals

# Commands whose runs are sessions.
SERVE = "serve"
CHAT, ACP = "chat", "acp"
SESSIONS = (CHAT, "rpc", ACP, SERVE)
# The place of a call that goes on beside others, and how the call of the `run` statements is named.
CALL, MAIN = "call", "run"
# The command whose runs are cases of an evaluation.
EVAL = ("eval",)
# What stands for a command where a Python program has decided on the calls.
PYTHON = "python"


def is_session(header: Header) -> bool:
    """Whether a journal is of a session, whose calls its client decides on."""
    return header.words[:1] != () and header.words[0] in SESSIONS


def resuming_command(words: Sequence[str], program: Path, run: str, handler: str = "") -> str:
    """The command line that goes on with a session; those of an editor are conversations.

    Args:
        words: that began it; a program that they do not name need not be named again.
        program: named from the current folder.
        handler: that messages are for; empty where the program decides.
    """
    place = program.relative_to(Path.cwd()) if program.is_relative_to(Path.cwd()) else program
    if words[0] == SERVE:
        return shlex.join(["koi", SERVE, "http", str(place)])
    is_named = any(Path(word).stem == program.stem for word in words[1:])
    named = [str(place), *filter(None, [handler])] if is_named else []
    return shlex.join(["koi", CHAT if words[0] == ACP else words[0], *named, "--resume", run])


def is_of_python(words: Sequence[str]) -> bool:
    """Whether the words that began a journal say that it is of calls of a Python program, which can be repeated."""
    return tuple(words[:1]) == (PYTHON,)


def is_evaluation(header: Header) -> bool:
    """Whether a journal is of an evaluation, whose cases are runs of their own; not of one of these."""
    return header.words[:1] == EVAL and not header.case


def sessions_of(folder: Path, program: str) -> Iterator[Path]:
    """The journals of sessions of a program, by the absolute path of its file, the latest first.

    Damaged ones are left out.
    """
    for path in reversed(journals(folder)):
        try:
            header = read_header(path)
            if is_session(header) and str(program_of(path, header)) == program:
                yield path
        except JournalError:
            continue


def first_call(path: Path) -> JournalEntry | None:
    """The first call of a session; None before it. Raises JournalError."""
    entries = (line.entry for line in lines(path) if line.entry is not None)
    return next((entry for entry in entries if entry.kind == CallStarted.type), None)


def require_run(header: Header) -> None:
    """Raise JournalError when a journal is of a session or an evaluation, with the command that continues it."""
    if is_evaluation(header):
        help = f"Name one of its cases, such as `{header.run}-1`; `koi resume {header.run}` goes on with all of it."
        raise JournalError(f"`{header.run}` is an evaluation, whose cases are runs of their own", help=help)
    if is_session(header):
        command, where = header.words[0], " in a browser" if header.words[0] == SERVE else ""
        help = f"Go on with it{where}: `{resuming_command(header.words, Path(header.program), header.run)}`."
        raise JournalError(
            f"`{header.run}` is a session of `koi {command}`, which no `run` statement repeats", help=help
        )


def doubts(entries: Sequence[JournalEntry]) -> list[JournalEntry]:
    """Unrepeatable effects without an end; in calls that were ended from outside they are settled."""
    begun = {entry.path: entry.n for entry in entries if entry.kind == CallStarted.type}
    cut = [(begun.get(entry.path, 0), entry.n) for entry in entries if is_cut(entry)]
    return [doubt for doubt in in_doubt(entries) if not any(first < doubt.n < last for first, last in cut)]


def call_at(entries: Sequence[JournalEntry], n: int) -> JournalEntry | None:
    """The call that the n-th entry is the beginning of: its own entry, or that of its handler."""
    chosen = next((entry for entry in entries if entry.n == n), None)
    if chosen is None or not (
        chosen.kind == CallStarted.type or (chosen.kind == HandlerStarted.type and len(chosen.path) < 2)
    ):
        return None
    known = [entry for entry in entries if entry.kind in (CallStarted.type, CallEnded.type) and entry.n <= n]
    return known[-1] if known and known[-1].kind == CallStarted.type else None
