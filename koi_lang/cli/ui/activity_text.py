"""Somebody at work to the words for what they are doing."""

from __future__ import annotations

from koi_lang.cli.ui.activity import QUESTIONS, ActiveAgent, Activity
from koi_lang.cli.ui.text import ending, one_line, width
from koi_lang.events import OMITTED, CommandEnded, PlanStepFinished, RoundEnded
from koi_lang.runtime.playbook.partial_reply import ReplyPreview

# A text that would be shorter is not shown.
MIN_TEXT = 8


def describe_command_end(ended: CommandEnded) -> str:
    """The end of a command in the background; empty where it was stopped, which is seen by then."""
    code = "" if ended.exit_code is OMITTED else f" with exit code {ended.exit_code}"
    return "" if ended.state == "stopped" else f"command {ended.command} has ended{code}"


def describe_round(ended: RoundEnded) -> str:
    """A round of work that has ended, its gates and what was decided: `round 2 of 3: 0.82, tests green`."""
    gates = [f"{one_line(name)} {'green' if is_green else 'red'}" for name, is_green in ended.gates.items()]
    score = [] if ended.score is None else [f"{ended.score:.2f}"]
    decision = [] if ended.decision == "continue" else [ended.decision]
    return f"round {ended.round} of {ended.rounds}: {', '.join([*score, *gates, *decision])}"


def describe_step(step: PlanStepFinished) -> str:
    """A step of the plan that is done: `step 2 of 5: run the tests`."""
    return f"step {step.step} of {step.steps}: {one_line(step.text)}"


def doing(worker: ActiveAgent) -> str:
    """What somebody is at, without what a model is writing."""
    steps = worker.innermost()
    if not steps or worker.note:
        return worker.note or "working"
    if worker.begun > 1:
        intents = dict.fromkeys(one_line(step.intent) for step in steps)
        return f"{worker.ended} of {worker.begun} done: {', '.join(intents)}"
    step = steps[-1]
    return f"{step.intent if step.intent in QUESTIONS else step.what} {step.note}".rstrip()


def doing_now(work: Activity, worker: ActiveAgent, columns: int = 0, more: str = "") -> str:
    """The same with what a model is writing, in about some columns; without these, only which action that is."""
    if worker.steps or worker.note or worker.asked is None:
        return doing(worker)
    written = work.preview(worker)
    return "thinking" if written is None else _writing(written, columns, more)


def _writing(written: ReplyPreview, columns: int, more: str) -> str:
    if written.kind == "action":
        return _writing_action(written, columns, more)
    before = "thinking: " if written.kind == "thought" else ""
    room = columns - len(before)
    return before + ending(written.text, room, more) if written.text and room >= MIN_TEXT else "thinking"


def _writing_action(written: ReplyPreview, columns: int, more: str) -> str:
    action = f"writing {written.name}".rstrip()
    room = columns - width(action) - len(' ""')
    if written.text and room >= MIN_TEXT and written.name not in QUESTIONS:
        return f'{action} "{ending(written.text + ("" if written.is_whole else more), room, more)}"'
    return f"planning ({written.count} actions)" if written.count > 1 else action
