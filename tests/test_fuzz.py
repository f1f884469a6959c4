"""Whatever is read, only diagnostics come out, and soon. `python -m tests.fuzz` does the same for longer."""

from __future__ import annotations

import gc
from itertools import islice
from time import process_time

import pytest
from lark import Lark

from koi_lang.compiler.build import Builder
from koi_lang.compiler.parser import parse
from koi_lang.source import Source, decode
from koi_lang.system import resources
from tests.fuzz import check, programs, seeds
from tests.shapes import LONG, NESTED, ROWS, Shape, code

SEED = 20_260
PROGRAMS = 10
# Building and loading take longer than small programs; below this many seconds no ratio is looked at.
FLOOR_S = 0.05
# Characters of the shorter of two programs.
LENGTH = 2_500
SHAPES = NESTED | LONG | ROWS


def seconds(text: str) -> float:
    """How long it takes to read a program, without collecting what the tests before it have left."""
    gc.disable()
    try:
        begin = process_time()
        parse(Source("shape.koi", text))
        return process_time() - begin
    finally:
        gc.enable()


def grows_too_fast(grow: Shape) -> bool:
    """Whether four times the text takes more than eight times as long."""
    count = LENGTH // (len(grow(101)) - len(grow(100)))
    long = seconds(grow(4 * count))
    return long > 8 * FLOOR_S and long > 8 * seconds(grow(count))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(SEED, SEED + 20))
def test_mutated_programs_give_diagnostics(seed: int) -> None:
    """No change to a good program brings out anything but diagnostics."""
    assert all(check(text) >= 0 for text in islice(programs(seed), PROGRAMS))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("shape", NESTED)
def test_deep_nesting_gives_diagnostics(shape: str) -> None:
    """Ten thousand levels are read, or said to be too many; the interpreter survives both."""
    _, problems = parse(Source("deep.koi", NESTED[shape](10_000)))

    assert len(problems) <= 1


@pytest.mark.parametrize("length", [50_000, pytest.param(1_000_000, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("shape", LONG)
def test_one_long_word_gives_diagnostics(shape: str, length: int) -> None:
    """Long names, texts and comments bring out nothing but diagnostics."""
    assert check(LONG[shape](length)) >= 0


@pytest.mark.sampled(8)
@pytest.mark.parametrize("shape", SHAPES)
def test_time_grows_with_length(shape: str) -> None:
    """Four times the text takes about four times as long, never sixteen times."""
    # Another look, since the first one may read the grammar, or share its core with others.
    assert not grows_too_fast(SHAPES[shape]) or not grows_too_fast(SHAPES[shape])


@pytest.mark.parametrize("ends", ["\r\n", "\n"], ids=["CRLF", "LF"])
def test_line_ends_and_a_mark_at_the_start_change_nothing(ends: str) -> None:
    """A file from another system reads like one from this one."""
    text = seeds()[0]

    source = decode(b"\xef\xbb\xbf" + text.replace("\n", ends).rstrip().encode(), "test.koi")

    assert parse(source)[1] == []
    assert len(parse(source)[0].declarations) == len(parse(Source("test.koi", text))[0].declarations)


@pytest.mark.parametrize("data", [b"\xff\xfe", b"role \xc3", b"\x80", b"role A { can \xed\xa0\x80 }"])
def test_bytes_that_are_no_text_are_refused(data: bytes) -> None:
    """What is not UTF-8 never reaches the parser."""
    with pytest.raises(UnicodeDecodeError):
        decode(data, "test.koi")


def test_the_first_seed_uses_every_rule() -> None:
    """The program that most mutations start from has every construct of the grammar."""
    lark = Lark(resources.grammar().read_text("utf-8"), parser="lalr", start="program", maybe_placeholders=True)
    used = {str(tree.data) for tree in lark.parse(seeds()[0]).iter_subtrees()}
    rules = {str(rule.alias or rule.origin.name) for rule in lark.rules if rule.alias or not rule.options.expand1}

    assert {name for name in rules & set(dir(Builder)) if name not in used} == set()


def test_nesting_beyond_the_limit_is_said_with_its_place() -> None:
    """A pattern that is nested too deeply has a message at its innermost bracket."""
    text = code(f"const f = ({'[' * 5000}a{']' * 5000}) => 1")

    _, problems = parse(Source("deep.koi", text))

    assert [("E0104", text.index("a]") - 1)] == [(problem.code, problem.place.span.start) for problem in problems]
