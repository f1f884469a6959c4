"""What is said to playbooks while they work: when it is delivered, to whom, and again in a run that goes on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import pytest

from koi_lang.errors import AgentError
from koi_lang.events import Event
from koi_lang.llm.messages import Request
from koi_lang.runtime.context import current_run
from koi_lang.runtime.events import Events
from koi_lang.runtime.journal.entries import entry_of
from koi_lang.runtime.journal.history import History, lasting_entries
from koi_lang.runtime.playbook.steering import Steering
from tests.playbook.playing import Played, Player, Voice, act, ask, done, solo

Meanwhile = Mapping[int, Callable[[Steering], Any]]
FAMILY = """
role Lead { can delegate, can execute }
agent Helper : Lead { on work(args) { playbook "Help." } }
team Crew { helper: Helper }
agent Main : Lead { uses team Crew  on go(args) { playbook "Do the work." } }
"""


def voice(answers: Sequence[Any], meanwhile: Meanwhile) -> Voice:
    """A model that gives answers in order; while it gives the n-th, counted from 0, something is done."""
    given = iter(enumerate(answers))

    async def speak(request: Request) -> AsyncIterator[str]:
        number, answer = next(given)
        if number in meanwhile:
            meanwhile[number](current_run().steering)
        yield json.dumps(answer)

    return Voice(speak)


def heard(request: Request) -> list[str]:
    """What was said in a conversation, in order."""
    told = [message.text.partition(":\n") for message in request.messages if " says, " in message.text]
    return [text.splitlines()[0] for _, _, text in told]


def queues(played: Played) -> list[list[str]]:
    """The texts in both queues after each change."""
    updates = [event.fields for event in played.events if event.type == "queue_update"]
    return [[note["text"] for note in (*data["steering"], *data["follow_up"])] for data in updates]


def test_a_note_is_heard_before_the_next_answer(play: Player) -> None:
    """What steers arrives behind the results of the answer that was under way, and before the next one."""
    model = voice([act("print", message="a"), done()], {0: lambda steering: steering.say("Use tabs.")})

    played = play(solo(), model)

    assert [[], ["Use tabs."]] == [heard(request) for request in played.requests]
    assert ("✅ print" in played.requests[1].messages[-2].text, "Use tabs." in played.feedback[1]) == (True, True)


def test_a_note_is_heard_before_the_first_answer(play: Player) -> None:
    """What was queued when nobody was at work is heard at the beginning of the next call."""
    model = voice([done(), done()], {0: lambda steering: steering.say("Be short.")})

    played = play.each(solo(), model, [("Main.go", {}), ("Main.go", {})])[1]

    assert [[], ["Be short."]] == [heard(request) for request in played.requests]


def test_notes_are_delivered_one_at_a_time(play: Player) -> None:
    """With several notes the model answers between them."""
    model = voice([act("print", message=text) for text in "ab"] + [done()], {0: lambda s: (s.say("1"), s.say("2"))})

    played = play(solo(), model)

    assert [[], ["1"], ["1", "2"]] == [heard(request) for request in played.requests]
    assert [["1"], ["1", "2"], ["2"], []] == queues(played)


def test_all_notes_can_be_delivered_at_once(play: Player) -> None:
    """In the mode `all` nothing stays queued."""

    def say(steering: Steering) -> None:
        steering.modes["steer"] = "all"
        steering.say("1")
        steering.say("2")

    played = play(solo(), voice([act("print", message="a"), done()], {0: say}))

    assert [[], ["1", "2"]] == [heard(request) for request in played.requests]


def test_a_follow_up_waits_for_the_end(play: Player) -> None:
    """A follow-up is heard when the playbook has returned; what it returns last counts."""
    answers = [act("print", message="a"), done(n=1), done(n=2)]
    model = voice(answers, {0: lambda steering: steering.say("Now the tests.", "follow_up")})

    played = play(solo(), model)

    assert [[], [], ["Now the tests."]] == [heard(request) for request in played.requests]
    assert {"n": 2} == played.result


def test_follow_ups_come_one_by_one(play: Player) -> None:
    """Each follow-up has an end of its own."""
    model = voice([done(n=n) for n in range(3)], {0: lambda s: (s.say("1", "follow_up"), s.say("2", "follow_up"))})

    played = play(solo(), model)

    assert [[], ["1"], ["1", "2"]] == [heard(request) for request in played.requests]
    assert {"n": 2} == played.result


def test_what_is_taken_back_is_not_heard(play: Player) -> None:
    """A note can be taken back as long as it is queued."""

    def regret(steering: Steering) -> None:
        first = steering.say("1")
        steering.say("2")
        steering.take_back(first.id)

    played = play(solo(), voice([act("print", message="a"), done()], {0: regret}))

    assert [[], ["2"]] == [heard(request) for request in played.requests]


def test_a_delegate_hears_only_what_is_for_it(play: Player) -> None:
    """What is said to nobody by name goes to whoever was not delegated its work."""
    answers = [ask("helper::work"), act("print", message="a"), done(), done()]
    model = voice(answers, {1: lambda steering: (steering.say("all"), steering.say("you", to="Helper"))})

    played = play(FAMILY, model)

    assert [[], [], ["you"], ["all"]] == [heard(request) for request in played.requests]
    assert ["Helper", "Main"] == [event.agent for event in played.events if event.type == "steered"]


def test_who_says_something_is_told(play: Player) -> None:
    """The model knows the person from a program, and the event says both."""
    model = voice([act("print", message="a"), done()], {0: lambda steering: steering.say("Hi.", sender="editor")})

    played = play(solo(), model)

    assert "`editor` says, " in played.feedback[1]
    steered = next(event for event in played.events if event.type == "steered")
    assert {"id": 1, "text": "Hi.", "mode": "steer", "to": "", "from": "editor"} == steered.fields


def test_a_playbook_that_fails_leaves_the_queues(play: Player) -> None:
    """After a limit the note is still queued, and that is told once more."""
    model = voice([act("print", message="a")], {0: lambda steering: steering.say("Hurry.")})

    played = play(solo(), model, limits={"turns": 1})

    assert (["Hurry."], [["Hurry."], ["Hurry."]]) == (
        [n.text for n in played.run.steering.pending_messages()],
        queues(played),
    )


def test_a_paused_run_asks_no_model(play: Player) -> None:
    """The next request is made only when the pause is over; what was said in between is heard at once."""

    def pause(steering: Steering) -> None:
        def go_on() -> None:
            if not steering.held:  # on a busy machine it takes longer
                loop.call_later(0.02, go_on)
                return
            made.append(len(model.requests))
            steering.say("Think again.")
            steering.go_on()

        loop = asyncio.get_running_loop()
        steering.pause()
        loop.call_later(0.02, go_on)

    made: list[int] = []
    model = voice([act("print", message="a"), done()], {0: pause})
    played = play(solo(), model)

    assert [1] == made
    assert [[], ["Think again."]] == [heard(request) for request in played.requests]
    assert ["paused", "continued"] == [event.type for event in played.events if event.type in ("paused", "continued")]


def test_an_empty_note_is_refused() -> None:
    """There must be something to say, and pausing twice is one pause."""
    steering = Steering(Events("r"))

    with pytest.raises(AgentError, match="nothing to say"):
        steering.say(" \n")

    assert (True, False, True, False) == (steering.pause(), steering.pause(), steering.go_on(), steering.go_on())


# ---------------------------------------------------------------- runs that go on


def past_of(events: Sequence[Event], last: str = "") -> History:
    """What is known of a run that was interrupted right behind the last event of a type, if one is given."""
    kept = list(events)
    while last and kept[-1].type != last:
        kept.pop()
    return History(lasting_entries([entry_of(event, n) for n, event in enumerate(kept, 1)]), "resume")


ANSWERS = [act("print", message="a"), act("print", message="b"), done(n=1), done(n=2)]
SAID: Meanwhile = {0: lambda s: (s.say("1"), s.say("2", "follow_up"))}


@pytest.mark.parametrize("last", ["steered", "model_asked", "model_answered", "action_ended", "queue_update"])
def test_a_run_that_goes_on_hears_the_same(play: Player, last: str) -> None:
    """Interrupted anywhere behind a delivery, the conversations are the same and nothing is said twice."""
    whole = play(solo(), voice(ANSWERS, SAID), detailed=True)
    past = past_of(whole.events, last)
    known = sum(entry.kind == "model_answered" for entry in past.entries)

    resumed = play(solo(), voice(ANSWERS[known:], {}), detailed=True, history=past)

    assert (None, {"n": 2}) == (resumed.error, resumed.result)
    asked = [event.fields["messages"] for event in whole.events if event.type == "model_asked"]
    assert asked == [event.fields["messages"] for event in resumed.events if event.type == "model_asked"]


def test_a_note_that_was_not_delivered_is_delivered_later(play: Player) -> None:
    """What was queued when the run ended is delivered by the run that goes on, exactly once."""
    first = voice([act("print", message="a")], {0: lambda steering: steering.say("1")})
    past = past_of(play(solo(), first, detailed=True, limits={"turns": 1}).events)

    resumed = play(solo(), voice([act("print", message="b"), done()], {}), detailed=True, history=past)

    assert [["1"], ["1"]] == [heard(request) for request in resumed.requests]
    assert [1] == [event.fields["id"] for event in resumed.events if event.type == "steered"]


def test_nothing_new_is_said_where_the_run_goes_over_what_it_did(play: Player) -> None:
    """A note queued at the start of a resumed run waits until the run is further than before."""

    def say(event: Event) -> None:
        if event.type == "run_started":
            current_run().steering.say("late")

    past = past_of(play(solo(), voice(ANSWERS[:2], {}), detailed=True, limits={"turns": 2}).events)
    resumed = play(solo(), voice([done()], {}), detailed=True, history=past, consumers=(say,))

    assert (None, [["late"]]) == (resumed.error, [heard(request) for request in resumed.requests])
