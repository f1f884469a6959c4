"""Tools of MCP servers that are said to change nothing are called again by a run that goes on, all others are not."""

from __future__ import annotations

import json
import signal
import sys

import pytest

from tests.projects import Project

# It notes each call; the first one kills the run that made it.
SERVER = """
    import json, os, signal, sys

    def send(id, **result):
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}) + "\\n")
        sys.stdout.flush()

    SCHEMA = {"type": "object", "properties": {}}
    TOOLS = [
        {"name": "look", "inputSchema": SCHEMA, "annotations": {"readOnlyHint": True}},
        {"name": "odd", "inputSchema": SCHEMA, "annotations": {"readOnlyHint": False}},
        {"name": "change", "inputSchema": SCHEMA},
    ]
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "initialize":
            about = {"name": "s", "version": "1"}
            send(message["id"], protocolVersion="2025-06-18", capabilities={"tools": {}}, serverInfo=about)
        elif message.get("method") == "tools/list":
            send(message["id"], tools=TOOLS)
        elif message.get("method") == "tools/call":
            with open("calls", "a") as file:
                file.write(message["params"]["name"] + "\\n")
            if not os.path.exists("go"):
                open("go", "w").close()
                os.kill(int(os.environ["RUN"]), signal.SIGKILL)
            send(message["id"], content=[{"type": "text", "text": "seen"}])
        elif "id" in message:
            send(message["id"])
    """
CODE = """
    import about from "./about.py"
    mcp things = { command: "PYTHON", args: ["server.py"], env: { RUN: about.pid() } }
    role R { can call_mcp }
    agent A : R {
      uses mcp things
      on go(x: Json) { BODY }
    }
    run A.go({})
    """
BODIES = {
    "code": 'console.log(await things.call("TOOL", {}))',
    "playbook": 'playbook """Use the tool."""',
}


def killed(project: Project, way: str, tool: str) -> Project:
    """A run that was killed while a tool was being called."""
    project.write("server.py", SERVER)
    project.write("about.py", "import os\n\ndef pid():\n    return str(os.getpid())\n")
    project.write("main.koi", CODE.replace("BODY", BODIES[way]).replace("TOOL", tool).replace("PYTHON", sys.executable))
    batch = [
        {"id": "t", "intent": "call_mcp", "mcp": "things", "tool": tool, "input": {}},
        {"intent": "print", "message": "${t.output}"},
        {"intent": "return", "data": {}},
    ]
    project.write("answers.json", json.dumps([{"batch": batch}]))
    words = ("run", "--quiet", "--answers", "answers.json", "main.koi")
    assert -signal.SIGKILL == project.koi(*words).returncode
    return project


@pytest.mark.parametrize("way", list(BODIES))
def test_a_tool_that_only_reads_is_called_again(project: Project, way: str) -> None:
    """Nobody is asked about it: its server says that it changes nothing."""
    done = killed(project, way, "look").koi("resume")

    assert (0, "{ result: 'seen' }\n") == (done.returncode, done.stdout), done.stderr
    assert ["look", "look"] == (project.folder / "calls").read_text().split()
    assert "nothing is different" in project.koi("replay", "last").stderr


@pytest.mark.sampled(2)
@pytest.mark.parametrize("tool", ["change", "odd"])
@pytest.mark.parametrize("way", list(BODIES))
def test_any_other_tool_is_in_doubt(project: Project, way: str, tool: str) -> None:
    """Nothing is done where nobody can be asked."""
    done = killed(project, way, tool).koi("resume")

    assert (1, [tool]) == (done.returncode, (project.folder / "calls").read_text().split())
    assert "had begun and its end is not known" in done.stderr
