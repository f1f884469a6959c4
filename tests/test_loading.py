"""Lazy imports: nothing is loaded before it is used, and type checkers see what programs get."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Event, Thread

import pytest

from koi_lang import extensions
from koi_lang.lazy import lazy_module, lazy_names
from koi_lang.program import loader
from koi_lang.system import resources
from tests.projects import Project

LAZY = sorted(
    path for path in resources.PACKAGE.rglob("*.py") if "from koi_lang.lazy import lazy_" in path.read_text("utf-8")
)


def test_a_module_is_loaded_with_the_first_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lazy module executes nothing until something of it is asked for, and gives the thing itself."""
    (tmp_path / "lent_module.py").write_text("value = object()\n", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    lent_module = lazy_module("lent_module")
    assert "lent_module" not in sys.modules

    value = lent_module.value

    assert value is sys.modules.pop("lent_module").value
    with pytest.raises(AttributeError, match=r"^module 'lent_module' has no attribute 'nothing'$"):
        _ = lent_module.nothing


def test_a_package_lends_names_of_its_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody asks for is not executed."""
    for name in ("lent_early", "lent_never"):
        (tmp_path / f"{name}.py").write_text(f"{name}_value = object()\n", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    lend = lazy_names("shop", {"lent_early": ("lent_early_value",), "lent_never": ("lent_never_value",)})

    value = lend("lent_early_value")

    assert value is sys.modules.pop("lent_early").lent_early_value
    assert "lent_never" not in sys.modules


def test_threads_wait_for_a_program_that_is_being_loaded(project: Project) -> None:
    """Whoever is first loads it, and nobody is given a part of it; files that import each other are loaded, too."""
    project.write("slow.py", "import time\ntime.sleep(0.05)\ndef f(): return 1\n")
    project.write("b.koi", 'import "./a.koi"\nrole R { can execute }')
    main = 'import "./slow.py"\nimport "./b.koi"\nrole W { can execute }\nagent Main : W { on x() {} }'
    path = project.write("a.koi", main)
    together = Barrier(8)

    def load() -> bool:
        together.wait()
        return hasattr(loader.load(str(path)), "Main")

    with ThreadPoolExecutor(8) as threads:
        loaded = [threads.submit(load) for _ in range(8)]

    assert [True] * 8 == [each.result() for each in loaded]


def test_other_names_are_unknown() -> None:
    """A name that is not lent is none of the package, as Python and its tools expect it."""
    with pytest.raises(AttributeError, match=r"^module `koi_lang\.extensions` has no `nothing`$"):
        extensions.__getattr__("nothing")

    assert not hasattr(extensions, "nothing")


@pytest.mark.parametrize("path", LAZY, ids=lambda path: path.relative_to(resources.PACKAGE).as_posix())
def test_types_say_what_is_lent(path: Path) -> None:
    """What a module has by lazy imports is what it imports for type checkers, under the same names."""
    branches = [node for node in ast.parse(path.read_bytes()).body if isinstance(node, ast.If) and node.orelse]

    assert branches
    assert [] == [each for node in branches for each in lent(node.orelse) if each not in {*imported(node.body)}]


def imported(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    """The names that the imports of a block bind, each with what it stands for."""
    for node in body:
        for alias in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
            where = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            yield alias.asname or alias.name, where + alias.name


def lent(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    """The names that lazy imports of a block bind, each with what it stands for."""
    for target, call in (pair for node in body for pair in assigned(node)):
        assert isinstance(call, ast.Call)
        given = [ast.literal_eval(argument) for argument in call.args if not isinstance(argument, ast.Name)]
        if ast.unparse(call.func) == "lazy_module":
            yield ast.unparse(target), given[0]
        else:
            yield from ((name, f"{place}.{name}") for place, names in given[0].items() for name in names)


def assigned(node: ast.stmt) -> list[tuple[ast.expr, ast.expr]]:
    """The targets of an assignment, each with its value."""
    assert isinstance(node, ast.Assign)
    if isinstance(node.value, ast.Tuple) and isinstance(node.targets[0], ast.Tuple):
        return list(zip(node.targets[0].elts, node.value.elts, strict=True))
    return [(node.targets[0], node.value)]


def test_modules_are_listed_while_others_import() -> None:
    """A thread that imports meanwhile does no harm."""
    is_over = Event()

    def import_much() -> None:
        while not is_over.is_set():
            for number in range(500):
                sys.modules[f"koi_test_{number}"] = sys
            for number in range(500):
                del sys.modules[f"koi_test_{number}"]

    thread = Thread(target=import_much)
    thread.start()
    try:
        for _ in range(300):
            loader.loaded_modules()
    finally:
        is_over.set()
        thread.join()
