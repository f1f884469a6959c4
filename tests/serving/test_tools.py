"""What clients are told about tools, and the results of calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from koi_lang.errors import UsageError
from koi_lang.mcp_server.tools import ExposedTool, exposed_agents, offers
from koi_lang.program import build, declarations
from koi_lang.runtime.actions.lookup import all_actions
from tests.projects import Project
from tests.serving.conftest import PROGRAM, Listening, Place, over_http, text


@pytest.fixture
def tools(project: Project) -> dict[str, ExposedTool]:
    """The tools of the program of these tests."""
    agents = exposed_agents(declarations.agents_of(project.load_file(PROGRAM)), PROGRAM.name)
    return {offer.name: offer for offer in offers(agents, all_actions())}


def test_public_handlers_are_tools(tools: dict[str, ExposedTool]) -> None:
    """Every public handler of every exposed agent is a tool; those of the same name are told apart by their agents."""
    assert {"add", "greet", "look", "work", "Desk_echo", "Reader_echo"} <= tools.keys()
    assert not {"hidden", "never", "echo"} & tools.keys()


def test_the_schema_is_the_declared_type(tools: dict[str, ExposedTool]) -> None:
    """A declared object is what a tool takes, with its optional fields."""
    fields = {"amount": {"type": "number"}, "note": {"type": "string"}}

    assert {"type": "object", "properties": fields, "required": ["amount"]} == tools["add"].schema


def test_a_plain_parameter_is_a_field(tools: dict[str, ExposedTool]) -> None:
    """A parameter that is no object becomes a field, as arguments of tools are always objects."""
    shout = tools["shoutLoud"]

    assert {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]} == shout.schema
    assert "hi" == shout.payload({"text": "hi"})


def test_defaults_and_untyped_parameters(tools: dict[str, ExposedTool]) -> None:
    """Nothing is required of a parameter with a default; without a type, any object will do."""
    assert [] == tools["greet"].schema["required"]
    assert {"type": "object"} == tools["Desk_echo"].schema


def test_titles_and_descriptions(tools: dict[str, ExposedTool]) -> None:
    """The affordance describes a tool; without one, the agent's does. The title is the name in words."""
    told = [(tools[name].title, tools[name].description) for name in ("add", "shoutLoud", "look")]

    assert [
        ("Add", "Add to the count"),
        ("Shout loud", "`shoutLoud` of `Desk`: Counts and waits"),
        ("Look", "`look` of `Reader`"),
    ] == told


def test_only_playbooks_that_can_only_look_are_read_only(tools: dict[str, ExposedTool]) -> None:
    """The hint is given where all actions that the role allows change nothing, and never for code."""
    hints = {name: tool.as_tool().annotations for name, tool in tools.items()}

    assert ["look"] == [name for name, hint in hints.items() if hint is not None and hint.read_only_hint]


def test_clients_see_the_tools(place: Place, server: Listening) -> None:
    """The list that a client gets holds all of this."""

    async def listed(client: Client) -> Any:
        return {tool.name: tool for tool in (await client.list_tools()).tools}

    tools = over_http(place, server, listed)

    assert ("Add", "Add to the count", None) == (tools["add"].title, tools["add"].description, tools["add"].annotations)
    assert tools["look"].annotations.read_only_hint is True
    assert ["amount"] == tools["add"].input_schema["required"]


def test_results(place: Place, server: Listening) -> None:
    """An object is text and structured content, a text is itself, and nothing is no content."""

    async def called(client: Client) -> Any:
        calls = (("Desk_echo", {"x": [1, 2.5]}), ("shoutLoud", {"text": "hi"}), ("nothing", {}))
        return [await client.call_tool(*call) for call in calls]

    echo, shout, nothing = over_http(place, server, called)

    assert ('{"x":[1,2.5]}', {"x": [1, 2.5]}) == (text(echo), echo.structured_content)
    assert ("HI", None) == (text(shout), shout.structured_content)
    assert ([], False) == (nothing.content, nothing.is_error)


def test_results_of_a_declared_type(place: Place, server: Listening) -> None:
    """The official client holds structured content against the declared type; what is no object is a field of one."""

    async def called(client: Client) -> Any:
        offered = {tool.name: tool for tool in (await client.list_tools()).tools}
        calls = (("tally", {}), ("names", {}), ("tally", {"broken": True}))
        return offered, [await client.call_tool(*call) for call in calls]

    offered, (tally, names, broken) = over_http(place, server, called)

    schema = offered["tally"].output_schema
    assert ("object", "A count and what it consists of.", ["total"]) == tuple(
        schema[key] for key in ("type", "description", "required")
    )
    assert {"total": 2, "parts": [{"total": 1}]} == tally.structured_content
    assert {"result": ["Ada", "Bo"]} == names.structured_content
    assert '`total` must be a whole number, not "many"' in text(broken)
    assert broken.is_error


@pytest.mark.parametrize("arguments", [{"x": 1}, {"args": {"x": 1}}])
def test_all_of_it_may_be_one_argument(tools: dict[str, ExposedTool], arguments: dict[str, Any]) -> None:
    """An untyped handler is given the arguments, or the one object in them that is called `args`."""
    assert {"x": 1} == tools["Desk_echo"].payload(arguments)


@pytest.mark.parametrize(
    ("text", "told", "help"),
    [
        ("agent A : R { on go() { } }", "`a.koi` exposes no agent", "Write `expose mcp` in an agent; it declares `A`."),
        ('export prompt P = "x"', "`a.koi` exposes no agent", "Write `expose mcp` in an agent."),
        ("agent A : R { expose mcp private on go() { } }", "every handler of `A` is private", "Leave out `private`"),
        (
            "agent A : R { expose mcp on go() { } on B_go() { } }\nagent B : R { expose mcp on go() { } }\n"
            "agent C : R { expose mcp on A_go() { } }",
            "two tools would be called `A_go`",
            "Rename one",
        ),
    ],
)
def test_programs_that_cannot_be_served(project: Project, text: str, told: str, help: str) -> None:
    """A program without a tool, or with two of one name, gets one message that says what to do."""
    agents = declarations.agents_of(project.load("a.koi", f"role R {{ can execute }}\n{text}\n"))

    with pytest.raises(UsageError) as raised:
        offers(exposed_agents(agents, "a.koi"), all_actions())

    assert told == raised.value.message
    assert help in str(raised.value.help)


def test_the_program_of_these_tests_has_no_errors() -> None:
    """What is served here is a program that `koi check` accepts."""
    assert () == build.check(str(Path(PROGRAM))).errors
