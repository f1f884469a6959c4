"""Documents and prompts that handlers make for MCP clients, what these are told when one changes, and completions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.types import PromptReference, ResourceTemplateReference, ResourceUpdatedNotification

from koi_lang.errors import UsageError
from koi_lang.mcp_server.documents import contents_of, documents, messages_of
from tests.limits import LIMIT_S
from tests.pictures import RED
from tests.projects import Project
from tests.serving.conftest import Place, listening, over_http, over_stdio

PROGRAM = """
role Keeper { can execute }
agent Shelf : Keeper {
  expose mcp {
    resource "notes://today" = today
    resource "notes://{day}/text" = day
    resource "notes://broken" = broken
    prompt greet = greeting
  }
  state { notes: string[] = [] }
  on add(args: { note: string }) { this.state.notes.push(args.note)  return this.state.notes.length }
  on look() { return "looked" }
  private on today() { affordance "What happened today"  return this.state.notes.join(", ") }
  private on day(args: { day: string }) { return { day: args.day, notes: this.state.notes } }
  private on broken() { throw new Error("torn") }
  private on greeting(args: { name: string, tone: "dry" | "warm" }) { return `Greet ${args.name}, ${args.tone}.` }
}
"""
# Newer protocols have another way to listen.
OLDER = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
Play = Callable[..., Any]


@pytest.fixture(params=["stdio", "http"])
def play(request: pytest.FixtureRequest, place: Place, tmp_path: Path) -> Play:
    """Plays a scenario with that program over each transport, in the protocol with sessions."""
    program = tmp_path / "shelf.koi"
    program.write_text(PROGRAM, "utf-8")
    if request.param == "stdio":
        return lambda scenario, **about: over_stdio(place, scenario, str(program), mode="legacy", **about)

    def over(scenario: Callable[[Client], Awaitable[Any]], **about: Any) -> Any:
        with contextmanager(listening)(place, str(program), "--http", "127.0.0.1:0") as server:
            return over_http(place, server, scenario, mode="legacy", **about)

    return over


def test_documents_are_listed_and_read(play: Play) -> None:
    """An address without holes is a resource, one with holes a template; a handler makes the content of either."""

    async def scenario(client: Client) -> Any:
        await client.call_tool("add", {"note": "tea"})
        listed = [(each.uri, each.description) for each in (await client.list_resources()).resources]
        templates = [each.uri_template for each in (await client.list_resource_templates()).resource_templates]
        read = [(await client.read_resource(f"notes://{rest}")).contents[0] for rest in ("today", "a%20b/text")]
        return listed, templates, [(one.mime_type, one.text) for one in read]  # type: ignore[union-attr]

    listed, templates, read = play(scenario)

    assert ("notes://today", "What happened today") == listed[0]
    assert (["notes://{day}/text"], "koi://source/shelf.koi") == (templates, listed[-1][0])
    assert [("text/plain", "tea"), ("application/json", '{"day": "a b", "notes": ["tea"]}')] == read


def test_documents_that_cannot_be_read(play: Play) -> None:
    """A handler that fails, and an address that nobody makes, are errors in plain words."""

    async def scenario(client: Client) -> Any:
        told = []
        for uri in ("notes://broken", "notes://tomorrow", "notes://a/b/text"):
            with pytest.raises(Exception, match=r"torn|there is no resource") as raised:
                await client.read_resource(uri)
            told.append("torn" in str(raised.value))
        return told

    assert [True, False, False] == play(scenario)


@OLDER
def test_clients_are_told_of_changes(play: Play) -> None:
    """Who watches a document is told when its agent has another state, and not when it has looked only."""
    heard: asyncio.Queue[str] = asyncio.Queue()

    async def hear(message: Any) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            heard.put_nowait(str(message.params.uri))

    async def scenario(client: Client) -> Any:
        await client.subscribe_resource("notes://today")
        await client.call_tool("look")
        await client.call_tool("add", {"note": "tea"})
        first = await asyncio.wait_for(heard.get(), LIMIT_S)
        await client.unsubscribe_resource("notes://today")
        await client.call_tool("add", {"note": "cake"})
        await client.call_tool("look")
        return first, heard.empty()

    assert ("notes://today", True) == play(scenario, message_handler=hear)


@OLDER
def test_what_cannot_be_watched(play: Play) -> None:
    """Sources, and what does not exist, are not watched."""

    async def scenario(client: Client) -> Any:
        for uri in ("koi://source/shelf.koi", "notes://tomorrow"):
            with pytest.raises(Exception, match="is no document that a handler makes"):
                await client.subscribe_resource(uri)
        return "refused"

    assert "refused" == play(scenario)


def test_prompts_of_handlers(play: Play) -> None:
    """Arguments are the fields that the handler takes; what it gives is what a person would say."""

    async def scenario(client: Client) -> Any:
        (prompt,) = (await client.list_prompts()).prompts
        with pytest.raises(Exception, match="the prompt `greet` needs the argument `tone`"):
            await client.get_prompt("greet", {"name": "Ada"})
        (message,) = (await client.get_prompt("greet", {"name": "Ada", "tone": "dry"})).messages
        return [(each.name, each.required) for each in prompt.arguments or ()], message.role, message.content.text

    assert ([("name", True), ("tone", True)], "user", "Greet Ada, dry.") == play(scenario)


def test_completions(play: Play) -> None:
    """The values that a type allows; else what was given before in the session, the newest first."""

    async def scenario(client: Client) -> Any:
        for name in ("Ada", "Alan", "Bob"):
            await client.get_prompt("greet", {"name": name, "tone": "dry"})
        await client.read_resource("notes://monday/text")
        greet, day = PromptReference(name="greet"), ResourceTemplateReference(uri="notes://{day}/text")
        asked = [(greet, "tone", "W"), (greet, "name", "a"), (greet, "age", ""), (day, "day", "")]
        found = [await client.complete(ref, {"name": name, "value": value}) for ref, name, value in asked]
        return [each.completion.values for each in found]

    assert [["warm"], ["Alan", "Ada"], [], ["monday"]] == play(scenario)


IMAGE = {"type": "image", "mimeType": "image/png", "data": RED.data}


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("text", {"mimeType": "text/plain", "text": "text"}),
        (IMAGE, {"mimeType": "image/png", "blob": RED.data}),
        ({"a": 1}, {"mimeType": "application/json", "text": '{"a": 1}'}),
        (None, {"mimeType": "application/json", "text": "null"}),
    ],
)
def test_contents(value: Any, content: dict[str, Any]) -> None:
    """A text is one, media are bytes, everything else is JSON."""
    (found,) = contents_of("x://y", value).model_dump(by_alias=True, exclude_none=True)["contents"]

    assert {"uri": "x://y", **content} == found


def test_messages() -> None:
    """Texts and media are what a person says; a role says who speaks."""
    value = ["Look:", IMAGE, {"role": "assistant", "content": "I see."}, {"role": "user", "content": IMAGE}, {"a": 1}]
    found = messages_of(value).messages

    assert ["user", "user", "assistant", "user", "user"] == [message.role for message in found]
    assert ["text", "image", "text", "image", "text"] == [message.content.type for message in found]


def test_an_address_that_cannot_be_read(project: Project) -> None:
    """A program with an address that is no template is not served."""
    agent = 'agent A : R { expose mcp { resource "x://{" = a }  on a() { } }'
    module = project.load("a.koi", f"role R {{ can execute }}\n{agent}")

    with pytest.raises(UsageError, match="a resource has an address that cannot be read"):
        documents([module.A])
