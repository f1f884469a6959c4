"""Events of a run, without a program."""

from __future__ import annotations

import pytest

from koi_lang.runtime.events import Event, Events


def explode(event: Event) -> None:
    """A consumer that is broken."""
    raise ValueError("broken")


def test_a_failing_consumer_is_dropped() -> None:
    """One broken consumer loses its own output and nothing else; the others are told of it."""
    events = Events("run-1", clock=lambda: 5.0)
    events.subscribe(explode)
    seen = events.record()

    events.emit("printed", "Ada", message="hi")
    events.emit("printed", "Ada", message="ho")

    assert ["printed", "consumer_dropped", "printed"] == [event.type for event in seen]
    assert {"consumer": "explode"} == seen[1].data


def test_two_consumers_can_break_at_once() -> None:
    """Each is dropped once, although the second breaks again when it hears of the first."""
    events = Events("run-1")
    events.subscribe(explode)
    events.subscribe(lambda event: explode(event))
    seen = events.record()

    events.emit("printed", "Ada", message="hi")

    assert ["printed", "consumer_dropped", "consumer_dropped"] == [event.type for event in seen]


def test_a_program_that_calls_too_deeply_breaks_no_consumer() -> None:
    """What ends there is the program, and its consumers go on to hear of it."""

    def deep(event: Event) -> None:
        if event.type == "deep":
            raise RecursionError("maximum recursion depth exceeded")

    events = Events("run-1")
    events.subscribe(deep)
    seen = events.record()

    with pytest.raises(RecursionError):
        events.emit("deep")
    events.emit("printed")

    assert ["printed"] == [event.type for event in seen]


def test_the_envelope_is_the_same_for_everything() -> None:
    """The JSON form has version, number, time, run, path, agent and type, then the fields of the event."""
    events = Events("run-1", clock=lambda: 5.0)
    seen = events.record()

    events.emit("printed", "Ada", path=("Ada.go#1",), message="hi")

    envelope = {"v": 1, "seq": 1, "ts": 5.0, "run": "run-1", "path": ["Ada.go#1"], "agent": "Ada", "type": "printed"}
    assert envelope | {"message": "hi"} == seen[0].as_data()


def test_consumers_are_told_in_order() -> None:
    """Consumers hear of an event in the order in which they subscribed."""
    events, heard = Events("run-1"), []
    events.subscribe(lambda event: heard.append(f"first {event.seq}"))
    events.subscribe(lambda event: heard.append(f"second {event.seq}"))

    events.emit("a")
    events.emit("b")

    assert ["first 1", "second 1", "first 2", "second 2"] == heard
