"""`/agui`: runs of a program as the official types, and the official client, know them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest

from tests.limits import LIMIT_S
from tests.service.agui_runs import run, run_page, texts_of
from tests.service.serving_process import TOKEN, ServiceProcess

PROGRAM = """
role Worker { can execute, can delegate, can execute:shell }
team Desk { clerk: Clerk }
agent Clerk : Worker { on look(args: { n: number }) { return args.n * 2 } }
agent Main : Worker {
  uses team Desk
  state { count: number = 0, names: Json = [] }
  on chat(args: { message: string }) {
    playbook "Answer the person: {{args.message}}."
  }
}
"""
ANSWERS = {
    "Answer the person": [
        {"batch": [
            {"intent": "update_state", "updates": {"count": 3, "names": ["a/b"]}},
            {"id": "c", "actionType": "delegate", "intent": "clerk::look", "data": {"n": 4}},
            {"intent": "print", "message": "It is ${c.output} and counting."},
        ]},
        {"intent": "return", "data": "done"},
        {"batch": [
            {"id": "q", "intent": "prompt_user", "question": "Which?", "options": ["red", "green"]},
            {"intent": "print", "message": "You like ${q.output.answer}."},
        ]},
        {"intent": "shell", "command": "echo hi", "description": "to see"},
        {"intent": "return"},
    ]
}  # fmt: skip

Start = Callable[..., ServiceProcess]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service whose model answers as scripted, in each thread from the beginning."""
    folder = tmp_path_factory.mktemp("agui")
    (folder / "answers.json").write_text(json.dumps(ANSWERS))
    (folder / "desk.koi").write_text(PROGRAM)
    process = ServiceProcess(folder, ("desk.koi", "--answers", "answers.json"))
    process.start()
    yield process
    process.end()


def kinds(events: list[Any], *left_out: str) -> list[str]:
    """The types of events, each once where it is repeated."""
    found = [event.type.value for event in events if event.type.value not in left_out]
    return [kind for number, kind in enumerate(found) if number == 0 or found[number - 1] != kind]


def test_a_run_is_told(program: ServiceProcess) -> None:
    """Steps are handlers, tools are actions, prints are texts whose references are known, and the state is patched."""
    events = run(program, "told")
    (patch,) = [event.delta for event in events if event.type == "STATE_DELTA"]
    calls = [(event.tool_call_name, event.tool_call_id) for event in events if event.type == "TOOL_CALL_START"]
    results = {event.tool_call_id: event.content for event in events if event.type == "TOOL_CALL_RESULT"}
    end = events[-1]

    assert kinds(events)[:3] == ["RUN_STARTED", "STATE_SNAPSHOT", "STEP_STARTED"]
    assert kinds(events)[-2:] == ["MESSAGES_SNAPSHOT", "RUN_FINISHED"]
    assert texts_of(events) == ["It is 8 and counting.", "done"]
    assert [(each.op, each.path, each.value) for each in patch][-2:] == [
        ("add", "/Main/count", 3),
        ("add", "/Main/names", ["a/b"]),
    ]
    assert calls == [
        ("update_state", "Main.chat#1/update_state#1"),
        ("clerk::look", "Main.chat#1/clerk::look#1"),
    ]
    assert results["Main.chat#1/clerk::look#1"] == "8"
    assert (end.outcome.type, end.result, end.usage[0].model) == ("success", "done", "scripted")


def test_questions_and_approvals_interrupt(program: ServiceProcess) -> None:
    """A run ends with what is open, and the next one goes on with the answers; state and thread are kept."""
    run(program, "asked")
    asked = run(program, "asked", "more", runId="r2")
    (question,) = asked[-1].outcome.interrupts
    answered = run(
        program,
        "asked",
        "more",
        runId="r3",
        resume=[{"interruptId": question.id, "status": "resolved", "payload": "green"}],
    )
    (approval,) = answered[-1].outcome.interrupts
    refusal = [{"interruptId": approval.id, "status": "resolved", "payload": {"decision": "no", "reason": "late"}}]
    last = run(program, "asked", "more", runId="r4", resume=refusal)
    (failed,) = [event for event in last if event.type == "TOOL_CALL_RESULT"]

    assert asked[1].snapshot["Main"]["count"] == 3
    assert (question.reason, question.message) == ("input_required", "Which?")
    assert question.response_schema == {"type": "string", "enum": ["red", "green"]}
    assert texts_of(answered) == ["You like green."]
    assert (approval.reason, approval.tool_call_id) == ("tool_call", "Main.chat#2/shell#1")
    assert "echo hi" in approval.message
    assert "late" in failed.content
    assert last[-1].outcome.type == "success"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"threadId": "t", "runId": "r", "messages": []}, 400),
        ({"threadId": "", "runId": "r", "messages": [{"id": "1", "role": "user", "content": "x"}]}, 400),
        ({"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "king", "content": "x"}]}, 400),
        ({"threadId": "t", "runId": "r", "messages": [], "resume": [{"interruptId": "1", "status": "resolved"}]}, 400),
    ],
)
def test_bad_input_is_refused(service: ServiceProcess, body: dict[str, Any], status: int) -> None:
    """It is told what is wrong, as everywhere in the API, before a stream begins."""
    answer = service.request("POST", "agui", body)

    assert answer.status_code == status
    assert {"code", "message", "help"} == answer.json().keys()


def test_threads_belong_to_who_shows_the_token(program: ServiceProcess) -> None:
    """Without a token there is nothing."""
    program.token = "wrong"
    refused = program.request("POST", "agui", {}).status_code
    program.token = TOKEN

    assert refused == 401


def test_a_client_that_leaves_ends_the_call(start_service: Start) -> None:
    """Who stops a run closes its stream."""
    text = """
        role Worker { can execute }
        agent Main : Worker {
          on chat(args: { message: string }) { await new Promise(resolve => setTimeout(resolve, 60000)) }
        }
        """
    service = start_service(slow=text)
    body = {"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": "x"}]}
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with httpx2.stream("POST", f"{service.url}/agui", json=body, headers=headers, timeout=LIMIT_S) as answer:
        next(line for line in answer.iter_lines() if "STEP_STARTED" in line)
    (known,) = service.get("api/runs")["runs"]

    assert service.wait_for_state(known["id"], "idle")["state"] == "idle"


def test_a_client_that_left_comes_back(start_service: Start) -> None:
    """The end of the call that it left is not that of the next one."""
    text = """
        role Worker { can execute }
        agent Main : Worker {
          on chat(args: { message: string }) {
            if (args.message == "wait") await new Promise(resolve => setTimeout(resolve, 60000))
            return "you said " + args.message
          }
        }
        """
    service = start_service(slow=text)
    body = {"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": "wait"}]}
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with httpx2.stream("POST", f"{service.url}/agui", json=body, headers=headers, timeout=LIMIT_S) as answer:
        next(line for line in answer.iter_lines() if "STEP_STARTED" in line)
    (known,) = service.get("api/runs")["runs"]
    service.wait_for_state(known["id"], "idle")

    assert run(service, "t", "tea")[-1].result == "you said tea"


SCRIPT = """
import { HttpAgent } from "@ag-ui/client"
const [url, token] = process.argv.slice(2)
const agent = new HttpAgent({ url, headers: { Authorization: `Bearer ${token}` }, threadId: "node-1" })
const told = []
const subscriber = { onEvent: ({ event }) => { told.push(event.type) } }
agent.messages = [{ id: "m1", role: "user", content: "hi" }]
await agent.runAgent({ runId: "n1" }, subscriber)
const state = agent.state
agent.messages.push({ id: "m2", role: "user", content: "more" })
let outcome
await agent.runAgent({ runId: "n2" }, { onRunFinishedEvent: ({ event }) => { outcome = event.outcome } })
const [open] = outcome.interrupts
const resume = [{ interruptId: open.id, status: "resolved", payload: "red" }]
await agent.runAgent({ runId: "n3", resume }, { onRunFinishedEvent: ({ event }) => { outcome = event.outcome } })
const contents = agent.messages.map(({ role, content }) => [role, content ?? ""])
console.log(JSON.stringify({ told, state, contents, open, outcome }))
"""


@pytest.mark.needs("node", "npm")
def test_the_official_client_understands_it(program: ServiceProcess) -> None:
    """`@ag-ui/client` checks the order of events, applies patches and messages, and resumes."""
    told = run_page(SCRIPT, f"{program.url}/agui", TOKEN)

    assert told["state"] == {"Main": {"count": 3, "names": ["a/b"]}}
    assert (told["told"][0], told["told"][-1]) == ("RUN_STARTED", "RUN_FINISHED")
    assert ["assistant", "It is 8 and counting."] in told["contents"]
    assert ["assistant", "You like red."] in told["contents"]
    assert told["open"]["message"] == "Which?"
    assert told["outcome"]["interrupts"][0]["reason"] == "tool_call"
