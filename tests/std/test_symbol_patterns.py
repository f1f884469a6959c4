"""Lines that look like declarations, in the languages that are known by patterns."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from koi_lang.std.code.outlines import pattern_symbols

SAMPLES = Path(__file__).parents[1] / "data" / "outlines"
LANGUAGES = {
    "box.ts": [
        ("Box", "class", 5, ""),
        ("constructor", "method", 7, "Box"),
        ("get", "method", 11, "Box"),
        ("Shape", "interface", 15, ""),
        ("Key", "type", 17, ""),
        ("load", "function", 18, ""),
        ("LIMIT", "variable", 20, ""),
        ("go", "function", 21, ""),
    ],
    "box.go": [
        ("Box", "struct", 3, ""),
        ("Key", "type", 6, ""),
        ("Get", "method", 8, "Box"),
        ("main", "function", 11, ""),
        ("limit", "variable", 13, ""),
    ],
    "box.rs": [
        ("Box", "struct", 1, ""),
        ("Box", "impl", 3, ""),
        ("get", "method", 4, "Box"),
        ("MAX", "variable", 7, ""),
        ("Kind", "enum", 8, ""),
        ("tests", "mod", 9, ""),
        ("works", "method", 10, "tests"),
        ("twice", "macro", 12, ""),
    ],
    "Box.java": [("Box", "class", 3, ""), ("Box", "method", 6, "Box"), ("get", "method", 10, "Box")],
    "box.c": [
        ("LIMIT", "macro", 2, ""),
        ("box", "struct", 3, ""),
        ("get", "function", 6, ""),
        ("main", "function", 12, ""),
    ],
    "box.rb": [
        ("Shop", "module", 1, ""),
        ("Box", "class", 2, "Shop"),
        ("LIMIT", "constant", 3, "Box"),
        ("get?", "method", 4, "Box"),
        ("make", "method", 6, "Box"),
    ],
    "box.md": [
        ("Title", "heading", 1, ""),
        ("Use", "heading", 8, "Title"),
        ("Deep", "heading", 9, "Use"),
        ("More", "heading", 14, "Title"),
    ],
}


@pytest.mark.parametrize("name", LANGUAGES)
def test_lines_that_look_like_declarations(name: str) -> None:
    """Names are told with their kind, and with what stands around them; comments and calls are none."""
    given = pattern_symbols(Path(name).suffix[1:], (SAMPLES / name).read_text(), lambda: None)

    assert LANGUAGES[name] == [(each.name, each.kind, each.line, each.inside) for each in given]


ALMOST = ("a " * 150, "public " * 40, "(" * 300, "const x: " + "=" * 290, "impl<" * 60, "a<b," * 75, "*" * 300)


@pytest.mark.parametrize("ending", ["ts", "java", "c", "rs", "go", "rb", "md"])
@pytest.mark.parametrize(
    "line", ["a " * 150, "public " * 40, "(" * 300, "const x: " + "=" * 290, "impl<" * 60, "a<b," * 75, "*" * 300]
)
def test_patterns_take_bounded_time(ending: str, line: str) -> None:
    """Lines that almost fit do not make a pattern search for long."""
    start_s = time.process_time()
    pattern_symbols(ending, f"{line}\n" * 200, lambda: None)

    assert time.process_time() - start_s < 2
