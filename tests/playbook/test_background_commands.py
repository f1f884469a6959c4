"""Commands in the background: their numbers and outputs, the line that is waited for, and how they end."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import pytest

from koi_lang.runtime.guards.commands import Command, place_of
from koi_lang.runtime.shared_sandbox import SharedSandboxes
from tests.limits import LIMIT_S
from tests.playbook.playing import Played, Player, act, done, solo
from tests.playbook.test_shell import command, is_alive

PROGRAM = solo("execute")


def wait_for(path: Path) -> str:
    """The text of a file, once there is one."""
    limit = time.monotonic() + LIMIT_S
    while not path.exists() or not path.read_text():
        assert time.monotonic() < limit
        time.sleep(0.01)
    return path.read_text()


def played(play: Player, *answers: Any) -> Played:
    """A run whose model gives some answers and then returns."""
    return play(PROGRAM, [*answers, done()], allow=["shell"])


def results(play: Player, *actions: dict[str, Any]) -> list[Any]:
    """The results of actions in one answer."""
    batch = [{**each, "id": f"r{number}"} for number, each in enumerate(actions)]
    asked = {f"r{number}": f"${{r{number}.output}}" for number in range(len(actions))}
    run = play(PROGRAM, [{"batch": [*batch, done(**asked)]}], allow=["shell"])
    assert run.error is None, run.told
    return list(run.result.values())


def test_a_line_is_waited_for(play: Player) -> None:
    """`until` comes back when a line fits, with what was written so far; the command goes on."""
    waited = command("echo starting; echo listening on 8999; sleep 60", until="listening on \\d+")
    result, listed = results(play, waited, act("list_commands"))

    assert {"command": 1, "state": "running", "line": "listening on 8999"}.items() <= result.items()
    assert "starting\nlistening on 8999\n" == result["stdout"]
    assert [(1, "running")] == [(each["command"], each["state"]) for each in listed["commands"]]


def test_a_command_that_ends_before_its_line(play: Player) -> None:
    """Where no line fits, `until` comes back with the end, which is that of any command."""
    (result,) = results(play, command("echo no; exit 3", until="never"))

    assert {
        "success": False,
        "exitCode": 3,
        "stdout": "no\n",
        "note": "no line has fitted `until`",
    }.items() <= result.items()


def test_a_line_that_never_comes_is_waited_for_as_long_as_said(play: Player) -> None:
    """After `timeout_ms` the command goes on, and the model is told that no line has fitted."""
    (result,) = results(play, command("echo a; sleep 60", until="b", timeout=300))

    assert {
        "command": 1,
        "state": "running",
        "note": "no line has fitted `until` within 0.3 s",
    }.items() <= result.items()


def test_a_pattern_that_backtracks_without_end(play: Player) -> None:
    """It is given up; the command goes on."""
    (result,) = results(play, command(f"echo {'a' * 60}; sleep 60", until="^(a+)+$x|(a|aa)+b"))

    assert "takes too long" in result["note"]
    assert "running" == result["state"]


@pytest.mark.parametrize(("pattern", "problem"), [("(", "cannot be used"), ("a" * 2000, "longer than 1000 characters")])
def test_a_pattern_that_is_none_starts_nothing(play: Player, tmp_path: Path, pattern: str, problem: str) -> None:
    """It is refused before the command begins."""
    run = played(play, command(f"touch {tmp_path}/made", until=pattern))

    assert problem in run.feedback[1]
    assert not (tmp_path / "made").exists()


def test_the_output_is_read_while_it_grows(play: Player, tmp_path: Path) -> None:
    """`read_output` gives the lines so far by the number of the command, and says where it goes on."""
    os.mkfifo(tmp_path / "go")
    start = command(f"echo one; echo two >&2; cat {tmp_path}/go; sleep 60", background=True)
    more = command(f"echo three > {tmp_path}/go; sleep 0.3")
    begun, _, all, rest = results(
        play, start, more, act("read_output", data={"id": 1}), act("read_output", data={"id": 1, "from": 3, "count": 1})
    )

    assert {"success": True, "command": 1, "state": "running"} == begun
    assert {"lines": 3, "next": 4, "state": "running", "text": "one\ntwo\nthree\n"}.items() <= all.items()
    assert "three\n" == rest["text"]


def test_a_command_is_stopped_with_all_it_has_started(play: Player, tmp_path: Path) -> None:
    """Also with processes that have left its group, and those whose parent has ended."""
    left = f"setsid sh -c 'echo $$ > {tmp_path}/a; sleep 60' & (sh -c 'echo $$ > {tmp_path}/b; sleep 60' &)"
    text = f"{left}; while [ ! -s {tmp_path}/a ] || [ ! -s {tmp_path}/b ]; do sleep 0.01; done; echo up; wait"
    _, stopped, listed = results(play, command(text, until="up"), act("stop_command", command=1), act("list_commands"))

    assert "stopped" == stopped["state"] == listed["commands"][0]["state"]
    assert [False, False] == [is_alive(int(wait_for(tmp_path / name))) for name in "ab"]


def test_what_a_command_leaves_behind_is_one_in_the_background(play: Player) -> None:
    """`&` in a command: it comes back with its end, and the rest has a number."""
    begun, stopped = results(play, command("echo a; sleep 60 &"), act("stop_command", command=1))

    assert {"command": 1, "state": "running", "exitCode": 0, "stdout": "a\n"}.items() <= begun.items()
    assert "stopped" == stopped["state"]


def test_the_end_is_told_in_one_line(play: Player) -> None:
    """Whoever began a command is told of its end before its next answer, once."""
    start = command("cat go; exit 4", background=True)
    (play.folder / "go").unlink(missing_ok=True)
    os.mkfifo(play.folder / "go")
    run = played(play, start, command("echo x > go; sleep 0.5"), command("true"))

    told = [text for text in run.feedback if text.startswith("Meanwhile")]
    assert ["Meanwhile command 1 (`cat go; exit 4`) has ended with exit code 4."] == told
    assert ["ended"] == [event.fields["state"] for event in run.events if event.type == "command_ended"]


def test_numbers_that_are_none(play: Player) -> None:
    """Stopping what is not there, or has ended, says so."""
    stop = act("stop_command", command=1)
    run = played(play, act("stop_command", command=7), {"batch": [command("sleep 60", background=True), stop, stop]})

    assert "`Main` has no command 7" in run.feedback[1]
    assert "was stopped already" in run.feedback[2]


def test_no_more_than_twenty_go_on(play: Player) -> None:
    """The next one is refused."""
    run = played(play, {"batch": [command("sleep 60", background=True)] * 21})

    assert "20 commands of this run go on already" in run.feedback[1]


def test_another_agent_does_not_see_them(play: Player) -> None:
    """Commands belong to the agent that began them."""
    program = """
role Worker { can execute, can delegate }
agent Main : Worker {
  uses team T
  on go(args) {
    await this.callAction("shell", { command: "sleep 60", description: "d", background: true })
    return await Other.look()
  }
}
agent Other : Worker {
  on look() {
    console.log((await this.callAction("list_commands", {})).commands)
    await this.callAction("stop_command", { command: 1 })
  }
}
team T { m: Main o: Other }
"""
    run = play(program, [], allow=["shell"])

    assert ("[]",) == run.printed
    assert "`Other` has no command 1" in run.told


def test_a_command_that_ends_the_holder(play: Player) -> None:
    """The command is lost, its agent is told why, and the next command has another sandbox."""
    kill = command("kill -9 $(ps -o ppid= -p $PPID); sleep 5 & wait")
    run = played(play, kill, command("echo fine &"))

    assert "has ended the process that held its sandbox" in run.feedback[1]
    assert "fine" in run.feedback[2]


@pytest.mark.parametrize("beside", [0, 1])
def test_a_command_that_is_cancelled_while_it_begins_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beside: int
) -> None:
    """It runs already when its start is cancelled, since the answer of a thread takes a moment to be heard."""
    place, pids = place_of(None, tmp_path), tmp_path / "pids"

    async def main() -> None:
        run_in_thread, has_begun = asyncio.to_thread, asyncio.Event()

        async def delayed(function: Any, *given: Any) -> Any:
            result = await run_in_thread(function, *given)
            if function.__name__ == "send" and not has_begun.is_set() and len(begun) == beside:
                await run_in_thread(wait_for, pids)
                has_begun.set()
                await asyncio.sleep(0.2)
            return result

        async with asyncio.TaskGroup() as group:
            sandboxes = SharedSandboxes(group)
            begun = [await sandboxes.start(Command("sleep 60", place, ""), is_merged=True) for _ in range(beside)]
            monkeypatch.setattr(asyncio, "to_thread", delayed)
            asked = Command(f"sleep 60 & echo $$ $! > {pids}; wait", place, "")
            starting = group.create_task(sandboxes.start(asked, is_merged=True))
            await has_begun.wait()
            starting.cancel()
            await asyncio.wait([starting])
            left = [is_alive(int(pid)) for pid in pids.read_text().split()]
            await sandboxes.end()
        assert [False, False] == left

    asyncio.run(main())
