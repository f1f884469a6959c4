"""The command that runs the tests of ECMAScript: what it selects, counts and tells."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from benchmarks import test262
from benchmarks.test262 import Known, Report

TESTS = {
    "passes": "assert.sameValue(1 + 1, 2); assert([1].length === 1); compareArray([1], [1]);",
    "refused": "var a = [1, , 2];",
    "differs": 'assert.sameValue("\\u{1F600}".length, 2, "units");',
    "cannot": "var list = []; list.index = 1; assert.throws(TypeError, () => null.x);",
    "absent": "class A {}",
    "wrong": "assert.sameValue(1, 2);",
}
CHECKOUT = os.environ.get("KOI_TEST262")


def checkout_of(folder: Path, tests: Mapping[str, str]) -> Path:
    """A checkout with some tests."""
    place = folder / "test" / "language" / "some"
    place.mkdir(parents=True)
    for name, body in tests.items():
        place.joinpath(f"{name}.js").write_text(f"/*---\ndescription: one\nfeatures: [let]\n---*/\n{body}\n")
    return folder


def test_what_is_absent_is_left_out(tmp_path: Path) -> None:
    """Tests that name something absent, belong to modules, or need other helpers are not run."""
    checkout = checkout_of(tmp_path, TESTS)
    more = {"module": "flags: [module]", "helper": "includes: [propertyHelper.js]", "feature": "features:\n  - Symbol"}
    for name, about in more.items():
        (checkout / "test/language/some" / f"{name}.js").write_text(f"/*---\n{about}\n---*/\n")

    assert sorted(TESTS.keys() - {"absent"}) == [Path(test.name).stem for test in test262.tests_in(checkout)]


def test_results_are_told_apart(tmp_path: Path) -> None:
    """A test passes, is refused by the compiler or while it runs, or goes differently, for a reason or for none."""
    results = test262.carry_out(list(test262.tests_in(checkout_of(tmp_path, TESTS))))
    known = [
        Known("numbered items", 1, told="numbered items only", is_refusal=True),
        Known("characters", 0, names="differs"),
    ]
    report = Report.of(results, known)

    assert {"language/some": {"passed": 1, "refused": 2, "failed": 2}} == report.folders
    assert {"numbered items": 1, "characters": 1} == report.known
    first, second = report.problems(known)
    assert "1 failures where 0 are known: characters" == first
    assert second.startswith("language/some/wrong.js: ")
    assert "language/some" in "\n".join(report.lines())


@pytest.mark.needs("node")
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It leaves out what Node does not pass either, and ends with 1 where something fails for no known reason."""
    fine = {name: TESTS[name] for name in ("passes", "refused", "cannot", "wrong")}
    assert 0 == test262.main([str(checkout_of(tmp_path / "fine", fine))])
    told = capsys.readouterr().out

    assert ["all", "1", "0", "2", "100.0", "%"] == told.split("\n")[2].split()
    assert 1 == test262.main([str(checkout_of(tmp_path / "other", {"differs": TESTS["differs"]}))])
    assert "language/some/differs.js" in capsys.readouterr().err
    assert 2 == test262.main([str(tmp_path / "nowhere")])


@pytest.mark.needs("node")
@pytest.mark.skipif(CHECKOUT is None, reason="KOI_TEST262 names no checkout of tc39/test262")
@pytest.mark.timeout(3600)
def test_all_of_them() -> None:
    """In a checkout of the suite nothing fails but for reasons that are known."""
    assert 0 == test262.main([str(CHECKOUT)])
