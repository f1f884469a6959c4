"""Programs whose provider misbehaves: a run recovers or ends with one sentence, and nothing is carried out twice."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from koi_lang.errors import KoiError, exit_code
from koi_lang.llm.retry import retry
from koi_lang.program.error_report import message
from koi_lang.program.safe_expressions import evaluate
from koi_lang.runtime.run import Run
from koi_lang.runtime.services import Services
from tests.llm.flaky import Listener
from tests.llm.server import Answer, ModelServer
from tests.llm.test_adapters import ALL, KEY, adapter, provider_of
from tests.llm.test_faults import AFTER_TEXT, BEFORE_TEXT, FOR_GOOD, SILENCE_S
from tests.projects import Project
from tests.running import RecordingHost

PROGRAM = '''
    role Worker { can execute }
    agent Counter : Worker { on count() { playbook """Print one, then two.""" } }
    run Counter.count({})
    '''


def printing(*words: str) -> str:
    """An answer that prints words, without the brackets around the list: it can go on."""
    return ",".join(json.dumps({"intent": "print", "message": word}) for word in words)


ONE_AND_TWO = Answer(pieces=('{"batch":[' + printing("one"), "," + printing("two"), "]}"))
ONE = printing("one")
TWO = printing("two")
END = '{"intent":"return","data":{"done":true}}'


@dataclass(frozen=True, slots=True)
class Ended:
    """What came of a run: its output, its result or the sentence of its error, and the bodies the server received."""

    printed: list[str]
    result: Any
    error: str
    code: int
    bodies: list[Mapping[str, Any]]


def ended(project: Project, kind: str, *answers: Answer | str) -> Ended:
    """Run the program with the real SDK against a server with these answers."""
    module = project.load("count.koi", PROGRAM)
    host = RecordingHost()

    async def run() -> Ended:
        async with ModelServer(answers) as server:
            given = [answer for answer in answers if isinstance(answer, Answer)]
            silence_s = SILENCE_S if any(answer.silent or answer.pause for answer in given) else 5.0
            model = retry(adapter(kind, server.url, silence_s=silence_s), sleep=Listener().sleep)
            if any(answer.reset for answer in given):
                server.go_on.set()
            result, error = await attempt(Services(connect=lambda llm: model, host=host, evaluate=evaluate))
            bodies = [request.body for request in server.requests]
            if error is None:
                return Ended(host.printed, result, "", 0, bodies)
            return Ended(host.printed, result, message(error), exit_code(error), bodies)

    async def attempt(services: Services) -> tuple[Any, KoiError | None]:
        try:
            async with Run(services) as run:
                return await run.call(module.Counter, "count"), None
        except KoiError as error:
            return None, error

    return asyncio.run(run())


@pytest.mark.sampled(10)
@ALL
@pytest.mark.parametrize("fault", list(BEFORE_TEXT))
def test_a_fault_before_an_answer_is_survived(project: Project, kind: str, fault: str) -> None:
    """The request is repeated; every action is carried out once."""
    done = ended(project, kind, BEFORE_TEXT[fault][0], ONE_AND_TWO, END)

    assert (["one", "two"], {"done": True}, 0) == (done.printed, done.result, done.code)


@pytest.mark.sampled(4)
@ALL
@pytest.mark.parametrize("fault", ["a cut", "half an event", "silence"])
def test_what_was_carried_out_before_a_cut_stays(project: Project, kind: str, fault: str) -> None:
    """An answer breaks off behind its first action: that action is not repeated, and the model is told of it."""
    broken = AFTER_TEXT[fault][0]
    pieces = ('{"batch":[' + ONE, "", "")
    after = {"openai": 1, "responses": 5, "anthropic": 3}[kind] if broken.cut_after else None
    cut = Answer(pieces=pieces, cut_after=after, raw=broken.raw, pause=broken.pause)

    done = ended(project, kind, cut, '{"batch":[' + TWO + "]}", END)

    assert (["one", "two"], {"done": True}) == (done.printed, done.result)
    assert "print" in json.dumps(done.bodies[1].get("messages", done.bodies[1].get("input"))[1:])


@pytest.mark.sampled(7)
@ALL
@pytest.mark.parametrize("fault", list(FOR_GOOD))
def test_a_fault_for_good_ends_the_run(project: Project, kind: str, fault: str) -> None:
    """One sentence without the key, exit code 69, and nothing was carried out."""
    done = ended(project, kind, FOR_GOOD[fault][0])

    assert ([], 69) == (done.printed, done.code)
    assert done.error.startswith(FOR_GOOD[fault][1].format(provider_of(kind)))
    assert KEY not in done.error
    assert "\n" not in done.error


@ALL
def test_a_server_that_stays_broken_ends_the_run(project: Project, kind: str) -> None:
    """After its attempts the run fails; it is not tried for ever."""
    done = ended(project, kind, Answer(status=500))

    assert ([], 69) == (done.printed, done.code)
    assert len(done.bodies) <= 9


@ALL
def test_prose_and_half_an_object_are_answered(project: Project, kind: str) -> None:
    """The model is told what is wrong with its answer and then does it right."""
    done = ended(project, kind, "Sure, I will do that!", '{"intent": "pri', ONE_AND_TWO, END)

    assert (["one", "two"], {"done": True}) == (done.printed, done.result)
    assert "Sure, I will do that!" in json.dumps(done.bodies[1])
    assert "stops in the middle" in json.dumps(done.bodies[2])


@pytest.mark.sampled(1)
@ALL
def test_ten_megabytes_of_prose_are_survived(project: Project, kind: str) -> None:
    """A flood without an action costs a turn, and does not go back to the model."""
    done = ended(project, kind, Answer(pieces=("x" * 1_000_000,) * 10), END)

    assert {"done": True} == done.result
    assert len(json.dumps(done.bodies[1])) < 200_000


@ALL
def test_missing_usage_is_estimated(project: Project, kind: str) -> None:
    """A provider that does not count leaves a run that works."""
    done = ended(project, kind, Answer(pieces=ONE_AND_TWO.pieces, usage=None), Answer(pieces=(END,), usage=None))

    assert (["one", "two"], {"done": True}) == (done.printed, done.result)
