"""How long MCP servers live: started when needed, again when lost, and gone when the run ends."""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path

from tests import forks
from tests.mcp.conftest import RAW, SERVER, Shelf, call
from tests.projects import Project

CODE = """
    on twice(args) {
      const results = await Promise.all([1, 2].map(async n => callAction("call_mcp", {
        mcp: "files", tool: "read", input: { path: "a", limit: n } })))
      return results.map(r => r.result)
    }
"""
PATIENCE = """
    on read(args) { return await callAction("call_mcp", { mcp: "files", tool: "read", input: { path: "a" } }) }
    on hang(args) { return await callAction("call_mcp", { mcp: "files", tool: "hang" }) }
    on impatient(args) {
      await send peers.event("read").any()({})
      let told = ""
      try { await send peers.event("hang").any()({}) timeout 100ms } catch (e) { told = e.message }
      return [told, await send peers.event("read").any()({})]
    }
"""
MUTE = """
    on read(args) { return await callAction("call_mcp", { mcp: "files", tool: "read" }) }
    on impatient(args) { await send peers.event("read").any()({}) timeout 1s }
"""
# Runs a program and tells which libraries it has imported.
RUN = """
import sys
from koi_lang.cli import main
try:
    main(["run", sys.argv[1]])
except SystemExit:
    print("mcp" in sys.modules, "jsonschema" in sys.modules)
"""


def alive(pid: int) -> bool:
    """Whether there is a process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_one_process_for_all_calls(shelf: Shelf) -> None:
    """Calls at the same time share one process, which is gone after the run."""
    played = shelf.play(shelf.program(code=CODE), [], call="Main.twice")

    assert ["a 1", "a 2"] == played.result
    assert [False] == [alive(pid) for pid in shelf.processes()]


def test_a_call_can_be_given_up(shelf: Shelf) -> None:
    """A call that takes too long is ended, and the same process answers the next one."""
    played = shelf.play(shelf.program("call_mcp, can delegate", PATIENCE), [], call="Main.impatient")

    assert ["`Main` got no answer to `hang` within 0.1 s", {"result": "a 10"}] == played.result
    assert [False] == [alive(pid) for pid in shelf.processes()]


def test_a_server_that_never_answers(shelf: Shelf) -> None:
    """A run need not wait until a server has given up to start; it is ended with the run."""
    importlib.import_module("mcp")  # takes long the first time, and the limit shall be that of the server
    program = shelf.program(
        "call_mcp, can delegate", MUTE, command="sh", args=["-c", f"echo $$ > {shelf.pids}; exec sleep 600"]
    )
    played = shelf.play(program, [], call="Main.impatient")

    assert "`Main` got no answer to `read` within 1 s" in played.told
    assert [False] == [alive(pid) for pid in shelf.processes()]


def test_a_server_that_dies_is_started_again(shelf: Shelf) -> None:
    """The call during which it dies fails with what it said last; the next one has a new process."""
    played = shelf(call("die"), call("read", path="a"))

    assert "❌ call_mcp failed: the MCP server `files` was lost during `die`: the shelf\\nbreaks" in played.feedback[1]
    assert '✅ call_mcp -> {"result":"a 10"}\nContinue.' == played.feedback[2]
    assert [False, False] == [alive(pid) for pid in shelf.processes()]


def test_a_server_that_ends_at_its_start(shelf: Shelf) -> None:
    """What it wrote to stderr is the cause, at most the last 20 lines."""
    script = "import sys\nfor n in range(30): print('line', n, file=sys.stderr)\nsys.exit(1)"
    played = shelf(call("read", path="a"), command=sys.executable, args=["-c", script])

    told = "the MCP server `files` cannot be reached: line 10"
    assert f"- files cannot be used now: {told} line 11" in played.requests[0].system
    assert f"❌ call_mcp failed: {told}\\nline 11\\n" in played.feedback[1]
    assert "line 29\nContinue." in played.feedback[1]


def test_a_command_that_does_not_exist(shelf: Shelf) -> None:
    """The command is named, and what to do."""
    played = shelf(call("read", path="a"), command="/no/such/server")

    told = "`files` cannot be started: there is no command `/no/such/server`. Install it, or write where the program is"
    assert told in played.feedback[1]


def test_a_process_is_gone_when_the_run_fails(shelf: Shelf) -> None:
    """A run that fails ends its servers, too."""
    code = (
        '  on broken(args) { callAction("call_mcp", { mcp: "files", tool: "read", input: { path: "a" } }); throw "x" }'
    )
    played = shelf.play(shelf.program(code=code), [], call="Main.broken")

    assert "x" in played.told
    assert [False] == [alive(pid) for pid in shelf.processes()]


def test_the_library_is_not_imported_before_it_is_needed(tmp_path: Path) -> None:
    """A program that only declares a server runs without `mcp`; calls, which need it, have tests of their own."""
    project = Project(tmp_path)
    command, *words = forks.python(str(SERVER))
    server = f"mcp files = {{ command: {json.dumps(command)}, args: {json.dumps(words)} }}"
    main = "agent Main : Worker { uses mcp files on go(args) { return 1 } }"
    project.write("main.koi", f"role Worker {{ can call_mcp }}\n{server}\n{main}\nrun Main.go({{}})\n")

    assert "False False" == project.run(sys.executable, "-c", RUN, "main.koi").stdout.strip().splitlines()[-1]


# Measures how often the event loop turns while a run connects to its first server, and how long its thread computes in
# between.
PAUSES = """
import asyncio, sys, time
from pathlib import Path
from koi_lang.runtime.agents.declarations import Mcp
from koi_lang.runtime.mcp.servers import Servers
from koi_lang.settings import ProjectSettings

async def tick(pauses):
    while True:
        start = time.thread_time()
        await asyncio.sleep(0.001)
        pauses.append(time.thread_time() - start)

async def main():
    async with asyncio.TaskGroup() as group:
        servers, pauses = Servers(group, ProjectSettings(Path())), []
        before = "mcp" in sys.modules
        ticking = asyncio.create_task(tick(pauses))
        await servers.connect(Mcp("files", lambda: {"command": sys.executable, "args": [sys.argv[1]]}))
        ticking.cancel()
        servers.stop()
    print(before, len(pauses) > 20, max(pauses) < 0.4)

asyncio.run(main())
"""


def test_the_library_is_imported_while_others_go_on(tmp_path: Path) -> None:
    """Importing the library takes a second; nobody else waits that long."""
    done = Project(tmp_path).run(sys.executable, "-c", PAUSES, str(RAW))

    assert ("False True True\n", "") == (done.stdout, done.stderr)


def test_playbooks_without_servers_import_nothing_for_them(tmp_path: Path) -> None:
    """A program that uses no server does not pay for them, neither with code nor with playbooks."""
    project = Project(tmp_path)
    project.write(
        "main.koi",
        """
        role Worker { can call_mcp, can delegate }
        agent Main : Worker { uses team All  on go(args) { playbook "Print: hello" } }
        team All { main: Main }
        run Main.go({})
        """,
    )
    script = RUN.replace('["run", sys.argv[1]]', '["run", "--rehearse", "--quiet", sys.argv[1]]')

    assert "hello\nFalse False\n" == project.run(sys.executable, "-c", script, "main.koi").stdout
