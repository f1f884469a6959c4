"""Koi programs as Python modules, and Python modules in Koi programs."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import math
import pydoc
import sys
import traceback
import typing
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

import pytest

import koi_lang
from koi_lang.diagnostics import CompileError
from koi_lang.program.error_report import explain
from koi_lang.runtime.schema import of_function
from tests.limits import LIMIT_S
from tests.projects import Project

MATHOPS = """
    skill MathOps {
      affordance "Sums and waits."
      const base = 10
      export function add(a: number, b: number = 1): number { return a + b + base }
      export async function later(ms: number): Promise<number> {
        await new Promise(resolve => setTimeout(resolve, ms))
        return add(ms)
      }
      export function echo(value: any): any { return value }
      export function nothing(): void { }
      export function gaps(): Json { return [1, undefined, { a: undefined, b: null }] }
      export function rest(first: string, ...others: any): any { return others }
      export function total(...numbers: number[]): number { return numbers.reduce((a, b) => a + b, 0) }
      export function collected(): any { return { at: new Date(0), prices: new Map([["tea", 2]]), seen: new Set([1]) } }
      export function each(items: Json, change: any): Json { return items.map(change) }
      export function fail(text: string): void {
        throw new Error(text)
      }
      export function endless(n: number): number { return endless(n + 1) + 1 }
      export async function early(waits: boolean): any {
        const read = () => value
        if (waits) await null
        const before = read()
        const value = 1
        return before
      }
      export function settled(): Json { return { a: 4 / 2, b: 0.5, c: "x", d: [true] } }
    }
    """


@pytest.fixture
def mathops(project: Project) -> ModuleType:
    """A module with one skill."""
    return project.load("mathops.koi", MATHOPS)


@pytest.fixture
def importing(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A folder from which Python imports, with `.koi` files; everything is as before afterwards."""
    monkeypatch.syspath_prepend(str(project.folder))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    koi_lang.install()
    return project


# ---------------------------------------------------------------- importing


def test_an_installed_import_hook_finds_koi_files(importing: Project) -> None:
    """`import name` gives the module of `name.koi`."""
    importing.write("mathops.koi", MATHOPS)

    module = importlib.import_module("mathops")

    assert asyncio.run(module.add(1, 2)) == 13


def test_koi_files_can_stand_in_packages(importing: Project) -> None:
    """A module inside of a package is imported by its dotted name and knows where it is."""
    importing.write("pack/__init__.py", "")
    importing.write("pack/deep/mathops.koi", MATHOPS)

    module = importlib.import_module("pack.deep.mathops")

    assert (module.__name__, module.__package__) == ("pack.deep.mathops", "pack.deep")


def test_relative_imports_find_koi_files(importing: Project) -> None:
    """A Python module imports a Koi module of its own package with a dot."""
    importing.write("pack/__init__.py", "from .mathops import add\n")
    importing.write("pack/mathops.koi", MATHOPS)

    package = importlib.import_module("pack")

    assert asyncio.run(package.add(5)) == 16


def test_python_files_go_first(importing: Project) -> None:
    """Where both exist, `name.py` is what Python would have imported without the hook."""
    importing.write("both.koi", MATHOPS)
    importing.write("both.py", "chosen = 'python'\n")

    assert importlib.import_module("both").chosen == "python"


def test_installing_twice_changes_nothing(importing: Project) -> None:
    """There is one finder, however often the hook is installed."""
    before = list(sys.meta_path)

    koi_lang.install()

    assert before == sys.meta_path


def test_imported_and_loaded_modules_are_the_same(importing: Project) -> None:
    """`import` and `koi_lang.load` share one module with one set of variables."""
    path = importing.write("mathops.koi", MATHOPS)

    assert importlib.import_module("mathops") is koi_lang.load(str(path))


def test_a_missing_module_is_the_usual_error(importing: Project) -> None:
    """The hook leaves names it does not find to Python."""
    with pytest.raises(ModuleNotFoundError, match="No module named 'nowhere_to_be_found'"):
        importlib.import_module("nowhere_to_be_found")


def test_a_broken_program_does_not_stay_half_imported(importing: Project) -> None:
    """After a compile error the corrected file can be imported."""
    path = importing.write("mathops.koi", "skill MathOps {")
    with pytest.raises(CompileError, match=r"error: .*\n *--> .*mathops\.koi:1:"):
        importlib.import_module("mathops")

    path.write_text(MATHOPS, "utf-8")

    assert asyncio.run(importlib.import_module("mathops").add(1)) == 12


def test_reloading_reads_the_changed_file(importing: Project) -> None:
    """`importlib.reload` compiles the file again and keeps the module."""
    importing.write("mathops.koi", MATHOPS)
    module = importlib.import_module("mathops")
    importing.write("mathops.koi", MATHOPS.replace("base = 10", "base = 100"))

    again = importlib.reload(module)

    assert (module, 102) == (again, asyncio.run(module.add(1)))


def test_importing_runs_nothing(project: Project) -> None:
    """A program whose `run` would fail can be imported."""
    module = project.load(
        "failing.koi",
        """
        role Worker { can execute }
        agent Failing : Worker { on start(args: Json) { throw new Error("it ran") } }
        run Failing.start({})
        """,
    )

    assert inspect.iscoroutinefunction(module.main)


def test_load_starts_beside_a_file(project: Project) -> None:
    """With `beside`, a relative path begins in the folder of that file."""
    path = project.write("parts/mathops.koi", MATHOPS)

    module = koi_lang.load("./mathops.koi", beside=str(project.folder / "parts" / "other.py"))

    assert module.__file__ == path.as_posix()


# ---------------------------------------------------------------- functions of skills, called from Python


def test_exported_functions_are_coroutine_functions(mathops: ModuleType) -> None:
    """Functions are async for Python, whether they are declared so or not."""
    assert [inspect.iscoroutinefunction(function) for function in (mathops.add, mathops.later)] == [True, True]


def test_help_shows_a_function(mathops: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """`help()` knows the name, the parameters with types and defaults, and the description of the skill."""
    monkeypatch.setitem(sys.modules, "mathops", mathops)

    shown = pydoc.plain(pydoc.render_doc(mathops.add))

    assert shown == (
        "Python Library Documentation: function add in module mathops\n\n"
        "async add(a: float, b: float = 1) -> float\n"
        "    Sums and waits.\n"
    )


def test_help_shows_an_undescribed_agent(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """`help()` does not read the source of a program as Python, where an agent has no `affordance`."""
    module = project.load(
        "plain.koi",
        "role W { can execute }\nagent A : W { on go(args) { return 1 } on come() { } }\nagent B : W { }\n",
    )
    monkeypatch.setitem(sys.modules, "plain", module)

    shown = pydoc.plain(pydoc.render_doc(module))

    assert "The agent `A`, which handles `go`, `come`." in shown
    assert "The agent `B`, which handles nothing." in shown
    assert module.A.about.affordance == ""


def test_help_shows_a_module(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """`help()` lists what a program exports."""
    module = project.load("tiny.koi", 'skill Tiny { affordance "Small." export function one(): number { return 1 } }')
    monkeypatch.setitem(sys.modules, "tiny", module)

    shown = pydoc.plain(pydoc.render_doc(module))

    assert shown == (
        "Python Library Documentation: module tiny\n\n"
        "NAME\n    tiny - Compiled from tiny.koi.\n\n"
        "FUNCTIONS\n    async one() -> float\n        Small.\n\n"
        "DATA\n    Tiny = [Skill: Tiny]\n\n"
        f"FILE\n    {module.__file__}\n\n"
    )


def test_annotations_are_python_types(mathops: ModuleType) -> None:
    """Declared types become annotations, a promised value that of the value."""
    assert inspect.get_annotations(mathops.later) == {"ms": float, "return": float}
    assert inspect.get_annotations(mathops.nothing) == {"return": None}
    assert inspect.get_annotations(mathops.echo) == {"value": Any, "return": Any}


@pytest.mark.parametrize("value", [None, True, 7, 0.5, "å🙂", [1, [2]], {"a": {"b": None}}])
def test_ordinary_values_pass_unchanged(mathops: ModuleType, value: object) -> None:
    """Python's own values go in and come out as they are."""
    assert asyncio.run(mathops.echo(value)) is value


def test_results_are_ordinary_values(mathops: ModuleType) -> None:
    """Numbers, texts, lists and objects made in Koi are those of Python."""
    result = asyncio.run(mathops.settled())

    assert (dict, {"a": 2, "b": 0.5, "c": "x", "d": [True]}) == (type(result), result)


def test_undefined_is_none(mathops: ModuleType) -> None:
    """Python never sees undefined, neither as a result nor inside of one."""
    assert asyncio.run(mathops.nothing()) is None
    assert asyncio.run(mathops.gaps()) == [1, None, {"a": None, "b": None}]


def test_arguments_follow_the_rules_of_python(mathops: ModuleType) -> None:
    """Keywords, defaults and rest parameters work as in any Python function."""
    calls = [mathops.add(1), mathops.add(1, b=2), mathops.add(b=5, a=1), mathops.rest("a", 1, 2)]

    assert [asyncio.run(call) for call in calls] == [12, 13, 16, [1, 2]]


def test_rest_parameters_have_the_type_of_each_value(mathops: ModuleType) -> None:
    """Python annotates one value of the rest, and models are asked for a list of them."""
    assert float is inspect.get_annotations(mathops.total)["numbers"]
    assert {"type": "array", "items": {"type": "number"}} == of_function(mathops.total)["properties"]["numbers"]
    assert {"type": "array"} == of_function(mathops.rest)["properties"]["others"]


def test_dates_and_collections_can_be_made_plain(mathops: ModuleType) -> None:
    """They come as objects of Koi, as the manual says."""
    result = asyncio.run(mathops.collected())

    assert datetime(1970, 1, 1, tzinfo=UTC) == datetime.fromisoformat(result["at"].iso())
    assert ({"tea": 2}, {1}) == (dict(result["prices"].entries()), set(result["seen"]))


@pytest.mark.parametrize(
    ("arguments", "named", "message"),
    [
        ((), {}, "add() missing 1 required positional argument: 'a'"),
        ((1, 2, 3), {}, "add() takes from 1 to 2 positional arguments but 3 were given"),
        ((1,), {"c": 2}, "add() got an unexpected keyword argument 'c'"),
        ((1,), {"a": 2}, "add() got multiple values for argument 'a'"),
    ],
)
def test_wrong_arguments_are_the_usual_error(
    mathops: ModuleType, arguments: tuple[int, ...], named: dict[str, int], message: str
) -> None:
    """A call that does not fit is Python's TypeError, with Python's words."""
    with pytest.raises(TypeError) as raised:
        asyncio.run(mathops.add(*arguments, **named))

    assert message == str(raised.value)


def test_python_functions_are_callbacks(mathops: ModuleType) -> None:
    """A Python function that is passed in is called with as many arguments as it takes."""
    assert asyncio.run(mathops.each([1, 2], lambda item: item * 10)) == [10, 20]
    assert asyncio.run(mathops.each(["a", "b"], lambda item, index: f"{item}{index}")) == ["a0", "b1"]


def test_calls_run_at_the_same_time(mathops: ModuleType) -> None:
    """Calls that wait do so together; results come in the order of the calls."""

    async def main() -> Any:
        async with asyncio.timeout(LIMIT_S):
            return await asyncio.gather(*(mathops.later(60 - ms) for ms in range(50)))

    assert asyncio.run(main()) == [60 - ms + 11 for ms in range(50)]


def test_errors_arrive_as_exceptions(mathops: ModuleType) -> None:
    """What Koi throws is an exception with its message, and its traceback shows the `.koi` line."""
    with pytest.raises(koi_lang.ProgramError, match=r"^it broke$") as raised:
        asyncio.run(mathops.fail("it broke"))

    assert raised.value.__cause__ is not None
    *_, last = traceback.extract_tb(raised.value.__cause__.__traceback__)
    assert (mathops.__file__, 17, "fail") == (last.filename, last.lineno, last.name)
    assert last.line == "throw new Error(text)"


@pytest.mark.parametrize(
    ("function", "argument", "told"),
    [
        ("endless", 1, "RangeError: Maximum call stack size exceeded"),
        ("early", False, "ReferenceError: Cannot access 'value' before initialization"),
        ("early", True, "ReferenceError: Cannot access 'value' before initialization"),
    ],
)
def test_errors_of_the_runtime_arrive_as_program_errors(
    function: str, argument: object, told: str, mathops: ModuleType
) -> None:
    """Those that Python raises by itself where the program is at fault are no errors of Python for its caller."""
    with pytest.raises(koi_lang.ProgramError) as raised:
        asyncio.run(getattr(mathops, function)(argument))

    assert told == raised.value.message


# ---------------------------------------------------------------- Python in Koi

STATS = '''
    """Python for Koi."""

    import asyncio
    import statistics
    from json import dumps


    class Empty(Exception):
        """There is nothing to compute with."""


    class Counter:
        """Counts."""

        def __init__(self, start=0):
            self.count = start

        def add(self, by=1):
            self.count += by
            return self.count


    def mean(values):
        if not values:
            raise Empty("no values")
        return sum(values) / len(values)


    async def later(value):
        await asyncio.sleep(0)
        return value


    async def call(function, value):
        return await function(value)


    def attempt(function):
        try:
            return function()
        except Exception as error:
            return f"{type(error).__name__} {error}"


    def median(values):
        return statistics.median(values)


    def numbers():
        yield from range(3)


    def named(first, *, second=0, **others):
        return [first, second, others]


    def strict(first, *, second=0):
        return [first, second]


    def render(data, more=None):
        return [data, more]
    '''


def result_of(project: Project, body: str) -> object:
    """What a function with this body returns, in a program that imports Python."""
    project.write("stats.py", STATS)
    module = project.load(
        "using.koi",
        f"""
        import stats from "./stats.py"
        import math from "python:math"
        import osPath from "python:os.path"
        import json from "python:json"
        import statistics from "python:statistics"
        import html from "python:html"
        import textwrap from "python:textwrap"
        import difflib from "python:difflib"
        import datetime from "python:datetime"
        skill Using {{ export async function result(): Json {{ {body} }} }}
        """,
    )
    return asyncio.run(module.result())


@pytest.mark.parametrize(
    ("body", "result"),
    [
        ("return stats.mean([1, 2, 6])", 3),
        ("return await stats.mean([1, 2, 6])", 3),
        ("return await stats.later([1])", [1]),
        ("return await Promise.all([stats.later(1), stats.later(2)])", [1, 2]),
        ("return [1, 2].map(math.sqrt)", [1, math.sqrt(2)]),
        ("return math.pi", math.pi),
        ('return osPath.join("a", "b")', "a/b"),
        ("const c = new stats.Counter(5); c.add(); return [c.add(3), c.count]", [9, 9]),
        ("const c = new stats.Counter(); c.count = 4; return c.count", 4),
        ("return new stats.Counter() instanceof stats.Counter", True),
        ("return [...stats.numbers()]", [0, 1, 2]),
        ("let sum = 0; for (const n of stats.numbers()) sum += n; return sum", 3),
        ("return await stats.call(async x => x + 1, 2)", 3),
        ("return typeof stats.mean", "function"),
        ("return stats.nothing === undefined", True),
        ("return stats.strict(1, { second: 5 })", [1, 5]),
        ("return [1, 2].map(stats.strict)", [[1, 0], [2, 0]]),
        ("return stats.named(1, { second: 5, third: 6 })", [1, 5, {"third": 6}]),
        ("return json.dumps([1], { indent: 1 })", "[\n 1\n]"),
        ("return json.dumps({ obj: 1 })", '{"obj": 1}'),
        ("return statistics.quantiles([1, 2, 3, 4], { n: 2 })", [2.5]),
        ("return math.isclose(1, 1.1, { rel_tol: 0.5 })", True),
        ("return math.prod([2, 3], { start: 10 })", 60),
        ("return html.escape('\"', { quote: false })", '"'),
        ("return html.escape('\"')", "&quot;"),
        ('return textwrap.fill("aaa bbb", { width: 3 })', "aaa\nbbb"),
        ('return textwrap.fill("aaa bbb", { width: 6, initial_indent: "> " })', "> aaa\nbbb"),
        ('return difflib.get_close_matches("ab", ["ab", "abc"], { n: 1 })', ["ab"]),
        ("return datetime.timedelta({ days: 2 }).days", 2),
        ("return datetime.date(2026, 1, 2).replace({ day: 5 }).day", 5),
        ("return stats.dumps([1], { indent: 0 })", "[\n1\n]"),
        ("return stats.render({ text: 1 }, { text: 2 })", [{"text": 1}, {"text": 2}]),
    ],
)
def test_koi_uses_python(project: Project, body: str, result: object) -> None:
    """Functions, coroutines, constants, classes and generators of Python are at hand in Koi."""
    assert result_of(project, body) == result


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("stats.mean()", "`values` of `mean` is missing"),
        ("new stats.Counter().add(1); await stats.call()", "`function` and `value` of `call` are missing"),
        ("stats.strict(1, { secnod: 5 })", "`strict` cannot be given `secnod` by name, only `second`"),
        ("math.prod([2], { begin: 1 })", "`prod` cannot be given `begin` by name, only `start`"),
        ("json.dumps([1], { nope: 1 })", "got an unexpected keyword argument 'nope'"),
    ],
)
def test_what_python_is_not_given(project: Project, body: str, message: str) -> None:
    """A missing argument, or one of a wrong name, is told before the function of a Python module runs."""
    with pytest.raises(Exception, match=f"{message}$"):
        result_of(project, body)


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("def median(values):\n    return statistics.median(values)", "half.py:4: return statistics.median(values)"),
        ("\nimport no_such_module", "half.py:4: import no_such_module"),
    ],
)
def test_the_place_in_python_is_told(project: Project, module: str, line: str) -> None:
    """An exception in an imported Python file is told with its own line there, also while the file is loaded."""
    project.write("half.py", f"import statistics\n\n{module}\n")
    source = 'import half from "./half.py"\nskill Using { export function result(): Json { return half.median([]) } }'

    with pytest.raises(Exception, match=r"no median|No module") as raised:
        asyncio.run(project.load("using.koi", source).result())

    assert f"  = cause: {line}" in explain(raised.value, str(project.folder)).splitlines()


def test_koi_catches_exceptions_of_python(project: Project) -> None:
    """A Python exception is an error with the name of its class and its message."""
    caught = "try { stats.mean([]) } catch (e) { return [e.name, e.message, e instanceof Error] }"

    assert result_of(project, caught) == ["Empty", "no values", True]


def test_koi_knows_exceptions_by_their_class(project: Project) -> None:
    """`instanceof` works with exception classes of Python."""
    caught = "try { stats.mean([]) } catch (e) { return [e instanceof stats.Empty, e instanceof stats.Counter] }"

    assert result_of(project, caught) == [True, False]


LEAVING = """
import sys
def leave(): sys.exit("bye")
def leave_quietly(): exit()
def close(): raise GeneratorExit
async def leave_later(): quit(3)
class Door:
    def __init__(self): sys.exit(4)
"""


@pytest.mark.parametrize(
    ("call", "raised"),
    [
        ("leave()", "SystemExit: bye"),
        ("leave_quietly()", "SystemExit"),
        ("close()", "GeneratorExit"),
        ("leave_later()", "SystemExit: 3"),
        ("Door()", "SystemExit: 4"),
    ],
)
def test_a_tool_does_not_end_the_run(project: Project, call: str, raised: str) -> None:
    """A Python function that ends the process fails instead, and the error says what to do."""
    project.write("tools.py", LEAVING)
    body = f"try {{ await tools.{call} }} catch (e) {{ return e.message }}"
    source = f'import tools from "./tools.py"\nskill S {{ export async function result(): Promise<Json> {{ {body} }} }}'

    message = asyncio.run(project.load("using.koi", source).result())

    assert f"`{call[:-2]}` has raised `{raised}`, with which a tool would end the whole run" == message


def test_exceptions_of_python_pass_through_koi(project: Project) -> None:
    """What Koi does not catch, or throws again, reaches Python as the exception it was."""
    with pytest.raises(Exception, match=r"^no values$") as raised:
        result_of(project, "try { stats.mean([]) } catch (e) { throw e }")

    assert type(raised.value).__name__ == "Empty"


def test_python_catches_errors_of_koi(project: Project) -> None:
    """An error thrown in Koi is an exception for Python code that called it."""
    body = 'return stats.attempt(() => { throw new TypeError("wrong kind") })'

    assert result_of(project, body) == "TypeErrorValue TypeError: wrong kind"


def test_mappings_of_python_keep_their_methods(project: Project) -> None:
    """A `Counter` is an object with its entries, and has the methods of its class beside them."""
    project.write("counting.py", "from collections import Counter\ndef count(words): return Counter(words)\n")
    module = project.load(
        "counts.koi",
        """
        import counting from "./counting.py"
        skill Counts {
          export function result(): Json {
            const counts = counting.count(["a", "b", "a", "total"])
            return [counts.a, counts.total, counts.most_common(1), counts.missing === undefined, Object.keys(counts)]
          }
        }
        """,
    )

    assert asyncio.run(module.result()) == [2, 1, [("a", 2)], True, ["a", "b", "total"]]


def test_python_files_import_their_neighbours(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python file that a program imports finds the modules beside it, as it does when Python runs it."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    project.write("neighbour_of_stats.py", "value = 7\n")
    project.write("using_neighbour.py", "import neighbour_of_stats\nvalue = neighbour_of_stats.value\n")
    module = project.load(
        "using.koi",
        """
        import using from "./using_neighbour.py"
        skill Using { export function result(): number { return using.value } }
        """,
    )

    assert asyncio.run(module.result()) == 7


def test_declared_types_are_classes_of_python(project: Project) -> None:
    """A declared object is a `TypedDict` of the module, and functions are annotated with it."""
    text = """
    type Finding = { line: int, severity: "blocker" | "note", inner?: Finding[] }
    skill Reviews { export function worst(findings: Finding[]): Finding | null { return findings[0] ?? null } }
    """
    module = project.load("reviews.koi", text)

    hints = typing.get_type_hints(module.Finding, vars(module))
    assert {
        "line": int,
        "severity": typing.Literal["blocker"] | typing.Literal["note"],
        "inner": list[module.Finding],
    } == hints
    assert {"line", "severity"} == module.Finding.__required_keys__
    assert {"findings": list[module.Finding], "return": module.Finding | None} == typing.get_type_hints(module.worst)
