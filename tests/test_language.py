"""The page that teaches the language: it tells every name, and what it calls absent is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from koi_lang.compiler.build import RESERVED
from koi_lang.compiler.rules.agents import RESILIENCE
from koi_lang.js.globals import GLOBALS
from koi_lang.runtime.actions.lookup import all_actions
from tests.support import must_not_compile

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "language.md").read_text("utf-8")
ABSENT = (
    "class A { }", "interface A { }", "enum A { B }",
    "yield 1",
    "const x = (args, 1)", "with (args) { }", "f`text`",
    "const n = 10n", "const list = [1, , 3]", "debugger", "type A = number",
    "const x = 1\nexport const y = 1", 'import x from "y"', 'require("fs")',
    "new Proxy({}, {})", "Symbol()", "new WeakMap()", "window.alert()", 'eval("1")',
    'new Function("1")', "f = () => arguments", "const ü = 1", "const $x = 1",
)  # fmt: skip


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
