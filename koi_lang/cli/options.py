"""The options of commands that run programs, and their parser."""

from __future__ import annotations

import functools
import json
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from koi_lang.cli.completing.values import complete_file
from koi_lang.cli.ui.colours import colour_option, command_words
from koi_lang.cli.ui.trust import AGREED, settle_trust
from koi_lang.errors import UsageError
from koi_lang.extensions.finding import FUNCTION, outlined_extensions
from koi_lang.program import loader
from koi_lang.sessions.options import COMMAND_HELP, LIMITS, RunOptions, is_rule
from koi_lang.settings import ProjectSettings, read_settings
from koi_lang.settings.efforts import EFFORTS
from koi_lang.system.text_width import clean

TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|)")
UNITS_S = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
Command = TypeVar("Command", bound=Callable[..., Any])


allow_option = click.option(
    "--allow",
    multiple=True,
    metavar="RULE",
    help="Allow `run`, `run:ls *`, `write:src/**` or `mcp:files:write_*`.",
)


def _note_trust(context: click.Context, option: click.Parameter, value: bool) -> None:
    """Note the flag for the command itself, not among its parameters: a journal trusts no folder."""
    if value:
        context.meta[AGREED] = True


trust_folder_option = click.option(
    "--trust-folder",
    is_flag=True,
    expose_value=False,
    callback=_note_trust,
    help="Have all settings of this folder count from now on.",
)
plan_option = click.option("--plan", is_flag=True, help="Change nothing before you have accepted a plan.")
no_memory_option = click.option("--no-memory", is_flag=True, help="Tell agents no notes, and offer none to keep.")
plain_option = click.option(
    "--plain", is_flag=True, help="Show finished lines only, and move nothing; KOI_PLAIN=1 does, too."
)
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Say nothing on stderr but errors and refused actions.")
result_option = click.option(
    "--result",
    "as_result",
    is_flag=True,
    default=None,
    help="Write only what the last `run` returned to stdout, as JSON on one line; objects of Python become texts.",
)
verbose_option = click.option(
    "-v", "--verbose", is_flag=True, help="Show every event on stderr, without the texts of models."
)
answers_option = click.option(
    "--answers",
    metavar="FILE",
    shell_complete=complete_file,
    help="Take the model's answers from a JSON file: a list of actions or texts, or such lists by a text of playbooks.",
)
rehearse_option = click.option("--rehearse", is_flag=True, help="Follow playbooks without a model.")
keys_option = click.option(
    "--keys",
    metavar="FILE",
    shell_complete=complete_file,
    help="Take keys from lines NAME=VALUE of a file, before all else.",
)
no_extensions_option = click.option("--no-extensions", is_flag=True, help="Leave installed extensions out.")


def inspecting_command(command: Command) -> Command:
    """A command that inspects programs: it executes nothing of them without its option `--run-code`.

    Stands next to the function, below `click.command` and its options.
    """

    @functools.wraps(command)
    def inspect(*args: Any, run_code: bool, **given: Any) -> None:
        if run_code:
            command(*args, **given)
            return
        with loader.inspecting():
            try:
                command(*args, **given)
            finally:
                for name in outlined_extensions(loader.loaded_modules().values()):
                    message = f"`{FUNCTION}` of `{name}` is not called, so what it adds is not shown"
                    click.echo(clean(f"{message}; add `--run-code` to call it"), err=True)

    help = "Also run code of the program, such as Python that it imports."
    return click.option("--run-code", is_flag=True, help=help)(inspect)  # type: ignore[return-value]


class Count(click.IntRange):
    """A whole number from 1 on."""

    name = "whole number"

    def __init__(self) -> None:
        super().__init__(1)


class Amount(click.FloatRange):
    """An amount of money, more than nothing."""

    name = "number"

    def __init__(self) -> None:
        super().__init__(0, min_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """A number above 0; neither `inf`, which is no limit, nor `nan`."""
        amount: float = super().convert(value, param, ctx)
        return amount if math.isfinite(amount) else self.fail(f"{value} is no amount of money", param, ctx)


def running_options(whole: str, one: str) -> Callable[[Command], Command]:
    """The options of every command that runs programs.

    Args:
        whole: what tokens and money are limited of, such as `the whole run`.
        one: what the time is limited of.
    """
    model, effort, *limits = limiting_options(whole, one)
    return add_options(
        click.option("--strict", is_flag=True, help="Treat warnings as errors."),
        model,
        effort,
        keys_option,
        answers_option,
        rehearse_option,
        allow_option,
        trust_folder_option,
        *limits,
        no_extensions_option,
        click.option("--no-cache", is_flag=True, help="Compile anew."),
        quiet_option,
        colour_option,
        click.option("--debug", is_flag=True, help="Show Python tracebacks, and all that models are told."),
    )


def limiting_options(whole: str, one: str, *, money: str = "") -> tuple[Callable[[Command], Command], ...]:
    """The options that say which model is used, and what it may take; also those of a run that goes on.

    Args:
        whole: what tokens and money are limited of, such as `the whole run`.
        one: what the time is limited of.
        money: what money is limited of, where that is not `whole`.
    """
    return (
        click.option("-m", "--model", metavar="MODEL", help="Use this model, `provider/model`; `?` lets you choose."),
        click.option("-e", "--effort", type=click.Choice(EFFORTS), help="How much models think before they answer."),
        *spending_options(whole, money or whole),
        click.option("--max-time", metavar="TIME", help=f"Most time {one}, such as 30s, 10m or 1h."),
        click.option("--max-concurrency", type=Count(), help="Most requests to models at once, 32 by default."),
    )


def spending_options(whole: str, money: str) -> tuple[Callable[[Command], Command], ...]:
    """The options that limit the cost of a run.

    Args:
        whole: what turns, requests and tokens are limited of, such as `the whole run`; `money` the same of money.
    """
    return (
        click.option(
            "--max-turns",
            type=Count(),
            help="Most answers of the model in a playbook, instead of the `turns` of its `budget`.",
        ),
        click.option("--max-requests", type=Count(), help=f"Most requests to models of {whole}."),
        click.option("--max-tokens", type=Count(), help=f"Most tokens of {whole}."),
        click.option("--max-usd", type=Amount(), help=f"Most money of {money}."),
    )


def limiting_words(given: Mapping[str, Any]) -> tuple[str, ...]:
    """The words of a command line for these options."""
    names = {"model": "-m", "effort": "-e", **{f"max_{name}": f"--max-{name}" for name in LIMITS}}
    values = [(option, str(given[name])) for name, option in names.items() if given.get(name) is not None]
    return tuple(word for pair in (*values, *(("--allow", rule) for rule in given.get("allow", ()))) for word in pair)


def argument_options(of: str) -> Callable[[Command], Command]:
    """The options `--arg` and `--args` of a command that starts a handler.

    Args:
        of: what has the fields, such as `the payload`.
    """
    return add_options(
        click.option("--arg", "pairs", multiple=True, metavar="NAME=VALUE", help=f"Set a field of {of}."),
        click.option("--args", "document", metavar="JSON", help=f"Set fields of {of} by one JSON object."),
    )


def add_options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Options of a command, in the order in which its help lists them."""

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def settings_here(folder: Path | None = None) -> ProjectSettings:
    """The settings of a folder, by default the current one; the person is asked whether they trust it."""
    settings = read_settings(folder)
    return settle_trust(settings) if settings.files else settings


def options_from(given: Mapping[str, Any]) -> RunOptions:
    """What parsed options say; `pairs` and `document` are fields of the payload. Raises UsageError.

    Without a model nothing is rehearsed unasked where no terminal is: nobody would see that nothing was done.
    """
    plain = {name: value for name, value in given.items() if name in RunOptions.__dataclass_fields__}
    most = {name: given[f"max_{name}"] for name in LIMITS if given.get(f"max_{name}") is not None}
    if "time" in most:
        most["time"] = seconds("--max-time", most["time"])
    if given.get("model") is not None and not given["model"].strip():
        raise UsageError("`-m` names no model", help="Write `-m provider/model`, or `-m ?` to choose one.")
    payload = payload_of(given.get("pairs", ()), given.get("document"))
    is_seen = any(each is not None and each.isatty() for each in (sys.stdin, sys.stdout, sys.stderr))
    said = {
        "allow": allow_rules(given["allow"]),
        "words": command_words(sys.argv[1:]),
        "missing_model_help": "" if is_seen or plain.get("rehearse") else COMMAND_HELP,
        "settings": settings_here(),
    }
    return RunOptions(**{**plain, "payload": payload, "limits": most, **said})


def payload_of(pairs: Sequence[str], document: str | None) -> dict[str, Any]:
    """The fields of `--args` and `--arg`. Raises UsageError."""
    loaded = {} if document is None else _json(document, None)
    if not isinstance(loaded, dict):
        raise UsageError("`--args` takes one JSON object", help="""write --args '{"name": "Ada"}'.""")
    return {**loaded, **fields_of(pairs)}


def fields_of(pairs: Sequence[str]) -> dict[str, Any]:
    """Fields from `NAME=VALUE`; a value that is JSON is taken as such, otherwise as text. Raises UsageError.

    A number that JSON would write differently, such as the version `1.10`, stays a text; where the handler declares a
    number it becomes one, as `1` becomes a text where it declares that.
    """
    result: dict[str, Any] = {}
    for pair in pairs:
        name, mark, value = pair.partition("=")
        if not mark:
            raise UsageError(f"`--arg {pair}` has no value", help=f"write --arg {pair}=VALUE.")
        read = _json(value, value)
        result[name] = value if isinstance(read, float) and json.dumps(read) != value else read
    return result


def seconds(option: str, text: str) -> float:
    """A time such as `30s`, `10m` or `1h`. Raises UsageError."""
    found = TIME.fullmatch(text.strip().lower())
    duration_s = float(found[1]) * UNITS_S[found[2]] if found else 0.0
    if not duration_s:
        raise UsageError(
            f"`{option} {text}` is no time", help="Write a number with a unit: 500ms, 30s, 10m, 1h or 30d."
        )
    return duration_s


def age_s(option: str, text: str) -> float:
    """A time with its unit: 30 would be seconds, and is likely to be meant as days. Raises UsageError."""
    given_s = seconds(option, text)
    if text.strip()[-1].isdigit():
        raise UsageError(f"`{option} {text}` has no unit", help=f"Write `{option} {text.strip()}d` for days.")
    return given_s


def allow_rules(given: Sequence[str]) -> tuple[str, ...]:
    """The rules of `--allow`. Raises UsageError for one that allows nothing."""
    for rule in given:
        if not is_rule(rule):
            help = (
                'Write --allow run, --allow "run:ls *", --allow "write:src/**", --allow web:docs.python.org, --allow '
                '"mcp:files:write_*" for tools of an MCP server, or --allow mcp:files:model to have it ask the model.'
            )
            raise UsageError(f"`--allow {rule}` allows nothing", help=help)
    return tuple(given)


def _json(text: str, otherwise: Any) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return otherwise
