"""The page that teaches the language: its programs are run and say what the page says."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from koi_lang.compiler.build import RESERVED
from koi_lang.compiler.rules.agents import RESILIENCE
from koi_lang.js.globals import GLOBALS
from koi_lang.program import build as building
from koi_lang.runtime.actions.lookup import all_actions
from koi_lang.testing import blocks as tested
from tests import pages
from tests.projects import Project
from tests.support import must_not_compile

PAGE = (Path(__file__).resolve().parent.parent / "grammar" / "README.md").read_text("utf-8")
EXAMPLES = list(pages.examples(PAGE))
BLOCKS = [block for block in pages.blocks(PAGE) if block.name or block.kind == "koi"]
PROGRAMS = [pytest.param(each, id=f"line {each.line}") for each in EXAMPLES if "\ntest " not in each.program]
ABSENT = (
    "class A { }", "interface A { }", "enum A { B }", "const o = { get y() { return 1 } }",
    "switch (args) { case 1: break }", "do { args() } while (args)", "function* f() { }",
    "for await (const x of args) { }", "outer: while (args) { break outer }", "args & 1", "args | 1", "args ^ 1",
    "~args", "args << 1", "args >> 1", "const x = (args, 1)", "void args", "with (args) { }", "f`text`",
    "const n = 0b1", "const n = 10n", "const n = .5", "const list = [1, , 3]", "debugger", "type A = number",
    "const x = args as any", "const x = 1\nexport const y = 1", 'import x from "y"', 'require("fs")',
    "new Proxy({}, {})", "Symbol()", "new WeakMap()", 'new URL("x")', "window.alert()", 'eval("1")',
    'new Function("1")', "f = () => arguments", "const ü = 1", "const $x = 1",
)  # fmt: skip


@pytest.mark.parametrize("example", PROGRAMS)
def test_a_program_prints_this(example: pages.Example, project: Project) -> None:
    """A program on the page prints what stands behind it, or ends with the error that does."""
    assert example.told == pages.shown(example.run(project.folder), project.folder)


def test_all_programs_are_clean(project: Project) -> None:
    """No check has anything to say about a program on the page, whether its output is shown or not."""
    for block in BLOCKS:
        (project.folder / (block.name or f"line{block.line}.koi")).write_text(block.text, "utf-8")
    programs = [path for path in project.folder.iterdir() if path.suffix == ".koi"]

    assert [] == [found.message for path in programs for found in building.check(str(path), strict=True).diagnostics]


def test_tests_pass(project: Project) -> None:
    """The tests on the page pass, as many as it says."""
    (example,) = [each for each in EXAMPLES if "\ntest " in each.program]
    outcomes = [case.run() for case in tested.collect(example.written(project.folder), False)]

    assert (True, "") == (all(outcome.ok for outcome in outcomes), "".join(outcome.message for outcome in outcomes))
    assert example.told == f"{len(outcomes)} passed\n"


def test_a_session_in_python_says_this(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python gives the results that the page shows."""
    (module,) = [block.text for block in BLOCKS if block.name == "mathops.koi"]
    (session,) = [block.text for block in pages.blocks(PAGE) if block.text.startswith(">>>")]
    project.write("mathops.koi", module)
    monkeypatch.chdir(project.folder)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])

    assert (0, 3) == tuple(pages.replayed(session))


def test_every_name_is_told() -> None:
    """All reserved words, global names, actions, permissions and options of `resilience` stand on the page."""
    permissions = {kind.needs for kind in all_actions() if kind.needs is not None}
    names = {*RESERVED, *GLOBALS, *(kind.name for kind in all_actions()), *permissions, *RESILIENCE}

    assert [] == sorted(name for name in names if not re.search(rf"`{re.escape(name)}\b", PAGE))


@pytest.mark.parametrize("code", ABSENT)
def test_what_is_absent_is_refused(code: str) -> None:
    """What the page calls absent does not compile."""
    found = must_not_compile(f"role R {{ can execute }} agent A : R {{ on start(args) {{\n{code}\n}} }}")

    assert "error" in [diagnostic.severity for diagnostic in found]
