"""`koi compile -o`: a Python module that works where it is put, and a source map back to the `.koi` file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.projects import Project

DIGITS = {c: i for i, c in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")}

PROGRAM = """
role Worker { can execute }
// 🙂 wide characters in a comment
agent Main : Worker {
  affordance "Does things."
  on start(args: Json) {
    const smile = "🙂🙂"; const total = smile + args.first
    for (const letter of total) console.log(letter, `🙂 ${args.second}`)
    const long = { aaaaaaaaaaaaaaa: args.third, bbbbbbbbbbbbbbbbbbb: args.fourth, ccccccccccccc: args.fifth, d: 1 }
    return args.last
  }
}
run Main.start({ sixth: 1 })
""".lstrip("\n")


class Mapping(NamedTuple):
    """Two places, both with lines and columns from 0."""

    line: int
    column: int
    source_line: int
    source_column: int


def decoded(mappings: str) -> Iterator[Mapping]:
    """The mappings of a source map, read as the format describes them."""
    source_line = source_column = 0
    for line, group in enumerate(mappings.split(";")):
        column = 0
        for segment in filter(None, group.split(",")):
            step, source, line_step, column_step = numbers(segment)
            assert source == 0
            column, source_line, source_column = column + step, source_line + line_step, source_column + column_step
            yield Mapping(line, column, source_line, source_column)


def numbers(segment: str) -> list[int]:
    """Base-64 digits of five bits with a mark for "goes on", lowest first, sign in the lowest bit of the whole."""
    found, value, shift = list[int](), 0, 0
    for character in segment:
        digit = DIGITS[character]
        value += (digit & 31) << shift
        shift += 5
        if not digit & 32:
            found.append(-(value >> 1) if value & 1 else value >> 1)
            value = shift = 0
    assert shift == 0
    return found


class Compiled(NamedTuple):
    """A compiled program: the generated lines and the map."""

    lines: list[str]
    document: dict[str, Any]


@pytest.fixture
def compiled(project: Project) -> Compiled:
    """The program above, written to another folder."""
    project.write("main.koi", PROGRAM)
    outcome = project.koi("compile", "main.koi", "-o", "out/deep/main.py")
    assert (outcome.returncode, outcome.stdout) == (0, ""), outcome.stderr
    text = (project.folder / "out/deep/main.py").read_text("utf-8")
    return Compiled(text.split("\n"), json.loads((project.folder / "out/deep/main.py.map").read_text("utf-8")))


def original(compiled: Compiled, generated: str) -> str:
    """The source text that a piece of generated text, which occurs once, is mapped to, to the end of the line."""
    found_in = [(n, text, text.index(generated)) for n, text in enumerate(compiled.lines) if generated in text]
    [(line, column)] = [(n, units(text[:index])) for n, text, index in found_in]
    before = [m for m in decoded(compiled.document["mappings"]) if (m.line, m.column) <= (line, column)]
    found = max(before, key=lambda mapping: (mapping.line, mapping.column))
    assert (found.line, found.column) == (line, column)
    wide = PROGRAM.split("\n")[found.source_line].encode("utf-16-le")
    return wide[2 * found.source_column :].decode("utf-16-le")


def units(text: str) -> int:
    """How many UTF-16 units a text takes: columns of source maps are counted in them."""
    return len(text.encode("utf-16-le")) // 2


@pytest.mark.parametrize(
    ("generated", "source"),
    [
        ("class Main(", "agent Main : Worker {"),
        ("smile = '", 'smile = "🙂🙂"; const total'),
        ("'🙂🙂'", '"🙂🙂"; const total'),
        ("total = ", "total = smile + args.first"),
        ("koi.get(args, 'first')", "args.first"),
        ("'first'", "first"),
        ("koi.get(args, 'second')", "args.second}`)"),
        ("for letter in", "for (const letter of total)"),
        ("koi.get(args, 'fifth')", "args.fifth, d: 1 }"),
        ("return koi.get(args, 'last')", "return args.last"),
        ("await koi.run(Main", "run Main.start("),
        ("'sixth'", "sixth: 1 })"),
    ],
)
def test_generated_code_is_mapped(compiled: Compiled, generated: str, source: str) -> None:
    """A piece of generated code leads to the line and column it was made from, in characters."""
    assert original(compiled, generated).startswith(source)


def test_the_map_names_its_files(compiled: Compiled) -> None:
    """The map is of version 3, and finds the source from where it stands."""
    document = {name: value for name, value in compiled.document.items() if name != "mappings"}

    assert document == {"version": 3, "file": "main.py", "sources": ["../../main.koi"], "names": []}


def test_mappings_are_ordered_and_inside_of_both_files(compiled: Compiled) -> None:
    """Every mapping names existing places, once, in the order of the generated text."""
    found = list(decoded(compiled.document["mappings"]))
    places = [(mapping.line, mapping.column) for mapping in found]
    source = PROGRAM.split("\n")

    assert places == sorted(set(places))
    assert all(m.column < len(compiled.lines[m.line]) for m in found)
    assert all(m.source_column <= len(source[m.source_line]) for m in found)


PARTS = {
    "parts/words.koi": 'import helper from "../lib/helper.py"\n'
    "skill Words { export function double(text: string): string { return helper.twice(text) } }",
    "lib/helper.py": "def twice(text):\n    return text * 2\n",
    "main.koi": 'import "./parts/words.koi"\nimport helper from "./lib/helper.py"\nimport path from "python:os.path"\n'
    "role Worker { can execute }\nagent Main : Worker { on start(args: Json) {\n"
    'console.log(double("a"), helper.twice("b"), path.basename("c/d")) } }\nrun Main.start({})',
}

RUN = """
    import asyncio
    import out
    from koi_lang.runtime.run import Run
    from koi_lang.runtime.services import Services

    async def main():
        async with Run(Services(connect=None)):
            await out.main()

    asyncio.run(main())
    """


@pytest.mark.parametrize("output", ["out.py", "elsewhere/deep/out.py", "../beside/out.py"])
def test_a_compiled_program_runs_from_its_place(project: Project, output: str) -> None:
    """The written module finds the Koi and Python files that the program imports, wherever it was put."""
    for name, text in PARTS.items():
        project.write(name, text)
    place = project.folder / output

    written = project.koi("compile", "main.koi", "-o", output)
    outcome = project.python(RUN, PYTHONPATH=f"{place.parent}:{Path(__file__).parents[1]}")

    assert (written.stderr, outcome.stderr, outcome.stdout) == ("", "", "aa bb d\n")


def test_compile_without_an_output_prints_the_module(project: Project) -> None:
    """`koi compile` alone writes to standard output what `-o` writes into a file beside the program."""
    project.write("main.koi", PARTS["main.koi"])
    project.write("parts/words.koi", PARTS["parts/words.koi"])
    project.write("lib/helper.py", PARTS["lib/helper.py"])

    shown = project.koi("compile", "main.koi").stdout
    project.koi("compile", "main.koi", "-o", "main_compiled.py")

    assert (project.folder / "main_compiled.py").read_text("utf-8").rstrip("\n") == shown.rstrip("\n")


def test_a_dash_as_the_output_is_standard_output(project: Project) -> None:
    """`-o -` prints the module and leaves no file called `-`."""
    project.write("main.koi", PROGRAM)

    shown = project.koi("compile", "main.koi", "-o", "-").stdout

    assert project.koi("compile", "main.koi").stdout == shown
    assert ["main.koi"] == [file.name for file in project.folder.iterdir() if not file.name.startswith(".")]
