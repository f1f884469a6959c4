"""Journals that earlier versions wrote are replayed and gone on with."""

from __future__ import annotations

import json
import shutil
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest

import koi_lang
from koi_lang.errors import KoiError, PermissionDeniedError
from koi_lang.runtime.journal.store import path_of
from koi_lang.runtime.replay.error_records import FORMER_NAMES, from_data
from tests.journal.commands import Commands

OLD = Path(__file__).parent / "old"
FIRST = OLD / "runs"


@pytest.fixture
def old(koi: Commands) -> Commands:
    """The programs of old journals."""
    for path in OLD.glob("*.*"):
        shutil.copy(path, koi.folder)
    return koi


def given(koi: Commands, name: str, most: int | None = None) -> None:
    """Have the first entries of an old journal in the folder, as if its run had been killed there."""
    header, *lines = (FIRST / f"{name}.jsonl").read_bytes().splitlines(keepends=True)
    data = {**json.loads(header), "program": str(koi.folder / f"{name}.koi")}
    path = path_of(koi.folder, data["run"])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(json.dumps(data).encode() + b"\n" + b"".join(lines[:most]))


@pytest.mark.parametrize("name", ["code", "playbook", "values", "literals", "results", "texts"])
def test_an_old_journal_is_replayed(old: Commands, name: str) -> None:
    """The program does what it did."""
    given(old, name)
    done = old("replay", "last", "--quiet")

    assert (0, True) == (done.code, done.err.endswith("nothing is different\n")), done.err


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("name", ["code", "playbook", "values"])
def test_an_old_run_is_resumed(old: Commands, name: str, step: int) -> None:
    """Cut behind any entry, it comes to its end, and prints what it had not printed; timers fire when they do."""
    lines = (FIRST / f"{name}.jsonl").read_bytes().splitlines()
    whole = [data["message"] for line in lines if (data := json.loads(line)).get("kind") == "printed"]
    for most in range(2, len(lines) - 1, step):
        given(old, name, most)
        printed = sum(b'"kind":"printed"' in line for line in lines[: most + 1])
        done = old("resume", "last", "--trust", "--on-doubt", "retry")

        expected = "".join(f"{line}\n" for line in whole[printed:])
        assert (0, sorted(expected)) == (done.code, sorted(done.out)), (most, done.err, done.out)


def test_an_old_answer_is_carried_out_as_it_was(old: Commands) -> None:
    """Every `${…}` of an answer that was asked for then stands for a value, also in a run that goes on; later not."""
    given(old, "literals", 8)
    done = old("resume", "last", "--trust")

    assert (0, "in C:\\5\nn is ${args.n}\n") == (done.code, done.out), done.err


@pytest.mark.parametrize(("words", "taken_over"), [("which is", 7), ("namely", 0)])
def test_a_branch_of_an_old_run_asks_anew_where_its_program_changed(old: Commands, words: str, taken_over: int) -> None:
    """What Koi itself told models in other words then is no reason to ask them again; a changed program is."""
    given(old, "values")
    program = old.folder / "values.koi"
    program.write_text(program.read_text("utf-8").replace("which is", words), "utf-8")
    done = old("resume", "last", "--trust", "--branch", "--on-doubt", "retry")

    assert (0, True) == (done.code, f"{taken_over} of 7 model answers were reused" in done.err), done.err


def test_errors_are_known_by_their_former_names() -> None:
    """A journal names the class of an error; one that was renamed since is found."""
    error = from_data({"error": "no", "class": "PermissionDenied"})
    for module in walk_packages(koi_lang.__path__, "koi_lang."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    named = {kind.__name__ for kind in below(KoiError)}

    assert (PermissionDeniedError, "no") == (type(error), str(error))
    assert set(FORMER_NAMES.values()) - named == set()


def below(kind: type[KoiError]) -> set[type[KoiError]]:
    """All classes that are derived from one and loaded."""
    return {kind}.union(*map(below, kind.__subclasses__()))
