"""Attempts of a handler with `resilience`: what is told of those that fail, also when the run goes on."""

from __future__ import annotations

from typing import Any

from tests.journal.again import Recorder, Tape
from tests.playbook.playing import Player

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
