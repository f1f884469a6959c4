"""`koi check`: the problems of programs, the explanation of a message, and what is understood of a playbook."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from koi_lang.cli.completing.values import complete_code, complete_handler, complete_program
from koi_lang.cli.ui.messages import show_diagnostics
from koi_lang.cli.ui.text import count_text
from koi_lang.compiler import nodes as n
from koi_lang.compiler.compile import Checked
from koi_lang.compiler.rules import explanations
from koi_lang.diagnostics import Diagnostic, LabeledSpan, suggestion
from koi_lang.errors import EXIT_SOURCE, KoiError, UsageError
from koi_lang.lazy import lazy_module
from koi_lang.llm.model_choice import written_choice
from koi_lang.llm.model_name_check import fits, nearest_models
from koi_lang.program import build
from koi_lang.program.files import programs
from koi_lang.runtime.mcp.configured import description_of
from koi_lang.settings import ProjectSettings, read_settings
from koi_lang.setup.availability import connection_of, lists
from koi_lang.setup.keys.lookup import Keys
from koi_lang.source import Source

if TYPE_CHECKING:
    from koi_lang.cli import playbook_readings
else:
    playbook_readings = lazy_module("koi_lang.cli.playbook_readings")

# The code of a warning about the name of a model.
MISTYPED = "E0419"


def _complete(context: click.Context, parameter: click.Parameter, word: str) -> list[CompletionItem]:
    """Codes, or programs and the handlers of one, by what the options before have asked for."""
    if context.params.get("is_explained"):
        return complete_code(context, parameter, word)
    files = context.params.get("files") or ()
    if files and context.params.get("is_playbook"):
        context.params["file"] = files[0]
        return complete_handler(context, parameter, word)
    return complete_program(context, parameter, word)


@click.command()
@click.argument("files", nargs=-1, metavar="FILE...", shell_complete=_complete)
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON list: of problems, or of sentences.")
@click.option("--explain", "is_explained", is_flag=True, help="Explain a CODE, such as E0203; without one, list all.")
@click.option("--playbook", "is_playbook", is_flag=True, help="Show what is understood of a playbook of FILE.")
def command(files: Sequence[str], strict: bool, as_json: bool, is_explained: bool, is_playbook: bool) -> None:
    """Report the problems of each FILE and of all it imports; of a folder those of every `*.koi` in it.

    `koi check --explain [CODE]` explains the code of a message. `koi check --playbook FILE [AGENT.HANDLER]` shows for
    each sentence of a playbook what the rehearsal would do or that it needs a model, names with their declarations,
    permissions with whether the role has them, and warnings. Nothing is run, and no model is asked.
    """
    if is_explained:
        _explain(*files)
    elif not files:
        raise UsageError("no program is named", help="Write `koi check FILE`.")
    elif is_playbook:
        playbook_readings.show_playbook(*files, as_json=as_json)
    else:
        sys.exit(_check(files, strict=strict, as_json=as_json))


def _check(files: Sequence[str], *, strict: bool, as_json: bool) -> int:
    """Report the problems of programs; returns the exit code."""
    reported: dict[Diagnostic, None] = {}
    is_broken, settings = False, read_settings()
    for file in programs(files):
        checked = build.check(file, strict=strict)
        places = {(each.code, each.place.span) for each in checked.diagnostics}
        by_settings = (
            *_mistyped_models(checked, settings),
            *build.missing_servers(checked, lambda name: description_of(name, settings)),
        )
        found = [each for each in by_settings if (each.code, each.place.span) not in places]
        problems = (*checked.diagnostics, *(replace(each, severity="error") if strict else each for each in found))
        is_broken |= any(problem.severity == "error" for problem in problems)
        if not as_json:
            show_diagnostics(problem for problem in problems if problem not in reported)
            counts = Counter(problem.severity for problem in problems)
            parts = [count_text(counts[kind], kind) for kind in ("error", "warning") if counts[kind]]
            click.echo(f"{file}: {', '.join(parts) or 'no problems'}", err=True)
        reported |= dict.fromkeys(problems)
    if as_json:
        click.echo(json.dumps([problem.as_data() for problem in reported], indent=2))
    return EXIT_SOURCE if is_broken else 0


def _explain(code: str = "", *others: str) -> None:
    """Print the explanation of a code, or the first line of each. Raises UsageError."""
    pages = explanations()
    if others:
        raise UsageError("`--explain` takes one code", help="Write `koi check --explain E0203`.")
    if not code:
        click.echo("\n".join(f"{each}  {page.splitlines()[0]}" for each, page in sorted(pages.items())))
    elif code.upper() in pages:
        click.echo(pages[code.upper()])
    else:
        near = suggestion(code.upper(), sorted(pages), "code")
        raise UsageError(f"no message has the code `{code}`", help=near)


# ---------------------------------------------------------------- names that settings know


def _mistyped_models(checked: Checked, settings: ProjectSettings) -> tuple[Diagnostic, ...]:
    """A warning for each model of an `llm` block that its provider does not list; nobody is asked."""
    keys = Keys(settings)
    return tuple(
        warning
        for file in checked.files
        for llm, _ in file.index.of(n.Llm)
        for warning in _name_warnings(llm, file.unit.source, keys)
    )


def _name_warnings(llm: n.Llm, source: Source, keys: Keys) -> Iterator[Diagnostic]:
    given = {each.key: each.value for each in llm.options.properties if isinstance(each, n.Property)}
    model, provider = given.get("model"), given.get("provider")
    if not isinstance(model, n.Text) or "base_url" in given or not isinstance(provider, n.Text | None):
        return
    try:
        maker, name = written_choice({"provider": provider.value if provider else "", "model": model.value})
        known = None if maker == "auto" else lists().find(connection_of(maker, keys))
    except KoiError:  # an unknown provider has its own message, and without a key there is no list
        return
    if known is not None and name and not fits(name, known.names) and (near := nearest_models(name, known.names)):
        help = f"did you mean {' or '.join(f'`{each}`' for each in near)}?"
        place = LabeledSpan(source, model.span)
        yield Diagnostic(MISTYPED, "warning", f"`{maker}` lists no model `{name}`", place, help=help)
