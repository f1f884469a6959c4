"""What a model remembers, and how little of each request is new to it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, takewhile
from time import process_time
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from koi_lang.js.undefined import undefined
from koi_lang.llm.messages import Message, Request
from koi_lang.llm.transcript import MessageLog, Messages
from koi_lang.runtime.playbook.conversation import Conversation, Memory
from koi_lang.runtime.playbook.placeholders import DataMessage, ToldValues
from tests.playbook.playing import Player, act, ask, done, playbook_in, solo

FAMILY = """
role Lead { can delegate, can execute }
agent Helper : Lead { on work(args) { playbook "Help with {{args.n}}." } }
agent Forgetful : Lead { amnesia = true  on go(args) { playbook "Do the work." } }
team Crew { helper: Helper }
agent Main : Lead {
  uses team Crew
  state { n: number = 1 }
  on go(args) { playbook "Do the work." }
  on twice(args) { return await Promise.all([this.handle("go", { n: 1 }), this.handle("go", { n: 2 })]) }
}
"""


def begun(request: Request) -> int:
    """How many calls a conversation has seen."""
    return sum(message.text.startswith("Context") for message in request.messages)


def test_the_first_message_has_payload_and_state(play: Player) -> None:
    """A call begins with its args and the state of its agent."""
    request = play(FAMILY, [done()], payload={"x": [1]}).requests[0]

    assert 'Context: {"args":{"x":[1]},"state":{"n":1}}' == request.messages[0].text


def test_a_call_without_payload_has_empty_args(play: Player) -> None:
    """Nothing given is an empty object."""
    assert '{"args":{},"state":{}}' in play(solo(), [done()], payload=undefined).requests[0].messages[0].text


def test_a_root_agent_remembers(play: Player) -> None:
    """The conversation goes on with the next call of the same agent."""
    calls = [("Main.go", {"n": 1}), ("Main.go", {"n": 2})]
    played = play.each(FAMILY, [act("print", message="hi"), done(a=1), done(a=2)], calls)[1]

    assert [1, 1, 2] == [begun(request) for request in played.requests]
    assert "uuauauuu" == "".join(message.role[0] for message in played.requests[2].messages)


def test_amnesia_forgets(play: Player) -> None:
    """With `amnesia = true` every call begins anew."""
    played = play.each(FAMILY, [done(), done()], [("Forgetful.go", {}), ("Forgetful.go", {})])[1]

    assert [2, 2] == [len(request.messages) for request in played.requests]


def test_a_delegate_starts_fresh(play: Player) -> None:
    """A member knows nothing of the conversation of whoever delegated, nor of its own earlier tasks."""
    answers = {
        "Do the work": [ask("helper::work", {"n": 1}), ask("helper::work", {"n": 2}), done()],
        "Help": [done()] * 2,
    }
    played = play(FAMILY, answers)
    helping = [request for request in played.requests if "Help with" in playbook_in(request)]

    assert [2, 2] == [len(request.messages) for request in helping]
    assert ["Help with ⟨args.n⟩."] * 2 == [playbook_in(request) for request in helping]


def test_a_failing_call_leaves_the_conversation_as_it_was(play: Player) -> None:
    """A call that ends with an error is forgotten; the next one works and remembers what went well before."""
    calls = [("Main.go", {"n": 1}), ("Main.go", {"n": 2}), ("Main.go", {"n": 3})]
    answers = [done(a=1), *(act("print", message=text) for text in "xyz"), done(a=3)]
    first, second, third = play.each(FAMILY, answers, calls, limits={"turns": 3})

    assert ({"a": 1}, None, None) == (first.result, second.result, third.error)
    assert "did not return within 3 turns" in second.told
    assert ['"n":1', '"n":3'] == [n for n in ('"n":1', '"n":2', '"n":3') if n in str(third.requests[4].messages)]


def test_calls_at_the_same_time_do_not_mix(play: Player) -> None:
    """Each has a conversation of its own; the next call remembers both."""
    calls = [("Main.twice", {}), ("Main.go", {"n": 3})]
    answers = [act("print", message="x"), act("print", message="y"), done(), done(), done()]
    played = play.each(FAMILY, answers, calls)[1]

    assert [1, 1, 1, 1, 3] == [begun(request) for request in played.requests]


# ---------------------------------------------------------------- what is kept between calls


def begin_call(agent: Any) -> Any:
    """A conversation that goes on from what an agent remembers."""
    return Conversation.of(agent, None, agent.memory)  # type: ignore[arg-type]


def test_a_call_of_a_long_chat_costs_what_one_of_a_short_chat_does() -> None:
    """What a call adds to a memory does not depend on how much is remembered."""

    def cpu_s(n: int) -> float:
        agent: Any = SimpleNamespace(memory=Memory.of(Message("user", str(number)) for number in range(n)))
        started = process_time()
        for _ in range(100):
            conversation = begin_call(agent)
            conversation.begin(Message("user", "new"))
            conversation.settle()
        assert n + 100 == len(agent.memory)
        return process_time() - started

    assert min(cpu_s(32_000) for _ in range(3)) <= 5 * min(cpu_s(1000) for _ in range(3))


@settings(max_examples=300, deadline=None)
@given(some.lists(some.tuples(some.sampled_from(["begin", "say", "see", "end", "fail"]), some.integers(0, 2))))
def test_conversations_of_one_memory_do_not_mix(steps: list[tuple[str, int]]) -> None:
    """However calls overlap, end and fail: each sees its own messages, and what ended well is remembered in order."""
    agent: Any = SimpleNamespace(memory=())
    remembered: list[Message] = []
    calls: dict[int, tuple[Any, list[Message], list[Message]]] = {}
    seen: list[tuple[Messages, list[Message]]] = []
    for number, (step, call) in enumerate(steps):
        message = DataMessage("user", f"{step} {number}", values=((f"state.{call}", bytes([number % 7])),))
        if step == "begin" and call not in calls:
            calls[call] = (begin_call(agent), list(remembered), [])
        if step == "begin" or call not in calls:
            continue
        conversation, before, said = calls[call]
        if step == "say":
            conversation.messages.append(message)
            said.append(message)
        elif step == "see":
            seen.append((conversation.messages.snapshot(), [*before, *said]))
        else:
            del calls[call]
        if step == "end":
            conversation.settle()
            remembered += said

    assert remembered == list(agent.memory)
    assert ToldValues(remembered)._told == begin_call(agent).told._told
    for snapshot, expected in [*seen, *((each.messages.snapshot(), [*old, *new]) for each, old, new in calls.values())]:
        assert expected == list(snapshot)
        assert (MessageLog(expected).weights[-1], len(expected)) == (snapshot.weight, len(snapshot))


# ---------------------------------------------------------------- prompts


def spoken(request: Request) -> str:
    """All characters of a request, in the order in which a provider reads them."""
    return request.system + "".join(f"\n{message.role}: {message.text}" for message in request.messages)


def kept(requests: Sequence[Request]) -> list[float]:
    """For each request but the last, which part of it the next one begins with."""
    return [common(one, other) / len(one) for one, other in pairwise(map(spoken, requests))]


def common(one: str, other: str) -> int:
    """How many characters two texts begin with together."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def test_requests_only_grow(play: Player) -> None:
    """Over a run of ten steps at least nine tenths of every request are the beginning of the next one."""
    steps: list[Any] = [act("update_state", updates={"n": step}) for step in range(4)]
    steps += [
        act("print"),
        "no JSON",
        ask("helper::work", {"n": 1}),
        act("print", message="x"),
        {"batch": [act("prnt")]},
    ]
    played = play(FAMILY, {"Do the work": [*steps, done()], "Help": [done()] * 9})
    main = [request for request in played.requests if "Do the work" in playbook_in(request)]

    assert 10 == len(main)
    assert min(kept(main)) >= 0.9


def test_requests_of_a_chat_hold_little_that_is_new(play: Player) -> None:
    """The request for each of twenty messages begins with the whole one before, and answers are told once."""
    program = solo("execute", playbook="Answer the person.")
    answers = [done(text=f"Answer {n}: there are some ways to do this, and the {n}th is the best.") for n in range(20)]
    calls = [("Main.go", {"message": f"What about the {n}th way?"}) for n in range(20)]

    requests = play.each(program, answers, calls)[0].requests
    shares = [common(one, other) / len(other) for one, other in pairwise(map(spoken, requests))]

    assert (20, 1.0) == (len(requests), min(kept(requests)))
    assert min(shares) >= 0.86
    assert [1] * 20 == [spoken(requests[-1]).count(f"Answer {n}:") for n in range(19)] + [1]


def test_a_small_agent_has_a_small_prompt(play: Player) -> None:
    """The prompt of an agent with the core actions and no team takes at most 1,200 tokens of four characters."""
    system = play(solo("execute"), [done()]).requests[0].system

    assert len(system) / 4 <= 1200


@pytest.mark.parametrize(
    ("capabilities", "there", "absent"),
    [
        (("think",), ["- print(", "- return("], ["shell", "registry_", "repeat(", "send_message", "call_skill"]),
        (("registry",), ["- registry_get("], ["shell", "repeat("]),
        (("execute",), ["- shell(", "- repeat("], ["registry_", "send_message", "## Agents"]),
    ],
)
def test_a_prompt_holds_only_what_the_agent_may_do(
    play: Player, capabilities: tuple[str, ...], there: list[str], absent: list[str]
) -> None:
    """Actions, agents and skills that the role or the program does not give are not mentioned."""
    system = play(solo(*capabilities), [done()]).requests[0].system

    assert there == [text for text in there if text in system]
    assert [] == [text for text in absent if text in system]


def test_the_playbook_follows_the_state(play: Player) -> None:
    """A value of the state in a playbook that has changed is told before the next request, as data, and once."""
    program = solo("execute", more="state { n: number = 1 }", playbook="Now {{state.n}}.")
    played = play(program, [act("print", message="x"), act("update_state", updates={"n": 2}), act("print"), done()])
    changes = [[m.text for m in request.messages if '"⟨state.n⟩"' in m.text] for request in played.requests]

    assert {"Now ⟨state.n⟩."} == {playbook_in(request) for request in played.requests}
    assert [[], [], *[['What stands in the playbook for: {"⟨state.n⟩":2}']] * 2] == changes
