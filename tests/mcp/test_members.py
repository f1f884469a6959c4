"""Tools of servers as members of teams: code sends to them, models delegate to them, as to agents."""

from __future__ import annotations

import json

import pytest

from tests.mcp.conftest import Shelf
from tests.playbook.playing import Played, ask, done
from tests.support import diagnostics_of_text

PROGRAM = """
role Lead {{ can delegate }}
role Worker {{ can think }}
mcp my_files = {options}
agent Echo : Worker {{ on echo(args) {{ return "agent " + args.text }} }}
agent Main : Lead {{
  uses team All
  on go(args) {{ playbook "Do it." }}
  on one(args) {{ return await send peers.event("echo").any()(args) }}
  on all(args) {{ return await send peers.event("echo").all()(args) }}
  on workers(args) {{ return await send peers.event("echo").role(Worker).all()(args) }}
}}
team All {{ tool: mcp://my_files/echo, echo: Echo, grow: "mcp://my_files/grow" }}
"""


def play(shelf: Shelf, *answers: object, call: str = "Main.go", host: str = "my_files") -> Played:
    """What a handler of that program does."""
    source = PROGRAM.format(options=json.dumps(shelf.raw())).replace("mcp://my_files", f"mcp://{host}")
    return shelf.play(source, [*answers, done()], call=call, payload={"text": "a"})


@pytest.mark.parametrize(
    ("handler", "result"),
    [("one", {"result": "a"}), ("all", [{"result": "a"}, "agent a"]), ("workers", ["agent a"])],
)
def test_a_send_reaches_tools_like_agents(shelf: Shelf, handler: str, result: object) -> None:
    """The event is the name of the tool, the payload its parameters; a role selects agents only."""
    assert result == play(shelf, call=f"Main.{handler}").result


def test_a_model_delegates_to_a_tool(shelf: Shelf) -> None:
    """`member::tool` is told with the real parameters, and gives what the tool gives."""
    played = play(shelf, ask("tool::echo", {"text": "b"}))
    section = played.requests[0].system.partition("## Agents")[2]

    assert '### tool - a tool; its server says of it:\n- tool::echo(text?: string) "What it says."' in section
    assert '✅ tool::echo -> {"result":"b"}\nContinue.' == played.feedback[1]


def test_what_a_tool_cannot_take_is_told(shelf: Shelf) -> None:
    """A wrong parameter is a failed action that names it."""
    feedback = play(shelf, ask("tool::echo", {"text": 5})).feedback[1]

    assert (
        "❌ tool::echo failed: `my_files.echo` cannot be called with this `input`: `text` must be a text, not 5"
        in feedback
    )


def test_the_permission_to_delegate_is_enough(shelf: Shelf) -> None:
    """Who may delegate may use the tools that its team lists, and no others of that server."""
    played = play(shelf, {"actionType": "direct", "intent": "call_mcp", "mcp": "my_files", "tool": "picture"})

    assert "🚫 call_mcp DENIED: `call_mcp` needs the permission `call_mcp`" in played.feedback[1]
    assert "call_mcp(" not in played.requests[0].system


def test_a_server_that_the_folder_describes(shelf: Shelf) -> None:
    """An address may name a server of `.mcp.json`, with a hyphen, too."""
    configured = {"mcpServers": {"far-away": shelf.raw()}}
    (shelf.play.folder / ".mcp.json").write_text(json.dumps(configured), "utf-8")

    assert {"result": "a"} == play(shelf, call="Main.one", host="far-away").result


def test_a_tool_that_does_not_exist(shelf: Shelf) -> None:
    """The server is asked when the member is; its tools are suggested."""
    played = shelf.play(
        PROGRAM.format(options=json.dumps(shelf.raw())).replace("/echo", "/ecko").replace('"echo"', '"ecko"'),
        [],
        call="Main.one",
    )

    assert "the MCP server `my_files` has no tool `ecko`" in played.told
    assert "Did you mean `echo`?" in played.told


@pytest.mark.parametrize(
    ("address", "message", "help"),
    [
        ("mcp://fils/read", "there is no mcp server `fils`", "did you mean `mcp://files/read`?"),
        ("mcp://files/", "the address names a server and no tool", "write `mcp://files/name_of_a_tool`."),
    ],
)
def test_addresses_are_checked(address: str, message: str, help: str) -> None:
    """A misspelt server and a missing tool are errors of the program; an unknown server may be described elsewhere."""
    program = 'mcp files = {{ command: "files-server" }}\nteam All {{ a: {} }}\n'
    found = diagnostics_of_text(program.format(address))

    assert [("E0208", message, help)] == [(one.code, one.message, one.help) for one in found]
    assert [] == diagnostics_of_text(program.format("mcp://somewhere/read"))
