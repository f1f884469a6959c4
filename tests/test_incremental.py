"""Checking again after a change: the same result as from the beginning, and only what has changed is read."""

from __future__ import annotations

from pathlib import Path

from koi_lang.compiler.compile import check_program
from koi_lang.compiler.incremental import IncrementalChecker
from tests.support import FolderFiles


def test_imports_that_did_not_change_are_not_read_again(tmp_path: Path) -> None:
    """After a change of one file the trees of the others are those of the check before."""
    (tmp_path / "roles.koi").write_text("role Worker { can execute }\n")
    (tmp_path / "main.koi").write_text('import "./roles.koi"\nagent Ada : Worker { on go() { return 1 } }\n')
    checker, files = IncrementalChecker(), FolderFiles(tmp_path)
    before = checker.check("main.koi", files)
    (tmp_path / "main.koi").write_text('import "./roles.koi"\nagent Ada : Wroker { on go() { return 1 } }\n')

    after = checker.check("main.koi", files)

    assert after.analysed[1].unit.program is before.analysed[1].unit.program
    assert after.diagnostics == check_program("main.koi", files).diagnostics
    assert [problem.code for problem in after.errors] == ["E0201"]
