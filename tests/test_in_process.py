"""Commands inside the test process, and what those begin with that are forked."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests import in_process
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
