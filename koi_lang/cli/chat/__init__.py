"""`koi chat`."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from koi_lang import cache, inventory, program, settings
from koi_lang.cli.messages import exit_code_of, show_warnings
from koi_lang.cli.options import Options, options_from, running_options
from koi_lang.errors import EXIT_FAILED, EXIT_OK, UsageError

if TYPE_CHECKING:
    from koi_lang.cli.chat.conversation import Conversation
    from koi_lang.cli.chat.editor import Editor
    from koi_lang.cli.chat.piped import Piped
    from koi_lang.cli.chat.targets import Target
    from koi_lang.rpc.served import OpenRun

HINT = "/help lists the commands, Ctrl-D ends"


@dataclass(frozen=True, slots=True)
class Wishes:
    """Whom a conversation is with, as the command line says; `resume` names an earlier one."""

    agent: str
    event: str
    resume: str


@click.command()
@click.argument("file")
@click.argument("agent", required=False, default="")
@click.option("--event", metavar="NAME", default="", help="Give messages to this handler.")
@click.option("--resume", metavar="ID", default="", help="Go on with an earlier conversation, by its id, or `last`.")
@running_options("the conversation", "of an answer")
@click.option("--record/--no-record", default=None, help="Write a journal of the conversation, which is the default.")
@click.option("--plain", is_flag=True, help="Read and write lines, and move nothing; KOI_PLAIN=1 does, too.")
def command(file: str, agent: str, event: str, resume: str, **given: Any) -> None:
    """Talk to an agent of FILE: each message is given to a handler, `chat` or `message`, or the only one that takes it.

    What is not typed at a terminal is read line by line, each a message, and answers are written to stdout.
    """
    options = options_from(given)
    if options.model == "?":
        from koi_lang.cli.models import pick

        options = replace(options, model=pick(options.key_lookup()))
    entry = program.compiled(file, strict=given["strict"], fresh=given["no_cache"])
    if not options.quiet:
        show_warnings(entry.warnings)
    sys.exit(_talk(file, entry, options, Wishes(agent, event, resume)))


def _talk(file: str, entry: cache.Entry, options: Options, wishes: Wishes) -> int:
    """Talk to the end and give the exit code; whatever goes wrong is told once."""
    failed: list[int] = []

    def work() -> None:
        chat, earlier = _conversation(file, entry, options, wishes)
        failed.append(asyncio.run(_run(chat, earlier)))

    code = exit_code_of(work, debug=options.debug, redact=options.key_lookup().redactor())
    return EXIT_FAILED if code == EXIT_OK and any(failed) and not _is_terminal() else code


def _conversation(
    file: str, entry: cache.Entry, options: Options, wishes: Wishes
) -> tuple[Conversation, OpenRun | None]:
    """A conversation that has not begun, and what it goes on from. Raises KoiError."""
    from koi_lang.cli.chat.conversation import Conversation
    from koi_lang.cli.prepared import prepared
    from koi_lang.cli.sessions import Opener

    ready = prepared(file, entry, options)
    inventory.require_servers(ready.module, Path.cwd())
    target = _target(inventory.agents_of(ready.module), wishes)
    screen = _screen(options)
    opener = Opener(ready, screen.note)
    earlier = opener.reopen(wishes.resume, None) if wishes.resume else None
    screen.chat = Conversation(opener.served(), target, screen, ready.redactor())
    return screen.chat, earlier


def _screen(options: Options) -> Editor | Piped:
    """What shows a conversation, and reads what is typed; the library for terminals is only loaded for one."""
    from koi_lang.cli.lines import look_of

    wants_plain = options.plain or settings.variable("KOI_PLAIN") is not None
    if wants_plain or not _is_terminal() or settings.variable("TERM") in (None, "dumb"):
        from koi_lang.cli.chat.piped import Piped

        return Piped(look_of(sys.stderr), person=_is_terminal())
    from koi_lang.cli.chat.editor import Editor

    return Editor(look_of(sys.stdout), options.key_lookup().redactor())


def _target(agents: Sequence[Any], wishes: Wishes) -> Target:
    """The handler that messages are for; the person is asked where there are several. Raises UsageError."""
    from koi_lang.cli.chat.targets import targets

    found = targets(agents, wishes.agent, wishes.event)
    if len(found) == 1:
        return found[0]
    names = [target.name for target in found]
    if not _is_terminal():
        help = f"Choose one with `koi chat FILE AGENT --event NAME`: {', '.join(f'`{name}`' for name in names)}."
        raise UsageError("several handlers take a message", help=help)
    chosen = click.prompt("Which one takes your messages?", type=click.Choice(names), err=True)
    return found[names.index(chosen)]


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


async def _run(chat: Conversation, earlier: OpenRun | None) -> int:
    """Talk to the end; gives how many calls and commands have failed."""
    from koi_lang.rpc.session import GRACE_S

    task = asyncio.current_task()
    assert task is not None, "this runs in a task"
    # What is under way is then ended, and the terminal left as it was.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    async with chat.dispatcher.session.opened(earlier) as session:
        if earlier is not None:
            chat.telling.tell_earlier()
            chat.screen.note(f"going on with {session.run.id}")
        chat.screen.note(f"{chat.target.name} of {session.served.name}; {HINT}")
        await chat.screen.run()
        await session.close(0 if chat.is_busy else GRACE_S)
    return chat.telling.failed
