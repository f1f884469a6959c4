"""Served programs and clients of other makes: the official inspector, and programs in Koi."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.npm import npm_program
from tests.projects import Project
from tests.serving.conftest import LIMIT_S, PROGRAM, TOKEN, Listening, Place

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "mcp-server.koi"
INSPECTOR = ("@modelcontextprotocol/inspector", "2.12.0", "mcp-inspector")


def inspected(place: Place, *words: str) -> Any:
    """What the inspector prints."""
    tools = f"{Path(sys.executable).parent}:{place.environment['PATH']}"
    done = subprocess.run(
        [str(npm_program(*INSPECTOR)), "--cli", *words],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**place.environment, "PATH": tools, "HOME": str(place.folder)},
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.needs("node", "npm")
def test_the_inspector_lists_tools(place: Place) -> None:
    """The inspector starts a server and shows what it offers."""
    listed = inspected(place, *place.command(str(PROGRAM)), "--method", "tools/list")["tools"]
    tools = {tool["name"]: tool for tool in listed}

    assert {"text": {"type": "string"}} == tools["shoutLoud"]["inputSchema"]["properties"]
    assert {"readOnlyHint": True} == tools["look"]["annotations"]


@pytest.mark.needs("node", "npm")
def test_the_inspector_calls_a_tool_over_http(place: Place, server: Listening) -> None:
    """The inspector calls a tool of a server that listens, with the token in a header."""
    called = ("--method", "tools/call", "--tool-name", "add", "--tool-arg", "amount=2")
    header = ("--header", f"Authorization: Bearer {TOKEN}")
    result = inspected(place, server.url, "--transport", "http", *header, *called)

    assert {"count": 2} == result["structuredContent"]
    assert {"type": "text", "text": '{"count":2}'} == result["content"][0]


@pytest.mark.needs("node", "npm")
def test_the_entry_that_the_example_shows(place: Place) -> None:
    """The inspector starts the example with the entry for `.mcp.json` that stands in its comment."""
    lines = EXAMPLE.read_text("utf-8").split("\n")
    entry = next(line.removeprefix("//") for line in lines if "mcpServers" in line)
    file = place.folder / ".mcp.json"
    file.write_text(json.dumps({"mcpServers": {"kitchen": json.loads(entry)["mcpServers"]["kitchen"]}}), "utf-8")
    asked = ("--method", "prompts/get", "--prompt-name", "Menu", "--prompt-args", "guest=Ada")
    result = inspected(place, "--config", str(file), "--server", "kitchen", *asked)

    told = "Propose a menu for Ada. Use only what the tool `list` names."
    assert told == result["messages"][0]["content"]["text"]


CALLER = """
role Caller { can call_mcp }
mcp desk = %s
agent Main : Caller {
  uses mcp desk
  on go() {
    for (const amount of [2, 3]) {
      const result = await callAction("call_mcp", { mcp: "desk", tool: "add", input: { amount } })
      console.log(result)
    }
    console.log(await callAction("call_mcp", { mcp: "desk", tool: "shoutLoud", input: { text: "hi" } }))
    try { await callAction("call_mcp", { mcp: "desk", tool: "fail" }) } catch (e) { console.log(e.message) }
  }
}
run Main.go()
"""


def printed(project: Project, options: dict[str, Any], program: str = CALLER) -> list[str]:
    """What a program prints that calls tools of a server."""
    project.write("caller.koi", program % json.dumps(options))
    done = project.koi("run", "caller.koi", "--quiet")

    assert (0, "") == (done.returncode, done.stderr)
    return done.stdout.splitlines()


LARGE = """
role Caller { can call_mcp }
mcp desk = %s
agent Main : Caller {
  uses mcp desk
  on go() {
    await desk.add({ amount: 2 })
    const text = "x".repeat(2000000)
    try { console.log((await desk.Desk_echo({ text })).text.length) } catch (e) { console.log(e.message) }
    console.log((await desk.add({ amount: 3 })).count)
  }
}
run Main.go()
"""


@pytest.mark.parametrize(("most", "told"), [({}, "2000000"), ({"max_bytes": 1_000_000}, "`desk.Desk_echo` failed: ")])
def test_a_large_answer_costs_no_state(project: Project, server: Listening, most: dict[str, int], told: str) -> None:
    """Two megabytes over HTTP arrive; an answer that is too large is the failure of one call, and the session stays."""
    options = {"type": "http", "url": server.url, "headers": {"Authorization": f"Bearer {TOKEN}"}, **most}
    first, second = printed(project, options, LARGE)

    assert first.startswith(told)
    assert "5" == second


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_program_calls_another(project: Project, place: Place, server: Listening, transport: str) -> None:
    """An agent calls the tools of another Koi program: they share a session, and errors keep their words."""
    command, *words = place.command(str(PROGRAM))
    process = {"command": command, "args": words, "env": {"PYTHONPATH": str(ROOT)}}
    address = {"type": "http", "url": server.url, "headers": {"Authorization": f"Bearer {TOKEN}"}}
    lines = printed(project, process if transport == "stdio" else address)

    assert ["{ count: 2 }", "{ count: 5 }", "{ result: 'HI' }"] == lines[:3]
    assert lines[3].startswith("`desk.fail` failed: error: RangeError: no unicorn 🦄 [E0500]")
