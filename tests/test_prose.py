"""What `koi check` reads in the sentences of playbooks, and what it leaves alone."""

from __future__ import annotations

from pathlib import Path
from time import process_time

import pytest

from koi_lang.compiler.rules.prose import CODES
from koi_lang.program import build
from tests.projects import Project
from tests.prose_corpus import CODES as KINDS
from tests.prose_corpus import judge, measure, playbooks
from tests.support import HERE, diagnostics_of_text

ROOT = HERE.parent
PROGRAMS = sorted(
    path
    for folder in (ROOT / "examples", ROOT / "koi_lang", HERE / "koi", HERE / "data" / "projects")
    for path in folder.rglob("*.koi")
)
PAGE = (ROOT / "docs" / "prose.md").read_text("utf-8")
# So many warnings about seeded playbooks are about their faults.
LEAST_PRECISION = 0.95
KEEPER = """
role Clerk {{ can execute }}
agent Keeper : Clerk {{ state {{ counter = 0 }} on work(args) {{ playbook "{}" }} }}
run Keeper.work({{}})
"""


def test_programs_that_run_are_not_criticised() -> None:
    """No example, part of the library or program of the tests has a warning about its prose."""
    found = [
        (path.name, problem.message)
        for path in PROGRAMS
        for problem in build.check(str(path)).diagnostics
        if problem.code in CODES
    ]

    assert PROGRAMS
    assert found == []


@pytest.mark.parametrize(
    "sentence",
    [
        "Add 1 to state.counter.",
        "Keep it in state.owner.",
        "Set state.counters, and print state.counters.",
        "Write to keeper@state.conter.example or see docs/state.couter.",
        "Look at ```state.couter```.",
        "Ask Nobody::wrok, and use Prices.totla.",
    ],
)
def test_what_may_be_meant_is_left_alone(sentence: str) -> None:
    """Names that exist, new ones, addresses, code, and parts of what nobody declares get no warning."""
    assert diagnostics_of_text(KEEPER.format(sentence), {}) == []


@pytest.mark.parametrize(
    "sentence",
    [
        "Return { sum: the sum }.",
        "Return { sum, sums: all of them }.",
        "Return { total: the sum }.",
        "Devuelve {{args.summ}}.",
        "Keep { summ: 1 } for later.",
        "Return { sum: { summ: 1 } }.",
    ],
)
def test_a_returned_object_that_may_fit_is_left_alone(sentence: str) -> None:
    """Fields of the type, further ones, other objects and values inside of them count as no slips."""
    text = 'role Clerk { can execute } agent Adder : Clerk { on add(args): { sum: number } { playbook "%s" } }'

    assert "E0622" not in [found.code for found in diagnostics_of_text(text % sentence, {})]


def test_a_line_of_the_settings_turns_prose_off(tmp_path: Path) -> None:
    """`[check] prose = false` takes the warnings away, also from `--strict`; another value is told of."""
    project = Project(tmp_path)
    project.write("keeper.koi", KEEPER.format("Add 1 to state.couter."))
    strict = project.koi("check", "--strict", "keeper.koi")
    project.write("koi.toml", "[check]\nprose = false\n")
    silent = project.koi("check", "--strict", "keeper.koi")
    project.write("koi.toml", '[check]\nprose = "no"\n')
    wrong = project.koi("check", "keeper.koi")

    assert (65, True) == (strict.returncode, "did you mean `state.counter`?" in strict.stderr)
    assert (0, "keeper.koi: no problems\n") == (silent.returncode, silent.stderr)
    assert "must be true or false" in wrong.stderr
    assert "Traceback" not in wrong.stderr


@pytest.mark.parametrize(("name", "least_recall"), [("tuned", 0.6), ("held_out", 0.6), ("reworded", 0.4)])
def test_seeded_faults_are_found(name: str, least_recall: float) -> None:
    """Most faults of realistic playbooks are found, nearly all warnings are about one, and the manual says how many."""
    figures = measure(list(playbooks(name)))

    assert figures.recall >= least_recall
    assert figures.precision >= LEAST_PRECISION
    assert (
        f"| {name.replace('_', ' ')} | {figures.faults} | {figures.found} | {figures.sound} | {figures.wrong} |" in PAGE
    )


def test_the_corpus_is_large_enough() -> None:
    """There are 60 faults and as many playbooks without one, a third of them held out, each fault of a known kind."""
    tuned, held_out = list(playbooks("tuned")), list(playbooks("held_out"))
    faults = [each for each in tuned + held_out if each.fault is not None]

    assert len(faults) >= 60
    assert len(tuned) + len(held_out) - len(faults) >= 60
    assert len(held_out) * 3 >= len(tuned)
    assert {each.kind for each in faults} == set(KINDS)


def test_playbooks_without_faults_are_left_alone() -> None:
    """Sentences that only look like faults have no warning."""
    assert [wrong for each in playbooks("tuned") for wrong in judge(each)[1]] == []


def test_fixes_mend_what_is_wrong() -> None:
    """What an editor offers to do takes the warning away, and brings no other one about prose."""
    mended, left = set[str](), []
    for playbook in playbooks("tuned"):
        warnings = playbook.warnings()
        for code, fix in ((warning.code, fix) for warning in warnings for fix in warning.fixes):
            text = playbook.source
            for edit in sorted(fix.edits, key=lambda each: each.span, reverse=True):
                text = f"{text[: edit.span.start]}{edit.text}{text[edit.span.end :]}"
            codes = [each.code for each in diagnostics_of_text(text, {}) if each.code in CODES]
            mended.add(code)
            left += codes if len(codes) >= len(warnings) else []

    assert {"E0621", "E0622", "E0623", "E0627"} <= mended
    assert left == []


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "piece", ['Print "<name> ', "Ask the reviewer to look.\n", "store a ", "{ ", "Do it, and then "]
)
def test_long_playbooks_take_proportional_time(piece: str) -> None:
    """Four times as much prose takes hardly more than four times as long, and a fault is told once."""
    program = 'role Clerk { can execute } agent Keeper : Clerk { on work() { playbook """%s""" } }'

    def measure_s(count: int) -> float:
        start = process_time()
        assert len(diagnostics_of_text(program % (piece * count), {})) <= 2
        return process_time() - start

    measure_s(1)
    assert measure_s(2000) < 12 * max(measure_s(500), 0.02)
