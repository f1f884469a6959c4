"""Renaming: everything that stands for the same, and nothing else."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from koi_lang.compiler.compile import check_program
from koi_lang.lsp.navigation import all_occurrences
from koi_lang.lsp.rename import Renamed, rename, why_fixed
from tests.lsp.programs import PROGRAMS, opened

# Names that no program of the repository has.
FRESH = {"role": "Zzrole", "agent": "Zzagent", "team": "Zzteam", "skill": "Zzskill", "prompt": "Zzprompt"}
PER_PROGRAM = 3


@pytest.mark.sampled(5)
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_says_the_same_after_a_rename(path: Path) -> None:
    """Random names of the programs of the repository, called otherwise, leave every diagnostic as it was."""
    programs, snapshot = opened(path)
    assert snapshot.file is not None
    found = [each for each in all_occurrences(snapshot.file, snapshot.program) if why_fixed(each) is None]
    chosen = random.Random(path.stem).sample(found, min(PER_PROGRAM, len(found)))
    for occurrence in chosen:
        kind = occurrence.definitions[0].kind
        edits = rename(occurrence, FRESH.get(kind, "zz_name"), programs)
        checked = check_program(path.as_posix(), Renamed(programs.files, edits))

        assert edits
        assert codes(snapshot.checked.diagnostics) == codes(checked.diagnostics)


def test_what_guards_are_given_keeps_its_name() -> None:
    """It is declared by the kind of the guard, which is a word of the language."""
    _, snapshot = opened(next(each for each in PROGRAMS if each.stem == "guards_of_actions"))
    assert snapshot.file is not None
    reasons = {
        each.definitions[0].name: why_fixed(each)
        for each in all_occurrences(snapshot.file, snapshot.program)
        if each.definitions[0].kind == "parameter"
    }

    assert {**dict.fromkeys(("action", "input"), "guards are given it by this name"), "args": None} == reasons


def codes(problems: object) -> Counter[str]:
    """Codes of problems with how often they are told."""
    return Counter(problem.code for problem in problems)  # type: ignore[attr-defined]
