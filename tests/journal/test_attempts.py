"""Attempts of handlers, and requests whose answer broke off: what is told of them, also when the run goes on."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from koi_lang.llm.messages import Request, Usage
from tests.journal.again import Recorder, Tape
from tests.playbook.playing import Player, Voice, act

SHAKY = """
    role R { can execute }
    agent Main : R {
      state { tries = 0 }
      resilience "go" { retry_max_attempts = 3  retry_delay = 2  backoff = 2 }
      on go(x: Json) { this.state.tries += 1  throw new TypeError("no " + this.state.tries) }
    }
    """


def failures(tape: Tape) -> list[dict[str, Any]]:
    """What was told of attempts that were followed by another one."""
    return [dict(entry.data) for entry in tape.entries if entry.kind == "retry_started"]


def test_failed_attempts_are_told(play: Player) -> None:
    """Each but the last one, with what went wrong and the pause that follows; in the words of models' attempts."""
    first, second = failures(Recorder(play, SHAKY).run())

    assert {"handler": "go", "attempt": 1, "tries": 3, "delay_s": 0.002, "error": "no 1"} == first
    assert {"handler": "go", "attempt": 2, "tries": 3, "delay_s": 0.004, "error": "no 2"} == second


def test_attempts_are_told_once(play: Player) -> None:
    """A run that goes on after its first attempt tells only of those that follow."""
    recorder = Recorder(play, SHAKY)
    whole = recorder.run()
    cut = next(n for n, entry in enumerate(whole.entries, 1) if entry.kind == "retry_started")
    resumed = recorder.again(whole.entries[:cut])

    assert failures(whole) == failures(resumed)
    assert [True, False] == [event.recalled for event in resumed.played.events if event.type == "retry_started"]


ASKS = {
    "code": 'on go(x: Json) { const got = await callAction("call_llm", { data: x, instruction: "Sum up." }) '
    "console.log(got.result) }",
    "a playbook": 'on go(x: Json) { playbook "Sum up, then return." }',
    "a grader": 'on go(x: Json) { const got = await callAction("format", { data: x, instruction: "List." }) '
    "console.log(got.result) }",
}
SUM_UP = {"intent": "call_llm", "data": "x", "instruction": "Sum up.", "id": "a"}
SAYS = json.dumps({"batch": [SUM_UP, act("print", message="${a.output.result}"), act("return")]})


@pytest.mark.parametrize("name", ASKS)
def test_half_a_text_is_asked_for_again(play: Player, name: str) -> None:
    """Nothing was done by it, and what was paid for both counts; it was the failure of each resume."""

    async def speak(request: Request) -> AsyncIterator[str]:
        yield SAYS if request.json else "whole"

    voices: list[Voice] = []
    source = f"role R {{ can execute }}\nagent Main : R {{ {ASKS[name]} }}"
    recorder = Recorder(play, source, lambda: voices.append(Voice(speak, Usage(5, 2))) or voices[-1])
    whole = recorder.run({})
    at = max(
        n for n, entry in enumerate(whole.entries) if entry.kind == "model_answered" and entry.data["text"] == "whole"
    )
    half = replace(whole.entries[at], data={**whole.entries[at].data, "text": "who", "stop": "cut"})

    resumed = recorder.again((*whole.entries[:at], half), {})
    asked = [request for request in voices[-1].requests if not request.json]
    last = recorder.again(resumed.entries[:-1], {})

    assert (["whole"], "") == (resumed.printed, resumed.played.told)
    assert (1, []) == (len(asked), voices[-1].requests)
    assert whole.played.run.spending.tokens + 7 == resumed.played.run.spending.tokens == last.played.run.spending.tokens
