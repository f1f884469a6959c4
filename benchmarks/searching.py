"""A project of many files to the CPU time of searching it without a helper: usual patterns, and hard ones."""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from pathlib import Path

from benchmarks.measuring import Figure, repeat
from benchmarks.workspace import RULES
from koi_lang.std.code.project_files import list_files
from koi_lang.std.code.searching import SearchRequest, grep

FILES, BYTES = 10_000, 6_000
# What is there nowhere, so that all of it is searched, in forms that models write.
PATTERNS = {
    "a word": "handle_request",
    "an expression": r"def\s+\w+_handler\(",
    "a beginning": r"^\s*import .*zzz",
    "one of several": "zqxj|qzvk|xqjw",
    "what stands apart": r"(?<!self\.)\w+Error\((?!x)",
}


def figures(folder: Path) -> list[Figure]:
    """Time of searching all files for each pattern, and of listing them."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        root = Path(name).resolve()
        _write_files(root)
        listed = repeat(3, lambda: _list_s(root))
        searched = {
            title: repeat(3, lambda pattern=pattern: _search_s(root, pattern)) for title, pattern in PATTERNS.items()
        }
    found = [Figure("CPU of listing 10,000 files", 1, listed, "s")]
    return found + [Figure(f"… searching 60 MB for {title}", 2, values, "s") for title, values in searched.items()]


def _repeat_search(root: Path, pattern: str) -> list[float]:
    return repeat(3, lambda: _search_s(root, pattern))


def _write_files(root: Path) -> None:
    chance = random.Random(1)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(chance.choices(letters, k=chance.randint(2, 9))) for _ in range(2000)]
    words += ["self", "def", "import", "return", "if"] * 50
    (root / ".gitignore").write_text(RULES)
    pages = [_page(chance, words) for _ in range(200)]
    for number in range(FILES):
        path = root / f"package{number % 50}" / f"module{number // 50 % 10}" / f"file{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {number}\n{pages[number % len(pages)]}")


def _page(chance: random.Random, words: list[str]) -> str:
    lines: list[str] = []
    while sum(map(len, lines)) < BYTES - 200:
        indent, end = chance.choice(("", "    ", "        ")), chance.choice(("", "(", "):", " = 5"))
        lines.append(indent + " ".join(chance.choices(words, k=chance.randint(0, 12))) + end + "\n")
    return "".join(lines)


def _list_s(root: Path) -> float:
    start_s = time.process_time()
    if asyncio.run(list_files(root, "**"))["count"] != FILES + 1:
        raise AssertionError("not all files are listed")
    return time.process_time() - start_s


def _search_s(root: Path, pattern: str) -> float:
    start_s = time.process_time()
    if asyncio.run(grep(root, SearchRequest(pattern)))["count"]:
        raise AssertionError("something is found that is not there")
    return time.process_time() - start_s
