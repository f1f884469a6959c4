"""Commands of `std/checks` that do not end, print without end, leave something behind, or are many at once."""

from __future__ import annotations

import asyncio
import resource
from pathlib import Path

import pytest

from koi_lang.errors import AgentError, PermissionDeniedError
from koi_lang.runtime.actions.command_output import Output
from koi_lang.runtime.command_process import start_command
from koi_lang.runtime.guards.commands import Command, place_of
from koi_lang.std.checks.runner import run_command, run_tests
from tests.limits import LIMIT_S
from tests.std.checking import CheckedProject, summary, titles, wait_until_gone

pytestmark = pytest.mark.usefixtures("tools")

# Starts processes that ignore requests to end, one of them behind another, and writes down who they are.
STUBBORN = "trap '' TERM INT HUP; (trap '' TERM; sleep 3600 & echo $! >> pids; wait) & echo $$ $! >> pids; wait"
GIGABYTE = 1_000_000_000


def pids_in(folder: Path) -> list[int]:
    """The processes that a command has written down."""
    return [int(pid) for pid in (folder / "pids").read_text().split()]


@pytest.mark.parametrize(("command", "code", "counts"), [("true", 0, (True, 1, 0)), ("exit 3", 3, (False, 0, 1))])
def test_the_exit_code_decides(checked: CheckedProject, command: str, code: int, counts: tuple[bool, int, int]) -> None:
    """A command is ok where it ends with 0, whatever it prints."""
    result = checked.check(lambda options: run_command(f"echo passed; echo failed >&2; {command}", options))
    told = [] if code == 0 else [f"`echo passed; echo failed >&2; {command}` ended with exit code {code}"]

    assert (counts, told, "passed\nfailed\n") == (summary(result), titles(result), result["output"])


@pytest.mark.parametrize(
    ("command", "fix"),
    [
        ("seq 200; echo no such file >&2; false", "199 200 no such file"),
        ("false", "It printed nothing."),
    ],
)
def test_a_finding_has_the_end_of_what_was_printed(checked: CheckedProject, command: str, fix: str) -> None:
    """A model that only gets the findings sees what went wrong, in one line."""
    (finding,) = checked.check(lambda options: run_command(command, options))["findings"]

    assert finding["fix"].endswith(fix)
    assert len(finding["fix"]) <= 300


def test_time_is_up(checked: CheckedProject) -> None:
    """A command that never ends is ended with its grandchildren, also those that ignore requests to end."""
    result = checked.check(lambda options: run_command(STUBBORN, options), {"timeout": 0.5})

    assert (False, 0, 1) == summary(result)
    assert f"`{STUBBORN}` took longer than 0.5 s and was ended" == titles(result)[0]
    assert 3 == len([wait_until_gone(pid) for pid in pids_in(checked.folder)])


def test_tests_that_never_end(checked: CheckedProject) -> None:
    """The same for tests: none of them passed."""
    checked.write({"test_a.py": "import time\ndef test_a(): pass\ndef test_b():\n    time.sleep(3600)\n"})
    result = checked.check(run_tests, {"timeout": 3})

    assert (False, 0, 1) == summary(result)
    assert ["`python -m pytest` took longer than 3 s and was ended"] == titles(result)


def test_nothing_is_left_behind(checked: CheckedProject) -> None:
    """What a command leaves in the background holds nothing up, and is gone afterwards, with its output or without."""
    leaving = "sleep 3600 & echo $! > pids; sleep 3600 > /dev/null 2>&1 & echo $! >> pids; echo done"
    result = checked.check(lambda options: run_command(leaving, options), {"timeout": LIMIT_S})

    assert ((True, 1, 0), "done\n") == (summary(result), result["output"])
    assert 2 == len([wait_until_gone(pid) for pid in pids_in(checked.folder)])


def test_nothing_begins_unguarded(checked: CheckedProject) -> None:
    """A command waits until its end is provided for; whoever is killed before that has started nothing."""
    command = Command("touch made; echo done", place_of(None, checked.folder), "to see")

    async def leave() -> int:
        held = await start_command(command, is_merged=True)
        assert held.process.stdin is not None
        held.process.stdin.close()
        return await held.process.wait()

    async def stay() -> int | None:
        held = await start_command(command, is_merged=True)
        return await held.read_and_end([Output()], 60)

    assert (1, False) == (asyncio.run(leave()), (checked.folder / "made").exists())
    assert (0, True) == (asyncio.run(stay()), (checked.folder / "made").exists())


def test_a_gigabyte_is_not_kept(checked: CheckedProject) -> None:
    """Of an endless output the ends are kept, and no more of it is ever in memory than some megabytes."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    printing = f"echo begin; head -c {GIGABYTE} /dev/zero; echo end"
    result = checked.check(lambda options: run_command(printing, options))

    assert result["ok"]
    assert (True, True) == (result["output"].startswith("begin\n"), result["output"].endswith("end\n"))
    assert 30_000 < len(result["output"]) < 31_000
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 < 64


def test_tests_that_print_without_end(checked: CheckedProject) -> None:
    """Tests that print a lot are read by their report, which holds nothing of that."""
    printing = (
        "import sys\ndef test_a(capfd):\n    with capfd.disabled():\n        sys.stdout.write('x' * 50_000_000)\n"
    )
    result = checked.write({"test_a.py": printing}).check(run_tests)

    assert ((True, 1, 0), True) == (summary(result), len(result["output"]) < 31_000)


def test_forty_at_once(checked: CheckedProject) -> None:
    """Many checks at the same time each get what is theirs."""

    def check(number: int) -> tuple[object, None]:
        return (lambda options: run_command(f"sleep 0.2; echo {number}; exit {number % 2}", options)), None

    results = checked.check_together([check(number) for number in range(40)])

    assert [f"{number}\n" for number in range(40)] == [result["output"] for result in results]
    assert [number % 2 == 0 for number in range(40)] == [result["ok"] for result in results]


def test_reports_are_not_mixed_up(checked: CheckedProject) -> None:
    """Several runs of the same tests at the same time each read their own report."""
    checked.write({"test_a.py": "def test(): pass\n", "test_b.py": "def test(): assert 0\n"})
    results = checked.check_together([(run_tests, {"files": [f"test_{name}.py"]}) for name in "ab"])

    assert [True, False] == [result["ok"] for result in results]


@pytest.mark.parametrize(
    ("command", "title"),
    [
        ("nothing-like-it --at-all", "`nothing-like-it --at-all` ended with exit code 127: there is no such program"),
        ("kill -9 $$", "`kill -9 $$` ended with exit code -9"),
    ],
)
def test_what_cannot_run_is_told(checked: CheckedProject, command: str, title: str) -> None:
    """A program that is not there, and one that was killed, are findings."""
    result = checked.check(lambda options: run_command(command, options))

    assert ((False, 0, 1), [title]) == (summary(result), titles(result))


@pytest.mark.parametrize("command", ["", "  ", None, 5, ["ls"]])
def test_no_command_is_told(checked: CheckedProject, command: object) -> None:
    """What is no command gives one clear message."""
    with pytest.raises(AgentError, match="is no command"):
        checked.check(lambda options: run_command(command, options))


def test_a_command_that_is_none_for_the_system(checked: CheckedProject) -> None:
    """A character that no command may hold is a finding, not a traceback."""
    result = checked.check(lambda options: run_command("echo \0", options))

    assert ((False, 0, 1), True) == (summary(result), "cannot be started: embedded null byte" in titles(result)[0])


def test_a_command_is_asked_about(checked: CheckedProject) -> None:
    """Rules for other commands, and patterns where commands are joined, allow nothing."""
    with pytest.raises(PermissionDeniedError, match="nobody can be asked to allow `ls; touch made`"):
        checked.check(lambda options: run_command("ls; touch made", options), allow=["shell:ls *", "shell:touch"])

    assert [] == list(checked.folder.iterdir())
