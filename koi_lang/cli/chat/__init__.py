"""`koi chat`."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from koi_lang.cli.completing.values import complete_agent, complete_program, complete_run
from koi_lang.cli.options import no_memory_option, options_from, plain_option, plan_option, running_options
from koi_lang.cli.ui.messages import show_warnings
from koi_lang.lazy import lazy_module
from koi_lang.program import loader
from koi_lang.sessions.options import COMMAND_HELP
from koi_lang.system import resources

if TYPE_CHECKING:
    from koi_lang.cli import models
    from koi_lang.cli.chat import start
else:
    models = lazy_module("koi_lang.cli.models")
    start = lazy_module("koi_lang.cli.chat.start")


@click.command()
@click.argument("file", required=False, default="", shell_complete=complete_program)
@click.argument("agent", required=False, default="", shell_complete=complete_agent)
@click.option("--event", metavar="NAME", default="", help="Give messages to this handler.")
@click.option(
    "--resume",
    metavar="ID",
    default="",
    shell_complete=complete_run,
    help="Go on with an earlier conversation, by its id, or `last`.",
)
@running_options("the conversation", "of an answer")
@click.option("--record/--no-record", default=None, help="Write a journal of the conversation, which is the default.")
@plan_option
@no_memory_option
@plain_option
@click.option("--trust", is_flag=True, help="Go on with a conversation that this machine has not signed.")
def command(file: str, agent: str, event: str, resume: str, trust: bool, **given: Any) -> None:
    """Talk to an agent of FILE: each message is given to a handler, `chat` or `message`, or the only one that takes it.

    Without FILE it is the agent of `koi do`, which works on the project of this folder.

    What is not typed at a terminal is read line by line, each a message, and answers are written to stdout.
    """
    options = options_from(given)
    if options.model == "?":
        options = replace(options, model=models.pick(options.lookup))
    if not file:
        options = replace(options, missing_model_help="" if options.rehearse else COMMAND_HELP)
        file, agent, event = str(resources.standard_skills() / "coder.koi"), agent or "Coder", event or "chat"
    entry = loader.load_compiled(file, strict=given["strict"], fresh=given["no_cache"])
    if not options.quiet:
        show_warnings(entry.warnings)
    sys.exit(start.talk(file, entry, options, start.ChatOptions(agent, event, resume, trust)))
