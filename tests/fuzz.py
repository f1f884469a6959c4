"""Good programs to broken ones: whatever is read, only diagnostics come out.

Runs for long with `python -m tests.fuzz --minutes 10 --seed 1`; what fails is written to `fuzz-failure.koi`.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from koi_lang.compiler.parser import parse
from koi_lang.diagnostics import render
from koi_lang.source import Source, decode
from tests.support import HERE, diagnostics_of_text

Mutator = Callable[[Random, str], str]
MUTATORS: list[Mutator] = []
WORD = re.compile(r"\w+|\s+|.", re.DOTALL)
MARKS = [
    *"(){}[]<>+-*/%=!?:;,.\"'`\\$&|^~#@",
    '"""',
    "'''",
    "${",
    "=>",
    "?.",
    "...",
    "//",
    "/*",
    "*/",
    "\\u{",
    "mcp://a/b",
]
WORDS = (
    "agent role team skill prompt mcp run import on private state playbook affordance uses needs llm async function"
    " export const let var if else for of in while try catch finally throw return await send timeout use new"
    " typeof delete break continue null true 0 1e999 0x1 5s args this compose fragments def class and ähm"
)
# What the programs import.
OTHERS = {"other.koi": "role Other { can execute }", "tools.py": "", "rules.md": "Be brief."}
STRANGE = [
    "\0",
    "\ufeff",
    "\r\n",
    "\r",
    "\u2028",
    "\u00a0",
    "\u200b",
    "“",
    "\U0001f600",
    "\x1b",
    "\t",
    "\f",
    "\v",
    "\x85",
]


def mutator(change: Mutator) -> Mutator:
    """Enter a function into the table of mutators."""
    MUTATORS.append(change)
    return change


@mutator
def delete(random: Random, text: str) -> str:
    """Leave out a word or mark."""
    pieces = WORD.findall(text)
    del pieces[random.randrange(len(pieces))]
    return "".join(pieces)


@mutator
def duplicate(random: Random, text: str) -> str:
    """Write a stretch twice."""
    start, end = _stretch(random, text)
    return text[:end] + text[start:end] + text[end:]


@mutator
def swap(random: Random, text: str) -> str:
    """Exchange two words or marks."""
    pieces = WORD.findall(text)
    first, second = random.randrange(len(pieces)), random.randrange(len(pieces))
    pieces[first], pieces[second] = pieces[second], pieces[first]
    return "".join(pieces)


@mutator
def insert(random: Random, text: str) -> str:
    """Write a mark, a word or a strange character somewhere."""
    at = random.randrange(len(text) + 1)
    pieces: list[str] = random.choice((MARKS, WORDS.split(), STRANGE))
    piece = random.choice(pieces)
    blank = random.choice(("", " ", "\n"))
    return text[:at] + blank + piece + blank + text[at:]


@mutator
def cut(random: Random, text: str) -> str:
    """Leave out a stretch."""
    start, end = _stretch(random, text)
    return text[:start] + text[end:]


@mutator
def end(random: Random, text: str) -> str:
    """Stop in the middle."""
    return text[: random.randrange(len(text) + 1)]


@mutator
def move(random: Random, text: str) -> str:
    """Put a stretch somewhere else."""
    start, end = _stretch(random, text)
    rest = text[:start] + text[end:]
    at = random.randrange(len(rest) + 1)
    return rest[:at] + text[start:end] + rest[at:]


@mutator
def change_bytes(random: Random, text: str) -> str:
    """Overwrite bytes of the file; what is then no text at all is left as it was."""
    data = bytearray(text.encode())
    for _ in range(random.randrange(1, 4)):
        data[random.randrange(len(data))] = random.randrange(256)
    try:
        return decode(bytes(data), "").text or text
    except UnicodeDecodeError:
        return text


@mutator
def change_lines(random: Random, text: str) -> str:
    """Use the line ends of another system, or none at the end."""
    ends = random.choice(("\r\n", "\r", "\n\n", " "))
    return random.choice((text.replace("\n", ends), text.rstrip("\n"), "\ufeff" + text))


def mutate(random: Random, text: str) -> str:
    """Change a program in one to four ways."""
    for _ in range(random.randrange(1, 5)):
        text = random.choice(MUTATORS)(random, text) or "x"
    return text


def check(text: str) -> int:
    """Read a program and show its problems in both forms; the number of problems. Raises what should never come out."""
    found = [*parse(Source("fuzz.koi", text))[1], *diagnostics_of_text(text, OTHERS)]
    for diagnostic in found:
        places = (diagnostic.place, *diagnostic.others)
        assert all(0 <= place.span.start <= place.span.end <= len(place.source.text) for place in places), diagnostic
        assert len(render(diagnostic).split("\n")) <= 4 + 2 * len(places)
        json.dumps(diagnostic.as_data())
    return len(found)


def seeds() -> list[str]:
    """Good programs: one that uses every construct, the golden ones, and the examples."""
    everything = HERE / "data" / "everything.koi"
    folders = (HERE / "data", HERE / "messages", HERE / "koi", HERE.parent / "examples", HERE.parent / "stdlib_skills")
    paths = [path for folder in folders for path in sorted(folder.rglob("*.koi")) if path != everything]
    return [path.read_text("utf-8") for path in (everything, *paths)]


def programs(seed: int) -> Iterator[str]:
    """Mutated programs without end, the same for the same seed."""
    random, originals = Random(seed), seeds()
    while True:
        original = originals[0] if random.random() < 0.5 else random.choice(originals)
        yield mutate(random, original)


def _stretch(random: Random, text: str) -> tuple[int, int]:
    start = random.randrange(len(text))
    return start, min(len(text), start + random.choice((1, 5, 40, 300)))


def main(arguments: list[str] | None = None) -> int:
    """Check mutated programs for some minutes; 1 when one of them brought out something other than diagnostics."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    until, count = time.monotonic() + options.minutes * 60, 0
    for text in programs(options.seed):
        try:
            check(text)
        except BaseException:
            Path("fuzz-failure.koi").write_bytes(text.encode("utf-8", "surrogatepass"))
            print(f"program {count} of seed {options.seed} fails; it is in fuzz-failure.koi", file=sys.stderr)
            raise
        count += 1
        if time.monotonic() > until:
            break
    print(f"{count} programs, seed {options.seed}: nothing but diagnostics")
    return 0


if __name__ == "__main__":
    sys.exit(main())
