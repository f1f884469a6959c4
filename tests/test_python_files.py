"""Python files that programs import by path: what stands beside them is theirs alone, and nothing is added later."""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
import traceback
from collections.abc import Iterator
from types import ModuleType

import pytest

import koi_lang
from koi_lang.program import build
from koi_lang.runtime.modules import python_neighbours
from tests.projects import Project

USING = """
    import tool from "./tool.py"
    skill Using { export function result(): Json { return tool.result() } }
    """


@pytest.fixture(autouse=True)
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test imports from its folder is forgotten again."""
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    before = set(sys.modules)
    yield
    for name in sys.modules.keys() - before:
        if not name.startswith("koi_lang."):
            del sys.modules[name]


def using(project: Project, tool: str) -> ModuleType:
    """The module of a program that imports `tool.py`."""
    project.write("tool.py", tool)
    return project.load("using.koi", USING)


def result(module: ModuleType) -> object:
    """What the function of the tool gives."""
    return asyncio.run(module.result())


IMPORTS = {
    "a module": "import side\ndef result():\n    return side.N",
    "later": "def result():\n    import side\n    return side.N",
    "by name": "import importlib\ndef result():\n    return importlib.import_module('side').N",
    "through a neighbour": "import through\ndef result():\n    return through.side.N",
    "a package": "import kit\ndef result():\n    return kit.N",
    "a module of a package": "import kit.deep.inner\ndef result():\n    return kit.deep.inner.N",
    "a folder without __init__": "from plain import inner\ndef result():\n    return inner.N",
    "a part of a package, later": "import kit\ndef result():\n    from kit import other\n    return other.N",
    "all parts of a package": "import kit\ndef result():\n    return kit.count()",
}


@pytest.mark.parametrize("tool", IMPORTS.values(), ids=IMPORTS.keys())
def test_a_file_imports_what_stands_beside_it(project: Project, tool: str) -> None:
    """Modules, packages and folders beside a file are imported as when Python runs it, at once and later."""
    project.write("side.py", "N = 7\n")
    project.write("through.py", "import side\n")
    count = "import importlib, pkgutil\ndef count():\n    found = pkgutil.iter_modules(__path__)\n"
    count += "    return sum(importlib.import_module(f'kit.{m.name}').N for m in found if m.name != 'deep')\n"
    project.write("kit/__init__.py", "from .other import N\n" + count)
    project.write("kit/other.py", "N = 7\n")
    project.write("kit/deep/__init__.py", "")
    project.write("kit/deep/inner.py", "from ..other import N\n")
    project.write("plain/inner.py", "N = 7\n")
    path = list(sys.path)

    assert result(using(project, tool)) == 7
    assert sys.path == path


def test_nobody_else_imports_from_the_folder(project: Project) -> None:
    """A library that tries an import finds nothing in the folder of a program, whatever lies there."""
    project.write("brotli_of_nobody.py", "raise SystemExit('executed')\n")
    project.write("socks_of_nobody/__init__.py", "raise SystemExit('executed')\n")
    using(project, "import json\ndef result():\n    return 1")

    for name in ("brotli_of_nobody", "socks_of_nobody"):
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(name)


@pytest.mark.parametrize(
    ("path", "statement"),
    [
        ("fresh.py", "import fresh"),
        ("fresh/__init__.py", "import fresh"),
        ("fresh/inner.py", "import fresh.inner"),
        ("kit/fresh.py", "import kit.fresh"),
        ("kit/fresh/inner.py", "import kit.fresh.inner"),
    ],
)
def test_what_comes_later_is_not_imported(project: Project, path: str, statement: str) -> None:
    """A file that is written while a program runs does not become a part of it."""
    project.write("kit/__init__.py", "")
    module = using(project, f"import kit\ndef result():\n    {statement}\n    return 'executed'")
    project.write(path, "raise SystemExit('executed')\n")

    with pytest.raises(ModuleNotFoundError, match="was not there yet when the program was loaded"):
        result(module)


def test_python_s_own_modules_go_first(project: Project) -> None:
    """A file that is called like an installed module does not take its place."""
    project.write("colorsys.py", "raise SystemExit('executed')\n")

    assert result(using(project, "import colorsys\ndef result():\n    return colorsys.__name__")) == "colorsys"


def test_a_file_imports_koi_files_beside_it(project: Project) -> None:
    """With the import hook `import name` in a Python file gives the `name.koi` beside it."""
    project.write("parts.koi", "skill Parts { export function double(n: number): number { return n * 2 } }")
    koi_lang.install()

    module = using(project, "import parts\nasync def result():\n    return await parts.double(4)")

    assert result(module) == 8


def test_tracebacks_name_the_files(project: Project) -> None:
    """A failure in a neighbour shows its file and line."""
    project.write("side.py", "# First\n\ndef fail():\n    raise KeyError('x')\n")
    module = using(project, "import side\ndef result():\n    return side.fail()")

    with pytest.raises(KeyError) as raised:
        result(module)

    frames = [(os.path.basename(frame.filename), frame.lineno) for frame in traceback.extract_tb(raised.tb)]
    assert [frame for frame in frames if frame[0] in ("tool.py", "side.py")] == [("tool.py", 3), ("side.py", 4)]


def test_coverage_and_the_debugger_know_the_files(project: Project) -> None:
    """coverage.py counts lines of a tool and of its neighbour, and pdb stops in both."""
    project.write("side.py", "def seven():\n    return 7\n")
    project.write("tool.py", "import side\ndef result():\n    return side.seven()\n")
    program = "role W { can execute }\nagent A : W { on go() { console.log(tool.result()) } }\nrun A.go()\n"
    project.write("main.koi", 'import tool from "./tool.py"\n' + program)

    covered = project.fork("-m", "coverage", "run", "--include=tool.py,side.py", "-m", "koi_lang", "run", "main.koi")
    report = project.fork("-m", "coverage", "report")
    stopped = project.fork(
        *("-m", "pdb", "-c", f"b {project.folder}/side.py:2", "-c", "c", "-c", "w", "-c", "q"),
        *("-m", "koi_lang", "run", "main.koi"),
    )

    assert covered.stdout == "7\n"
    assert "100%" in report.stdout.splitlines()[-1]
    assert "side.py(2)seven()" in stopped.stdout
    assert "tool.py(3)result()" in stopped.stdout


def test_pytest_runs_the_tests_of_a_tool(project: Project) -> None:
    """Tests beside a tool import it, its neighbours and the program that uses it."""
    project.write("side.py", "def seven():\n    return 7\n")
    project.write("tool.py", "import side\ndef result():\n    return side.seven()\n")
    project.write("using.koi", USING)
    project.write(
        "test_tool.py",
        """
        import asyncio, koi_lang
        koi_lang.install()
        import side, tool, using
        def test_all(): assert side.seven() == tool.result() == asyncio.run(using.result()) == 7
        """,
    )

    outcome = project.fork("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_tool.py")

    assert "1 passed" in outcome.stdout, outcome.stdout


def test_a_huge_folder_does_not_hold_up_the_start(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Links in circles and folders without end are looked at up to a number of names; what is near comes first."""
    monkeypatch.setattr(python_neighbours, "MAX_NAMES", 200)
    project.write("side.py", "N = 7\n")
    project.write("deep/here.py", "")
    for name in ("round", "about"):
        (project.folder / "deep" / name).symlink_to("..")

    assert result(using(project, "import side, deep.here\ndef result():\n    return side.N")) == 7
    assert len(python_neighbours.neighbours().files[str(project.folder.resolve())]) < 500


def printed(project: Project, name: str) -> list[str]:
    """What a program prints that is opened now."""
    said: list[str] = []
    koi_lang.run(project.folder / name, output=said.append, folder=project.folder, record=False)
    return said


@pytest.mark.parametrize("changed", ["tool.py", "side.py", "kit/inner.py"])
def test_a_program_that_is_opened_again_reads_changed_files(project: Project, changed: str) -> None:
    """The file that it imports, and those that this one imports; another program in the process sees them, too."""
    main = """
        import "./using.koi"
        role Worker { can execute }
        agent Main : Worker { on go(args: Json) { console.log(await result()) } }
        run Main.go({})
        """
    project.write("using.koi", USING)
    project.write("main.koi", main)
    project.write("other.koi", main)
    project.write("tool.py", "import side\ndef result():\n    return side.inner.N\n")
    project.write("side.py", "from kit import inner\n")
    project.write("kit/inner.py", "N = 7\n")
    before = [printed(project, name) for name in ("main.koi", "other.koi", "main.koi")]

    project.write(changed, "N = 11\nclass inner:\n    N = 11\ndef result():\n    return 11\n")

    assert [["7"]] * 3 == before
    assert [["11"]] * 2 == [printed(project, name) for name in ("main.koi", "other.koi")]


def test_files_that_have_not_changed_stay_loaded(project: Project) -> None:
    """A program that is opened again goes on with the Python modules that it has, and what they remember."""
    project.write("tool.py", "seen = []\ndef count():\n    seen.append(1)\n    return len(seen)\n")
    agent = "agent Main : R { on go(args: Json) { console.log(tool.count()) } }"
    project.write("main.koi", f'import tool from "./tool.py"\nrole R {{ can execute }}\n{agent}\nrun Main.go({{}})\n')

    assert [["1"], ["2"]] == [printed(project, "main.koi") for _ in range(2)]


def test_packages_above_a_part_are_not_executed(project: Project) -> None:
    """A part of a package, such as `kit/part`, is looked for in the folders of the package."""
    project.write("kit/__init__.py", "raise AssertionError")
    project.write("kit/part/__init__.py", "raise AssertionError")
    project.write("kit/part/index.koi", "skill Part { export function one() { return 1 } }")
    project.write("main.koi", 'import "kit/part"\nskill S { export function two() { return one() + 1 } }')

    done = project.koi("check", "main.koi", PYTHONPATH=f"{project.environment['PYTHONPATH']}:{project.folder}")

    assert (0, "main.koi: no problems\n") == (done.returncode, done.stderr)


@pytest.mark.parametrize(
    ("content", "reason", "help"),
    [
        (b"x = 1\ndef f(:\n", "invalid syntax", "correct line 2: `def f(:`."),
        (b"return 1\n", "'return' outside function", "correct line 1: `return 1`."),
        (b"x = '\xff'\n", "(unicode error) 'utf-8' codec can't decode", "correct line 1: `x = '"),
        (b"x = 1\0\n", "source code", "save it again as Python source."),
    ],
)
def test_a_file_that_is_no_python_is_a_problem_of_its_import(
    project: Project, content: bytes, reason: str, help: str
) -> None:
    """A check reads imported files as Python, without executing them."""
    (project.folder / "tool.py").write_bytes(content)
    problem, *more = build.check(str(project.write("using.koi", USING))).diagnostics

    assert ("E0118", "error", []) == (problem.code, problem.severity, more)
    assert problem.message.startswith(f"`./tool.py` cannot be read as Python: {reason}"), problem.message
    assert (problem.help or "").startswith(help), problem.help


def test_a_check_executes_no_python(project: Project) -> None:
    """Neither what a file does when it is imported nor what Python would warn of takes place."""
    project.write("tool.py", "pattern = '\\d'\nraise SystemExit('executed')\n")

    assert () == build.check(str(project.write("using.koi", USING))).diagnostics
