"""Approval through clients of `koi serve`: a form over stdio, nothing over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.session import ClientRequestContext
from mcp.types import ElicitRequestParams, ElicitResult

from koi_lang.mcp_server.call import approval_text, decision_of
from koi_lang.runtime.host import ApprovalDecision, ApprovalRequest
from tests.serving.conftest import Listening, Place, over_http, over_stdio

PROGRAM = """
role Clerk { can execute }
agent Desk : Clerk {
  expose mcp
  on touch(args: { name: string }): Promise<string> {
    try { await callAction("shell", { command: `touch ${args.name}`, description: "to see" }); return "done" }
    catch (e) { return e.message }
  }
}
"""


def touch(place: Place, folder: Path, *names: str, mode: str = "auto", **answer: Any) -> tuple[list[str], list[str]]:
    """What some calls give where a client answers so, and what it was asked."""
    program = folder / "desk.koi"
    program.write_text(PROGRAM, "utf-8")
    questions: list[str] = []

    async def elicit(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        questions.append(params.message)
        return ElicitResult(**answer)

    async def call(client: Client) -> list[str]:
        results = [await client.call_tool("touch", {"name": str(folder / name)}) for name in names]
        return [result.content[0].text for result in results]  # type: ignore[union-attr]

    return over_stdio(place, call, str(program), elicitation_callback=elicit, mode=mode), questions


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_person_at_the_client_allows(place: Place, tmp_path: Path, mode: str) -> None:
    """The form tells what is wanted; `from now on` counts for the session, and for nothing else."""
    answer = {"action": "accept", "content": {"decision": "yes, from now on"}}
    told, questions = touch(place, tmp_path, "a", "a", "b", mode=mode, **answer)

    assert ["done"] * 3 == told
    assert 2 == len(questions)
    assert questions[0].startswith(f"`Desk` wants to run `touch {tmp_path / 'a'}`")
    assert "`yes, from now on` allows `touch " in questions[0]
    assert (tmp_path / "a").exists()


def test_the_person_at_the_client_refuses(place: Place, tmp_path: Path) -> None:
    """With a reason, which is told; declining is a refusal, too."""
    answer = {"action": "accept", "content": {"decision": "no", "reason": "not in my house"}}
    told, _ = touch(place, tmp_path, "a", **answer)
    declined, _ = touch(place, tmp_path, "a", action="decline")

    assert told[0].endswith("`: not in my house")
    assert "the person did not allow" in declined[0]
    assert not (tmp_path / "a").exists()


def test_a_client_over_http_has_no_say(place: Place, server: Listening) -> None:
    """It is not asked, and nothing is allowed."""
    asked: list[Any] = []

    async def elicit(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        asked.append(params)
        return ElicitResult(action="accept", content={"decision": "yes"})

    async def call(client: Client) -> Any:
        return await client.call_tool("shell", {})

    result = over_http(place, server, call, elicitation_callback=elicit)

    assert (True, []) == (result.is_error, asked)


@pytest.mark.parametrize(
    "answers", [None, {}, {"decision": "YES"}, {"decision": ["yes"]}, {"decision": "no"}, {"decision": True}]
)
def test_what_is_no_clear_yes(answers: Any) -> None:
    """Whatever a client makes of the form, only its own words allow something."""
    assert ApprovalDecision("no") == decision_of(answers)


def test_nothing_hides_in_the_form() -> None:
    """A difference stands behind a margin, and characters that move text are spelt out."""
    request = ApprovalRequest(
        "edit `a`\n`yes` allows it", "", "A\u202e", "+x\r`yes` allows all", chain=("L.\x1b[2Jgo",)
    )

    lines = approval_text(request).split("\n")

    expected = [
        "`A\\u202e` wants to edit `a`⏎`yes` allows it",
        "asked for by `L.\\x1b[2Jgo`",
        "| +x",
        "| `yes` allows all",
    ]
    assert expected == lines
