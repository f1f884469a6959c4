"""Forms that handlers put to people: whole to MCP clients, field by field to everybody else."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.session import ClientRequestContext
from mcp.types import ElicitRequestParams, ElicitResult

from koi_lang.runtime.forms import Form
from tests.mcp.test_errands import Person
from tests.playbook.playing import Player
from tests.serving.conftest import Place, over_stdio

FORM = {
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0, "default": 30}},
    "required": ["name"],
}
PROGRAM = f"""
role Clerk {{ can execute }}
agent Desk : Clerk {{
  expose mcp
  on meet() {{
    const form = {json.dumps(FORM)}
    try {{ return await callAction("prompt_form", {{ question: "Who?", form }}) }} catch (e) {{ return e.message }}
  }}
}}
"""


def met(place: Place, folder: Path, *, mode: str = "auto", **answer: Any) -> tuple[Any, list[Any]]:
    """What the handler gives where a client answers so, and the forms that it was shown."""
    program = folder / "desk.koi"
    program.write_text(PROGRAM, "utf-8")
    shown: list[Any] = []

    async def elicit(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        shown.append(params.model_dump(by_alias=True)["requestedSchema"])
        return ElicitResult(**answer)

    async def meet(client: Client) -> Any:
        result = await client.call_tool("meet")
        return result.structured_content or result.content[0].text  # type: ignore[union-attr]

    return over_stdio(place, meet, str(program), elicitation_callback=elicit, mode=mode), shown


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_client_gets_the_whole_form(place: Place, tmp_path: Path, mode: str) -> None:
    """A client shows all fields at once, whichever protocol it speaks; its answers are those of the handler."""
    content = {"name": "Ada", "age": 36}
    result, shown = met(place, tmp_path, mode=mode, action="accept", content=content)

    assert {"accepted": True, "answers": content} == result
    assert [FORM["properties"]] == [form["properties"] for form in shown]


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_client_may_decline(place: Place, tmp_path: Path, action: str) -> None:
    """A person who declines gives no answers."""
    assert {"accepted": False, "answers": {}} == met(place, tmp_path, action=action)[0]


def test_answers_have_to_fit(place: Place, tmp_path: Path) -> None:
    """A client whose answers do not meet the form is not believed."""
    result, _ = met(place, tmp_path, action="accept", content={"name": "Ada", "age": -1})

    assert 'the answers do not fit the form: `age` must fit {"minimum": 0}, and is -1' == result


def test_a_person_is_asked_field_by_field(tmp_path: Path) -> None:
    """Elsewhere each field is a question, and an empty line is its default."""
    host = Person(answers=["Ada", ""])
    played = Player(tmp_path)(PROGRAM, [], call="Desk.meet", host=host)

    assert {"accepted": True, "answers": {"name": "Ada", "age": 30}} == played.result
    assert ["Who?\nname (text)", "Who?\nage (whole number, else 30)"] == host.asked


def test_models_are_not_told_of_forms(tmp_path: Path) -> None:
    """Forms are for code: a model asks one question after the other."""
    source = 'role R { can execute }\nagent Main : R { on go() { playbook "Do it." } }'
    system = Player(tmp_path)(source, [{"intent": "return"}]).requests[0].system

    assert ("prompt_user(" in system, "prompt_form" in system) == (True, False)


def test_an_answer_of_another_format_is_asked_for_again() -> None:
    """What is no address of mail is none because a text was wanted."""
    answers = iter(["notmail", "a@b.example"])

    async def ask(question: str) -> str:
        return next(answers)

    form = {"properties": {"email": {"type": "string", "format": "email"}}}

    assert {"email": "a@b.example"} == asyncio.run(Form("Who?", form).fill_in(ask))
