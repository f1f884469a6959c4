"""A file of 5,000 lines to the CPU time of an edit of it, from its bytes to its bytes."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.measuring import Figure, repeat
from koi_lang.std.code.changing import unified_diff
from koi_lang.std.code.editing import apply_diff, replace_piece
from koi_lang.std.code.line_changes import EditedText
from koi_lang.std.code.text_files import decode_file, encode_file

LINES = [f"    value_{number} = compute({number})  # of {number % 7}" for number in range(5000)]
DATA = "\r\n".join(LINES).encode()
PLACES = (9, 2500, 4990)


def figures(folder: Path) -> list[Figure]:
    """Time of replacing a piece, of a diff as tools write it, and of one with slips, each with its preview."""
    exact = "".join(_hunk(at, f"@@ -{at + 1},3 +{at + 1},3 @@", LINES) for at in PLACES)
    shifted = "".join(_hunk(at, "@@", [line.strip() for line in LINES]) for at in PLACES)
    piece = repeat(9, lambda: _edit_s(lambda text: replace_piece(text, LINES[4000], "    y = 1")))
    plain = repeat(9, lambda: _edit_s(lambda text: apply_diff(text, exact)))
    slips = repeat(9, lambda: _edit_s(lambda text: apply_diff(text, shifted)))
    return [
        Figure("CPU of replacing a piece in 5,000 lines", 0.05, piece, "s"),
        Figure("CPU of a diff of 3 hunks in 5,000 lines", 0.05, plain, "s"),
        Figure("CPU of one without numbers and indentation", 0.05, slips, "s"),
    ]


def _hunk(at: int, header: str, lines: list[str]) -> str:
    new = lines[at + 1].replace("value", "other")
    return f"{header}\n {lines[at]}\n-{lines[at + 1]}\n+{new}\n {lines[at + 2]}\n"


def _edit_s(change: Callable[[str], EditedText]) -> float:
    start_s = time.process_time()
    file = decode_file(DATA, "x")
    edit = change(file.text)
    encode_file(file, edit, "x")
    unified_diff(file.text, edit.text, "x")
    return time.process_time() - start_s
