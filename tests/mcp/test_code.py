"""Servers as values of code: tools, documents and prompts under the name that the program gives the server."""

from __future__ import annotations

import json

import pytest

from koi_lang.errors import failure_code
from tests.mcp.conftest import Shelf
from tests.support import diagnostics_of_text


def test_a_tool_is_a_function_of_its_server(shelf: Shelf) -> None:
    """`files.echo({…})` calls the tool; calls at the same time are carried out at the same time, by one process."""
    played = shelf.code(
        """
        const { echo } = files
        const both = await Promise.all([files.echo({ text: "a" }), files["echo"]({ text: args.text })])
        return [...both, await echo({ text: "c" }), await files.call("echo", { text: "d" })]
        """,
        payload={"text": "b"},
    )

    assert [{"result": text} for text in "abcd"] == played.result
    assert 1 == len(shelf.processes())


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("files.ecko({ text: 1 })", "the MCP server `files` has no tool `ecko`"),
        ("files.echo({ text: 1 })", "`files.echo` cannot be called with this `input`: `text` must be a text, not 1"),
        ('files.echo("a")', "`files.echo` takes one object with its parameters"),
        ('files("a")', "`McpServer` is not a function"),
        ('files.prompt("gret")', "the MCP server `files` has no prompt `gret`"),
        ("files.big({ bytes: 3, fails: true })", "`files.big` failed: xxx"),
    ],
)
def test_what_fails_is_an_error_that_code_can_catch(shelf: Shelf, call: str, told: str) -> None:
    """A member that is no tool, a wrong argument and a failing tool have messages that name them."""
    played = shelf.code(f"try {{ await {call} }} catch (e) {{ return e.message }}")

    assert str(played.result).startswith(told), played.told


def test_a_misspelt_tool_is_suggested(shelf: Shelf) -> None:
    """Whoever runs the program is told which tool was meant."""
    misspelt = shelf.code("return await files.ecko({})")

    assert ("E0507", True) == (failure_code(misspelt.error), "Did you mean `echo`?" in misspelt.told)


def test_documents_and_prompts(shelf: Shelf) -> None:
    """`resource` and `prompt` give one by its name, and without a name a list."""
    played = shelf.code(
        """
        const [page, greeting] = [await files.resource("shelf://plain"), await files.prompt("greet", { who: "Ada" })]
        const resources = (await files.resource()).resources.map(r => r.uri)
        const prompts = (await files.prompt()).prompts.map(p => p.name)
        return [page.text, greeting, resources, prompts, (await files.resource("shelf://blob")).blob]
        """
    )

    assert ["on paper", "Greet Ada.", ["shelf://plain"], ["greet"], "aGk="] == played.result


def test_a_server_prints_as_itself(shelf: Shelf) -> None:
    """Printing and converting a server asks it nothing."""
    played = shelf.code("console.log(files, `${files}`, JSON.stringify({ files }))  return typeof files.then")

    assert ('[MCP server: files] [MCP server: files] {"files":{}}',) == played.printed
    assert ("undefined", []) == (played.result, shelf.processes())


def test_a_server_may_be_called_as_something_built_in(shelf: Shelf) -> None:
    """In agents that use a server `fetch`, the name means the server; elsewhere it is the function it always was."""
    options = json.dumps(shelf.raw())
    source = (
        f"role Worker {{ can call_mcp }}\nmcp fetch = {options}\n"
        'agent Main : Worker { uses mcp fetch  on go(args) { return await fetch.echo({ text: "a" }) } }\n'
        "agent Other : Worker { on go(args) { return typeof fetch } }\n"
    )
    outcomes = shelf.play.each(source, [], [("Main.go", {}), ("Other.go", {})])

    assert [{"result": "a"}, "function"] == [outcome.result for outcome in outcomes]


def test_a_variable_hides_a_server(shelf: Shelf) -> None:
    """Inside of its braces a variable of that name counts, outside the server."""
    body = (
        '{ const files = { echo: x => x.text } console.log(files.echo({ text: "v" })) } return await files.echo(args)'
    )
    played = shelf.code(body, payload={"text": "s"})

    assert (("v",), {"result": "s"}) == (played.printed, played.result)


PROGRAM = """
role Worker { can call_mcp }
mcp files = { command: "files-server" }
agent Main : Worker { uses mcp files  on go(args) { return await files.read({}) } }
"""


def test_a_server_is_known_where_it_is_used() -> None:
    """Agents that use the server can mention it; others, and functions of skills, cannot."""
    other = "agent Other : Worker { on go(args) { return await files.read({}) } }\n"
    found = diagnostics_of_text(PROGRAM + other)

    assert [("E0221", "nothing here is called `files`")] == [(one.code, one.message) for one in found]
    assert "`files` is an mcp server, for handlers of agents with `uses mcp files`." == found[0].help
    assert [] == diagnostics_of_text(PROGRAM)
