"""A compiled program and the wishes of a person to a conversation with one of its agents."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from koi_lang import settings
from koi_lang.cli.chat import commands
from koi_lang.cli.chat.conversation import ChatConversation
from koi_lang.cli.chat.line_mode import Piped
from koi_lang.cli.lessons import offer_lessons
from koi_lang.cli.ui.interrupts import carried_out
from koi_lang.cli.ui.messages import exit_code_of
from koi_lang.cli.ui.terminal import Terminal
from koi_lang.cli.ui.text import look_of, one_line
from koi_lang.cli.ui.trust import confirm_trust
from koi_lang.errors import EXIT_FAILED, EXIT_OK
from koi_lang.lazy import lazy_module
from koi_lang.program import cache, declarations
from koi_lang.runtime.guards.repositories import git_branch
from koi_lang.service.live.run_socket import RunSocket
from koi_lang.sessions.continuation import NEW_RUN, Continuation
from koi_lang.sessions.earlier_session import read_recorded
from koi_lang.sessions.message_targets import MessageTarget, SeveralTargetsError, find_target, name_of_target
from koi_lang.sessions.options import RunOptions
from koi_lang.sessions.prepared import prepare_program
from koi_lang.sessions.session import GRACE_S

if TYPE_CHECKING:
    from koi_lang.cli.chat import editor
else:
    editor = lazy_module("koi_lang.cli.chat.editor")

UNASKED = "nothing is allowed without asking"
HINT = "/help lists the commands, Ctrl-D ends"


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """Whom a conversation is with, as the command line says; `resume` names an earlier one."""

    agent: str
    event: str
    resume: str
    trust: bool


def talk(file: str, entry: cache.CachedModule, options: RunOptions, wishes: ChatOptions) -> int:
    """Talk to the end and give the exit code; whatever goes wrong is told once."""
    failed: list[int] = []
    runs: list[str] = []

    def work() -> None:
        chat, earlier = _conversation(file, entry, options, wishes)
        place = describe_place(options.folder, chat.session.choice.name(), options.allowed_here)
        carried_out(_run(chat, earlier, place, runs.append), chat.screen.note)
        failed.append(chat.telling.failed)

    code = exit_code_of(work, debug=options.debug, redact=options.redact)
    for run in runs:
        offer_lessons(run, options)
    return EXIT_FAILED if code == EXIT_OK and any(failed) and not _is_terminal() else code


def _conversation(
    file: str, entry: cache.CachedModule, options: RunOptions, wishes: ChatOptions
) -> tuple[ChatConversation, Continuation]:
    """A conversation that has not begun, and what it goes on from. Raises KoiError."""
    ready = replace(prepare_program(file, entry, options), make_live=RunSocket.of_session)
    declarations.require_servers(ready.module, ready.options.settings)
    target = _target(ready.agents, wishes)
    screen = _screen(options)
    # Lines that are piped in get no asides, but a note about the model is for whoever reads the answers.
    ready = replace(ready, note=screen.note if _is_terminal() else Terminal(quiet=options.quiet).note)
    earlier = (
        read_recorded(ready, wishes.resume, trusted=wishes.trust, confirm=confirm_trust) if wishes.resume else NEW_RUN
    )
    screen.chat = ChatConversation(ready, target, screen, ready.redactor(), commands)
    return screen.chat, earlier


def _screen(options: RunOptions) -> editor.Editor | Piped:
    """What shows a conversation, and reads what is typed; the library for terminals is only loaded for one."""
    wants_plain = options.plain or settings.variable("KOI_PLAIN") is not None
    if wants_plain or not _is_terminal() or settings.variable("TERM") in (None, "dumb"):
        return Piped(look_of(sys.stderr), person=_is_terminal())
    return editor.Editor(look_of(sys.stdout), options.redact)


def _target(agents: Sequence[Any], wishes: ChatOptions) -> MessageTarget:
    """The handler that messages are for; the person is asked where there are several. Raises UsageError."""
    try:
        return find_target(agents, name_of_target(wishes.agent, wishes.event))
    except SeveralTargetsError as error:
        if not _is_terminal():
            raise
        names = [target.name for target in error.found]
        chosen = click.prompt("Which one takes your messages?", type=click.Choice(names), err=True)
        return error.found[names.index(chosen)]


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def describe_place(folder: Path, model: str, allowed: Sequence[str]) -> str:
    """Where a conversation takes place: its folder, the branch of git, the model, and what needs no question."""
    home, branch = Path(os.path.expanduser("~")), git_branch(folder)
    shown = f"~/{folder.relative_to(home).as_posix()}" if folder.is_relative_to(home) else str(folder)
    rules = ", ".join(dict.fromkeys(allowed))
    parts = [f"{shown} on {branch}" if branch else shown, model, f"allowed: {rules}" if rules else UNASKED]
    return "; ".join(filter(None, map(one_line, parts)))


async def _run(chat: ChatConversation, earlier: Continuation, place: str, note_run: Callable[[str], None]) -> None:
    """Talk to the end. Cancelled, what is under way is ended, and the terminal left as it was."""
    async with chat.dispatcher.session.open(earlier) as session:
        note_run(session.run.id)
        if earlier.history is not None:
            chat.telling.tell_earlier()
            chat.screen.note(f"going on with {session.run.id}")
        chat.screen.note(f"{chat.target.name} of {session.ready.name}; {HINT}\n{place}")
        await chat.screen.run()
        await session.finish(0 if chat.is_busy else GRACE_S)
