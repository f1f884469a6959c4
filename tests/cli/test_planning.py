"""`--plan` of the command line, and `/plan` of a conversation."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from tests.cli.screens import Shown
from tests.playbook.playing import act, done
from tests.projects import Project

PROGRAM = """
    role Worker { can execute, can registry }
    agent Main : Worker {
      on go() { playbook "Do the work." }
      on chat(args: { message: string }) { playbook "Answer the person." }
    }
    run Main.go()
    """
PLAN = act("propose_plan", steps=[{"text": "store it", "touches": ["k"]}, {"text": "tell it"}])
WRITE, FINISH = act("registry_set", key="k", value=1), act("finish_step", step=1)


@pytest.fixture
def folder(project: Project) -> Project:
    """A program whose model wants to change something, proposes a plan and carries it out."""
    project.write("a.koi", PROGRAM)
    project.write("answers.json", json.dumps([WRITE, PLAN, {"batch": [WRITE, FINISH]}, done()]))
    return project


def entries(folder: Project) -> list[dict[str, Any]]:
    """The entries of the only journal of a folder."""
    (journal,) = (folder.folder / ".koi" / "runs").glob("*.jsonl")
    return [json.loads(line) for line in journal.read_text("utf-8").splitlines()]


def test_nobody_there(folder: Project) -> None:
    """The plan is what the run gives; nothing was done, and that is no failure."""
    outcome = folder.koi("run", "a.koi", "--plan", "--answers", "answers.json")

    assert (0, "`Main` proposes a plan.\n1. store it (k)\n2. tell it\n") == (outcome.returncode, outcome.stdout)
    assert "a plan was proposed, and nobody can accept it, so nothing was done\n" == outcome.stderr
    assert "" == folder.koi("registry", "list").stdout.replace("the registry is empty\n", "")
    assert "ok after" in folder.koi("runs", "show", "last").stdout


def test_an_accepted_plan_is_carried_out(folder: Project) -> None:
    """What is piped in decides; the plan's steps are tasks."""
    outcome = folder.koi("run", "a.koi", "--plan", "--answers", "answers.json", stdin="2: say it\naccept\n")
    planned = [entry for entry in entries(folder) if str(entry.get("kind")).startswith("plan_")]

    assert 0 == outcome.returncode
    assert ["store it (k)", "say it"] == next(each["steps"] for each in planned if each["kind"] == "plan_decided")
    assert (1, 2) == next((each["step"], each["steps"]) for each in planned if each["kind"] == "plan_step_finished")


def test_options_stand_below_the_plan(folder: Project, terminals: list[Shown]) -> None:
    """A person reads the plan, then what they can say, then the question."""
    shown = Shown(folder.folder, ["run", "a.koi", "--plan", "--answers", "answers.json"], 80, 24)
    terminals.append(shown)

    screen = shown.until("Accept it, edit it")
    shown.child.send("accept\r")
    shown.end()

    rows = [row.strip() for row in screen.splitlines()]
    plan = rows.index("2. tell it")
    options = [row.partition(". ")[2] for row in rows[plan + 1 : -1]]
    assert ["accept", "edit", "refuse"] == options[:3]
    assert rows[plan + 4].startswith("Accept it, edit it, or say what is wrong with it.")
    assert 0 == shown.child.exitstatus


def test_a_conversation_is_put_into_plan_mode(folder: Project) -> None:
    """`/plan` and `/plan off` count from the next message on; anything else is said to be neither."""
    folder.write("answers.json", json.dumps([WRITE, done(), WRITE, done()]))
    said = "/plan\nstore it\n/plan off\nstore it\n/plan maybe\n"

    outcome = folder.koi("chat", "a.koi", "Main", "--event", "chat", "--answers", "answers.json", stdin=said)
    denied = [entry["error"] for entry in entries(folder) if entry.get("kind") == "failed"]

    assert "`/plan maybe` is neither on nor off" in outcome.stderr
    assert 1 == len(denied)
    assert "`registry_set` is not marked as safe" in denied[0]


SERVER = """
    import json, sys

    SCHEMA = {"type": "object", "properties": {}}
    TOOLS = [
        {"name": "look", "inputSchema": SCHEMA, "annotations": {"readOnlyHint": True}},
        {"name": "hidden", "inputSchema": SCHEMA, "annotations": {"readOnlyHint": True}},
        {"name": "change", "inputSchema": SCHEMA},
    ]
    for line in sys.stdin:
        message = json.loads(line)
        method, result = message.get("method"), {}
        if method == "initialize":
            about = {"name": "s", "version": "1"}
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": about}
        elif method == "tools/list":
            result = {"tools": TOOLS}
        elif method == "tools/call":
            with open("calls", "a") as file:
                file.write(message["params"]["name"] + "\\n")
            result = {"content": [{"type": "text", "text": "seen"}]}
        if "id" in message:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\\n")
            sys.stdout.flush()
    """


def test_only_tools_that_read_are_called(project: Project) -> None:
    """Of a server only what it marks as read-only, and what rules allow, is called in plan mode; by code, too."""
    project.write("server.py", SERVER)
    project.write(
        "a.koi",
        f"""
        mcp things = {{ command: "{sys.executable}", args: ["server.py"], deny: ["hidden"] }}
        role R {{ can call_mcp }}
        agent A : R {{
          uses mcp things
          on go() {{ playbook "Use the tools." }}
          on code() {{ try {{ await things.change({{}}) }} catch (error) {{ console.log(error.message) }} }}
        }}
        run A.code()
        run A.go()
        """,
    )
    calls = [act("call_mcp", mcp="things", tool=tool) for tool in ("look", "hidden", "change")]
    project.write("answers.json", json.dumps([{"parallel": calls}, done()]))

    outcome = project.koi("run", "a.koi", "--plan", "--answers", "answers.json")

    assert 0 == outcome.returncode
    assert "`change` of the MCP server `things` is not marked as safe, and the run is in plan mode" in outcome.stdout
    assert "look\n" == (project.folder / "calls").read_text("utf-8")
