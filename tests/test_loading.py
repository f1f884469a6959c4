"""Modules that lend names of others: nothing is loaded before it is asked for, and types say the same as tables."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from koi_lang import resources
from koi_lang.lazy import lazy_module, on_demand
from koi_lang.program import late

LENDING = sorted(path for path in resources.PACKAGE.rglob("*.py") if "= on_demand(" in path.read_text("utf-8"))


def test_a_module_is_loaded_with_the_first_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody asks for is not executed; what is asked for is the thing itself."""
    for name in ("lent_early", "lent_never"):
        (tmp_path / f"{name}.py").write_text(f"{name}_value = object()\n", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    lend = on_demand("shop", {"lent_early": ("lent_early_value",), "lent_never": ("lent_never_value",)})

    value = lend("lent_early_value")

    assert value is sys.modules.pop("lent_early").lent_early_value
    assert "lent_never" not in sys.modules


def test_a_lazy_module_is_loaded_with_the_first_attribute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is executed before something of it is asked for; then it is the thing itself."""
    (tmp_path / "lazy_shop.py").write_text("value = object()\n", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)

    shop = lazy_module("lazy_shop")

    assert "lazy_shop" not in sys.modules
    assert shop.value is sys.modules.pop("lazy_shop").value


def test_other_names_are_unknown() -> None:
    """A name that is not lent is none of the module, as Python and its tools expect it."""
    with pytest.raises(AttributeError, match=r"^module `koi_lang\.program\.late` has no `nothing`$"):
        late.__getattr__("nothing")

    assert not hasattr(late, "nothing")


@pytest.mark.parametrize("path", LENDING, ids=lambda path: path.relative_to(resources.PACKAGE).as_posix())
def test_types_say_what_is_lent(path: Path) -> None:
    """The imports for type checkers and the table of a module name the same things in the same places."""
    (branch,) = (node for node in ast.parse(path.read_bytes()).body if isinstance(node, ast.If))

    assert sorted(told(branch.body)) == sorted(lent(branch.orelse))


def told(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    """Modules and names of the imports of a block, each lent under its own name."""
    for node in body:
        assert isinstance(node, ast.ImportFrom)
        for alias in node.names:
            assert alias.asname == alias.name, "a name is lent as it is"
            yield str(node.module), alias.name


def lent(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    """Modules and names of the table in `__getattr__ = on_demand(__name__, {…})`."""
    (assigned,) = body
    assert isinstance(assigned, ast.Assign)
    assert isinstance(assigned.value, ast.Call)
    for place, names in ast.literal_eval(assigned.value.args[1]).items():
        yield from ((place, name) for name in names)
