"""What each command does, as a client sees it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from koi_lang.runtime.hooks.types import Ask, ModelCall
from koi_lang.runtime.journal.entries import Header, line_of
from koi_lang.runtime.journal.store import path_of
from tests.extensions.hooking import hooks
from tests.playbook.playing import act, done
from tests.rpc.talking import MODELS, Talk, Talker

PROGRAM = '''
role Worker { can execute, can delegate }
agent Helper : Worker { affordance "Helps"  on work(args) { playbook "Help." } }
team Crew { helper: Helper }
agent Main : Worker {
  uses team Crew
  private on hidden(args) { playbook "Hide." }
  on go(args: Json) { playbook """Do the work.""" }
  on sum(args: { a: number, b: number }) { console.log("adding"); return args.a + args.b }
  on fail(args: Json) { throw new Error("broken") }
}
run Main.sum({ a: 1, b: 2 })
'''


def said(talk: Talk, request: int) -> str:
    """What the model was told last before an answer, counted from 0."""
    return talk.model.requests[request].messages[-1].text


def test_the_first_message_says_who_is_there(talk: Talker) -> None:
    """The client learns the version of the protocol and the agents before anything else."""

    async def test(client: Talk) -> None:
        ready = client.dispatcher.ready()

        assert {"rpc_ready", 1} == {ready["type"], ready["schema_version"]}
        assert ["Main", "Helper"] == sorted(ready["agents"], reverse=True)

    talk(PROGRAM, test)


def test_a_handler_is_called(talk: Talker) -> None:
    """The response says that the call has begun, its end comes as an event, and an `id` comes back."""

    async def test(client: Talk) -> None:
        response = await client.ask("run_playbook", id="x", name="Main.sum", args={"a": 1, "b": 2})
        ended = await client.until("call_ended")

        begun = {"call": "call-1", "name": "Main.sum"}
        assert {"type": "response", "command": "run_playbook", "id": "x", "success": True, "data": begun} == response
        assert ("call-1", True, 3) == (ended["call"], ended["ok"], ended["result"])

    talk(PROGRAM, test)


def test_what_went_over_its_budget_is_told_once(talk: Talker) -> None:
    """A session goes on after a call that took more than it might, so it is said there."""

    async def test(client: Talk) -> None:
        for n in range(2):
            client.answer(done(text="x" * 40_000))
            await client.ask("run_playbook", name="Main.go", args={})
            await client.until("call_ended", n + 1)
        told = [message["text"] for message in client.messages if message["type"] == "log"]

        assert ["more than its budget of 9000" in line for line in told] == [True]
        assert [True, False] == [event["ok"] for event in client.events("call_ended")]

    talk(PROGRAM, test, limits={"tokens": 9000})


def test_the_program_runs_on_demand(talk: Talker) -> None:
    """The `run` statements of the program are carried out by `run` only; what they print are events."""

    async def test(client: Talk) -> None:
        assert [] == client.events("printed")
        await client.data("run")
        await client.until("call_ended")

        assert ["adding"] == [event["message"] for event in client.events("printed")]

    talk(PROGRAM, test)


def test_what_a_command_causes_comes_behind_its_response(talk: Talker) -> None:
    """Not even an event that a command causes at once is told before its response."""

    async def test(client: Talk) -> None:
        for command, cause in (("pause", "paused"), ("steer", "queue_update"), ("set_session_name", "session_named")):
            fields = {"steer": {"message": "x"}, "set_session_name": {"name": "x"}}.get(command, {})
            await client.data(command, **fields)
            types = [message.get("event", message)["type"] for message in client.messages]

            assert ["response", cause] == types[-2:]

    talk(PROGRAM, test)


def test_a_prompt_is_given_to_the_handler(talk: Talker) -> None:
    """The message is `args.message`; without a name it goes to the handler that was called last."""

    async def test(client: Talk) -> None:
        client.answer(done(n=1), done(n=2))
        await client.data("prompt", message="first", name="Main.go")
        await client.until("call_ended", 1)
        assert {"call": "call-2", "name": "Main.go"} == await client.data("prompt", message="second")
        await client.until("call_ended", 2)

        assert ['{"args":{"message":"first"}', '{"args":{"message":"second"}'] == [
            client.model.requests[n].messages[-2].text.partition("Context: ")[2].partition("}")[0] + "}" for n in (0, 1)
        ]

    talk(PROGRAM, test)


def test_a_note_is_heard_before_the_next_answer(talk: Talker) -> None:
    """`steer` while the model works reaches it before its next answer; `from` says who speaks."""

    async def test(client: Talk) -> None:
        await client.data("prompt", message="x", name="Main.go")
        await client.asked(1)
        assert {"note": 1, "queued": 1} == await client.data("steer", message="Use tabs.", **{"from": "editor"})
        client.answer(act("print", message="a"), done())
        await client.until("call_ended")

        assert said(client, 1).startswith("`editor` says, ")
        assert said(client, 1).endswith('\n"Use tabs."')

    talk(PROGRAM, test)


def test_a_follow_up_is_heard_at_the_end(talk: Talker) -> None:
    """`follow_up` is heard when the playbook has returned; the result is that of its last `return`."""

    async def test(client: Talk) -> None:
        await client.data("prompt", message="x", name="Main.go")
        await client.asked(1)
        await client.data("prompt", message="Then this.", streaming_behavior="follow_up")
        client.answer(done(n=1), done(n=2))
        ended = await client.until("call_ended")

        assert ("Then this." in said(client, 1), {"n": 2}) == (True, ended["result"])

    talk(PROGRAM, test)


def test_something_is_said_to_an_agent(talk: Talker) -> None:
    """`send_to` reaches an agent that was delegated its work."""

    async def test(client: Talk) -> None:
        await client.data("send_to", agent="Helper", text="Hurry.")
        client.answer({"actionType": "delegate", "intent": "helper::work", "data": {}}, done(), done())
        await client.data("prompt", message="x", name="Main.go")
        await client.until("call_ended")

        assert [False, True, False] == ["Hurry." in said(client, n) for n in range(3)]

    talk(PROGRAM, test)


def test_queued_messages_can_be_taken_back(talk: Talker) -> None:
    """`take_back` empties the queues, or takes one message out."""

    async def test(client: Talk) -> None:
        await client.data("steer", message="1")
        await client.data("follow_up", message="2")
        await client.data("steer", message="3")
        assert ["2"] == [note["text"] for note in (await client.data("take_back", note=2))["taken"]]
        assert ["1", "3"] == [note["text"] for note in (await client.data("take_back"))["taken"]]

        assert [] == (await client.data("get_state"))["queued"]

    talk(PROGRAM, test)


def test_the_modes_of_the_queues_can_be_set(talk: Talker) -> None:
    """In the mode `all` two messages are heard before one answer."""

    async def test(client: Talk) -> None:
        await client.data("set_steering_mode", mode="all")
        await client.data("steer", message="1")
        await client.data("steer", message="2")
        client.answer(done())
        await client.data("prompt", message="x", name="Main.go")
        await client.until("call_ended")

        assert ["1", "2"] == [event["text"] for event in client.events("steered")]
        state = await client.data("get_state")
        assert ("all", "one") == (state["steering_mode"], state["follow_up_mode"])

    talk(PROGRAM, test)


def test_a_pause_holds_the_next_request(talk: Talker) -> None:
    """While the session is paused no model is asked; `continue` goes on."""

    async def test(client: Talk) -> None:
        await client.data("prompt", message="x", name="Main.go")
        await client.asked(1)
        assert {"paused": True} == await client.data("pause")
        client.answer(act("print", message="a"), done())
        await client.until("action_ended")
        state = await client.data("get_state")
        assert (True, 1) == (state["paused"], len(client.model.requests))
        assert {"continued": True} == await client.data("continue")

        assert (await client.until("call_ended"))["ok"]

    talk(PROGRAM, test)


def test_a_queued_message_can_be_continued_with(talk: Talker) -> None:
    """When nothing is under way, `continue` calls the last handler again, which hears what is queued."""

    async def test(client: Talk) -> None:
        client.answer(done(), done())
        await client.data("prompt", message="x", name="Main.go")
        await client.until("call_ended")
        await client.data("steer", message="Once more.")
        assert {"call": "call-2", "name": "Main.go"} == await client.data("continue")
        await client.until("call_ended", 2)

        assert "Once more." in said(client, 1)

    talk(PROGRAM, test)


def test_an_abort_gives_back_what_was_queued(talk: Talker) -> None:
    """The call ends as aborted, queued messages come back, and the session takes the next command at once."""

    async def test(client: Talk) -> None:
        await client.data("prompt", message="x", name="Main.go")
        await client.asked(1)
        await client.data("pause")
        await client.data("steer", message="never heard")
        aborted = await client.data("abort")
        assert (True, ["never heard"]) == (aborted["aborted"], [note["text"] for note in aborted["queued"]])
        assert [(False, True)] == [(event["ok"], event["aborted"]) for event in client.events("call_ended")]

        await client.data("run_playbook", name="Main.sum", args={"a": 1, "b": 2})
        assert (await client.until("call_ended", 2))["ok"]

    talk(PROGRAM, test)


def test_a_call_can_be_aborted_before_its_first_step(talk: Talker) -> None:
    """A call that is aborted as soon as it was begun has its end told, and the next one works."""

    async def test(client: Talk) -> None:
        await client.data("prompt", message="x", name="Main.go")
        assert (await client.data("abort"))["aborted"]
        await client.data("run_playbook", name="Main.sum", args={"a": 1, "b": 2})
        await client.until("call_ended", 2)

        assert [False, True] == [event["ok"] for event in client.events("call_ended")]
        assert [] == client.model.requests

    talk(PROGRAM, test)


def test_an_abort_of_nothing_succeeds(talk: Talker) -> None:
    """When nothing is under way, `abort` changes nothing, not even the queues."""

    async def test(client: Talk) -> None:
        await client.data("steer", message="later")

        assert {"aborted": False, "queued": []} == await client.data("abort")
        assert 1 == len((await client.data("get_state"))["queued"])

    talk(PROGRAM, test)


def test_a_failing_call_is_told(talk: Talker) -> None:
    """What a program throws is an event with the message and the line; the session goes on."""

    async def test(client: Talk) -> None:
        assert (await client.ask("run_playbook", name="Main.fail"))["success"]
        ended = await client.until("call_ended")

        assert (False, "broken") == (ended["ok"], ended["error"])
        assert 'throw new Error("broken")' in ended["report"]
        assert not (await client.data("get_state"))["busy"]

    talk(PROGRAM, test)


def test_pieces_of_answers_are_told(talk: Talker) -> None:
    """While the model writes, its text arrives in pieces, without numbers: they are not part of the journal."""

    async def test(client: Talk) -> None:
        client.answer(done(n=1))
        await client.data("prompt", message="x", name="Main.go")
        await client.until("call_ended")
        pieces = client.events("text_delta")

        assert json.dumps(done(n=1)) == "".join(piece["text"] for piece in pieces)
        assert all("seq" not in piece and piece["agent"] == "Main" for piece in pieces)

    talk(PROGRAM, test)


# ---------------------------------------------------------------- what the client is asked

ASKING = '''
role Worker { can execute }
agent Main : Worker { on go(args: Json) { playbook """Do the work.""" } }
'''
SHELL = act("shell", command="echo hello", description="to greet")


@pytest.mark.parametrize(("decision", "ran"), [("yes", True), ("no", False)])
def test_a_command_is_allowed_by_the_client(talk: Talker, decision: str, ran: bool) -> None:
    """A shell command waits for `approve` and is carried out only when that says so."""

    async def test(client: Talk) -> None:
        client.answer(SHELL, done())
        await client.data("prompt", message="x")
        request = await client.until("approval_request")
        assert ("Main", "run `echo hello`", "to greet") == (request["agent"], request["what"], request["detail"])
        assert ["Main.go#1", "shell#1"] == request["path"]
        assert [request] == (await client.data("get_state"))["requests"]
        await client.data("approve", request=request["id"], decision=decision)
        await client.until("call_ended")

        assert ran == ("hello" in said(client, 1) and "DENIED" not in said(client, 1))

    talk(ASKING, test)


def test_what_nobody_allows_in_time_is_denied(talk: Talker) -> None:
    """The time for an answer runs out: the command is not carried out, and the client learns of it."""

    async def test(client: Talk) -> None:
        client.answer(SHELL, done())
        await client.data("prompt", message="x")
        closed = await client.until("request_closed")
        await client.until("call_ended")

        assert ("timeout", True) == (closed["reason"], "DENIED" in said(client, 1))

    talk(ASKING, test, answer_s=0.02)


@pytest.mark.parametrize(
    ("given", "heard"),
    [
        ({"answer": "2"}, '"answer":"green"'),
        ({"answer": "blue"}, '"answer":"blue"'),
        ({"cancelled": True}, "nobody answers the question `Which colour?`"),
    ],
)
def test_a_question_is_answered_by_the_client(talk: Talker, given: dict[str, Any], heard: str) -> None:
    """A question waits for `answer`: an option, its number, free text, or that nobody answers."""

    async def test(client: Talk) -> None:
        client.answer(act("prompt_user", question="Which colour?", options=["red", "green"]), done())
        await client.data("prompt", message="x")
        question = await client.until("question")
        assert ["red", "green"] == question["options"]
        await client.data("answer", request=question["id"], **given)
        await client.until("call_ended")

        assert heard in said(client, 1)

    talk(ASKING, test)


def test_an_abort_closes_questions(talk: Talker) -> None:
    """A question that belongs to an aborted call is told to be closed."""

    async def test(client: Talk) -> None:
        client.answer(act("prompt_user", question="Which?"), done())
        await client.data("prompt", message="x")
        question = await client.until("question")
        await client.data("abort")

        assert {"type": "request_closed", "id": question["id"], "reason": "ended"} in client.messages
        assert "unknown_request" == await client.code("answer", request=question["id"], answer="x")

    talk(ASKING, test)


# ---------------------------------------------------------------- what can be looked at


def test_the_conversation_can_be_read(talk: Talker) -> None:
    """While the model works and afterwards, the messages are those that it was told."""

    async def test(client: Talk) -> None:
        assert {"agent": "", "text": None} == await client.data("get_last_assistant_text")
        await client.data("prompt", message="x", name="Main.go")
        await client.asked(1)
        assert 2 == len((await client.data("get_messages"))["messages"])
        client.answer(done(n=1))
        await client.until("call_ended")
        messages = (await client.data("get_messages", agent="Main"))["messages"]

        assert ["user", "user", "assistant", "user"] == [message["role"] for message in messages]
        assert json.dumps(done(n=1)) == (await client.data("get_last_assistant_text"))["text"]

    talk(PROGRAM, test)


def test_the_journal_can_be_read_in_parts(talk: Talker) -> None:
    """`since` goes on where the last part ended, until there is no more."""

    async def test(client: Talk) -> None:
        await client.data("run")
        await client.until("call_ended")
        seen, last, more = [], 0, True
        while more:
            part = await client.data("get_entries", since=last, limit=2)
            seen, last, more = [*seen, *part["entries"]], part["last"], part["more"]

        assert list(range(1, len(seen) + 1)) == [entry["n"] for entry in seen]
        assert ["run_started", "call_started", "handler_started"] == [entry["kind"] for entry in seen[:3]]

    talk(PROGRAM, test)


def test_related_runs_are_a_tree(talk: Talker, tmp_path: Path) -> None:
    """`get_tree` shows branches of this run and of its branches, and nothing else."""

    async def test(client: Talk) -> None:
        own = client.dispatcher.session.run.id
        for run, parent in (("b1", (own, 3)), ("b2", ("b1", 5)), ("other", None), ("x3", ("other", 1))):
            header = Header(run, 4e9, "/a.koi", "f", "1", parent=parent)
            path_of(tmp_path, run).write_bytes(line_of(header, str))
        tree = await client.data("get_tree")

        assert [(own, None, None), ("b1", own, 3), ("b2", "b1", 5)] == [
            (node["run"], node["parent"], node["entry"]) for node in tree["runs"]
        ]

    talk(PROGRAM, test)


def test_what_was_done_is_counted(talk: Talker) -> None:
    """The statistics count answers, actions, calls and messages."""

    async def test(client: Talk) -> None:
        client.answer(act("print", message="a"), act("nonsense"), done())
        await client.data("steer", message="x")
        await client.data("prompt", message="x", name="Main.go")
        await client.until("call_ended")
        stats = await client.data("get_session_stats")

        expected = {"requests": 3, "actions": 2, "failed_actions": 1, "calls": 1, "notes": 1, "printed": 1}
        assert expected == {name: stats[name] for name in expected}

    talk(PROGRAM, test)


def test_the_session_is_described(talk: Talker) -> None:
    """A session has an id, a name that can be set, a program and a journal."""

    async def test(client: Talk) -> None:
        await client.data("set_session_name", name=" Refactoring ")
        info = await client.data("session_info")

        assert ("Refactoring", True) == (info["name"], info["program"].endswith(".koi"))
        assert f"{info['session_id']}.jsonl" == Path(info["journal"]).name
        assert info["entry_count"] == len((await client.data("get_entries"))["entries"])

    talk(PROGRAM, test)


def test_a_new_session_remembers_nothing(talk: Talker) -> None:
    """`new_session` begins another run: other id, no conversation, nothing counted."""

    async def test(client: Talk) -> None:
        client.answer(done(), done())
        await client.data("prompt", message="x", name="Main.go")
        await client.until("call_ended")
        before = (await client.data("get_state"))["session_id"]
        after = (await client.data("new_session"))["session_id"]
        await client.data("prompt", message="y", name="Main.go")
        await client.until("call_ended", 2)

        assert (True, 2) == (before != after, len(client.model.requests[1].messages))
        assert 1 == (await client.data("get_session_stats"))["requests"]

    talk(PROGRAM, test)


def test_agents_and_commands_are_listed(talk: Talker) -> None:
    """Agents with their handlers, and everything that can be asked for, private handlers left out."""

    async def test(client: Talk) -> None:
        agents = {agent["name"]: agent for agent in (await client.data("list_agents"))["agents"]}
        listed = await client.data("get_commands")
        names = [each["name"] for each in listed["commands"]]

        assert ("Helps", ["Crew"]) == (agents["Helper"]["affordance"], agents["Main"]["teams"])
        assert ["Helper.work", "Main.fail", "Main.go", "Main.sum"] == sorted(names)
        takes = {each["name"]: each["takes"] for each in listed["protocol"]}
        assert "message: string, agent?: string, from?: string, images?: any[]" == takes["steer"]

    talk(PROGRAM, test)


def test_a_conversation_is_shortened(talk: Talker) -> None:
    """`compact` puts a record in place of what an agent remembers, and says how much it saves."""

    async def test(client: Talk) -> None:
        client.answer(*(act("print", message=f"{n}" * 4000) for n in range(4)), done())
        await client.data("prompt", message="x", name="Main.go")
        await client.until("call_ended")
        client.answer("They have printed digits.")
        data = await client.data("compact", instructions="Keep the digits.")

        assert ("manual", '"They have printed digits."') == (data["reason"], data["summary"])
        assert data["tokens_after"] < data["tokens_before"] / 2
        assert "printed digits" in (await client.data("get_messages"))["messages"][0]["text"]

    talk(PROGRAM, test)


def test_a_hook_may_ask_while_a_conversation_is_shortened(talk: Talker) -> None:
    """The client hears of the question at once, and its answer counts; what comes behind `compact` waits for it."""

    def careful(call: ModelCall) -> Ask | None:
        return Ask("costs") if call.use == "small" else None

    async def test(client: Talk) -> None:
        client.answer(*(act("print", message=f"{n}" * 4000) for n in range(4)), done(), "They have printed.")
        await client.data("prompt", message="x", name="Main.go")
        await client.until("call_ended")
        async with asyncio.TaskGroup() as group:
            compacting = group.create_task(client.data("compact"))
            request = await client.until("approval_request")
            renamed = group.create_task(client.data("set_session_name", name="after"))
            takes = [client.dispatcher.takes_time({"type": type}) for type in ("compact", "prompt", "approve")]
            await client.data("approve", request=request["id"], decision="yes")

        assert ([True, True, False], False) == (takes, client.dispatcher.takes_time({"type": "prompt"}))
        assert ("manual", {"name": "after"}) == (compacting.result()["reason"], renamed.result())
        order = [message["command"] for message in client.messages if message["type"] == "response"]
        assert ["prompt", "approve", "compact", "set_session_name"] == order

    talk(PROGRAM, test, added=hooks(careful, kind="before_model"))


def test_extensions_add_commands(talk: Talker) -> None:
    """`extension_command` gives what the function of an extension gives; one that fails is told."""

    async def test(client: Talk) -> None:
        assert {"result": {"doubled": 8}} == await client.data("extension_command", name="double", args={"n": 4})
        assert "failed" == await client.code("extension_command", name="double")

        assert (await client.ask("get_state"))["success"]

    talk(PROGRAM, test)


def test_how_much_models_think_can_be_changed(talk: Talker) -> None:
    """`set_thinking_level` counts for later requests, is told as an event, and `auto` takes it back."""

    async def test(client: Talk) -> None:
        levels = [(await client.data("get_state"))["thinking_level"]]
        for level in ("high", "auto"):
            assert {"level": level} == await client.data("set_thinking_level", level=level)
            levels.append((await client.data("get_state"))["thinking_level"])
        wrong = await client.code("set_thinking_level", level="extreme")
        told = [message["event"]["effort"] for message in client.messages if _type_of(message) == "effort_changed"]

        assert (["auto", "high", "auto"], "invalid_request", ["high", ""]) == (levels, wrong, told)

    talk(PROGRAM, test)


def _type_of(message: Mapping[str, Any]) -> str:
    """The type of the event that a message tells of; empty where it tells of none."""
    return str(message.get("event", {}).get("type", ""))


def test_the_model_can_be_changed(talk: Talker) -> None:
    """`set_model` counts for later requests; what there is to choose from is listed."""

    async def test(client: Talk) -> None:
        assert {"models": MODELS} == await client.data("get_available_models")
        client.answer(done(), done())
        for count, model in enumerate(("good/one", "good/two"), 1):
            assert {"model": model} == await client.data("set_model", model=model)
            await client.data("prompt", message="x", name="Main.go")
            await client.until("call_ended", count)

        assert (["good/one", "good/two"], "good/two") == (
            client.connected,
            (await client.data("get_state"))["model"],
        )

    talk(PROGRAM, test)
