"""The tools of `std/checks` in the sandbox, and what is left of a command when koi is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from koi_lang.std.checks.runner import run_command, run_tests
from tests.forks import CHECKOUT
from tests.sandbox.conftest import Machine
from tests.sandbox.test_confinement import own_time, processes, wait_for, wait_until_gone
from tests.std.checking import CheckedProject, summary, titles

# Writes a report of a green test to where pytest is told to, and tries to leave the project.
PYTEST = """#!/bin/sh
for word; do
  case "$word" in --junit-xml=*) report=${word#--junit-xml=};; esac
done
echo > OUTSIDE
cat > "$report" <<END
<testsuites><testsuite tests="1"><testcase classname="a" name="test_a" file="a.py" line="1"/></testsuite></testsuites>
END
"""
KILLED = """
    import asyncio, os, signal
    from pathlib import Path
    from koi_lang.runtime.command_process import start_command
    from koi_lang.runtime.guards.commands import Command
    from koi_lang.runtime.command_sandbox import find_sandbox
    from koi_lang.settings import read_settings
    from koi_lang.runtime.guards.commands import place_of

    async def main():
        here = Path.cwd()
        sandbox = (await find_sandbox(here, read_settings(here))).sandbox
        text = "setsid sleep SECONDS & sleep SECONDS"
        await start_command(Command(text, place_of(None, here), "", sandbox=sandbox), silent=True)
        await asyncio.sleep(60)

    asyncio.run(main())
    """


def test_a_tool_writes_its_report(confined: Machine, outside: tuple[Path, Path]) -> None:
    """Where that is, outside of the project, it may write; beside it, it may not."""
    script = PYTEST.replace("OUTSIDE", str(outside[0]))
    checked = CheckedProject(confined.project).write({".venv/bin/python": script, "test_a.py": ""})
    (confined.project / ".venv/bin/python").chmod(0o755)
    result = checked.check(run_tests)

    assert (True, 1, 0) == summary(result), result
    assert str(outside[0]) in result["output"]
    assert not outside[0].exists()


def test_a_tool_that_is_hidden(confined: Machine) -> None:
    """An environment whose Python is in the home folder says which line shows it."""
    python = confined.home / ".pyenv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(PYTEST)
    python.chmod(0o755)
    checked = CheckedProject(confined.project).write({"test_a.py": "", ".venv/pyvenv.cfg": ""})
    (confined.project / ".venv/bin").mkdir()
    (confined.project / ".venv/bin/python").symlink_to(python)
    hidden = titles(checked.check(run_tests))
    confined.set_up('home = ["~/.pyenv"]')

    assert ['`[shell] home = ["~/.pyenv"]` in `koi.toml` shows it'] == [each.partition("; ")[2] for each in hidden]
    assert (True, 1, 0) == summary(checked.check(run_tests))


def test_a_command_that_fails_in_the_sandbox(confined: Machine) -> None:
    """Its exit code is that of the command itself."""
    result = CheckedProject(confined.project).check(lambda given: run_command("exit 7", given))

    assert ["`exit 7` ended with exit code 7"] == titles(result)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no such signal")
def test_a_killed_koi_leaves_nothing(confined: Machine) -> None:
    """Also where nobody is left who could end the command."""
    time_s = own_time(65)
    script = "\n".join(line[4:] for line in KILLED.replace("SECONDS", time_s).splitlines())
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    koi = subprocess.Popen([sys.executable, "-c", script], cwd=confined.project, env=environment)
    begun: list[int] = []
    wait_for(lambda: begun.append(len(processes(f"sleep\x00{time_s}"))) or begun[-1] == 2)
    koi.kill()
    koi.wait()

    assert 2 == begun[-1]
    assert [] == wait_until_gone(time_s)
