"""What programs are compiled to, and how the generated Python is laid out."""

from __future__ import annotations

import ast
import dis
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

import pytest

from koi_lang.compiler.printer.module_text import lay_out, write_module
from koi_lang.program import build
from koi_lang.program.files import absolute
from tests.projects import Project
from tests.shapes import code

FOLDER = Path(__file__).parent / "compiled"
PROGRAMS = sorted(FOLDER.glob("*.koi"))


def stem_of(path: Path) -> str:
    """A program's name."""
    return path.stem


def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a program's module."""
    return build.syntax_trees(str(path))[0][absolute(str(path))]


@pytest.mark.parametrize("path", PROGRAMS, ids=stem_of)
def test_module(path: Path, accept: bool) -> None:
    """A program is compiled to the module that stands beside it."""
    text = write_module(tree_of(path))
    golden = path.with_suffix(".py")

    if accept:
        golden.write_text(text, "utf-8")

    assert golden.read_text("utf-8") == text


@pytest.mark.parametrize("path", PROGRAMS, ids=stem_of)
def test_a_module_has_readable_lines(path: Path) -> None:
    """No line of a generated module is longer than an editor shows."""
    lines = write_module(tree_of(path)).split("\n")

    assert [line for line in lines if len(line) > 110] == []


@pytest.mark.parametrize("path", PROGRAMS, ids=stem_of)
def test_layout_keeps_the_syntax_tree(path: Path) -> None:
    """The readable module is the same program as the one Python writes."""
    tree = tree_of(path)

    assert ast.dump(ast.parse(write_module(tree))) == ast.dump(ast.parse(ast.unparse(tree)))


def test_the_same_program_gives_the_same_bytes(project: Project) -> None:
    """Nothing about a module depends on the order of hashes in the compiling process."""
    script = """
        import sys
        from koi_lang.program import build as building
        from koi_lang.compiler.printer.module_text import write_module
        for path in sys.stdin.read().split():
            tree, = [tree for file, tree in building.syntax_trees(path)[0].items() if file.endswith(path)]
            print(write_module(tree))
        """
    stdin = "\n".join(map(str, PROGRAMS))

    first, second = (project.fork_python(script, stdin=stdin, PYTHONHASHSEED=seed) for seed in ("1", "2"))

    assert (first.stderr, len(first.stdout) > 1000, first.stdout) == ("", True, second.stdout)


LONG = "a_rather_long_name_for_a_value"


@pytest.mark.parametrize(
    "text",
    [
        f"f({LONG}, {LONG}, {LONG}, {LONG})",
        f"f(lambda a, b: {LONG}, {LONG}, lambda: [{LONG}, {LONG}])",
        f"x = ({LONG} + {LONG} + {LONG} + {LONG})[{LONG}]",
        f"x = y[{LONG}, {LONG}, {LONG}, {LONG}]",
        f"x = {{'a, b': {LONG}, \"it's ({{\": [{LONG}], **{LONG}, 'c': {LONG}}}",
        f"return_ = {LONG} if f({LONG}) else g({LONG}, x) if {LONG} else h()({LONG})",
        f"f({LONG} if f({LONG}) else g({LONG}), [{LONG} if {LONG} else {LONG}])",
        f"def f(a, b={LONG}, *c, d={LONG}, e={LONG}, g={LONG}) -> {LONG}:\n    pass",
        f"class A(b.C, d={LONG}, e={LONG}, g={LONG}):\n    x = 1\n    def f(self):\n        pass\n    y = 2",
        f"async def f():\n    return await g(await h({LONG}, {LONG}), (i := {LONG}), k={LONG})",
        f"def f():\n    nonlocal {LONG}, {LONG}2\n    a, b = g({LONG}, {LONG}, {LONG}, ())",
        "x = 'one line\\nand another one that is long enough'",
        'x = \'a \\\\ """ \\t \\r \\x00 \\ud800 "quoted"\\nand a "last""\'.strip()',
        "f('first\\nline of a text that goes on', 'second\\nline of a text that goes', 'å🙂\\nline of a third text')",
        f"f('one line\\nand the same text once more', {LONG}, {LONG}, 'one line\\nand the same text once more')",
        "f('one line\\nthat holds the \"next\" text', 'the \"next\" text', 'å🙂', '\\nå🙂 is a text that is long')",
        "def f():\n    '''A docstring\n\n    of (lines, with), brackets'''\n    def g():\n        pass\n    x = 1",
        f"def f():\n    '''A docstring\n\n    ({LONG}, {LONG}, {LONG}, {LONG})'''\n    return 1",
        "if a:\n    def f():\n        pass\nelif b:\n    import c\n    def g():\n        pass\nelse:\n    x = 1",
        "try:\n    def f():\n        pass\nexcept E:\n    def g():\n        pass\nfinally:\n    x = 1",
    ],
)
def test_layout_keeps_any_syntax_tree(text: str) -> None:
    """Whatever is broken, it stays the same program."""
    tree = ast.dump(ast.parse(text))

    assert ast.dump(ast.parse(lay_out(ast.unparse(ast.parse(text))))) == tree


def test_layout_of_a_long_text_before_a_definition() -> None:
    """A text of several lines in a decorator, above the first line of its function, is written on them."""
    text = "class A:\n\n    @on('the first line of a long text\\nand its second line')\n    def f():\n        pass"

    assert lay_out(text).split("\n") == [
        "class A:",
        '    @on("""the first line of a long text',
        'and its second line""")',
        "    def f():",
        "        pass",
    ]


def test_layout() -> None:
    """Definitions have blank lines around them, long lines one item a line, texts of several lines triple quotes."""
    text = (
        "'''Doc.'''\nimport a\nx = 1\n\n@d\ndef f():\n    y = 1\n\n    def g():\n        pass\n    return y\nz = 2\n"
        f"f({LONG}, [{LONG}, {LONG}], lambda a, b: {LONG})\nt = 'first line of a text\\nand the second of it'"
    )

    assert lay_out(text).split("\n") == [
        "'''Doc.'''",
        "",
        "import a",
        "",
        "x = 1",
        "",
        "",
        "@d",
        "def f():",
        "    y = 1",
        "",
        "    def g():",
        "        pass",
        "",
        "    return y",
        "",
        "",
        "z = 2",
        "f(",
        f"    {LONG},",
        f"    [{LONG}, {LONG}],",
        f"    lambda a, b: {LONG},",
        ")",
        't = """first line of a text',
        'and the second of it"""',
    ]


def functions_of(code: CodeType) -> Iterator[CodeType]:
    """A piece of code and all functions in it."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from functions_of(each)


def test_a_loop_jumps_back_unconditionally(tmp_path: Path) -> None:
    """Python 3.11 makes no function faster whose loops end with a conditional jump back."""
    path = tmp_path / "loop.koi"
    path.write_text(code("let x = 0\nwhile (x < args.n) x++\ndo x-- while (x > args.n)\nreturn x"), "utf-8")
    compiled = functions_of(build.built(str(path)).code)
    jumps = {step.opname for each in compiled for step in dis.get_instructions(each) if "BACKWARD" in step.opname}

    assert {"JUMP_BACKWARD"} <= jumps <= {"JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"}
