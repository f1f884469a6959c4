"""What servers ask of us while they work: progress to tell, a model to ask, a person to ask."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from koi_lang.runtime.host import Approval, ApprovalDecision, ApprovalRequest
from tests import forks
from tests.mcp.conftest import SERVER, Shelf
from tests.playbook.playing import Played
from tests.running import RecordingHost

SAMPLE = 'return await files.sample({ text: "Which colour?" })'
WHO = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["name"]}


@dataclass(slots=True)
class Person(RecordingHost):
    """A host whose person allows what is in a list, and keeps what was asked."""

    approvals: list[Approval] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    async def approve(self, request: ApprovalRequest) -> ApprovalDecision:
        """The next answer, `no` when there is none."""
        self.asked.append(f"{request.what}: {request.detail}")
        return ApprovalDecision(self.approvals.pop(0) if self.approvals else "no")

    async def ask(self, question: str, options: Any = ()) -> str:
        """The next answer; the question is kept."""
        self.asked.append(question)
        return await RecordingHost.ask(self, question, options)


def sampled(shelf: Shelf, body: str, *approvals: Approval) -> tuple[Played, Person]:
    """What code does that calls a tool which asks for a model; that answers `green`."""
    host = Person(approvals=list(approvals))
    return shelf.code(body, answers=["green", "blue"], host=host), host


def elicited(shelf: Shelf, schema: Mapping[str, Any], *answers: str) -> tuple[Any, Person]:
    """What a server is told that puts a form to a person."""
    host = Person(answers=list(answers))
    return shelf.code(f"return await files.elicit({{ schema: {json.dumps(schema)} }})", host=host).result, host


def test_progress_is_an_event(shelf: Shelf) -> None:
    """Each step is told as it comes, with the tool, and where in the run the call is."""
    played = shelf.code("return await files.steps()")
    told = [event for event in played.events if event.type == "mcp_progress"]

    assert [(1, 2, "step 1"), (2, 2, "step 2")] == [
        (e.fields["progress"], e.fields["total"], e.fields["message"]) for e in told
    ]
    assert {("Main", "files", "steps")} == {(e.agent, e.fields["mcp"], e.fields["tool"]) for e in told}
    assert "Main.code#1" == told[0].path[0]


def test_a_model_answers_if_the_person_agrees(shelf: Shelf) -> None:
    """The agent's model is asked with the server's words, and it counts for the run."""
    played, host = sampled(shelf, SAMPLE, "yes")

    assert ("green", "assistant") == (played.result["content"]["text"], played.result["role"])
    assert ["let the MCP server `files` ask its model: Be brief. / Which colour?"] == host.asked
    assert [("Be brief.", "Which colour?", 50)] == [
        (request.system, request.messages[0].text, request.max_tokens) for request in played.requests
    ]
    assert played.run.spending.tokens > 0


@pytest.mark.parametrize(("approvals", "asked"), [(["yes", "no"], 2), (["always"], 1)])
def test_agreement_is_for_once_or_for_always(shelf: Shelf, approvals: list[Approval], asked: int) -> None:
    """`always` holds for this server until the run ends."""
    played, host = sampled(shelf, f"{SAMPLE.replace('return', 'const first =')}\n{SAMPLE}", *approvals)

    assert asked == len(host.asked)
    assert ("message" in played.result) is (asked == 2)


def test_no_model_without_the_person(shelf: Shelf) -> None:
    """Where nobody can be asked the server is refused, and no model hears of it."""
    played = shelf.code(SAMPLE)

    assert ({"code": -1, "message": "nobody can be asked to allow it"}, 0) == (played.result, len(played.requests))


def test_a_budget_bounds_what_servers_ask(shelf: Shelf) -> None:
    """What a run may spend cannot be got around through a server."""
    host = Person(approvals=["yes"])
    played = shelf.code(SAMPLE, answers=["green"], host=host, limits={"tokens": 5})

    assert (-1, 0) == (played.result["code"], len(played.requests))
    assert "tokens" in played.result["message"]


def test_a_person_fills_in_a_form(shelf: Shelf) -> None:
    """Each field is one question, asked again until the answer fits; control characters do not reach the terminal."""
    result, host = elicited(shelf, WHO, "Ada", "old", "36")

    assert {"action": "accept", "content": {"name": "Ada", "age": 36}} == result
    assert "The MCP server `files` asks: Who [2J are you?\nname (text)" == host.asked[0]
    assert ["age (whole number)"] * 2 == [question.split("\n")[1] for question in host.asked[1:]]


CHOICE = {"oneOf": [{"const": "r", "title": "Red"}, {"const": "b", "title": "Blue"}]}


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("field", "answers", "value"),
    [
        ({"enum": ["red", "blue"]}, ["green", "blue"], "blue"),
        ({"enum": [1, 2]}, ["2"], 2),
        (CHOICE, ["red"], "r"),
        ({"enum": ["r", "b"], "enumNames": ["Red", "Blue"]}, ["Blue"], "b"),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, ["a, c", "a,b"], ["a", "b"]),
        ({"type": "array", "items": {"anyOf": CHOICE["oneOf"]}, "minItems": 2}, ["r", "r, Blue"], ["r", "b"]),
        ({"type": "boolean"}, ["Yes"], True),
        ({"type": "number"}, ["nan", "1.5"], 1.5),
        ({"type": "integer", "minimum": 3}, ["2", "3"], 3),
        ({"type": "string", "maxLength": 3}, ["long", "yes"], "yes"),
        ({"type": "string", "default": "Ada"}, [""], "Ada"),
        ({"type": "boolean", "default": False}, [""], False),
        ({"type": "array", "items": {"enum": ["a", "b"]}, "default": ["b"]}, [""], ["b"]),
    ],
)
def test_answers_have_the_type_of_their_field(
    shelf: Shelf, field: dict[str, Any], answers: list[str], value: Any
) -> None:
    """What is typed becomes a value that meets the conditions; an empty line is the default."""
    result, _ = elicited(shelf, {"type": "object", "properties": {"field": field}, "required": ["field"]}, *answers)

    assert ("accept", {"field": value}) == (result["action"], result.get("content"))


@pytest.mark.parametrize(
    ("field", "told"),
    [
        ({"type": "integer", "default": 30}, "field (whole number, else 30)"),
        (
            {"type": "string", "title": "Name", "description": "Whose?", "default": "Ada"},
            "Name: Whose? (text, else Ada)",
        ),
        (CHOICE, "field (r: Red / b: Blue)"),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, "field (a / b, several with commas)"),
        ({"type": "string", "format": "email"}, "field (email)"),
    ],
)
def test_questions_say_what_may_be_answered(shelf: Shelf, field: dict[str, Any], told: str) -> None:
    """A question has the title, the options, and what an empty line stands for."""
    _, host = elicited(shelf, {"type": "object", "properties": {"field": field}}, "")

    assert told == host.asked[0].split("\n")[1]


def test_optional_fields_may_stay_empty(shelf: Shelf) -> None:
    """What is not required may be left out, and a form without fields is a question for yes or no."""
    assert {"action": "accept", "content": {"name": "Ada"}} == elicited(shelf, WHO, "Ada", "")[0]
    assert {"action": "accept", "content": {}} == elicited(shelf, {"type": "object", "properties": {}}, "yes")[0]


@pytest.mark.parametrize("answers", [[], [""], ["Ada"]])
def test_a_person_may_decline(shelf: Shelf, answers: list[str]) -> None:
    """An empty answer to a question that needs one, or nobody who answers, declines."""
    assert {"action": "decline"} == elicited(shelf, WHO, *answers)[0]


def test_a_page_is_not_opened_without_the_person(shelf: Shelf) -> None:
    """A server that sends people to a page gets their yes or no; nothing is opened here."""
    host = Person(approvals=["yes"])
    body = 'const url = "https://example.org/login"  return [await files.elicit({ url }), await files.elicit({ url })]'
    played = shelf.code(body, host=host)

    assert ["accept", "decline"] == [answer["action"] for answer in played.result]
    assert (
        "have you open a page for the MCP server `files`: Who [2J are you? https://example.org/login" == host.asked[0]
    )


def test_a_newer_server_asks_in_its_answer(shelf: Shelf) -> None:
    """A server of the newer protocol, which asks by an unfinished result, meets the same person."""
    host = Person(answers=["Ada"])
    code = "on code(args) { return await files.ask() }"
    command, *words = forks.python(str(SERVER))
    options = {"command": command, "args": words}
    played = shelf.play(shelf.program(code=code, **options), [], call="Main.code", host=host)

    assert {"result": "hello Ada"} == played.result, played.told
