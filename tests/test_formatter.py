"""`koi_lang.compiler.formatter`: one layout, reached in one step, and the meaning of a program untouched by it."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path
from random import Random
from textwrap import dedent

import pytest

from koi_lang.compiler.formatter import format_source, is_same_tree
from koi_lang.compiler.formatter.pieces import read_pieces
from koi_lang.compiler.lalr import parse_tokens
from koi_lang.compiler.parser import parse
from koi_lang.diagnostics import CompileError
from koi_lang.source import Source
from tests.differential.engines import koi_program
from tests.differential.generate import programs

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = [
    str(path.relative_to(ROOT))
    for folder in ("examples", "stdlib_skills", "tests/koi", "tests/compiled", "tests/data")
    for path in sorted((ROOT / folder).rglob("*.koi"))
]


def formatted(text: str) -> str:
    """A program laid out, which must not change when it is laid out again."""
    once = format_source(Source("a.koi", text))
    assert once == format_source(Source("a.koi", once))
    return once


@pytest.mark.sampled(25)
@pytest.mark.parametrize("path", PROGRAMS)
def test_programs_of_the_repository(path: str) -> None:
    """Every program keeps its meaning, which the formatter itself compares, and is laid out in one step."""
    assert formatted((ROOT / path).read_bytes().decode("utf-8-sig")).endswith("\n")


@pytest.mark.parametrize("folder", ["examples", "stdlib_skills"])
def test_programs_that_people_read_are_formatted(folder: str) -> None:
    """`koi fmt --check examples stdlib_skills` has nothing to say."""
    texts = {path.name: path.read_text("utf-8") for path in (ROOT / folder).rglob("*.koi")}

    assert [] == [name for name, text in texts.items() if format_source(Source(name, text)) != text]


def test_the_page_shows_what_the_formatter_does() -> None:
    """Each program of the page before is followed by the same program laid out."""
    page = (ROOT / "docs" / "formatting.md").read_text("utf-8")
    programs = re.findall(r"^```koi\n(.*?)^```", page, re.MULTILINE | re.DOTALL)

    assert programs[1::2] == [formatted(text) for text in programs[::2]]
    assert programs


def insert_comments(text: str, random: Random, every: int) -> str:
    """A program with comments at some of the boundaries between its tokens."""
    written, end = [], 0
    tree = parse_tokens(text)
    assert tree is not None
    for number, piece in enumerate(read_pieces(text, tree)):
        shape = random.choice(("/* {} */ ", "// {}\n", "\n// {}\n", "\n/* {}\n  more */\n"))
        comment = shape.format(number) if random.randrange(every) == 0 else ""
        written += [text[end : piece.start], comment, text[piece.start : piece.end]]
        end = piece.end
    return "".join(written)


def respace(text: str, random: Random, every: int) -> str:
    """A program with other blanks between some of its tokens."""
    written, end = [], 0
    tree = parse_tokens(text)
    assert tree is not None
    for piece in read_pieces(text, tree):
        gap = text[end : piece.start]
        is_changed = gap and not gap.strip() and random.randrange(every) == 0
        written += [random.choice((" ", "  ", "\n", "\n\n\n", "\t", "\r\n")) if is_changed else gap]
        written.append(text[piece.start : piece.end])
        end = piece.end
    return "".join(written)


def comments(text: str) -> list[str]:
    """The comments of a program in their order, without their blanks."""
    tree = parse_tokens(text)
    assert tree is not None
    return ["".join(comment.text.split()) for piece in read_pieces(text, tree) for comment in piece.comments]


@pytest.mark.sampled(7)
@pytest.mark.parametrize("path", PROGRAMS)
def test_comments_and_blanks_anywhere(path: str) -> None:
    """Each comment is there once and in order, whatever it stands between; blanks that change nothing are no matter."""
    random, text = Random(path), (ROOT / path).read_bytes().decode("utf-8-sig")
    program = parse(Source("", text))[0]
    for change, every in ((insert_comments, 20), (insert_comments, 100), (respace, 10), (respace, 50)):
        changed = change(text, random, every)
        read, problems = parse(Source("", changed))
        if not problems and is_same_tree(program, read):
            assert comments(changed) == comments(formatted(changed))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(100))
def test_generated_programs(seed: int) -> None:
    """Generated programs, with types and without, keep their meaning and are laid out in one step."""
    text = koi_program(list(islice(programs(seed), 2)))

    assert formatted(text).count("agent A") == 1


def test_imports_of_files_keep_their_order() -> None:
    """Parts of the standard library that stand together are sorted; the order of other imports has a meaning."""
    text = 'import "std/text"\nimport "std/csv"\nimport "./b.koi"\nimport "./a.koi"\n\nimport "std/a"\n'

    assert formatted(text) == text.replace('"std/text"\nimport "std/csv"', '"std/csv"\nimport "std/text"')


def test_texts_stay_byte_for_byte() -> None:
    """The lines of a text keep their blanks and line ends, which a model is told; only its last quotes are moved."""
    text = 'prompt A = """\r\n   one \r\n two\t\n      """\r\n'

    assert formatted(text) == 'prompt A = """\r\n   one \r\n two\t\n"""\r\n'


def test_a_program_is_laid_out() -> None:
    """Blanks, indentation and line ends are those of the layout, wherever the person has put them."""
    text = """
    role   Worker{can execute,can   delegate}
    agent Adder:Worker{
    on add( args:{a:number,b:number} ){
    const sum=args.a+args.b ; if(sum>3){console.log( sum )}
    else return -sum
    }}
    """

    assert formatted(text) == dedent("""\
        role Worker { can execute, can delegate }
        agent Adder : Worker {
          on add(args: { a: number, b: number }) {
            const sum = args.a + args.b;
            if (sum > 3) { console.log(sum) } else return -sum
          }
        }
        """)


def test_a_program_with_errors_is_refused() -> None:
    """What cannot be read has no layout."""
    with pytest.raises(CompileError, match="E0"):
        format_source(Source("a.koi", "agent A : R { on x( { } }"))
