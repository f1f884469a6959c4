"""Conversations that are shortened because somebody asks, in agents that remember, and in runs that go on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from koi_lang.errors import AgentError
from koi_lang.events import Event
from koi_lang.llm.messages import Message, Request
from koi_lang.llm.usage import tokens_of
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.budget.limits import LimitReachedError
from koi_lang.runtime.context import current
from koi_lang.runtime.playbook.compaction import AlreadyCompactedError, NothingToCompactError, request_compaction
from koi_lang.runtime.playbook.summaries import ConversationSummary
from koi_lang.runtime.run import Run
from koi_lang.runtime.services import Services
from tests.playbook.playing import Played, Player, done
from tests.playbook.tellers import (
    Teller,
    by_name,
    compacted,
    copier,
    in_turn,
    much,
    orphans,
    outgrow,
    past_of,
    plenty,
    program,
    records,
    tell,
    tokens_before_summary,
    told,
)

# ---------------------------------------------------------------- by request


def asking(turn: int, answers: Sequence[Any], outcomes: list[asyncio.Task[Any]]) -> Teller:
    """A model during whose n-th answer somebody asks to shorten the conversation."""
    say = in_turn(*answers)

    def answer(request: Request) -> Any:
        if len(model.requests) == turn:
            outcomes.append(asyncio.get_running_loop().create_task(request_compaction(main_agent(), "Keep the names.")))
        return say(request)

    model = Teller(answer, name="main")
    return model


def main_agent() -> Agent:
    """The agent of the program above in the run that is under way."""
    run = current.get()
    assert run is not None
    return next(agent for agent in run._agents.values() if agent.name == "Main")


def test_somebody_may_ask_for_it(play: Player) -> None:
    """A conversation is shortened before the next request, with what the person wants in mind."""
    outcomes: list[asyncio.Task[Any]] = []
    main = asking(3, [*[tell(n) for n in range(4)], done()], outcomes)
    small = Teller(copier("straw"), name="small")

    played = play(program(), main, connect=by_name(main=main, small=small))

    assert (None, ["manual"]) == (played.error, [data["reason"] for data in compacted(played)])
    assert "the person wants in particular: Keep the names." in small.requests[0].system
    assert (compacted(played)[0]["summary"], 0) == (outcomes[0].result().summary, len(records(main.requests[2])))
    assert outcomes[0].result().tokens_after < outcomes[0].result().tokens_before


@pytest.mark.parametrize(
    ("turn", "message"),
    [(1, "the conversation is too short to be shortened"), (2, "the playbook ended before its conversation was")],
)
def test_what_cannot_be_shortened_is_told(play: Player, turn: int, message: str) -> None:
    """Whoever asks is told that there is nothing to shorten, or that the call has ended; the call goes on."""
    outcomes: list[asyncio.Task[Any]] = []
    main = asking(turn, ["nothing", done()], outcomes)

    played = outgrow(play, main)
    error = outcomes[0].exception()

    assert (None, []) == (played.error, compacted(played))
    assert (NothingToCompactError, True) == (type(error), message in str(error))


async def idle(module: Any, services: Services, calls: int) -> tuple[list[Any], Sequence[Message]]:
    """What comes of asking twice to shorten what an idle agent remembers, and what it remembers then."""
    outcomes: list[Any] = []
    async with Run(services) as run:
        for _ in range(calls):
            await run.call(module.Main, "go", {})
        agent = run.agent(module.Main)
        for _ in range(2):
            try:
                outcomes.append(await request_compaction(agent))
            except AgentError as error:
                outcomes.append(error)
    return outcomes, agent.memory


def test_an_idle_agent_is_shortened_at_once(play: Player) -> None:
    """What it remembers becomes a record and the last turns; asking again is told that it was done."""
    main = Teller(in_turn(*[tell(1), done()] * 4), name="main")
    services = Services(by_name(main=main, small=Teller(copier("straw"), name="small")), folder=play.folder)

    (first, second), memory = asyncio.run(idle(play.load(program()), services, 4))

    assert ("manual", first.kept + 1) == (first.reason, len(memory))
    assert (AlreadyCompactedError, "already_compacted") == (type(second), second.code)
    assert [first.summary] == [message.record for message in memory if isinstance(message, ConversationSummary)]


def test_an_agent_without_memory_has_nothing_to_shorten(play: Player) -> None:
    """Nothing was said yet."""
    services = Services(by_name(main=Teller(in_turn()), small=Teller(in_turn())), folder=play.folder)
    (first, _), memory = asyncio.run(idle(play.load(program()), services, 0))

    assert ("nothing_to_compact", 0) == (first.code, len(memory))


# ---------------------------------------------------------------- memory


MARKS = ('{"n":1}', '{"n":2}')


def marks(request: Request) -> list[str]:
    """Whose arguments a request speaks of."""
    return [mark for mark in MARKS if mark in told(request)]


def test_what_an_agent_remembers_stays_within_the_window(play: Player) -> None:
    """An agent that is called again and again has the latest record and the last turns, however much was said."""
    main = Teller(in_turn(*[much(1000), tell(1), done()] * 20), window=8000, name="main")
    small = Teller(copier("much"), name="small")
    calls = [("Main.go", {"n": n}) for n in range(20)]

    played = play.each(program("context_tokens: 8000"), main, calls, connect=by_name(main=main, small=small))
    memory = next(agent.memory for agent in played[-1].run._agents.values())

    assert [None] * 20 == [each.error for each in played]
    assert 8000 > tokens_of(memory)
    assert ([], 1) == (orphans(memory), sum(isinstance(message, ConversationSummary) for message in memory))


def test_calls_at_the_same_time_are_shortened_apart(play: Player) -> None:
    """Each works with its own conversation; what both have come to is remembered."""
    answers = {mark: iter([*plenty(8), done(mark=mark)]) for mark in MARKS}
    main = Teller(lambda request: next(answers[marks(request)[0]]), window=8000, name="main")
    small = Teller(lambda request: f"record of {marks(request)}", name="small")

    played = play(program("context_tokens: 8000"), main, call="Main.twice", connect=by_name(main=main, small=small))
    memory = next(agent.memory for agent in played.run._agents.values())

    assert [{"mark": mark} for mark in MARKS] == played.result
    assert {f"record of {[mark]}" for mark in MARKS} == {m.record for m in memory if isinstance(m, ConversationSummary)}
    assert [] == [n for n, request in enumerate(main.requests) if len(records(request)) > 1]


def test_a_call_that_fails_leaves_the_memory_alone(play: Player) -> None:
    """What was shortened in a call that came to nothing is as it was."""
    main = Teller(in_turn(tell(1), done(), *plenty(8)), name="main")
    calls = [("Main.go", {"n": 1}), ("Main.go", {"n": 2})]
    small = Teller(copier("much"), name="small")

    played = play.each(program("context_tokens: 8000"), main, calls, connect=by_name(main=main, small=small))
    memory = next(agent.memory for agent in played[-1].run._agents.values())

    assert ("no more answers", 6) == (str(played[1].error), len(memory))
    assert compacted(played[1])


# ---------------------------------------------------------------- runs that go on


def session(
    play: Player,
    events: Sequence[Event] | None = None,
    main: Teller | None = None,
    small: Teller | None = None,
    **services: Any,
) -> tuple[Played, Teller, Teller]:
    """A run that outgrows its window; with events it goes on from an earlier part."""
    main = main or Teller(in_turn(*plenty(9), done(ok=1)), name="main")
    small = small or Teller(copier("much"), name="small")
    past = None if events is None else past_of(events)
    played = outgrow(play, main, small, detailed=True, history=past, seed="s", **services)
    return played, main, small


def position(events: Sequence[Event], type: str, *, model: str = "") -> int:
    """Where the first event of a type, about a model, stands."""
    found = (n for n, event in enumerate(events) if event.type == type and event.fields.get("model", model) == model)
    return next(found)


def test_it_is_told_before_it_happens(play: Player) -> None:
    """When the event arrives, the conversation is still whole."""
    seen: list[int] = []

    def look(event: Event) -> None:
        if event.type == "compacted":
            seen.append(
                sum(isinstance(message, ConversationSummary) for message in main_agent().conversations[-1].messages)
            )

    main = Teller(in_turn(*plenty(6), done(ok=1)), name="main")
    small = Teller(copier("much"), name="small")
    play(program("context_tokens: 8000"), main, connect=by_name(main=main, small=small), consumers=(look,))

    assert 0 == seen[0]


@pytest.mark.parametrize("where", ["compacted", "model_asked"])
def test_a_run_that_goes_on_shortens_the_same(play: Player, where: str) -> None:
    """Ended between the event and the change, or while it is summed up, it goes on as if nothing had been."""
    whole, main, small = session(play)
    model = "small" if where == "model_asked" else ""
    begun = position(whole.events, where, model=model)
    done_before = sum(
        event.type == "model_answered" and event.fields["model"] == "main" for event in whole.events[:begun]
    )

    again, main_again, small_again = session(
        play,
        whole.events[: begun + 1],
        main=Teller(in_turn(*plenty(9)[done_before:], done(ok=1)), name="main"),
    )

    assert whole.result == again.result
    assert main.requests[done_before:] == main_again.requests
    assert len(small.requests) - (where == "compacted") == len(small_again.requests)


@pytest.mark.parametrize("window", [6000, 12000])
def test_a_run_that_goes_on_with_another_window_shortens_what_it_had_shortened(play: Player, window: int) -> None:
    """As after the choice of a model that reads more, or less: the summary and what it stands for are those of then."""
    whole, main, _ = session(play)
    last = max(n for n, event in enumerate(whole.events) if event.type == "compacted")
    answered = [event.type for event in whole.events[:last] if event.fields.get("model") == "main"]
    rest = Teller(in_turn(*plenty(9)[answered.count("model_answered") :], done(ok=1)), name="main")

    again, main_again, small_again = session(
        play, whole.events[: last + 1], main=rest, options=f"context_tokens: {window}"
    )

    assert (whole.result, []) == (again.result, small_again.requests[len(compacted(whole)) :])
    assert compacted(whole) == compacted(again)[: len(compacted(whole))]
    assert main.requests[answered.count("model_answered")].messages == main_again.requests[0].messages


def test_a_record_without_a_model_stays_that_way(play: Player) -> None:
    """A summary that failed is not asked for again when the run goes on, since that would change what follows."""
    whole, main, _ = session(play, small=Teller(in_turn(), name="small"))
    begun = position(whole.events, "compacted")

    answered = [event.type for event in whole.events[:begun]].count("model_answered")
    rest = Teller(in_turn(*plenty(9)[answered:], done(ok=1)), name="main")
    again, main_again, small = session(play, whole.events[: begun + 1], main=rest)

    assert compacted(whole)[0] == compacted(again)[0]
    assert main.requests[answered].messages == main_again.requests[0].messages
    assert len(compacted(again)) - 1 == len(small.requests)


def test_a_budget_that_is_raised_later_changes_nothing_before(play: Player) -> None:
    """A record that was made without a model, because the budget had no room, is made so again when the run goes on."""
    answers = [tell(1000 + n) for n in range(40)]
    free, _, _ = session(play, main=Teller(in_turn(*answers), name="main"))
    limits = {"tokens": tokens_before_summary(free) + 5000}
    whole, _, small = session(play, main=Teller(in_turn(*answers), name="main"), limits=limits)
    begun = position(whole.events, "compacted")
    answered = [event.type for event in whole.events[:begun]].count("model_answered")

    rest = Teller(in_turn(*answers[answered:], done()), name="main")
    again, _, _ = session(play, whole.events[: begun + 1], main=rest)

    assert ([], compacted(whole)[0]) == (small.requests, compacted(again)[0])
    assert isinstance(whole.error, LimitReachedError)


def test_a_wish_is_heard_again(play: Player) -> None:
    """What somebody asked for in an earlier part happens at the same place, though nobody asks now."""
    outcomes: list[asyncio.Task[Any]] = []
    whole, main, _ = session(play, main=asking(3, [*[tell(n) for n in range(5)], done()], outcomes))
    cut = position(whole.events, "compacted")

    again, main_again, small_again = session(
        play, whole.events[: cut + 1], main=Teller(in_turn(tell(3), tell(4), done()), name="main")
    )

    assert ["manual"] == [data["reason"] for data in compacted(again)]
    assert ([], main.requests[3:]) == (small_again.requests, main_again.requests)
