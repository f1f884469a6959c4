"""The command `koi serve mcp` itself: stdin and stdout, and its end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from koi_lang.cli import main
from tests import forks
from tests.projects import Project
from tests.serving.conftest import INITIALIZE, LIMIT_S, PROGRAM, Listening, Place, listening, written

DENYING = """
    from koi_lang.extensions import Deny

    def extend_koi(koi):
        @koi.before_action
        def closed(call):
            return Deny("closed today") if call.intent == "registry_set" else None
"""
DENIED = """
    import rules from "./rules.py"
    role R { can registry:write }
    agent A : R { expose mcp on store() { return await callAction("registry_set", { key: "a", value: 1 }) } }
"""

SPINNING = """
    agent A : R {
      expose mcp
      on spin(args: { note: string }) {
        marks.write(args.note, "begun")
        let turns = 0
        try { while (turns >= 0) { turns++ } } finally { marks.write(args.note, "ended") }
      }
    }
"""


def lines(*messages: Any) -> str:
    """What a client writes: the handshake, then messages."""
    begin = ({"id": 0, "method": "initialize", "params": INITIALIZE}, {"method": "notifications/initialized"})
    return "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in (*begin, *messages))


def call(number: int, tool: str, **arguments: Any) -> dict[str, Any]:
    """A request."""
    return {"id": number, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


def running(place: Place, *messages: Any, program: Path = PROGRAM) -> subprocess.Popen[str]:
    """A server that has answered the handshake."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        place.command(str(program), "--quiet"),
        stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=place.folder, env=place.environment,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(lines(*messages))
    process.stdin.flush()
    assert '"serverInfo"' in process.stdout.readline()
    return process


def test_only_the_protocol_is_on_stdout(place: Place) -> None:
    """Whatever a program, a module of Python or a process prints goes to stderr, also while it is loaded."""
    process = running(place, call(1, "noise"))
    assert process.stdout is not None
    answer = json.loads(process.stdout.readline())
    printed, told = process.communicate(timeout=LIMIT_S)

    assert ("made", "") == (answer["result"]["content"][0]["text"], printed)
    assert ["imported", "noise", "noise", "noise"] == told.splitlines()


def test_it_ends_when_the_client_leaves(place: Place) -> None:
    """The end of stdin ends the server and what is still at work, without an error."""
    note = place.folder / "left.txt"
    process = running(place, call(1, "wait", note=str(note)))
    written(note, "begun\n")
    process.communicate(timeout=LIMIT_S)

    assert (0, "begun\nended\n") == (process.returncode, note.read_text("utf-8"))


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_it_can_be_stopped(place: Place, number: signal.Signals, code: int) -> None:
    """A signal ends the server while it waits for its client, and ends what is still at work."""
    note = place.folder / f"{number.name}.txt"
    process = running(place, call(1, "wait", note=str(note)))
    written(note, "begun\n")
    process.send_signal(number)

    assert (code, "begun\nended\n") == (process.wait(LIMIT_S), note.read_text("utf-8"))
    assert "Traceback" not in process.communicate()[1]


@pytest.fixture
def spinning(place: Place) -> Path:
    """A program with a tool that never ends and never waits."""
    path = place.folder / "spinning.koi"
    marks = Path(__file__).with_name("marks.py").as_posix()
    path.write_text(f'import marks from "{marks}"\nrole R {{ can execute }}\n{SPINNING}', "utf-8")
    return path


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_call_that_computes_can_be_stopped(place: Place, spinning: Path, number: signal.Signals, code: int) -> None:
    """A signal ends the server also while a call never lets it look at anything else."""
    note = place.folder / f"spin-{number.name}.txt"
    with running(place, program=spinning) as process:
        assert process.stdin is not None
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **call(1, "spin", note=str(note))}) + "\n")
        process.stdin.flush()
        written(note, "begun\n")
        process.send_signal(number)

        assert (code, "begun\nended\n") == (process.wait(LIMIT_S), note.read_text("utf-8"))


@pytest.mark.thorough  # the client waits for two seconds, in which the call computes
def test_a_client_leaves_a_call_that_computes(place: Place, spinning: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The official client closes the input, waits, and ends the server: that is no error."""
    note = place.folder / "spin-left.txt"

    async def leave() -> None:
        async with place.stdio(str(spinning)) as client:
            calling = asyncio.create_task(client.call_tool("spin", {"note": str(note)}))
            await asyncio.to_thread(written, note, "begun\n")
            calling.cancel()

    asyncio.run(leave())
    shown = capfd.readouterr().err
    assert ("ended by SIGTERM" in shown, "error" in shown.casefold()) == (True, False), shown


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130), (signal.SIGHUP, 129)])
def test_a_call_over_http_that_computes_can_be_stopped(
    place: Place, spinning: Path, number: signal.Signals, code: int
) -> None:
    """Over HTTP, too, what computes is ended with the server; nothing of libraries is shown."""
    note = place.folder / f"spin-http-{number.name}.txt"

    async def play(server: Listening) -> None:
        async with asyncio.timeout(LIMIT_S), place.http(server.url) as client:
            begun = asyncio.create_task(asyncio.to_thread(written, note, "begun\n"))
            calling = asyncio.create_task(client.call_tool("spin", {"note": str(note)}))
            await begun
            server.process.send_signal(number)
            assert code == await asyncio.to_thread(server.process.wait, LIMIT_S)
            calling.cancel()

    for server in listening(place, str(spinning), "--http", "127.0.0.1:0"):
        with suppress(ExceptionGroup, httpx2.HTTPError):  # the connection of the client has ended
            asyncio.run(play(server))
        assert server.process.stderr is not None

        assert "begun\nended\n" == note.read_text("utf-8")
        assert "Traceback" not in server.process.stderr.read()


def test_bad_lines_do_no_harm(place: Place) -> None:
    """Nonsense from a client is answered or passed over, never with a traceback."""
    nonsense = '{bad\n[]\n{"jsonrpc":"2.0","id":1,"method":"no/such"}\n\xff\n'
    done = place.koi(str(PROGRAM), "--quiet", stdin=nonsense)

    assert (0, "imported\n") == (done.returncode, done.stderr)
    assert all("jsonrpc" in json.loads(line) for line in done.stdout.splitlines())


@pytest.mark.parametrize(
    ("text", "code", "told"),
    [
        ("agent A : R { on go() { } }\nrun A.go()", 2, "error: `a.koi` exposes no agent\n  = help: Write `expose mcp`"),
        ("agent A : R { on go() { return x } }", 65, "error: nothing here is called `x`"),
    ],
)
def test_programs_that_cannot_be_served(project: Project, text: str, code: int, told: str) -> None:
    """A program without an exposed agent, or with errors, gets one message and its exit code."""
    project.write("a.koi", f"role R {{ can execute }}\n{text}\n")
    done = project.koi("serve", "mcp", "a.koi", "--quiet")

    assert (code, "") == (done.returncode, done.stdout)
    assert told in done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["mcp"], "error: no program is named\n"),
        (["mcp", "--http", "a.koi"], "error: `a.koi` cannot be read"),
        (["a.koi", "--quiet"], "error: `a.koi` cannot be read"),
    ],
)
def test_a_file_must_be_named(
    project: Project, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    """Without a file there is nothing to serve; it may stand behind `--http`, or alone, as in older programs."""
    with pytest.raises(SystemExit) as ended:
        main(["serve", *words])

    assert (2, True) == (ended.value.code, told in capsys.readouterr().err)


def test_the_library_is_imported_only_here(project: Project) -> None:
    """The help of the command, and that of its group, need no MCP library."""
    script = """
        import sys
        from koi_lang.cli import main
        for words in (["serve", "--help"], ["serve", "mcp", "--help"]):
            try:
                main(words)
            except SystemExit:
                print("loaded:", sorted({"mcp", "uvicorn", "starlette"} & sys.modules.keys()))
    """

    assert 2 == project.python(script).stdout.count("loaded: []\n")


def test_a_call_has_a_time_limit(project: Project) -> None:
    """`--max-time` bounds each call of a tool, not the session."""
    project.write(
        "a.koi",
        "role R { can execute }\nagent A : R { expose mcp\n"
        "  on slow() { await new Promise(done => setTimeout(done, 20000)) }\n  on quick() { return 1 }\n}\n",
    )
    slow, quick = answers(project, call(1, "slow"), call(2, "quick"), words=["--max-time", "500ms"])

    assert "`slow` took longer than its budget of 0.5 s" in slow["result"]["content"][0]["text"]
    assert "1" == quick["result"]["content"][0]["text"]


def test_hooks_count_in_served_programs(project: Project) -> None:
    """What an extension of the program denies is denied to its clients, too."""
    project.write("rules.py", DENYING)
    project.write("a.koi", DENIED)
    (answer,) = answers(project, call(1, "store"))

    assert (True, True) == (answer["result"]["isError"], "closed today" in answer["result"]["content"][0]["text"])


def answers(project: Project, *messages: dict[str, Any], words: Sequence[str] = ()) -> list[Any]:
    """What `a.koi` answers to messages, one after the other."""
    command = forks.koi("serve", "mcp", "a.koi", "--quiet", *words)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=project.folder, env=environment) as process:
        asked(process, lines())
        found = [asked(process, json.dumps({"jsonrpc": "2.0", **message}) + "\n") for message in messages]
        process.communicate(timeout=LIMIT_S)
    return found


def asked(process: subprocess.Popen[str], text: str) -> Any:
    """The next answer after some lines."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(text)
    process.stdin.flush()
    return json.loads(process.stdout.readline())
