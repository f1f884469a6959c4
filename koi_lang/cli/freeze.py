"""`koi freeze`."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import click

from koi_lang.cli.completing.values import complete_handler, complete_program
from koi_lang.cli.options import no_extensions_option, settings_here
from koi_lang.cli.running import run_program
from koi_lang.cli.ui.doubts import can_ask
from koi_lang.cli.ui.interrupts import leave
from koi_lang.cli.ui.text import count_text
from koi_lang.errors import JournalError, KoiError, SettingsError
from koi_lang.freezing.candidates import AmbiguousError, UnexplainedError
from koi_lang.freezing.plans import differences, explain_calls
from koi_lang.freezing.recordings import RecordedCall, RecordedCalls, recorded_calls, recordings_beside
from koi_lang.freezing.wording import FixedText
from koi_lang.program import loader, typed_code
from koi_lang.program.safe_expressions import evaluate
from koi_lang.runtime.actions.control import FOR_EACH
from koi_lang.runtime.journal import store
from koi_lang.runtime.model_calls.frozen_plans import EXPECT, FOLDER, FrozenPlan, describe_form, plan_path, read_plan
from koi_lang.sessions.options import RunOptions
from koi_lang.sessions.plan_checks import TELLS_MORE, PlanCheck, check_plan, stands_alone
from koi_lang.sessions.prepared import Prepared, prepare_program
from koi_lang.sessions.prompt_preview import CallToPreview, PromptPreview, call_named, preview_prompt
from koi_lang.sessions.trust import doubt_about, read_signed
from koi_lang.settings import read_settings
from koi_lang.system.interpolation import HOLE
from koi_lang.system.text_width import clean

# Recordings that are taken where nothing is said.
DEFAULT_RUNS = 5
MAX_LEFT_OUT = 5
# Runs that are made to tell explanations apart.
MAX_ASKED = 3
QUESTION = "Does this do what the playbook says for every payload of this form?"
ASK_HELP = "Configure a model for `--ask`; a rehearsal says nothing about what a model does."


class FreezeError(KoiError):
    """No plan can be made of some recordings."""


@click.command()
@click.argument("file", shell_complete=complete_program)
@click.argument("handler", required=False, metavar="[AGENT.HANDLER]", shell_complete=complete_handler)
@click.option("--runs", "runs", multiple=True, metavar="N|ID", help="Explain the last N calls, or those of these runs.")
@click.option("--ask", is_flag=True, help="Where two explanations fit, run the handler with what tells them apart.")
@click.option("--fixed", "fixed", multiple=True, metavar="TEXT", help="Words that are always so, also where not said.")
@click.option("--yes", is_flag=True, help="Confirm the plan that is shown: it does what the playbook says.")
@click.option("--check", "only_check", is_flag=True, help="Hold the plans of FILE against all recordings instead.")
@click.option("--trust", is_flag=True, help="Also take journals that this machine has not signed.")
@no_extensions_option
def command(file: str, handler: str | None, runs: Sequence[str], fixed: Sequence[str], **how: bool) -> None:
    """Make a plan of recorded calls of AGENT.HANDLER that answers in the place of its model.

    The plan is a file beside FILE, `plans/AGENT.HANDLER.json`; `koi run` uses it while what it was made for has not
    changed. Where two explanations fit the recordings, both are named and nothing is written. You are shown the plan
    beside the playbook, and are asked whether it does what that says.
    """
    options = RunOptions(no_extensions=how["no_extensions"], settings=settings_here())
    ready = prepare_program(file, loader.load_compiled(file), options)
    if how["only_check"]:
        sys.exit(_check(ready))
    call = call_named(ready, handler or "")
    path = plan_path(Path(ready.path).parent / FOLDER, *call.name.split(".", 1))
    _require_own(path, Path(ready.path).name)
    made = _make_plan(ready, call, runs, fixed, asks=MAX_ASKED if how["ask"] else 0, trust=how["trust"])
    plan = _confirm(made, is_confirmed=how["yes"])
    _write(path, plan)
    shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    count = sum(action["intent"] != EXPECT for action in plan.actions)
    explained = f"{count_text(len(plan.recordings), 'recording')} explained by {count_text(count, 'action')}"
    click.echo(clean(f"{call.name}: {explained}; {shown}"))


def can_freeze(file: str, handler: str) -> bool:
    """Whether recorded calls of a handler are explained, so that only the person's word for the plan is missing.

    Raises SettingsError.
    """
    try:
        ready = prepare_program(file, loader.load_compiled(file), RunOptions(settings=read_settings()))
        _make_plan(ready, call_named(ready, handler), (), (), asks=0, trust=False)
    except SettingsError:
        raise
    except KoiError:
        return False
    return True


def _require_own(path: Path, program: str) -> None:
    """Raise FreezeError where the plan in a file is that of another program which is still there."""
    other = program
    with suppress(KoiError):
        other = read_plan(path).program
    if other != program and (path.parent.parent / other).is_file():
        help = "Programs with agents and handlers of the same names each need a folder of their own."
        raise FreezeError(f"`{FOLDER}/{path.name}` is the plan of `{other}`", help=help)


class MadePlan(NamedTuple):
    """A plan that a person is to confirm.

    Attributes:
        doubts: what they are to confirm word by word.
        recordings: that it explains.
    """

    plan: FrozenPlan
    playbook: str
    doubts: Sequence[FixedText]
    recordings: Sequence[RecordedCall]


def _make_plan(
    ready: Prepared, call: CallToPreview, runs: Sequence[str], fixed: Sequence[str], *, asks: int, trust: bool
) -> MadePlan:
    """The plan of recorded calls, and of so many more as may be made to tell explanations apart.

    Raises FreezeError.
    """
    more, latest = 0, ""
    while True:
        calls = _find_calls(ready, call, runs, trust=trust, more=more)
        preview = asyncio.run(preview_prompt(ready, _with_payload(call, calls), lambda line: None))
        try:
            return _plan(ready, call, preview, calls, fixed)
        except AmbiguousError as error:
            is_stuck = calls.usable[0].run == latest
            if more == asks or is_stuck or not isinstance(error.names.get("args"), dict):
                help = "Record such a run, then freeze it again; `--ask` makes it."
                help = _help_of(calls) or help if is_stuck else help
                raise FreezeError(f"`{call.name}` is not frozen: {error.sentence()}", help=help) from error
            _record_call(ready, call, error)
            more, latest = more + 1, calls.usable[0].run


def _confirm(made: MadePlan, *, is_confirmed: bool) -> FrozenPlan:
    """A plan that the person has confirmed, who is shown it.

    Args:
        is_confirmed: whether they have done so but for what is in doubt.

    Raises:
        FreezeError: they have not.
    """
    name, doubts = made.plan.handler, made.doubts
    for line in _lines_of(made):
        click.echo(_spell_out(line))
    if is_confirmed and not doubts:
        return made.plan
    doubtful = list(dict.fromkeys(" ".join(each.doubtful) if each.intent else each.text for each in doubts))
    quoted = (shlex.quote(each) if each.isprintable() else f"$'{_spell_out(each)}'" for each in doubtful)
    options = " ".join([*(f"--fixed {each}" for each in quoted), "--yes"])
    why = _spell_out(doubts[0].doubt) if doubts else "nobody has said that its plan does what the playbook says"
    write = "Write into the playbook what is in doubt; or if" if doubts else "If"
    help = (
        f"{write} the plan does what the playbook says for every payload of this form, type `koi freeze … {options}`."
    )
    if not can_ask() or not click.confirm(QUESTION, err=True):
        raise FreezeError(f"`{name}` is not frozen: {why}", help=help)
    return replace(made.plan, confirmed=(*made.plan.confirmed, *doubtful))


# ---------------------------------------------------------------- a plan in plain lines


def _lines_of(made: MadePlan) -> Iterator[str]:
    """The playbook, the form of its payloads, the plan, and what is in doubt."""
    yield f"playbook of {made.plan.handler}:"
    yield from (f"  {line.strip()}" for line in made.playbook.strip().splitlines())
    yield "form:"
    yield from (f"  {line}" for part in ("args", "state") for line in describe_form(made.plan.fits[part], part))
    yield "plan:"
    yield from describe_actions(made.plan.actions, "  ")
    if made.doubts:
        yield "in doubt:"
    for each in made.doubts:
        count = f"{each.count_in(made.recordings)} of {count_text(len(made.recordings), 'recording')}"
        yield f"  ? {each.doubt}" + (f" ({count})" if each.intent else "")


def describe_actions(actions: Sequence[Mapping[str, Any]], indent: str) -> Iterator[str]:
    """A line for each action and each of its fields, those in conditions and loops indented."""
    inner = f"{indent}  "
    for action in actions:
        if action["intent"] == EXPECT:
            is_command = "shell" in action["fits"]
            parts = [f"plain words in `{action['as']}`"] if is_command else describe_form(action["fits"], action["as"])
            yield f"{indent}only with {'; '.join(parts)}"
        elif action["intent"] == "if":
            yield f"{indent}if {action['condition']}:"
            yield from describe_actions(action["then"], inner)
            yield from [f"{indent}otherwise:"] if action.get("else") else []
            yield from describe_actions(action.get("else", ()), inner)
        elif action["intent"] == FOR_EACH:
            yield f"{indent}for each {action['as']} of {action['of']}:"
            yield from describe_actions(action["actions"], inner)
        else:
            yield f"{indent}{action['intent']}" + (f" ({action['id']})" if "id" in action else "")
            fields = {name: value for name, value in action.items() if name not in ("intent", "id")}
            yield from (f"{inner}{line}" for name, value in fields.items() for line in _field_lines(value, name))


def _field_lines(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, (dict, list)) and value:
        for name, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _field_lines(each, f"{path}.{name}")
        return
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = text if text.isprintable() else json.dumps(text, ensure_ascii=False)
    yield f"{path}: {text}" + ("" if HOLE.search(text) else "   (always so)")


def _spell_out(text: str) -> str:
    """A text in which nothing is invisible, and nothing turns the direction of writing."""
    return "".join(sign if sign.isprintable() else json.dumps(sign)[1:-1] for sign in text)


def _record_call(ready: Prepared, call: CallToPreview, ambiguity: AmbiguousError) -> None:
    """Make a call that tells two explanations apart, in a run of its own."""
    args = json.dumps(ambiguity.names["args"], ensure_ascii=False)
    click.echo(clean(f"{ambiguity.sentence()}; {call.name} is run with {args}"), err=True)
    program = Path(os.path.relpath(ready.path, Path.cwd())).as_posix()
    file = typed_code.keep(f'import "./{program}"\nrun {call.name}({args})\n', Path.cwd())
    if code := run_program(file, loader.load_compiled(file), replace(ready.options, missing_model_help=ASK_HELP)):
        leave(code)


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


def _plan(
    ready: Prepared, call: CallToPreview, preview: PromptPreview, calls: RecordedCalls, fixed: Sequence[str]
) -> MadePlan:
    """The plan of some recorded calls, which all others bear out.

    Raises AmbiguousError or FreezeError.
    """
    usable = [each for each in calls.usable if each.playbook == preview.playbook]
    for each in calls.usable:
        if each not in usable:
            calls.left_out[each.run] = "its playbook was another one"
    try:
        frozen = explain_calls(usable, evaluate, fixed)
    except UnexplainedError as error:
        raise FreezeError(f"`{call.name}` is not frozen: {error}", help=_help_of(calls)) from error
    if not stands_alone(preview):
        raise FreezeError(f"`{call.name}` is not frozen: {TELLS_MORE}", help="Its agent `uses` files, such as notes.")
    runs = tuple(dict.fromkeys(each.run for each in usable))
    plan = FrozenPlan(call.name, Path(ready.path).name, runs, preview.hashes, frozen.fits, frozen.actions, tuple(fixed))
    others = recorded_calls(call.agent.about, call.handler.event, recordings_beside(Path(ready.path), ready.folder))
    if line := next(differences(plan, others.usable, evaluate), ""):
        message = f"`{call.name}` is not frozen: another recording did something else; {line}"
        raise FreezeError(message, help="`--runs N` explains the last N calls; remove a recording that is wrong.")
    return MadePlan(plan, preview.playbook, frozen.doubts, usable)


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
            check = check_plan(ready, read_plan(path))
        except KoiError as error:
            check = PlanCheck([error.message], 0)
        wrong += bool(check.problems)
        holds = "holds" if check.recordings else "there is no recording to hold it against"
        for line in check.problems or [holds]:
            click.echo(clean(f"{path.stem}: {line}"))
    return 1 if wrong else 0
