"""Runs in plan mode that are cut and go on: the person is not asked again, and nothing is done that was not allowed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from koi_lang.runtime.host import NobodyToAskError
from tests.journal.again import Recorder, each_cut
from tests.playbook.playing import Player, act, done
from tests.running import RecordingHost

PROGRAM = """
role Worker { can registry, can execute }
agent Main : Worker { on go(args) { playbook "Do the work." } }
"""
WRITE = act("registry_set", key="k", value=1)
ANSWERS = [
    {"batch": [WRITE]},
    act("propose_plan", steps=[{"text": "first"}]),
    act("propose_plan", steps=[{"text": "first"}, {"text": "second"}], why="Both."),
    {"batch": [act("finish_step", step=1), WRITE]},
    {"batch": [act("finish_step", step=2), done(ok=True)]},
]
SAID = ("there is a second one", "2: another", "accept")


@dataclass(slots=True)
class Deciding(RecordingHost):
    """A person who answers by what is asked, and only so often."""

    asked: int = 0

    async def ask(self, question: str, options: Sequence[str] = ()) -> str:
        """Refuse a plan of one step, then change the second step, then accept. Raises NobodyToAskError for the rest."""
        self.asked += 1
        if "2." not in question:
            return SAID[0]
        if "2. second" in question:
            return SAID[1]
        if "2. another" in question:
            return SAID[2]
        raise NobodyToAskError(question)


def test_a_run_in_plan_mode_goes_on_where_it_was_cut(play: Player) -> None:
    """After each entry: the same refusals, the same plan in front of the model, the same steps that are done."""
    recorder = Recorder(play, PROGRAM, ANSWERS, {"plan": True, "host": Deciding()})
    whole, *tapes = each_cut(recorder)
    systems = [request.system for request in whole.played.requests]
    entries = [(entry.kind, entry.data) for entry in whole.entries if entry.kind.startswith("plan")]

    assert {"ok": True} == whole.played.result
    assert ["1. first\n2. another", "Done: 1\n2. anot"] == [
        text.partition("step that is done.\n")[2][:n] for text, n in zip(systems[3:], (19, 15), strict=True)
    ]
    assert [
        ("plan_mode_changed", {"on": True}),
        ("plan_decided", {"answer": "refused", "steps": ["first"], "words": SAID[0]}),
    ] == entries[:2]
    for tape in tapes:
        finished = [entry.data["step"] for entry in tape.entries if entry.kind == "plan_step_finished"]
        denied = [entry for entry in tape.entries if entry.kind == "failed"]
        assert ([1, 2], 1) == (finished, len(denied))
        assert ["k"] == [key for key in asyncio.run(tape.played.run.registry.keys("")) if not key.startswith("task:")]


@pytest.mark.parametrize("said", [["accept"], []])
def test_what_was_decided_is_not_asked_again(play: Player, said: list[str]) -> None:
    """A run that goes on behind a decision has it, also where nobody is there any more."""
    recorder = Recorder(
        play, PROGRAM, [ANSWERS[1], {"batch": [WRITE, done()]}], {"plan": True, "host": RecordingHost(["accept"])}
    )
    whole = recorder.run()
    decided = next(entry.n for entry in whole.entries if entry.kind == "plan_decided")
    again = Recorder(play, PROGRAM, recorder.answers, {"plan": True, "host": RecordingHost(said)})
    tape = again.again(whole.entries[:decided])

    assert {} == tape.played.result
    assert "registry_set" in tape.played.did()
