"""Programs that are nested deeply or have long chains: what `koi check` passes can be run."""

from __future__ import annotations

from pathlib import Path

import pytest

from koi_lang.program.build import built
from tests.running import run_file
from tests.support import diagnostics_of_text

HEAD = "role R { can execute }\nagent A : R { on go(args) {\n"
TAIL = "\n} }\nrun A.go({ a: 1999, list: [1] })\n"
NESTED = {
    "loops": ("for (const x of args.list) { ", "console.log(args.a)", " }"),
    "attempts": ("try { ", "console.log(args.a)", " } catch (error) { }"),
    "conditions": ("if (args.a) { ", "console.log(args.a)", " }"),
    "switches": ("switch (1) { case 1: ", "console.log(args.a)", " }"),
    "switches that fall through": ("switch (1) { case 1: args.a; case 2: ", "console.log(args.a)", " }"),
    "loops that wait": ("for await (const x of args.list) { ", "console.log(args.a)", " }"),
    "loops beside generators": (
        "function* f() { } for (const x of f()) { ",
        "console.log(args.a)",
        " }",
    ),
    "lists": ("[", "console.log(args.a)", "]"),
    "functions": ("(() => ", "console.log(args.a)", ")()"),
    "choices": ("", "console.log(args.a)", " && args.list.at(0)"),
    "calls": ("", "args.list.map(x => console.log(args.a))", ".map(x => x)"),
}


def branches(count: int) -> str:
    """A chain of conditions on `args.a`, each of which prints its number."""
    first = 'if (args.a === -1) { console.log("no") }\n'
    others = "".join(f"else if (args.a === {number}) {{ console.log({number}) }}\n" for number in range(count))
    return f'{first}{others}else {{ console.log("none") }}'


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled modules are kept away from those of the person who runs the tests."""
    monkeypatch.setenv("KOI_CACHE_DIR", str(tmp_path / "cache"))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("count", "printed"), [(40, "none"), (49, "none"), (50, "none"), (2000, "1999")])
def test_a_long_chain_of_conditions_runs(count: int, printed: str, tmp_path: Path) -> None:
    """However many `else if` there are, one branch is taken, and `else` where none is."""
    path = tmp_path / "chain.koi"
    path.write_text(f"{HEAD}{branches(count)}{TAIL}")

    assert (printed,) == run_file(path, tmp_path).printed


def test_a_long_chain_asks_no_condition_after_the_true_one(tmp_path: Path) -> None:
    """Conditions are computed in order up to the first that holds, also in loops that are left in a branch."""
    chain = "if (seen(-1)) {}\n" + "".join(f"else if (seen({number})) {{ break }}\n" for number in range(120))
    code = f"let n = 0\nconst seen = k => {{ n++; return k === 60 }}\nwhile (true) {{ {chain} }}\nconsole.log(n)"
    path = tmp_path / "chain.koi"
    path.write_text(f"{HEAD}{code}{TAIL}")

    assert ("62",) == run_file(path, tmp_path).printed


@pytest.mark.sampled(9)
@pytest.mark.parametrize("depth", [6, 9, 15, 25, 60, 120, 400])
@pytest.mark.parametrize("form", NESTED)
def test_what_is_checked_can_be_compiled(form: str, depth: int, tmp_path: Path) -> None:
    """Nesting is either refused by the check, with its place, or not at all."""
    before, middle, after = NESTED[form]
    text = f"{HEAD}{before * depth}{middle}{after * depth}{TAIL}"
    found = [diagnostic.code for diagnostic in diagnostics_of_text(text)]
    path = tmp_path / "deep.koi"
    path.write_text(text)

    assert found in ([], ["E0104"])
    if not found:
        built(str(path))
