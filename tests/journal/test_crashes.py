"""Runs that are killed at any moment, and journals that are read while they are written."""

from __future__ import annotations

import json
import random
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from koi_lang.runtime.journal import store
from koi_lang.runtime.journal.entries import JournalEntry
from koi_lang.runtime.journal.reader import Journal, read
from koi_lang.runtime.journal.summary import summarise
from tests import forks
from tests.projects import LIMIT_S, Project

# Leaves a mark outside of the journal for every action that has really been carried out.
PROGRAM = """
    import fs from "./marks.py"
    role Worker { can execute, can delegate }
    skill Marks { export async function leave(n: number) { fs.leave(n) } }
    agent Main : Worker {
      uses skill Marks
      on go(args) { playbook "Leave marks." budget { turns: 100000 } }
    }
    run Main.go({})
    """
MARKS = """
    import os

    def leave(n):
        with open("marks", "a") as file:
            file.write(f"{n}\\n")
    """
LONG = "filler " * 2000


@pytest.fixture
def endless(project: Project) -> Project:
    """A program that leaves a thousand marks, each after an answer with a long text."""
    project.write("main.koi", PROGRAM)
    project.write("marks.py", MARKS)
    project.write("answers.jsonl", "".join(f"{json.dumps(answer(n))}\n" for n in range(1000)))
    return project


def answer(n: int) -> object:
    """One mark, and two prints at the same time."""
    prints = [{"intent": "print", "message": f"{n} {LONG[: n * 977 % len(LONG)]}"} for _ in range(2)]
    return {"batch": [{"intent": "call_skill", "skill": "Marks", "input": {"n": n}}, {"parallel": prints}]}


@contextmanager
def running(project: Project) -> Iterator[tuple[forks.Command, Path]]:
    """A recorded run that has begun to act, with its journal; it is killed at the end."""
    words = ("run", "--record", "--answers", "answers.jsonl", "main.koi")
    process = forks.Command(words, project.folder, project.environment)
    try:
        while not (project.folder / "marks").exists():
            assert process.poll() is None
            time.sleep(0.005)
        yield process, next(iter(store.journals(project.folder)))
    finally:
        process.kill()
        process.wait(LIMIT_S)


def without_begin(entries: tuple[JournalEntry, ...]) -> list[JournalEntry]:
    """The ends of actions whose beginning does not stand before them."""
    begun: set[tuple[str, ...]] = set()
    missing = []
    for entry in entries:
        if entry.kind == "begun":
            begun.add(entry.path)
        elif entry.kind in ("done", "failed") and entry.path not in begun:
            missing.append(entry)
    return missing


@pytest.mark.sampled(1)
@pytest.mark.parametrize("round", range(5))
def test_a_killed_run_leaves_whole_lines(endless: Project, round: int) -> None:
    """All but a torn last line is whole; whatever was done was begun in the journal first, also what left a mark."""
    with running(endless) as (process, path):
        time.sleep(random.Random(round).uniform(0, 0.15))
        process.kill()
        process.wait(LIMIT_S)
    found = read(path)
    marks = [int(line) for line in (endless.folder / "marks").read_text().split()]
    begun = {e.data["fields"]["input"]["n"] for e in found.entries if e.kind == "begun" and "input" in e.data["fields"]}

    assert ((), []) == (found.faults, without_begin(found.entries))
    assert list(range(1, len(found.entries) + 1)) == [entry.n for entry in found.entries]
    assert set(marks) <= begun
    assert len(begun) - len(marks) in (0, 1)
    assert "interrupted" == summarise(path).state


def test_a_killed_run_can_be_repaired(endless: Project) -> None:
    """After a kill and bytes of a line that was not finished, repairing leaves the entries and nothing else."""
    with running(endless) as (process, path):
        process.kill()
        process.wait(LIMIT_S)
    with path.open("ab") as file:
        file.write(b'{"n":99999,"ts":')
    before = read(path)

    store.repair(path)
    assert Journal(before.header, before.entries) == read(path)
    assert before.torn == path.with_suffix(store.TORN).read_bytes()


def test_readers_do_not_disturb(endless: Project) -> None:
    """While a run goes on, any number of readers see more and more whole entries; it cannot be removed."""
    seen: list[list[int]] = [[], [], []]

    def follow(path: Path, counts: list[int]) -> None:
        for _ in range(4):
            found = read(path)
            assert () == found.faults
            counts.append(len(found.entries))

    with running(endless) as (_, path):
        readers = [threading.Thread(target=follow, args=(path, counts)) for counts in seen]
        for reader in readers:
            reader.start()
        refused = [endless.koi("runs", *words, "last") for words in (["repair"], ["delete", "--yes"])]
        state = summarise(path).state
        for reader in readers:
            reader.join()

    assert ["error: the run `" + path.stem + "` goes on"] * 2 == [done.stderr.splitlines()[0] for done in refused]
    assert ("running", [4] * 3) == (state, [len(counts) for counts in seen])
    assert seen == [sorted(counts) for counts in seen]


def test_tail_follows_until_the_run_is_gone(endless: Project) -> None:
    """`koi runs tail -f` shows entries as they are written and ends when the process does."""
    with running(endless) as (process, path):
        words = forks.koi("runs", "tail", "-f", "-n", "1", "last")
        tail = subprocess.Popen(words, cwd=endless.folder, stdout=subprocess.PIPE, text=True)
        assert tail.stdout is not None
        first = [tail.stdout.readline() for _ in range(20)]
        process.kill()
        rest = tail.stdout.read().splitlines()
        tail.stdout.close()
        assert 0 == tail.wait(LIMIT_S)

    kinds = [line.split()[1] for line in [*first, *rest]]
    assert kinds == [entry.kind for entry in read(path).entries][-len(kinds) :]
