"""Answers are carried out while they are written, and the conversation goes on from what was carried out."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from koi_lang.errors import MissingKeyError, ProviderError, RequestError
from koi_lang.events import AnswerDelta, Event
from koi_lang.llm.messages import Request, Usage
from koi_lang.runtime.context import current_run
from tests.playbook.playing import Player, Voice, act, ask, done, solo
from tests.running import RecordingHost

TEAM = """
role Worker { can delegate }
agent Helper : Worker {
  on explode(args) { return args.missing.field }
  on throwText(args) { throw "just a text" }
  on loops(args) { const o = { n: 1 }  o.self = o  return o }
}
team Crew { helper: Helper }
agent Main : Worker { uses team Crew  on go(args) { playbook "Do the work." } }
"""


@dataclass(slots=True)
class Meeting(RecordingHost):
    """A person who answers nothing before a number of questions have been asked."""

    wanted: int = 2
    asked: list[str] = field(default_factory=list)
    asked_once: asyncio.Event = field(default_factory=asyncio.Event)
    all_asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def ask(self, question: str, options: Sequence[str] = ()) -> str:
        """Wait for the other questions."""
        self.asked.append(question)
        self.asked_once.set()
        if len(self.asked) == self.wanted:
            self.all_asked.set()
        await self.all_asked.wait()
        return question.upper()


@dataclass(slots=True)
class Witness(RecordingHost):
    """A host that lets others wait until something was printed."""

    seen: asyncio.Event = field(default_factory=asyncio.Event)

    def print(self, text: str) -> None:
        """Keep a line and tell whoever waits."""
        self.printed.append(text)
        self.seen.set()


def say(text: str) -> dict[str, Any]:
    """An action that prints."""
    return act("print", message=text)


def question(text: str) -> dict[str, Any]:
    """An action that asks the person."""
    return act("prompt_user", question=text)


# ---------------------------------------------------------------- forms


def test_a_single_action_an_answer(play: Player) -> None:
    """One action an answer; its result comes back before the next one."""
    played = play(solo(), [say("hi"), done(n=1)])

    assert (("hi",), {"n": 1}) == (played.printed, played.result)
    assert "✅ print\nContinue." == played.feedback[1]


LABELLED = {"id": "a", "intent": "call_skill", "skill": "Box", "function": "same", "input": {"x": "deep"}}
TOLD = {
    "printed": ([say("hi")], "✅ print"),
    "printed under another name": ([act("print", text="hi")], "✅ print"),
    "computed": (
        [LABELLED, say("${a.output}!")],
        '✅ [a] call_skill -> "deep"\n✅ print -> {"printed":true,"message":"deep!"}',
    ),
    "a state": ([act("update_state", updates={"n": 2})], "✅ update_state"),
    "a computed state": (
        [LABELLED, act("update_state", updates={"m": "${a.output}"})],
        '✅ [a] call_skill -> "deep"\n✅ update_state -> {"state_updated":true,"state":{"n":1,"m":"deep"}}',
    ),
    "no text": ([say({"n": 1})], '✅ print -> {"printed":true,"message":"{ n: 1 }"}'),  # type: ignore[arg-type]
}


@pytest.mark.parametrize(("actions", "told"), TOLD.values(), ids=TOLD)
def test_a_model_is_not_told_what_it_wrote(play: Player, actions: list[Any], told: str) -> None:
    """A result that only repeats the action is told in one word; what was computed for it is told."""
    box = "skill Box { export async function same(x: string) { return x } }\n"
    program = box + solo("execute", more="  uses skill Box\n  state { n: number = 1 }")
    played = play(program, [{"batch": actions}, done()])

    assert f"{told}\nContinue." == played.feedback[1]


def test_a_result_is_not_told_to_whom_it_comes_from(play: Player) -> None:
    """Of a `return` the model hears that it was carried out, and nothing that sounds as if there were more to do."""
    program = solo("execute", more="  state { n: number = 1 }")
    answers = [done(a=1), act("return"), done(state_updates={"n": 5}), done(a="${state.n}"), done()]
    played = play.each(program, answers, [("Main.go", {})] * 5)[-1]
    told = [message.text for message in played.requests[-1].messages if message.text.startswith("✅")]

    assert ["✅ return"] * 3 + ['✅ return -> {"a":5}'] == told


def test_a_batch_runs_in_order(play: Player) -> None:
    """The actions of a batch are carried out one after the other in one turn."""
    played = play(solo(), [{"batch": [say("a"), say("b"), done(ok=True)]}])

    assert (("a", "b"), 1) == (played.printed, len(played.requests))


def test_a_plan_refers_to_its_results(play: Player) -> None:
    """`{"actions": […]}` with `${id.output.x}` works, and references keep the type of the value."""
    plan = [{"id": "user", **question("name?")}, say("Hello ${user.output.answer}!"), done(who="${user.output}")]
    played = play(solo(), [{"actions": plan}], host=RecordingHost(["Ada"]))

    assert (("Hello Ada!",), {"who": {"answer": "Ada"}}) == (played.printed, played.result)


def test_an_object_without_intent_may_be_the_result(play: Player) -> None:
    """Raw data that stands alone is what the playbook returns if it has said so."""
    assert {"total": 3} == play(solo(playbook="Add up. Return { total: <the sum> }"), ['{"total":3}']).result


@pytest.mark.parametrize("answer", ['{"total":3}', '{"thought":"hm"}', '{"error":"no"}', "I am done."])
def test_an_answer_of_another_shape_is_not_the_end(play: Player, answer: str) -> None:
    """It ended the playbook with exit code 0; now the model is told, in one message, what to write."""
    played = play(solo(playbook="Add up. Return { sum: <the sum> }"), [answer, done(sum=3)])

    assert {"sum": 3} == played.result
    assert played.feedback[1].startswith("❌ Nothing of your answer was carried out: ")
    assert '{"intent":"<action>", ...its fields}' in played.feedback[1]
    assert '{"intent":"return","data":{"sum":' in played.feedback[1]


def test_a_call_of_a_tool_is_carried_out(play: Player) -> None:
    """Models that were trained on calls of tools write them even when they are told another form."""
    calls = [{"name": "print", "arguments": {"message": "hi"}}, {"tool": "return", "input": {"data": {"n": 1}}}]
    played = play(solo(), [json.dumps(call) for call in calls])

    assert (("hi",), {"n": 1}) == (played.printed, played.result)


def test_what_follows_a_return_is_not_carried_out(play: Player) -> None:
    """`return` ends the answer and the call."""
    played = play(solo(), [{"batch": [done(n=1), say("late")]}])

    assert ({"n": 1}, ()) == (played.result, played.printed)


def test_a_return_in_a_group_ends_nothing(play: Player) -> None:
    """Inside of `parallel` a `return` is an ordinary action."""
    played = play(solo(), [{"parallel": [done(n=1), say("a")]}, done(n=2)])

    assert ({"n": 2}, ["a"]) == (played.result, list(played.printed))


@pytest.mark.parametrize("wrap", [lambda group: group, lambda group: {"batch": [say("first"), group]}])
def test_a_group_runs_at_the_same_time(play: Player, wrap: Any) -> None:
    """Members of a group wait for each other without trouble, on their own and within a batch."""
    answer = wrap({"parallel": [question("a"), question("b")]})
    played = play(solo(), [answer, done()], host=Meeting())

    assert ["prompt_user", "prompt_user"] == [name for name in played.did() if name == "prompt_user"]


def test_a_group_answers_in_its_order(play: Player) -> None:
    """Feedback on a group comes in the order of its members, all in one message."""
    played = play(solo(), [{"parallel": [{"id": "x", **question("a")}, question("b")]}, done()], host=Meeting())

    assert '✅ [x] prompt_user -> {"answer":"A"}\n✅ prompt_user -> {"answer":"B"}\nContinue.' == played.feedback[1]


# ---------------------------------------------------------------- failures


def test_a_failure_ends_the_answer(play: Player) -> None:
    """What follows a failed action is not carried out; the model hears why it failed and goes on."""
    played = play(solo(), [{"batch": [act("print"), say("after")]}, done()])

    assert () == played.printed
    assert (
        "❌ print failed: `print` cannot be carried out: `message` is missing. "
        'Write {"intent":"print","message":"<text>"}.\nContinue.' == played.feedback[1]
    )


def test_all_problems_of_an_action_are_told_at_once(play: Player) -> None:
    """Arguments are checked before anything runs, all of them."""
    played = play(solo("execute"), [act("shell", command=[5], cwd=[], background="yes"), done()])

    for problem in (
        "`description` is missing",
        "`command` must be a text, not [ 5 ]",
        "`cwd` must be a text or null, not []",
        "`background` must be true or false, not 'yes'",
    ):
        assert problem in played.feedback[1]


def test_the_rest_of_an_unreadable_answer_is_asked_for_again(play: Player) -> None:
    """What was read is carried out; the model hears what could not be read."""
    played = play(solo(), ['{"batch":[{"intent":"print","message":"a"},"b"]}', done()])

    assert ("a",) == played.printed
    assert (
        "❌ The rest of your answer was not carried out: an action is a JSON object, not a text." in played.feedback[1]
    )


def test_an_unknown_action_is_answered_with_the_nearest(play: Player) -> None:
    """An agent without a team hears which action it may have meant."""
    played = play(solo(), [act("prnt", message="x"), done()])

    assert "❌ prnt failed: there is no action `prnt`. did you mean `print`?" in played.feedback[1]


@pytest.mark.parametrize(
    ("event", "message"),
    [("explode", "Cannot read properties of undefined (reading 'field')"), ("throwText", "just a text")],
)
def test_code_of_a_member_that_fails_is_told(play: Player, event: str, message: str) -> None:
    """An error thrown in the code of a delegate is feedback for the model, not the end of the run."""
    played = play(TEAM, [ask(f"helper::{event}"), done(ok=True)])

    assert {"ok": True} == played.result
    assert f"❌ helper::{event} failed: {message}" in played.feedback[1]


def test_a_result_that_json_cannot_hold_is_shown(play: Player) -> None:
    """A result that contains itself is shown as `console.log` would."""
    played = play(TEAM, [ask("helper::loops"), done()])

    assert "✅ helper::loops -> <ref *1> { n: 1, self: [Circular *1] }" in played.feedback[1]


# ---------------------------------------------------------------- while it streams


def test_an_action_starts_when_its_object_closes(play: Player) -> None:
    """The model waits for the effect of its first action before it writes on."""
    host = Witness()

    async def speak(request: Request) -> AsyncIterator[str]:
        yield f'{{"batch":[{json.dumps(say("now"))},'
        await host.seen.wait()
        yield f"{json.dumps(done(ok=True))}]}}"

    assert {"ok": True} == play(solo(), Voice(speak), host=host).result


def test_members_of_a_group_start_one_by_one(play: Player) -> None:
    """The second member is written only after the first has started, and still they run together."""
    host = Meeting()

    async def speak(request: Request) -> AsyncIterator[str]:
        if len(request.messages) > 2:
            yield json.dumps(done())
            return
        yield f'{{"parallel":[{json.dumps(question("a"))},'
        await host.asked_once.wait()
        yield f"{json.dumps(question('b'))}]}}"

    play(solo(), Voice(speak), host=host)

    assert ["a", "b"] == host.asked


def test_reading_goes_on_while_an_action_runs(play: Player) -> None:
    """A question that waits for its answer does not keep the rest of the answer from being read."""
    host, read_on = Meeting(wanted=99), []

    async def speak(request: Request) -> AsyncIterator[str]:
        yield f'{{"batch":[{json.dumps(question("a"))},'
        yield f"{json.dumps(done())}]}}"
        read_on.append(host.all_asked.is_set())
        host.all_asked.set()

    play(solo(), Voice(speak), host=host)

    assert [False] == read_on


def breaking(*answers: str | Exception) -> Voice:
    """A model that gives texts and errors: an answer ends after `.`, an error breaks it off."""
    waiting = list(answers)

    async def speak(request: Request) -> AsyncIterator[str]:
        while waiting:
            piece = waiting.pop(0)
            if isinstance(piece, Exception):
                raise piece
            yield piece.removesuffix(".")
            if piece.endswith("."):
                return

    return Voice(speak)


CUT = ProviderError("cut")


def test_a_broken_stream_goes_on_from_what_was_carried_out(play: Player) -> None:
    """What was carried out before the break stays so, is in the conversation, and is not carried out again."""
    model = breaking(f'{{"batch":[{json.dumps(say("once"))},{{"int', CUT, json.dumps(done(ok=True)) + ".")
    played = play(solo(), model)

    assert (("once",), {"ok": True}) == (played.printed, played.result)
    assert ["user", "user", "assistant", "user"] == [message.role for message in played.requests[1].messages]
    assert "✅ print" in played.feedback[1]
    assert "❌ The rest of your answer was not carried out: the connection broke: cut." in played.feedback[1]


def test_a_break_before_any_action_is_tried_again(play: Player) -> None:
    """The same request is sent again, and half an answer leaves no trace in the conversation."""
    played = play(solo(), breaking('{"intent":"pri', CUT, CUT, json.dumps(done(ok=True)) + "."))

    assert {"ok": True} == played.result
    assert 1 == len({(request.system, request.messages) for request in played.requests})


def test_three_breaks_end_the_call(play: Player) -> None:
    """After three attempts at one turn the error of the provider ends the call, with the place in the program."""
    played = play(solo(), breaking(CUT, CUT, CUT, json.dumps(done()) + "."))

    assert (CUT, 3) == (played.error, len(played.requests))
    assert "error: cut" in played.told
    assert ".koi:4:" in played.told


@pytest.mark.parametrize("error", [MissingKeyError("no key"), RequestError("wrong key", status=401)])
def test_what_cannot_succeed_is_not_tried_again(play: Player, error: Exception) -> None:
    """An attempt that would fail the same way is not repeated."""
    played = play(solo(), breaking(error, error, error))

    assert (error, 1) == (played.error, len(played.requests))


def test_breaks_in_different_turns_do_not_add_up(play: Player) -> None:
    """Every turn has three attempts of its own."""
    first = json.dumps(say("a")) + "."
    played = play(solo(), breaking(CUT, CUT, first, CUT, CUT, json.dumps(done(ok=True)) + "."))

    assert {"ok": True} == played.result


def seconds(play: Player, answer: Any) -> float:
    """How long it takes to carry out an answer that comes in pieces of twelve characters."""
    gc.disable()  # its searches grow with what other tests have left
    try:
        started = time.process_time()
        assert play(solo(), [answer]).error is None
        return time.process_time() - started
    finally:
        gc.enable()


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "answer",
    [
        lambda size: {"batch": [say("x" * size), done()]},
        lambda size: {"batch": [*[say("x")] * (size // 100), done()]},
        lambda size: {"batch": [*[{"id": f"n{n}", **say("x")} for n in range(size // 400)], done()]},
    ],
    ids=["one long action", "many actions", "many results with ids"],
)
def test_carrying_out_is_linear(play: Player, answer: Any) -> None:
    """Four times as much takes about four times as long, not sixteen times."""
    one, four = seconds(play, answer(250_000)), seconds(play, answer(1_000_000))

    assert four < 10 * one + 0.5


# ---------------------------------------------------------------- what it takes


def test_the_usage_of_the_last_answer_counts(play: Player) -> None:
    """After `return` the end of the stream is waited for, where the provider tells what the answer took."""

    async def speak(request: Request) -> AsyncIterator[str]:
        yield json.dumps(done())
        await asyncio.sleep(0)

    played = play(solo(), Voice(speak, Usage(1000, 20)))

    assert 1020 == played.run.spending.tokens


def test_an_answer_that_is_cut_short_is_paid_for(play: Player) -> None:
    """What a failed action keeps from being read is not counted, what was read is."""

    async def speak(request: Request) -> AsyncIterator[str]:
        if len(request.messages) > 2:
            yield json.dumps(done())
            return
        yield json.dumps(act("print"))
        await asyncio.Event().wait()

    played = play(solo(), Voice(speak))
    counted = [event.fields["stop"] for event in played.events if event.type == "model_answered"]

    assert ["cut", "stop"] == counted


def test_two_onlookers_see_an_answer_arrive(play: Player) -> None:
    """Each is told every piece, whoever else is; others are told what came of it."""
    onlookers: list[list[Event]] = [[], []]

    async def speak(request: Request) -> AsyncIterator[str]:
        for onlooker in onlookers:
            current_run().events.subscribe(onlooker.append, transient=True)
        for piece in ('{"actionType": "direct", ', '"intent": "return"}'):
            yield piece

    played = play(solo(), Voice(speak))

    pieces = [[event.data.text for event in seen if isinstance(event.data, AnswerDelta)] for seen in onlookers]
    assert [['{"actionType": "direct", ', '"intent": "return"}']] * 2 == pieces
    assert [] == [event for event in played.events if event.data.is_transient]
