"""Errors of running programs show the lines and columns of the `.koi` files they went through."""

from __future__ import annotations

import asyncio
import re
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import pytest

from koi_lang.js.errors import ErrorValue, Thrown, TypeErrorValue
from koi_lang.program.error_report import causes, explain, message
from koi_lang.runtime.run import Run
from koi_lang.runtime.services import Services
from tests.projects import Project


async def main_of(module: ModuleType) -> None:
    """A program's `run` statements, without any model."""
    async with Run(Services(connect=_no_model)):
        await module.main()


def _no_model(settings: object) -> NoReturn:
    raise AssertionError(f"a code-only program asks for a model: {settings}")


def failure(module: ModuleType) -> Exception:
    """What a program fails with."""
    try:
        asyncio.run(main_of(module))
    except Exception as error:  # the subject of these tests
        return error
    raise AssertionError("the program ended well")


def handler(*lines: str, more: str = "") -> str:
    """A program whose only handler has these lines, the first one is line 4."""
    body = "\n".join(lines)
    opening = "role Worker { can execute }\nagent Main : Worker {\non start(args: Json) {\n"
    return f"{opening}{body}\n}} }}\n{more}\nrun Main.start({{}})"


def frames(error: Exception) -> list[tuple[str, int, str]]:
    """File name, line and marked text of every `.koi` frame, outermost first, as Python's own traceback has them."""
    found = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.endswith(".koi")]
    return [(Path(frame.filename).name, frame.lineno or 0, _marked(frame)) for frame in found]


def _marked(frame: traceback.FrameSummary) -> str:
    """The text at a frame's position, from the bytes of the file; of several lines the first."""
    text = Path(frame.filename).read_bytes().decode("utf-8-sig").split("\n")[(frame.lineno or 1) - 1].rstrip("\r")
    end = frame.end_colno if frame.end_lineno == frame.lineno else None
    return text.encode()[frame.colno : end].decode()


@pytest.mark.parametrize(
    ("lines", "marked"),
    [
        (['throw new Error("x")'], (4, 'throw new Error("x")')),
        (["const a = null", "return 1 + a.b.c"], (5, "a.b")),
        (["", "    args.missing.at(0)"], (5, "args.missing.at(0)")),
        (["const list = [1,", "  2, args.a.b", "]"], (5, "args.a.b")),
        (["if (args.a.b) { return 1 }"], (4, "args.a.b")),
        (["for (const x of 5) { }"], (4, "for (const x of 5) { }")),
        (["const f = 1", "await f(2, 3)"], (5, "f(2, 3)")),
        (["const { a } = null"], (4, "{ a }")),
        (["args.a.b = 3"], (4, "args.a.b = 3")),
        (["const s = `x ${args.a.b} y`"], (4, "args.a.b")),
        (["throw 1", "// after"], (4, "throw 1")),
    ],
)
def test_a_failure_is_marked(project: Project, lines: Sequence[str], marked: tuple[int, str]) -> None:
    """The innermost frame has the line and the columns of the expression that failed."""
    error = failure(project.load("main.koi", handler(*lines)))

    assert frames(error)[-1] == ("main.koi", *marked)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('const s = "🙂å"; args.a.b()', 4),
        ("\tconst s = 1;\targs.a.b()", 4),
        ("/* 🙂🙂 */ args.a.b()", 4),
        ("// über\r\n\r\n  args.a.b()\r", 6),
        ("\n  'å' + args.a.b()", 5),
    ],
)
def test_columns_count_characters_of_any_width(project: Project, text: str, line: int) -> None:
    """Wide characters, tabs and line ends of Windows before an expression do not move its mark."""
    path = project.folder / "main.koi"
    path.write_bytes(handler(text).encode())

    error = failure(project.load_file(path))

    assert frames(error)[-1] == ("main.koi", line, "args.a.b()")


def test_a_byte_order_mark_moves_nothing(project: Project) -> None:
    """A mark at the start of the file counts neither as a line nor as a column."""
    path = project.folder / "main.koi"
    path.write_bytes(b"\xef\xbb\xbf" + handler("throw 1").encode())

    error = failure(project.load_file(path))

    assert frames(error)[-1] == ("main.koi", 4, "throw 1")


def test_frames_of_every_kind(project: Project) -> None:
    """An error on its way through arrows, skills, other files and Python leaves a frame in each `.koi` file."""
    project.write("bridge.py", "async def call(f):\n    return await f(1)\n")
    project.write(
        "parts.koi",
        """
        import bridge from "./bridge.py"
        skill Parts {
          export async function through(f: any): Promise<any> {
            return await bridge.call(f)
          }
        }
        """,
    )
    lines = ["await through(async x =>", "  [x].map(y =>", "    y.z.at(0)))"]
    module = project.load("main.koi", 'import "./parts.koi" ' + handler(*lines))

    assert frames(failure(module)) == [
        ("main.koi", 9, "run Main.start({})"),
        ("main.koi", 4, "await through(async x =>"),
        ("parts.koi", 4, "await bridge.call(f)"),
        ("main.koi", 5, "[x].map(y =>"),
        ("main.koi", 6, "y.z.at(0)"),
    ]


def test_an_error_is_explained_with_its_callers(project: Project) -> None:
    """The message shows the failed expression first, then the calls that led to it."""
    more = "skill Parts { export function half(n: number): number {\n\treturn n.nothing.at(0)\n} }"
    module = project.load("main.koi", handler('const s = "🙂"; [1].map(n => half(n))', more=more))

    assert explain(failure(module)).replace(str(project.folder), "…") == (
        "error: TypeError: Cannot read properties of undefined (reading 'at') [E0500]\n"
        " --> …/main.koi:7:9\n"
        "  |\n"
        "7 |  return n.nothing.at(0)\n"
        "  |         ^^^^^^^^^^^^^^^ in `half`\n"
        '4 | const s = "🙂"; [1].map(n => half(n))\n'
        "  |                              ^^^^^^^\n"
        '4 | const s = "🙂"; [1].map(n => half(n))\n'
        "  |                 ^^^^^^^^^^^^^^^^^^^^^ in `Main.start`\n"
        "9 | run Main.start({})\n"
        "  | ^^^^^^^^^^^^^^^^^^"
    )


def test_functions_have_the_names_of_the_program(project: Project) -> None:
    """Where Python needs another name, an error is told with the one in the program, and `stack` has no own calls."""
    lines = ["const foo = () => { return 1 }", "if (foo()) { const foo = () => { return args.x.y }", "[1].map(foo) }"]

    error = failure(project.load("main.koi", handler(*lines)))

    assert "in `foo`" in explain(error)
    assert "foo_2" not in explain(error)
    assert isinstance(error, ErrorValue)
    assert ["foo", "start", "main"] == re.findall(r"at (\w+) \(\S+main\.koi:", str(error.stack))
    assert "runtime" not in str(error.stack)


def test_an_error_without_koi_lines_is_explained_plainly() -> None:
    """What never was in a program has a message and no place."""
    assert explain(ValueError("out of range")) == "error: ValueError: out of range"


def test_an_error_in_a_group_is_explained_itself(project: Project) -> None:
    """Of errors that Python has grouped, the first one is shown."""
    error = failure(project.load("main.koi", handler('throw new Error("inner")')))

    shown = explain(ExceptionGroup("several", [ExceptionGroup("more", [error]), ValueError("other")]))

    assert shown == explain(error)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ErrorValue("it broke"), "it broke"),
        (ErrorValue(""), "no message"),
        (TypeErrorValue("wrong kind"), "TypeError: wrong kind"),
        (Thrown("a text"), "a text"),
        (Thrown({"code": 4, "why": "it"}), "{ code: 4, why: 'it' }"),
        (ValueError("bad"), "ValueError: bad"),
        (NameError("cannot access free variable 'x'"), "ReferenceError: Cannot access 'x' before initialization"),
        (KeyError(), "KeyError: no message"),
        (RecursionError("maximum recursion depth exceeded"), "the program calls itself too deeply"),
    ],
)
def test_messages(error: Exception, told: str) -> None:
    """An `Error` is told by its message, other errors with their names, any other value as it would be printed."""
    assert told == message(error)


def test_a_failing_run_ends_with_a_message(project: Project) -> None:
    """`koi run` tells what went wrong and where, never with a traceback, and ends with 1."""
    project.write("main.koi", handler('console.log("before")', 'throw new Error("it broke")'))

    outcome = project.koi("run", "main.koi")

    first, place, *_ = outcome.stderr.splitlines()
    assert (outcome.returncode, outcome.stdout, first) == (1, "before\n", "error: it broke [E0500]")
    assert place == " --> main.koi:5:1"
    assert "Traceback" not in outcome.stderr


def test_debugging_a_run_shows_the_traceback_of_python(project: Project) -> None:
    """`koi run --debug` prints Python's traceback, with the frames and marks of the `.koi` file."""
    project.write("main.koi", handler('  const s = "x".y.z'))

    outcome = project.koi("run", "--debug", "main.koi")

    path = project.folder / "main.koi"
    frame = f'  File "{path}", line 4, in start\n    const s = "x".y.z\n              ^^^^^^^\n'
    assert (outcome.returncode, "Traceback (most recent call last):\n" in outcome.stderr) == (1, True)
    assert frame in outcome.stderr


@pytest.mark.parametrize(
    ("code", "first", "marked"),
    [
        ('Promise.reject(new Error("no"))', "error: no [E0500]", 'Promise.reject(new Error("no"))'),
        ('this.handle(args.x ?? "nope")', "error: `Main` has no handler for `nope`", 'this.handle(args.x ?? "nope")'),
        ('new Promise((done, fail) => setTimeout(() => fail("late"), 1))', "error: late", 'fail("late")'),
        ('new Promise(done => { throw new Error("at once") })', "error: at once", 'throw new Error("at once")'),
    ],
    ids=["rejected", "handled", "later", "thrown"],
)
def test_what_nobody_waited_for_has_a_place(project: Project, code: str, first: str, marked: str) -> None:
    """A promise that fails without anybody waiting for it is explained with the place where that came from."""
    shown = explain(failure(project.load("main.koi", handler(f"  {code}")))).splitlines()

    assert shown[0].startswith(first)
    assert [f"4 |   {code}", marked] == [shown[3], shown[3][shown[4].index("^") : shown[4].rindex("^") + 1]]


def test_calls_of_itself_are_told_once(project: Project) -> None:
    """A place that was passed several times is shown once, with how often; who called first stays visible."""
    module = project.load("main.koi", handler("const down = n => n ? down(n - 1) : args.x.y", "return down(5)"))

    shown = explain(failure(module)).splitlines()

    marks = [line.partition("^ ")[2] for line in shown if "^ " in line]
    assert ["in `down`", "in `down`, 5 times", "in `Main.start`"] == marks


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
def test_too_many_calls_have_advice(project: Project) -> None:
    """A function that never stops calling itself is told in a few lines, with what to do."""
    module = project.load("main.koi", handler("const f = n => 1 + g(n)", "const g = n => f(n)", "return f(1)"))

    shown = explain(failure(module)).splitlines()

    assert "error: the program calls itself too deeply [E0500]" == shown[0]
    assert sum(" times" in line for line in shown) == 2
    assert "  = help: see that one of these calls ends without another one, or write a loop." == shown[-1]


def test_causes_are_told(project: Project) -> None:
    """Below the place stands what an error names as its cause, and the cause of that; a circle is told once."""
    lines = (
        'const inner = new TypeError("no tea", { cause: { kettle: "cold" } })',
        'throw new Error("no breakfast", { cause: inner })',
    )
    circle = ErrorValue("round")
    circle.cause = ErrorValue("and round", circle)

    shown = explain(failure(project.load("main.koi", handler(*lines)))).splitlines()

    assert ["  = cause: TypeError: no tea", "  = cause: { kettle: 'cold' }"] == shown[-2:]
    assert ["and round"] == list(causes(circle))


def test_an_unanswered_fetch_says_why(project: Project) -> None:
    """A program that ends because nobody answered tells whom it asked, and why there was no answer."""
    module = project.load("main.koi", handler('await fetch("http://127.0.0.1:9/tea")'))

    shown = explain(failure(module)).splitlines()

    assert "error: TypeError: fetch failed [E0500]" == shown[0]
    assert "  = cause: http://127.0.0.1:9/tea: nothing listens there" == shown[-1]


def test_a_missing_python_module_names_the_command_that_installs_it() -> None:
    """A module that is not installed where the program runs is told with what to do, by the name of its package."""
    missing = ModuleNotFoundError("No module named 'yaml.nodes'", name="yaml.nodes")

    assert "help: install it: `pip install PyYAML`." in explain(missing)
