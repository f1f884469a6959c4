"""`koi freeze`."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import click

from koi_lang.cli.completing.values import complete_handler, complete_program
from koi_lang.cli.options import no_extensions_option, settings_here
from koi_lang.cli.running import run_program
from koi_lang.cli.ui.text import count_text
from koi_lang.errors import JournalError, KoiError
from koi_lang.freezing.candidates import AmbiguousError, UnexplainedError
from koi_lang.freezing.plans import differences, explain_calls
from koi_lang.freezing.recordings import RecordedCalls, recorded_calls, recordings_beside
from koi_lang.program import loader, typed_code
from koi_lang.program.safe_expressions import evaluate
from koi_lang.runtime.journal import store
from koi_lang.runtime.model_calls.frozen_plans import FOLDER, FrozenPlan, plan_path, read_plan
from koi_lang.sessions.options import RunOptions
from koi_lang.sessions.prepared import Prepared, prepare_program
from koi_lang.sessions.prompt_preview import CallToPreview, PromptPreview, call_named, preview_prompt
from koi_lang.sessions.trust import doubt_about, read_signed
from koi_lang.system.text_width import clean

# Recordings that are taken where nothing is said.
DEFAULT_RUNS = 5
MAX_LEFT_OUT = 5
# Runs that are made to tell explanations apart.
MAX_ASKED = 3


class FreezeError(KoiError):
    """No plan can be made of some recordings."""


@click.command()
@click.argument("file", shell_complete=complete_program)
@click.argument("handler", required=False, metavar="[AGENT.HANDLER]", shell_complete=complete_handler)
@click.option("--runs", "runs", multiple=True, metavar="N|ID", help="Explain the last N calls, or those of these runs.")
@click.option("--ask", is_flag=True, help="Where two explanations fit, run the handler with what tells them apart.")
@click.option("--check", "only_check", is_flag=True, help="Hold the plans of FILE against all recordings instead.")
@click.option("--trust", is_flag=True, help="Also take journals that this machine has not signed.")
@no_extensions_option
def command(file: str, handler: str | None, runs: Sequence[str], ask: bool, only_check: bool, **how: bool) -> None:
    """Make a plan of recorded calls of AGENT.HANDLER that answers in the place of its model.

    The plan is a file beside FILE, `plans/AGENT.HANDLER.json`; `koi run` uses it while what it was made for has not
    changed. Where two explanations fit the recordings, both are named and nothing is written.
    """
    options = RunOptions(no_extensions=how["no_extensions"], settings=settings_here())
    ready = prepare_program(file, loader.load_compiled(file), options)
    if only_check:
        sys.exit(_check(ready))
    call = call_named(ready, handler or "")
    plan = _make_plan(ready, call, runs, asks=MAX_ASKED if ask else 0, trust=how["trust"])
    path = plan_path(Path(ready.path).parent / FOLDER, *call.name.split(".", 1))
    _write(path, plan)
    shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    explained = (
        f"{count_text(len(plan.recordings), 'recording')} explained by {count_text(len(plan.actions), 'action')}"
    )
    click.echo(clean(f"{call.name}: {explained}; {shown}"))


def _make_plan(ready: Prepared, call: CallToPreview, runs: Sequence[str], *, asks: int, trust: bool) -> FrozenPlan:
    """The plan of recorded calls, and of so many more as may be made to tell explanations apart. Raises FreezeError."""
    more = 0
    while True:
        calls = _find_calls(ready, call, runs, trust=trust, more=more)
        preview = asyncio.run(preview_prompt(ready, _with_payload(call, calls), lambda line: None))
        try:
            return _plan(call, preview, calls, Path(ready.path).name)
        except AmbiguousError as error:
            if more == asks or not isinstance(error.names.get("args"), dict):
                help = "Record such a run, then freeze it again; `--ask` makes it."
                raise FreezeError(f"`{call.name}` is not frozen: {error.sentence()}", help=help) from error
            _record_call(ready, call, error)
            more += 1


def _record_call(ready: Prepared, call: CallToPreview, ambiguity: AmbiguousError) -> None:
    """Make a call that tells two explanations apart, in a run of its own."""
    args = json.dumps(ambiguity.names["args"], ensure_ascii=False)
    click.echo(clean(f"{ambiguity.sentence()}; {call.name} is run with {args}"), err=True)
    program = Path(os.path.relpath(ready.path, Path.cwd())).as_posix()
    file = typed_code.keep(f'import "./{program}"\nrun {call.name}({args})\n', Path.cwd())
    run_program(file, loader.load_compiled(file), ready.options)


def _find_calls(ready: Prepared, call: CallToPreview, runs: Sequence[str], *, trust: bool, more: int) -> RecordedCalls:
    """The recorded calls of a handler, the latest first. Raises FreezeError or JournalError."""
    counts = [int(each) for each in runs if each.isdecimal() and len(each) < 6]
    named = [each for each in runs if not (each.isdecimal() and len(each) < 6)]
    is_file = {each: each.endswith(store.SUFFIX) and Path(each).is_file() for each in named}
    paths = [Path(each) if is_file[each] else store.find(ready.folder, each) for each in named]
    paths = paths or store.journals(ready.folder)[::-1]
    most = counts[0] + more if counts else None if named else DEFAULT_RUNS + more
    calls, agent = RecordedCalls(), call.agent.about
    for path in paths:
        try:
            journal = read_signed(path, ready.folder, lambda line: None)
        except JournalError as error:
            calls.left_out[path.stem] = error.message
            continue
        doubt = "" if trust else doubt_about(journal)
        before = len(calls.usable)
        calls.add(journal, agent.name, call.handler.event, agent.state())
        if doubt and len(calls.usable) > before:
            del calls.usable[before:]
            calls.left_out[path.stem] = f"its journal {doubt}; `--trust` takes it all the same"
        if most is not None and len(calls.usable) >= most:
            del calls.usable[most:]
            break
    if not calls.usable:
        message = f"there is no recorded call of `{call.name}` to explain"
        raise FreezeError(message, help=_help_of(calls) or "`koi run` records some; give it different arguments.")
    return calls


def _help_of(calls: RecordedCalls) -> str:
    lines = [f"`{run}` is left out: {why}." for run, why in list(calls.left_out.items())[:MAX_LEFT_OUT]]
    return " ".join(lines)


def _with_payload(call: CallToPreview, calls: RecordedCalls) -> CallToPreview:
    return CallToPreview(call.agent, call.handler, calls.usable[0].args)


def _plan(call: CallToPreview, preview: PromptPreview, calls: RecordedCalls, program: str) -> FrozenPlan:
    """The plan of some recorded calls. Raises AmbiguousError or FreezeError."""
    usable = [each for each in calls.usable if each.playbook == preview.playbook]
    for each in calls.usable:
        if each not in usable:
            calls.left_out[each.run] = "its playbook was another one"
    try:
        frozen = explain_calls(usable, evaluate)
    except UnexplainedError as error:
        raise FreezeError(f"`{call.name}` is not frozen: {error}", help=_help_of(calls)) from error
    runs = tuple(dict.fromkeys(each.run for each in usable))
    return FrozenPlan(call.name, program, runs, preview.hashes, frozen.fits, frozen.actions)


def _write(path: Path, plan: FrozenPlan) -> None:
    """Write a plan at once. Raises FreezeError."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(json.dumps(plan.as_data(), indent=2, ensure_ascii=False) + "\n", "utf-8")
        beside.replace(path)
    except OSError as error:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise FreezeError(f"the plan cannot be written: {error.strerror}", help="Make the folder writable.") from error


# ---------------------------------------------------------------- plans that are there


def _check(ready: Prepared) -> int:
    """Hold the plans of a program against all recordings; gives the exit code."""
    wrong = 0
    for path in sorted((Path(ready.path).parent / FOLDER).glob("*.json")):
        try:
            found = _problems(ready, read_plan(path))
        except KoiError as error:
            found = [error.message]
        wrong += bool(found)
        for line in found or ["holds"]:
            click.echo(clean(f"{path.stem}: {line}"))
    return 1 if wrong else 0


def _problems(ready: Prepared, plan: FrozenPlan) -> list[str]:
    """What recordings and the program as it is now have against a plan. Raises KoiError."""
    call = call_named(ready, plan.handler)
    calls = recorded_calls(call.agent.about, call.handler.event, recordings_beside(Path(ready.path), ready.folder))
    if not calls.usable:
        return []
    preview = asyncio.run(preview_prompt(ready, _with_payload(call, calls), lambda line: None))
    changed = [part for part, hash in preview.hashes.items() if plan.hashes.get(part) != hash]
    made = [f"was made for another {' and another '.join(changed)}; freeze it again"] if changed else []
    return [*made, *differences(plan, calls.usable, evaluate)]
