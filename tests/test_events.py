"""Events of a run, without a program."""

from __future__ import annotations

import pytest

from koi_lang.events import (
    ActionFailed,
    AnswerDelta,
    Event,
    HandlerEnded,
    LinePrinted,
    MessageDelivered,
    ModelAsked,
    RunEnded,
    RunStarted,
    UnknownEvent,
    decode,
)
from koi_lang.runtime.events import Events


def explode(event: Event) -> None:
    """A consumer that is broken."""
    raise ValueError("broken")


def test_a_failing_consumer_is_dropped() -> None:
    """One broken consumer loses its own output and nothing else; the others are told of it."""
    events = Events("run-1", clock=lambda: 5.0)
    events.subscribe(explode)
    seen = events.record()

    events.emit(LinePrinted("hi"), "Ada")
    events.emit(LinePrinted("ho"), "Ada")

    assert ["printed", "consumer_dropped", "printed"] == [event.type for event in seen]
    assert {"consumer": "explode"} == seen[1].fields


def test_two_consumers_can_break_at_once() -> None:
    """Each is dropped once, although the second breaks again when it hears of the first."""
    events = Events("run-1")
    events.subscribe(explode)
    events.subscribe(lambda event: explode(event))
    seen = events.record()

    events.emit(LinePrinted("hi"), "Ada")

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
        events.emit(UnknownEvent("deep", {}))
    events.emit(LinePrinted("hi"))

    assert ["printed"] == [event.type for event in seen]


def test_the_envelope_is_the_same_for_everything() -> None:
    """The JSON form has version, number, time, run, path, agent and type, then the fields of the event."""
    events = Events("run-1", clock=lambda: 5.0)
    seen = events.record()

    events.emit(LinePrinted("hi"), "Ada", path=("Ada.go#1",))

    envelope = {"v": 1, "seq": 1, "ts": 5.0, "run": "run-1", "path": ["Ada.go#1"], "agent": "Ada", "type": "printed"}
    assert envelope | {"message": "hi"} == seen[0].as_data()


def test_consumers_are_told_in_order() -> None:
    """Consumers hear of an event in the order in which they subscribed."""
    events, heard = Events("run-1"), []
    events.subscribe(lambda event: heard.append(f"first {event.seq}"))
    events.subscribe(lambda event: heard.append(f"second {event.seq}"))

    events.emit(RunStarted())
    events.emit(RunEnded(True))

    assert ["first 1", "second 1", "first 2", "second 2"] == heard


def test_transient_events_are_for_those_who_want_them() -> None:
    """They have neither number nor time on the wire; who subscribes twice hears of everything once."""
    events, heard = Events("run-1", clock=lambda: 5.0), []
    seen = events.record()
    events.subscribe(heard.append)
    events.subscribe(heard.append, transient=True)

    events.emit(AnswerDelta("Hel"), "Ada", path=("Ada.go#1", "model#1"))
    events.emit(LinePrinted("Hello"), "Ada")

    assert [["text_delta", "printed"], ["printed"]] == [[event.type for event in each] for each in (heard, seen)]
    where = {"v": 1, "run": "run-1", "path": ["Ada.go#1", "model#1"], "agent": "Ada", "type": "text_delta"}
    assert (where | {"text": "Hel"}, 1) == (heard[0].as_data(), heard[1].seq)


def test_a_failing_consumer_of_transient_events_is_dropped() -> None:
    """It hears of nothing further, and the others are told so."""
    events = Events("run-1")
    events.subscribe(explode, transient=True)
    seen = events.record()

    events.emit(AnswerDelta("Hel"), "Ada")
    events.emit(AnswerDelta("lo"), "Ada")

    assert ["consumer_dropped"] == [event.type for event in seen]


def test_records_come_back_from_the_wire() -> None:
    """What a client reads is the record that was told, with fields that a later version may have added."""
    delivered = MessageDelivered(1, "Go on", "steer", "Ada", "person")
    event = Event(3, 5.0, "run-1", "Ada", delivered, ("Ada.go#1",))
    data = event.as_data()

    assert event == Event.of_data(data)
    assert ("person", "sender" in data) == (data["from"], False)
    assert {**data, "new": 1} == Event.of_data({**data, "new": 1}).as_data()


def test_what_does_not_fit_its_type_is_unknown() -> None:
    """Events of other versions are passed on as they are, under the kind of entry that belongs to their type."""
    unknown = [decode("teleported", {"to": "Mars"}), decode("action_ended", {"result": 1})]

    assert [UnknownEvent("teleported", {"to": "Mars"}), UnknownEvent("action_ended", {"result": 1})] == unknown
    assert ["teleported", "done"] == [data.journal_kind for data in unknown]


def test_the_members_of_a_failure_stand_beside_the_other_fields() -> None:
    """An error is told flat, as it stands in journals, and is one field of its record."""
    failed = ActionFailed("shell", {"error": "no", "class": "AgentError"})

    assert {"intent": "shell", "error": "no", "class": "AgentError"} == failed.as_data()
    assert failed == decode("action_failed", failed.as_data())


def test_details_are_left_out_where_little_is_shown() -> None:
    """Lines for people have no long fields; the messages for models are only shown who want everything."""
    asked, ended = ModelAsked("m", request="abc", kept=0, messages=[]), HandlerEnded("go", 1)

    assert [{"model": "m", "kept": 0}] * 2 == [asked.as_data("brief"), asked.as_data("detailed")]
    assert [{"event": "go"}, {"event": "go", "result": 1}] == [ended.as_data("brief"), ended.as_data("detailed")]
