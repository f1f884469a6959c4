"""The messages of the streams have schemas in the document, made of the records that the code sends."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012
from websockets.sync.client import ClientConnection, connect

from koi_lang.events import EVENTS, AnswerDelta
from koi_lang.service.user_view import COMMANDS, FIELDS, MESSAGES
from tests.limits import LIMIT_S
from tests.service.serving_process import ServiceProcess
from tests.service.user_tokens import SETTINGS, as_user

PROGRAM = """
import "std/code"
type Piece = { words: number, says: "yes" | "no" }
role Chief { can think, can execute, can delegate, can write, can execute:shell }
team Desk { counter: Counter }
agent Counter : Chief {
  on count(args: { text: string }) { console.log("counts"); return { words: 3 } }
  on nap(args: Json) { await new Promise((done) => setTimeout(done, 60000)) }
}
agent Main : Chief {
  uses team Desk
  state { last = "" }
  on chat(args: { message: string }): Piece { playbook "Work on {{args.message}}." }
  on fail(args: Json) { throw new Error(`no tea ${Math.random()}`) }
  on slow(args: Json) { await send peers.event("nap").any()({}) timeout 1s }
}
"""
FORM = {"type": "object", "properties": {"size": {"type": "integer"}}, "required": ["size"]}
ANSWERS = {
    "Work on": [
        {"batch": [
            {"intent": "print", "message": "Good day."},
            {"id": "n", "actionType": "delegate", "intent": "counter::count", "data": {"text": "tea"}},
            {"intent": "update_state", "updates": {"last": "tea"}},
            {"id": "q", "intent": "prompt_user", "question": "Which?", "options": ["yes", "no"]},
        ], "thought": "as it should be"},
        {"batch": [
            {"id": "s", "intent": "shell", "command": "echo done", "description": "to see"},
            {"intent": "write_file", "path": "a.txt", "content": "tea"},
            {"id": "f", "intent": "prompt_form", "question": "How much?", "form": FORM},
        ]},
        {"id": "b", "intent": "shell", "command": "exit 3", "description": "to fail"},
        {"intent": "return", "data": {"words": 3, "says": "yes"}},
    ],
}  # fmt: skip
# Events that the conversation below has at least.
EXPECTED = {
    *("run_started", "call_started", "call_ended", "handler_started", "handler_ended", "handler_failed", "printed"),
    *("model_asked", "model_answered", "action_started", "action_ended", "action_failed", "output_delta", "asked"),
    *("answered", "approval_requested", "approval_given", "state_changed", "session_named", "steered"),
    *("queue_update", "paused", "continued", "timed_out", "plan_mode_changed", "resumed", "run_ended"),
}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service of a program that does a bit of everything."""
    folder = tmp_path_factory.mktemp("messages")
    (folder / "koi.toml").write_text(SETTINGS)
    (folder / "main.koi").write_text(PROGRAM)
    (folder / "answers.json").write_text(json.dumps(ANSWERS))
    service = ServiceProcess(folder, ("main.koi", "--answers", "answers.json"))
    service.start()
    yield service
    service.end()


def closed(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with no other fields than it names in messages and events, but those that errors have."""
    schemas = dict(document["components"]["schemas"])
    for name, schema in schemas.items():
        is_event = "path" in schema.get("properties", {}) and "v" in schema["properties"]
        if (name.endswith("Message") and "oneOf" not in schema) or (is_event and "class" not in schema["properties"]):
            schemas[name] = {**schema, "unevaluatedProperties": False}
    return {**document, "components": {**document["components"], "schemas": schemas}}


def problems(document: Mapping[str, Any], name: str, values: Iterable[Any]) -> list[str]:
    """What does not fit a schema of the document, which has a variant for each `type`."""
    known = Registry().with_resource("", Resource.from_contents(document, default_specification=DRAFT202012))
    found = []
    for value in values:
        parts = [(name, value), *([("Event", value["event"])] if value.get("type") == "event" else [])]
        for union, part in parts:
            places = document["components"]["schemas"][union]["discriminator"]["mapping"]
            if part["type"] not in places:
                found.append(f"no schema for {part['type']}")
                continue
            schema = {"$ref": places[part["type"]]}
            validator = Draft202012Validator(schema, registry=known, _resolver=known.resolver(""))
            found += [f"{part['type']}: {error.message} at {error.json_path}" for error in validator.iter_errors(part)]
    return found


class Cable:
    """A WebSocket to a run, and all that came over it."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket, self.messages, self.taken = socket, list[dict[str, Any]](), set[int]()

    def send(self, type: str, **fields: Any) -> dict[str, Any]:
        """The response to a command."""
        self.socket.send(json.dumps({"type": type, "id": type, **fields}))
        return self.wait_for("response")

    def wait_for(self, type: str) -> dict[str, Any]:
        """The first message of a type that nobody has waited for yet."""
        while True:
            for number, message in enumerate(self.messages):
                if message["type"] == type and number not in self.taken:
                    self.taken.add(number)
                    return message
            self.messages.append(json.loads(self.socket.recv(LIMIT_S)))


def converse(desk: ServiceProcess) -> tuple[str, list[dict[str, Any]]]:
    """A run in which everything happens, and what came over its WebSocket."""
    ada = as_user(desk, "ada")
    run = ada.begin(program="main", title="tea")
    url, headers = f"{desk.url.replace('http', 'ws', 1)}/api/runs/{run}/ws", {"Authorization": f"Bearer {desk.token}"}
    with connect(url, additional_headers=headers) as socket:
        cable = Cable(socket)
        cable.send("set_session_name", name="about tea")
        cable.send("prompt", message="tea", name="Main.chat")
        asked = cable.wait_for("question")
        cable.send("steer", message="Be quick.")
        cable.send("pause")
        cable.send("continue")
        cable.send("answer", request=asked["id"], answer="yes")
        for _ in range(2):
            cable.send("approve", request=cable.wait_for("approval_request")["id"], decision="yes")
        cable.send("answer", request=cable.wait_for("question")["id"], answer="3")
        cable.send("approve", request=cable.wait_for("approval_request")["id"], decision="no", reason="no need")
        cable.send("get_state")
        ada.wait_for_state(run, "idle")
        for name in ("Main.fail", "Main.slow"):
            cable.send("run_playbook", name=name, args={})
            ada.wait_for_state(run, "idle", "failed")
        cable.send("set_plan_mode", on=True)
        cable.send("nonsense")
        return run, cable.messages


def test_what_a_service_sends_fits_its_document(desk: ServiceProcess) -> None:
    """Every message of a run, over both streams, for a user and an admin, has a schema that names all of its fields."""
    run, over_socket = converse(desk)
    desk.end()
    desk.start()
    ada, document = as_user(desk, "ada"), closed(desk.get("api/openapi.json"))
    ada.command(run, "run_playbook", name="Main.slow", args={})
    is_last = lambda message: message.get("n", 0) >= last  # noqa: E731
    ada.wait_for_state(run, "idle", "failed")
    last = desk.get(f"api/runs/{run}")["entries"]
    streams = [[message for _, message in user.follow_until(run, is_last)] for user in (desk, ada)]
    seen = {message["event"]["type"] for message in [*over_socket, *streams[0]] if message["type"] == "event"}

    assert [] == problems(document, "SocketMessage", over_socket)
    assert [] == [text for stream in streams for text in problems(document, "Message", stream)]
    assert set() == EXPECTED - seen


def test_a_field_without_a_schema_is_found(desk: ServiceProcess) -> None:
    """What this file checks fails for a field, or a type, that the document does not know."""
    document = closed(desk.get("api/openapi.json"))
    state = {"type": "state", "state": "idle"}
    printed = {"v": 1, "seq": 1, "ts": 1.0, "run": "a", "path": [], "agent": "", "type": "printed", "message": "hi"}
    event = {"type": "event", "n": 1, "event": printed}

    wrong = [{**state, "colour": "red"}, {"type": "weather"}]
    wrong += [{**event, "event": {**printed, **other}} for other in ({"colour": "red"}, {"type": "painted"})]

    assert [] == problems(document, "Message", [state, event])
    assert [] == [message for message in wrong if not problems(document, "Message", [message])]


def test_everything_that_may_be_sent_has_a_schema(desk: ServiceProcess) -> None:
    """Events, messages and commands of the tables that the service works with are in the document."""
    schemas = desk.get("api/openapi.json")["components"]["schemas"]
    places = {name: set(schemas[name]["discriminator"]["mapping"]) for name in ("Event", "Message", "Command")}

    assert {*EVENTS} - {AnswerDelta.type} == places["Event"]
    assert {"event", "log", *MESSAGES} == places["Message"]
    assert (set(), set()) == (set(FIELDS) - places["Event"], COMMANDS - places["Command"])
    assert {"$ref": "#/components/schemas/Main.chat.result"} == schemas["Results"]["properties"]["Main.chat"]
