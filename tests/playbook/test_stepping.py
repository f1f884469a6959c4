"""A playbook turn by turn: each is a record of one answer and what came of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

from koi_lang.errors import RequestError
from koi_lang.llm.messages import Adapter, Request
from koi_lang.llm.scripted import ScriptedModel
from koi_lang.program.safe_expressions import evaluate
from koi_lang.runtime.budget.limits import paid_by
from koi_lang.runtime.playbook.loop import begin, turns_of
from koi_lang.runtime.playbook.turn import Turn
from koi_lang.runtime.run import Run
from koi_lang.runtime.services import Services
from tests.playbook.playing import Player, Voice, act, done, solo


async def step_through(run: Run, declared: Any, most: int) -> list[Turn]:
    """The first turns of a call; nothing further is done."""
    turns: list[Turn] = []
    async with run:
        with paid_by(run.spending):
            call = begin(run.agent(declared), "go", {})
            async with aclosing(turns_of(call, lambda scope: ["Do the work."])) as following:
                async for turn in following:
                    turns.append(turn)
                    if len(turns) == most:
                        break
    return turns


def turns_with(play: Player, model: Adapter, most: int = 9) -> list[Turn]:
    """The first turns of a playbook whose model answers so."""
    module = play.load(solo("think"))
    services = Services(connect=lambda llm: model, folder=Path(play.folder), evaluate=evaluate)
    return asyncio.run(step_through(Run(services), module.Main, most))


def test_a_turn_has_its_answer_and_what_came_of_it(play: Player) -> None:
    """Actions with their values, failures with their errors; the next request tells what came of that."""
    answers = [[act("print", id="a", message="one"), act("nonsense"), act("print", message="two")], done(n=1)]

    first, second = turns_with(play, ScriptedModel(answers))

    assert [("print", True), ("nonsense", False)] == [
        (each.action.intent, each.error is None) for each in first.actions
    ]
    assert ((1, "failure"), (2, "return")) == ((first.number, first.ended_by), (second.number, second.ended_by))
    assert "\n".join(each.feedback.text for each in first.actions) in second.request.messages[-1].text
    assert (answers[1], {"n": 1}) == (json.loads(second.text), second.actions[0].value)


def test_nothing_happens_between_turns(play: Player) -> None:
    """Whoever stops after a turn has had nothing of the next one asked."""
    model = ScriptedModel([act("print", message="one"), act("print", message="two"), done()])

    (only,) = turns_with(play, model, most=1)

    assert (1, "end", 1) == (len(model.requests), only.ended_by, len(only.actions))


def test_an_answer_that_was_not_read_says_why(play: Player) -> None:
    """The rest of one cannot be read, or does not arrive; what it had asked for before is done."""

    async def speak(request: Request) -> AsyncIterator[str]:
        if len(request.messages) == 2:
            yield "Let me think about it."
            return
        yield json.dumps(act("print", message="one"))
        if len(request.messages) == 4:
            raise RequestError("it was cut", help="", status=None)

    unread, cut = turns_with(play, Voice(speak), most=2)

    assert ("unreadable", True, 0) == (unread.ended_by, bool(unread.problem), len(unread.actions))
    assert ("cut", "it was cut", 1) == (cut.ended_by, str(cut.error), len(cut.actions))
