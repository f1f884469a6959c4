"""What a turn adds to a call costs the same however long the call is."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from koi_lang.llm.scripted import ScriptedModel
from tests.growth import MOST_GROWTH, growth
from tests.playbook.playing import Player, act, done, solo


def play_turns(play: Player, turns: int) -> Callable[[], Any]:
    """Carries out a call of so many turns, whose model keeps all its requests."""
    answers = [*(act("print", message=f"n {n}") for n in range(turns - 1)), done()]
    return lambda: play(solo("execute"), answers, limits={"turns": turns})


def test_a_call_twice_as_long_takes_twice_the_work(play: Player) -> None:
    """No request looks at all of the messages before its own."""
    play_turns(play, 2)()

    assert growth(lambda turns: play_turns(play, turns), 100) < MOST_GROWTH


def test_requests_share_what_was_said(play: Player) -> None:
    """Whoever keeps all requests of a call keeps its messages once."""
    model = ScriptedModel([*(act("print", message=f"n {n}") for n in range(19)), done()])
    play(solo("execute"), model, limits={"turns": 20})
    messages = [message for request in model.requests for message in request.messages]

    assert len({id(message) for message in messages}) < 3 * 20 < len(messages)


@pytest.mark.thorough
def test_all_requests_of_a_call_take_memory_in_proportion(play: Player) -> None:
    """Twice the turns, twice the bytes: no request has a copy of what was said before."""

    def kept_bytes(turns: int) -> int:
        model = ScriptedModel([*(act("print", message=f"n {n}") for n in range(turns - 1)), done()])
        tracemalloc.start()
        try:
            play(solo("execute"), model, limits={"turns": turns})
            return tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()

    play_turns(play, 2)()
    some, twice, four_times = map(kept_bytes, (100, 200, 400))

    # Twice as much where nothing is copied, 2.6 times as much where each request has a copy of what was said before.
    assert four_times - twice < 2.3 * (twice - some)
