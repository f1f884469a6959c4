"""Commands inside the test process, and what those begin with that are forked."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import warnings
from pathlib import Path

import pytest

from tests import forks, in_process
from tests.conftest import is_below
from tests.projects import Project


def test_what_a_command_forks_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that a command forks ends, and does not go on with what the test process does next."""
    marks = tmp_path / "marks"

    def command(words: list[str]) -> None:
        if (child := os.fork()) == 0:
            os._exit(3)
        assert 3 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os._exit(4)

    monkeypatch.setattr(in_process, "main", command)
    code = in_process.exit_code_of("run")
    with marks.open("a") as file:
        file.write(f"{code}\n")

    assert "4\n" == marks.read_text()


def test_a_forked_process_has_compiled_the_patterns_of_the_lexer(project: Project) -> None:
    """It reads a program without compiling any: they take longer than all the rest of a small command."""
    script = """
        import re
        from koi_lang.compiler.parser import parse
        from koi_lang.source import Source

        compiled, compile = [], re._compiler.compile
        re._compiler.compile = lambda *given: compiled.append(given) or compile(*given)
        _, problems = parse(Source("a.koi", "role R { can execute }\\nagent A : R { on go(args) { let n = [1] } }"))
        print(len(compiled), problems)
        """

    assert "0 []\n" == project.fork_python(script).stdout


PROGRAM = """
    import tool from "./tool.py"
    role R { can execute }
    agent A : R {
      on go(args: Json) { console.log(tool.double(2)) }
      on ask(args: Json) { playbook "Greet {{args.name}}." }
    }
    run A.go({})
    """


@pytest.mark.parametrize(
    ("command", "stdin"),
    [
        ("check a.koi", ""),
        ("check a.koi gone.koi wrong.koi --json", ""),
        ("check --no-such", ""),
        ("audit a.koi", ""),
        ("compile a.koi", ""),
        ("docs", ""),
        ("fmt -", "role   R { can execute }"),
        ("graph a.koi", ""),
        ("init new", ""),
        ("list agents a.koi", ""),
        ("permissions", ""),
        ("prompt a.koi A.ask", ""),
        ("runs", ""),
        ("runs show 1", ""),
    ],
)
def test_the_outcome_is_that_of_a_process(project: Project, command: str, stdin: str) -> None:
    """Exit code and streams are the same, and nothing that a command changes in its process is left of it."""
    project.write("a.koi", PROGRAM)
    project.write("tool.py", "def double(n):\n    return 2 * n\n")
    project.write("wrong.koi", "role R { can fly")
    words = tuple(command.split())
    forked = project.fork(*forks.KOI, *words, stdin=stdin)
    shutil.rmtree(project.folder / "new", ignore_errors=True)
    before = state(project)
    done = project.koi(*words, stdin=stdin)

    assert in_process.is_possible(words, stdin)
    assert (forked.returncode, forked.stdout, forked.stderr) == (done.returncode, done.stdout, done.stderr)
    assert before == state(project)


def state(project: Project) -> list[object]:
    """What a process has for all that goes on in it; descriptors without their numbers, which may be another's."""
    modules = [name for name, module in [*sys.modules.items()] if is_below(project.folder, module)]
    streams = [sys.stdin, sys.stdout, sys.stderr, sys.__stdin__, sys.__stdout__, sys.__stderr__]
    files = [os.fstat(descriptor) for descriptor in range(3)]
    process = [os.getcwd(), dict(os.environ), [*sys.argv], [*sys.path], [*sys.meta_path], [*warnings.filters]]
    signals = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)]
    return [modules, streams, [(file.st_dev, file.st_ino) for file in files], *process, *signals]
