"""Sessions that go on with what was recorded: nothing is asked for or done twice, and what comes next is new."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from koi_lang.runtime.budget.limits import Budget
from koi_lang.runtime.journal.reader import read
from koi_lang.runtime.journal.store import path_of
from koi_lang.runtime.journal.summary import summarise
from tests.playbook.playing import act, done
from tests.rpc.talking import Talk, Talker

PROGRAM = '''
role Worker { can execute }
agent Main : Worker {
  state { count: number = 0 }
  on chat(args: { message: string }) { playbook """Answer the person.""" }
  on add(args: { n: number }) { this.state.count += args.n; console.log(this.state.count); return this.state.count }
  on fail(args: Json) { this.state.count = 100; throw new Error("broken") }
  on wait(args: Json) {
    this.state.count = 7
    console.log("waiting")
    await new Promise((done) => setTimeout(done, 60000))
  }
}
'''


async def said(client: Talk, message: str, *answers: Any) -> None:
    """Have the agent answer a message."""
    count = len(client.events("call_ended"))
    client.answer(*answers)
    await client.data("prompt", message=message, name="Main.chat")
    await client.until("call_ended", count + 1)


async def called(client: Talk, name: str, **args: Any) -> Any:
    """What came of the call of a handler."""
    count = len(client.events("call_ended"))
    await client.data("run_playbook", name=name, args=args)
    return await client.until("call_ended", count + 1)


async def resumed(client: Talk) -> str:
    """Leave the session for another one and come back to it; gives its id."""
    first = client.dispatcher.session.run.id
    await client.data("new_session")
    client.messages.clear()
    await client.data("resume_session", session=first)
    return first


def texts(messages: Sequence[Any]) -> list[str]:
    """The first words of what was said."""
    return [message["text"] for message in messages]


def test_a_resumed_session_remembers(talk: Talker) -> None:
    """The conversation is as it was, no model is asked for it, and the next message goes on with it."""

    async def test(client: Talk) -> None:
        await said(client, "hi", act("print", message="Hello"), done())
        before, asked = await client.data("get_messages"), len(client.model.requests)
        first = await resumed(client)

        assert (first, before) == (client.dispatcher.session.run.id, await client.data("get_messages"))
        assert asked == len(client.model.requests)
        await said(client, "more", done(n=2))
        assert texts(before["messages"]) == [message.text for message in client.model.requests[-1].messages[:-2]]

    talk(PROGRAM, test)


def test_resuming_writes_nothing_twice(talk: Talker) -> None:
    """The journal gets what is new; calls keep their numbers, and the next one has the next number."""

    async def test(client: Talk) -> None:
        await called(client, "Main.add", n=1)
        first = await resumed(client)
        await called(client, "Main.add", n=2)

        entries = read(path_of(talk.folder, first)).entries
        assert ["call#1", "call#2"] == [entry.path[0] for entry in entries if entry.kind == "call_started"]
        assert ["1", "3"] == [entry.data["message"] for entry in entries if entry.kind == "printed"]

    talk(PROGRAM, test)


def test_the_client_sees_what_was(talk: Talker) -> None:
    """Events of the earlier part come behind the response, marked as recalled, and count for the statistics."""

    async def test(client: Talk) -> None:
        await called(client, "Main.add", n=1)
        before = (await client.data("get_session_stats"))["calls"]
        await resumed(client)

        assert "resume_session" == client.messages[0].get("command")
        assert {True} == {event["recalled"] for event in client.events() if event["type"] == "printed"}
        assert before == (await client.data("get_session_stats"))["calls"]

    talk(PROGRAM, test)


def test_what_was_paid_before_counts_once(talk: Talker) -> None:
    """A session that goes on has taken what it took before; a branch of it begins with nothing, as its journal says."""

    async def test(client: Talk) -> None:
        await said(client, "hi", act("print", message="Hello"), done())
        before = await client.data("get_session_stats")
        run = await resumed(client)
        after = await client.data("get_session_stats")
        await client.data("branch", entry=len(read(path_of(talk.folder, run)).entries))
        branch = await client.data("get_session_stats")
        journal = summarise(path_of(talk.folder, client.dispatcher.session.run.id)).totals

        assert (2, before) == (before["requests"], after)
        assert (0, 1, 0) == (branch["requests"], branch["calls"], journal.requests)

    talk(PROGRAM, test)


@pytest.mark.parametrize("limit", [Budget(), Budget(time_s=2)])
def test_a_call_that_was_ended_gets_as_far_again(talk: Talker, limit: Budget) -> None:
    """What an aborted call, or one that took too long, had done counts; it is not waited for again."""

    async def test(client: Talk) -> None:
        await client.data("run_playbook", name="Main.wait", args={})
        await client.until("printed")
        if limit.time_s is None:
            await client.data("abort")
        await client.until("call_ended")
        await called(client, "Main.add", n=1)
        await resumed(client)

        assert ["waiting", "8"] == [event["message"] for event in client.events("printed")]
        assert 9 == (await called(client, "Main.add", n=1))["result"]

    talk(PROGRAM, test, limit=limit)


def test_a_call_that_failed_fails_again(talk: Talker) -> None:
    """An error is no reason not to go on; what was done before it counts."""

    async def test(client: Talk) -> None:
        await called(client, "Main.fail")
        await resumed(client)

        assert 101 == (await called(client, "Main.add", n=1))["result"]

    talk(PROGRAM, test)


def test_what_was_aborted_while_a_model_answered_stays_so(talk: Talker) -> None:
    """A request that was never answered is not made again."""

    async def test(client: Talk) -> None:
        await client.data("prompt", message="hi", name="Main.chat")
        await client.asked(1)
        await client.data("abort")
        await resumed(client)

        assert (1, False) == (len(client.model.requests), (await client.data("get_state"))["busy"])
        await said(client, "again", done(n=1))
        assert 2 == len(client.model.requests)

    talk(PROGRAM, test)


def test_what_was_heard_is_heard_again(talk: Talker) -> None:
    """Messages that steered the work are part of the conversation; they are delivered at the same places."""

    async def test(client: Talk) -> None:
        await client.data("prompt", message="hi", name="Main.chat")
        await client.asked(1)
        await client.data("steer", message="Use tabs.")
        client.answer(act("print", message="x"), done())
        await client.until("call_ended")
        before = await client.data("get_messages")
        await resumed(client)

        assert before == await client.data("get_messages")
        assert ["Use tabs."] == [event["text"] for event in client.events("steered")]

    talk(PROGRAM, test)


def test_name_model_and_compaction_are_kept(talk: Talker) -> None:
    """What the client has changed counts again; a conversation that was shortened is short."""

    async def test(client: Talk) -> None:
        await said(client, "long " * 3000, done(n=1))
        await said(client, "hi", done(n=1))
        await client.data("set_session_name", name="Tides")
        client.answer("a record")
        await client.data("compact", instructions="keep")
        before, asked = await client.data("get_messages", agent="Main"), len(client.model.requests)
        await resumed(client)

        assert before == await client.data("get_messages", agent="Main")
        assert (asked, "Tides") == (len(client.model.requests), (await client.data("session_info"))["name"])

    talk(PROGRAM, test)


def test_the_model_of_a_session_is_used_again(talk: Talker) -> None:
    """The model that was chosen last counts, unless another one is chosen now."""

    async def test(client: Talk) -> None:
        choice = client.dispatcher.session.choice
        for model in ("good/one", "good/two"):
            await client.data("set_model", model=model)
        first = client.dispatcher.session.run.id
        await client.data("new_session")
        choice.chosen = ""  # type: ignore[attr-defined]
        await client.data("resume_session", session=first)

        assert "good/two" == choice.name()

    talk(PROGRAM, test)


def test_a_branch_leaves_what_came_later(talk: Talker) -> None:
    """Going back to before a message makes another journal, in which it was not said; the first one stays."""

    async def test(client: Talk) -> None:
        for n in (1, 2):
            await called(client, "Main.add", n=n)
        first = client.dispatcher.session.run.id
        entries = (await client.data("get_entries"))["entries"]
        at = [entry["n"] for entry in entries if entry["kind"] == "call_started"][1] - 1
        second = (await client.data("branch", entry=at))["session_id"]
        tree = await client.data("get_tree")

        assert 6 == (await called(client, "Main.add", n=5))["result"]
        assert {first: None, second: at} == {run["run"]: run["entry"] for run in tree["runs"]}
        assert len(entries) < len(read(path_of(talk.folder, first)).entries)

    talk(PROGRAM, test)


def test_a_branch_from_within_a_call_goes_on_with_it(talk: Talker) -> None:
    """Behind an answer of a model the call goes on by itself, and asks anew."""

    async def test(client: Talk) -> None:
        await said(client, "hi", act("print", message="Hello"), done(n=1))
        entries = (await client.data("get_entries"))["entries"]
        at = next(entry["n"] for entry in entries if entry["kind"] == "model_answered")
        client.messages.clear()
        assert "call-1" == (await client.data("branch", entry=at))["call"]
        client.answer(done(n=2))

        assert {"n": 2} == (await client.until("call_ended"))["result"]
        assert 3 == len(client.model.requests)

    talk(PROGRAM, test)


def test_a_branch_of_a_branch(talk: Talker) -> None:
    """A branch is a whole session: it can be resumed, and branched again."""

    async def test(client: Talk) -> None:
        for n in (1, 2, 3):
            await called(client, "Main.add", n=n)
            entries = (await client.data("get_entries"))["entries"]
            ends = [entry["n"] for entry in entries if entry["kind"] == "call_ended"]
            await client.data("branch", entry=ends[-1])
        await resumed(client)

        assert 10 == (await called(client, "Main.add", n=4))["result"]
        assert 4 == len((await client.data("get_tree"))["runs"])

    talk(PROGRAM, test)


def test_a_session_that_goes_on_is_not_resumed(talk: Talker) -> None:
    """What cannot be resumed leaves the session as it is."""

    async def test(client: Talk) -> None:
        own = client.dispatcher.session.run.id

        assert "session_not_found" == await client.code("resume_session", session="nothing")
        assert own == (await client.data("get_state"))["session_id"]

    talk(PROGRAM, test)


def test_plan_mode_goes_on(talk: Talker) -> None:
    """A session that goes on is in plan mode as it was, or has the plan that was accepted."""
    update, plan = act("update_state", updates={"count": 3}), act("propose_plan", steps=[{"text": "count"}])

    async def test(client: Talk) -> None:
        assert {"on": True} == await client.data("set_plan_mode", on=True)
        await said(client, "count", update, done())
        await resumed(client)
        assert client.dispatcher.session.run.planning.is_on
        count = len(client.events("call_ended"))
        client.answer(plan, update, done())
        await client.data("prompt", message="go", name="Main.chat")
        question = await client.until("question")
        assert ["accept", "edit", "refuse"] == question["options"]
        assert "1. count" in question["question"]
        await client.data("answer", request=question["id"], answer="accept")
        await client.until("call_ended", count + 1)
        await resumed(client)
        session = client.dispatcher.session
        run = session.run
        assert (False, ["count"]) == (run.planning.is_on, [step.text for step in run.planning.steps])
        assert {"count": 3} == run.agent(session.ready.agents[0]).state

    talk(PROGRAM, test)
