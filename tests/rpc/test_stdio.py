"""`koi rpc` as another program sees it: lines in, lines out, and its end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import koi_lang
from koi_lang.rpc.framing import MAX_MESSAGE_BYTES
from koi_lang.rpc.stdio import Outbox, UnreadOutputError
from koi_lang.runtime.concurrency.tasks import together
from tests.playbook.playing import act, done
from tests.projects import Project
from tests.rpc.processes import LIMIT_S, alive, are_gone, rpc

PROGRAM = '''
    import loud from "./loud.py"
    role Worker { can execute }
    agent Main : Worker {
      on go(args: Json) { playbook """Do the work.""" }
      on say(args: Json) { console.log(loud.shout(args.text)); return args.text }
    }
    run Main.say({ text: "hello" })
    '''
LOUD = """
    import sys
    print("imported")
    def shout(text: str) -> str:
        print("called"); sys.stdout.flush()
        return text.upper()
    """


@pytest.fixture
def program(project: Project) -> Project:
    """A project with a program that imports noisy Python."""
    project.write("a.koi", PROGRAM)
    project.write("loud.py", LOUD)
    answers = [act("print", message="one"), done(n=1), done(n=2)]
    project.write("answers.json", json.dumps(answers))
    return project


def test_a_conversation(program: Project) -> None:
    """A client begins, steers, listens and says goodbye; stdout carries nothing but the protocol."""
    with rpc(program, "a.koi", "--answers", "answers.json") as koi:
        ready = koi.next()
        assert ("rpc_ready", "a.koi", ["Main"]) == (ready["type"], ready["program"], ready["agents"])
        assert koi.ask("follow_up", message="And then?", id=1)["success"]
        assert "Main.go" == koi.ask("prompt", message="x", name="Main.go", id=2)["data"]["name"]
        assert {"n": 2} == koi.until("call_ended")["result"]
        assert koi.ask("run")["success"]
        assert "HELLO" == koi.until("printed")["message"]
        assert {"cancelled": False} == koi.ask("quit")["data"]

        assert 0 == koi.ended()
        assert ["imported", "called"] == koi.errors().split()
        assert ["run_ended", "response"] == [m.get("event", m)["type"] for m in koi.seen[-2:]]


def test_the_session_is_recorded(program: Project) -> None:
    """What happens in a session is in a journal that `koi runs` shows, unless that is not wanted."""
    for words in ((), ("--no-record",)):
        with rpc(program, "a.koi", *words) as koi:
            koi.ask("run_playbook", name="Main.say", args={"text": "x"})
            koi.until("call_ended")
            koi.ask("quit")
            assert 0 == koi.ended()

    assert "call_started" in program.koi("runs", "show", "last").stdout
    assert 1 == len(list((program.folder / ".koi" / "runs").glob("*.jsonl")))


def test_lines_end_with_line_feeds_only(program: Project) -> None:
    """Separators of Unicode arrive in both directions, CRLF and blank lines do no harm, the last line needs no end."""
    text = "one\u2028two\u2029three\u0085four"
    command = {"type": "run_playbook", "name": "Main.say", "args": {"text": text}}
    with rpc(program, "a.koi") as koi:
        koi.write(b'\r\n \n{"type":"get_state"}\r\n' + json.dumps(command, ensure_ascii=False).encode())
        koi.close_input()

        assert koi.until("response")["success"]
        assert text == koi.until("call_ended")["result"]
        assert 0 == koi.ended()


def test_what_takes_time_keeps_its_place(program: Project) -> None:
    """What needs an idle session is carried out behind it; what does not is answered meanwhile."""
    with rpc(program, "a.koi") as koi:
        types = ("compact", "set_session_name", "get_state")
        koi.write(
            b"".join(b'{"type": "%s"%s}\n' % (type.encode(), b', "name": "x"' * (type[0] == "s")) for type in types)
        )
        responses = [koi.until("response") for _ in types]

        order = [response["command"] for response in responses]
        assert order.index("compact") < order.index("set_session_name")
        assert {"compact": False, "set_session_name": True, "get_state": True} == {
            response["command"]: response["success"] for response in responses
        }


def test_what_cannot_be_read_is_answered(program: Project) -> None:
    """Broken and endless lines get an answer, and the session goes on."""
    with rpc(program, "a.koi") as koi:
        koi.write(b'{"type": \n\xff\n"x"\n' + b"x" * (MAX_MESSAGE_BYTES + 1) + b'\n{"type":"get_state","id":9}\n')
        responses = [koi.until("response") for _ in range(5)]

        codes = ["parse_error", "parse_error", "parse_error", "line_too_long", None]
        assert codes == [response.get("error_code") for response in responses]
        assert ["parse"] * 4 + ["get_state"] == [response["command"] for response in responses]


def test_ten_thousand_lines(program: Project) -> None:
    """Many commands at once are all answered, in order, while nobody reads."""
    with rpc(program, "a.koi", "--no-record") as koi:
        koi.write(b"".join(b'{"type":"set_steering_mode","mode":"one","id":%d}\n' % n for n in range(10_000)))
        koi.close_input()
        assert 0 == koi.ended()

        assert list(range(10_000)) == [message["id"] for message in koi.seen if message["type"] == "response"]


def test_secrets_are_not_told(program: Project) -> None:
    """Keys of the environment are taken out of everything that is written."""
    with rpc(program, "a.koi", "--no-record", OPENAI_API_KEY="topsecretvalue") as koi:
        koi.ask("run_playbook", name="Main.say", args={"text": "it is topsecretvalue!"})

        assert "it is [redacted]!" == koi.until("call_ended")["result"]


def test_a_closed_stdin_ends_the_session(program: Project) -> None:
    """Without more commands the call under way has its end, then everything ends well."""
    with rpc(program, "a.koi", "--answers", "answers.json") as koi:
        koi.send("prompt", message="x", name="Main.go")
        koi.close_input()

        assert koi.until("call_ended")["ok"]
        assert 0 == koi.ended()


SLEEPING = [act("shell", command="sleep 600 & echo $$ $! > pids; wait", description="to wait")]


def sleeping(program: Project) -> None:
    """Have the model start processes that last, and wait for a reader of their numbers."""
    program.write("answers.json", json.dumps(SLEEPING))
    os.mkfifo(program.folder / "pids")


def test_a_told_end_ends_processes(program: Project) -> None:
    """SIGTERM ends the session and what its shell actions have started."""
    sleeping(program)
    with rpc(program, "a.koi", "--answers", "answers.json", "--allow", "shell") as koi:
        koi.send("prompt", message="x", name="Main.go")
        pids = [int(pid) for pid in (program.folder / "pids").read_text().split()]
        koi.process.send_signal(signal.SIGTERM)

        assert 143 == koi.ended()
        assert are_gone(pids)
        assert "Traceback" not in koi.errors()


CLIENT = """
    import subprocess, sys, time
    koi = subprocess.Popen(
        [sys.executable, "-m", "koi_lang", "rpc", "a.koi", "--answers", "answers.json", "--allow", "shell"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )
    koi.stdin.write(b'{"type":"prompt","message":"x","name":"Main.go"}\\n')
    koi.stdin.flush()
    print(koi.pid, flush=True)
    time.sleep(600)
    """


def test_a_killed_client_leaves_no_process(program: Project) -> None:
    """When the client is killed, `koi rpc` and what it has started are gone soon after."""
    sleeping(program)
    script = program.write("client.py", CLIENT)
    environment = {**os.environ, "PYTHONPATH": str(Path(koi_lang.__file__).parents[1])}
    with subprocess.Popen(
        [sys.executable, str(script)], cwd=program.folder, env=environment, stdout=subprocess.PIPE
    ) as client:
        assert client.stdout is not None
        pids = [int(client.stdout.readline()), *map(int, (program.folder / "pids").read_text().split())]
        assert [True] * 3 == [alive(pid) for pid in pids]
        client.kill()

    assert are_gone(pids)


ENDLESS = """
    role Worker { can execute }
    agent Main : Worker {
      on go(args) { while (true) { console.log("x".repeat(1000)); await new Promise(r => setTimeout(r, 1)) } }
    }
    """


def test_a_client_that_does_not_read_can_still_abort(program: Project) -> None:
    """However much is waiting to be read, commands are heard."""
    program.write("b.koi", ENDLESS)
    with rpc(program, "b.koi", "--no-record", listens=False) as koi:
        koi.send("run_playbook", name="Main.go")
        koi.wait_until_full()
        koi.send("abort")
        koi.send("quit")
        koi.listen()

        assert 0 == koi.ended()
        assert {"aborted": True, "queued": []} in [message.get("data") for message in koi.seen]


def test_an_end_is_heard_although_nobody_reads(program: Project) -> None:
    """SIGTERM ends a session whose client has stopped reading."""
    program.write("b.koi", ENDLESS)
    with rpc(program, "b.koi", "--no-record", listens=False) as koi:
        koi.send("run_playbook", name="Main.go")
        koi.wait_until_full()
        koi.process.send_signal(signal.SIGTERM)

        assert 143 == koi.process.wait(LIMIT_S)


async def fill(outbox: Outbox) -> None:
    """Write more than a pipe holds, then more than may wait."""
    async with together() as group:
        group.create_task(outbox.write())
        for _ in range(4):
            outbox.add(b"x" * 100_000)
            await asyncio.sleep(0)


def test_a_client_that_never_reads_is_given_up() -> None:
    """What waits for a client does not grow without end, although nothing can be written."""
    reading, writing = os.pipe()

    with pytest.raises(UnreadOutputError, match="unread, so the session was ended"):
        asyncio.run(fill(Outbox(writing, most=250_000)))

    os.close(reading)
    os.close(writing)


def test_a_program_that_cannot_be_served_is_refused(project: Project) -> None:
    """A program with errors, or none at all, is a message on stderr and an exit code, and no line of the protocol."""
    project.write("a.koi", "agent {")

    outcomes = [project.koi("rpc", name) for name in ("a.koi", "none.koi")]

    assert [("", 65), ("", 2)] == [(outcome.stdout, outcome.returncode) for outcome in outcomes]
    assert all("error: " in outcome.stderr and "Traceback" not in outcome.stderr for outcome in outcomes)


def test_a_session_goes_on_in_another_process(program: Project) -> None:
    """`--resume` brings a session to where it was; what Python did is not done again. Others are refused."""
    with rpc(program, "a.koi") as koi:
        run = koi.until("run_started")["run"]
        koi.ask("run_playbook", name="Main.say", args={"text": "x"})
        koi.until("call_ended")
        koi.process.kill()
    with rpc(program, "a.koi", "--resume", run[:5]) as koi:
        assert ("X", True) == ((printed := koi.until("printed"))["message"], printed["recalled"])
        assert (run, 1) == (koi.ask("get_state")["data"]["session_id"], koi.ask("get_session_stats")["data"]["calls"])
        koi.ask("quit")
        assert (0, ["imported"]) == (koi.ended(), koi.errors().split())
    refused = program.koi("rpc", "a.koi", "--resume", "nothing")

    assert (1, "") == (refused.returncode, refused.stdout)
    assert "error: there is no run `nothing`" in refused.stderr
