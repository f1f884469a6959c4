"""`koi_lang.compiler.formatter`: one layout, reached in one step, and the meaning of a program untouched by it."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from koi_lang.compiler.formatter import format_source
from koi_lang.compiler.parser import parse
from koi_lang.diagnostics import CompileError
from koi_lang.source import Source

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = [
    str(path.relative_to(ROOT))
    for folder in ("examples", "stdlib_skills", "tests/koi", "tests/compiled", "tests/data")
    for path in sorted((ROOT / folder).rglob("*.koi"))
    if not parse(Source("", path.read_text("utf-8")))[1]
]


def formatted(text: str) -> str:
    """A program laid out, which must not change when it is laid out again."""
    once = format_source(Source("a.koi", text))
    assert once == format_source(Source("a.koi", once))
    return once


@pytest.mark.sampled(60)
@pytest.mark.parametrize("path", PROGRAMS)
def test_programs_of_the_repository(path: str) -> None:
    """Every program keeps its meaning, which the formatter itself compares, and is laid out in one step."""
    assert formatted((ROOT / path).read_bytes().decode("utf-8-sig")).endswith("\n")


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
