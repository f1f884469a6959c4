"""What was recorded is looked up in one place: other code asks `RecordedRun`, and knows no modes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import koi_lang

PACKAGE = Path(koi_lang.__file__).parent
INSIDE = ("runtime/replay/", "runtime/journal/")
# How what was recorded, what is done with it, and whether it counts, is called there.
PRIVATE = frozenset({"past", "has_diverged", "on_missing", "on_different", "reopens_limits", "is_same_run"})
MODES = frozenset({"resume", "branch", "replay"})


def outside(words: Iterable[str]) -> Iterator[tuple[str, ast.AST]]:
    """All nodes of the other modules that have one of some words, each with the path of its module."""
    has_word = re.compile(rf"\b(?:{'|'.join(words)})\b").search
    for file in sorted(PACKAGE.rglob("*.py")):
        path, text = file.relative_to(PACKAGE).as_posix(), file.read_text("utf-8")
        if not path.startswith(INSIDE) and has_word(text):
            for node in ast.walk(ast.parse(text)):
                yield path, node


def names_in(node: ast.AST) -> set[str]:
    """The names that a node has by itself."""
    return {value for field in ("attr", "id", "arg") if isinstance(value := getattr(node, field, None), str)}


def test_what_was_recorded_is_known_to_replay_and_journal_only() -> None:
    """`past`, and whether the program has left it, is no name of any other module."""
    assert [] == [(path, node.lineno) for path, node in outside(PRIVATE) if PRIVATE & names_in(node)]  # type: ignore[attr-defined]


def test_no_other_code_asks_for_a_mode() -> None:
    """What a resumed run, a branch and a replay do differently is a policy; nobody compares a mode."""
    compared = [
        (path, node.lineno)
        for path, node in outside(["mode"])
        if isinstance(node, ast.Compare)
        and any(isinstance(side, ast.Attribute) and side.attr == "mode" for side in (node.left, *node.comparators))
        and any(isinstance(side, ast.Constant) and side.value in MODES for side in (node.left, *node.comparators))
    ]

    assert [] == compared


def test_what_is_only_inspected_is_kept_from_the_world_in_one_place() -> None:
    """Whatever goes out of a program is an effect, or a call of Python; nobody else asks whether it is executed."""
    word = re.compile(r"(?<![.\w])require_execution\b")
    asking = {path for path, _ in outside(["require_execution"]) if word.search((PACKAGE / path).read_text("utf-8"))}

    assert {"js/environment.py"} == asking
