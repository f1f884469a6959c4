"""Undo puts back exactly what the actions of a run have changed, to any entry, and nothing else."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from random import Random

import pytest

from koi_lang.errors import KoiError
from koi_lang.runtime.run import Run
from koi_lang.std import files
from tests.file_changes.recorded_changes import Files, entries_of, record, tree, undo

NAMES = ("a.txt", "b.txt", "sub/a.txt", "sub/c.txt", "sub/deep/d.txt", "new/e.txt")
TEXTS = ("", "one\n", "two\r\n", "x" * 10_000, "é\ufeff\n", "no end", "\0binary\1")
SEEDS = 120
# Those that the usual suite takes.
USUAL = 4


def prepare(folder: Path, chance: Random) -> None:
    """Some files, folders and links with modes of their own."""
    for name in NAMES:
        if chance.random() < 0.6:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(chance.randbytes(chance.choice((0, 5, 4000))))
            path.chmod(chance.choice((0o600, 0o644, 0o755, 0o444)))
    (folder / "empty").mkdir()
    (folder / "link").symlink_to("a.txt")


async def change(chance: Random) -> None:
    """One action; some are refused."""
    name, text = chance.choice((*NAMES, "link")), chance.choice(TEXTS)
    try:
        match chance.randrange(5):
            case 0 | 1:
                await files.write(name, text)
            case 2:
                await files.append(name, text)
            case 3:
                await files.remove(name)
            case _:
                await files.move(name, chance.choice(NAMES))
    except KoiError:
        pass  # such as a file that is not there


@pytest.mark.sampled(USUAL)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_any_sequence_is_undone_to_any_entry(tmp_path: Path, seed: int) -> None:
    """The tree is what it was at each entry, from the last one back to the beginning."""
    chance = Random(seed)
    prepare(tmp_path, chance)
    before, moments = tree(tmp_path), list[tuple[int, Files]]()

    async def work(run: Run) -> None:
        for _ in range(chance.randrange(1, 9)):
            await change(chance)
            moments.append((entries_of(tmp_path), tree(tmp_path)))

    asyncio.run(record(tmp_path, work))

    for entry, expected in [*reversed(moments), (0, before)]:
        done, refused = undo(tmp_path, entry)
        assert ([], []) == (refused, [each.refusal for each in done if each.refusal])
        assert expected == tree(tmp_path)
    assert ([], []) == undo(tmp_path)


def test_what_somebody_else_has_changed_is_left(tmp_path: Path) -> None:
    """The others go on: each file is looked at on its own."""
    for name in ("a", "b", "c", "d"):
        (tmp_path / f"{name}.txt").write_text("before")

    async def work(run: Run) -> None:
        for name in ("a", "b", "c", "d", "new/e"):
            await files.write(f"{name}.txt", "of the run")

    asyncio.run(record(tmp_path, work))
    (tmp_path / "b.txt").write_text("of the person")
    (tmp_path / "c.txt").unlink()
    (tmp_path / "d.txt").chmod(0o755)
    (tmp_path / "new/mine.txt").write_text("of the person")
    done, refused = undo(tmp_path)

    since = "somebody else has changed it since"
    assert [f"{name}.txt: {since}" for name in "bcd"] == refused
    assert ["new/e.txt", "new", "a.txt"] == [each.undo.file for each in done]
    assert [False, True, False] == [each.is_kept_folder for each in done]
    left = {name: content for name, (_, content) in tree(tmp_path).items()}
    person = {"b.txt": b"of the person", "d.txt": b"of the run", "new": None, "new/mine.txt": b"of the person"}
    assert {"a.txt": b"before", **person} == left


def test_what_is_changed_between_two_actions_is_kept(tmp_path: Path) -> None:
    """What the person wrote between two actions is what comes back, and the first action is not undone."""
    (tmp_path / "a.txt").write_text("first")

    async def work(run: Run) -> None:
        await files.write("a.txt", "second")
        (tmp_path / "a.txt").write_text("of the person")
        await files.write("a.txt", "third")

    asyncio.run(record(tmp_path, work))
    _, refused = undo(tmp_path)

    assert (["a.txt: somebody else has changed it since"], "of the person") == (
        refused,
        (tmp_path / "a.txt").read_text(),
    )


def test_agents_that_change_at_once_are_undone(tmp_path: Path) -> None:
    """Also those that change the same file, whoever is first."""
    (tmp_path / "same.txt").write_text("before")
    before = tree(tmp_path)

    async def agent(number: int) -> None:
        for round in range(3):
            await files.append("same.txt", f"{number} {round}\n")
            await files.write(f"own/{number}/{round}.txt", "own")

    async def work(run: Run) -> None:
        await asyncio.gather(*map(agent, range(10)))

    asyncio.run(record(tmp_path, work))
    lines = (tmp_path / "same.txt").read_text().count("\n")
    done, refused = undo(tmp_path)

    assert (30, 1 + 30 + 11, []) == (lines, len(done), refused)
    assert before == tree(tmp_path)


@pytest.mark.parametrize("way", ["folder", "file"])
def test_no_link_leads_undo_out_of_the_project(tmp_path: Path, way: str) -> None:
    """A link that somebody has put in the place of a folder or file is not followed."""
    outside, project = tmp_path / "outside", tmp_path / "project"
    outside.mkdir()
    (project / "sub").mkdir(parents=True)
    (outside / "a.txt").write_text("of the run")
    (project / "sub/a.txt").write_text("before")

    async def work(run: Run) -> None:
        await files.write("sub/a.txt", "of the run")
        await files.write("sub/new.txt", "of the run")

    asyncio.run(record(project, work))
    (outside / "new.txt").write_text("of the run")
    if way == "folder":
        (project / "sub").rename(project / "moved")
        (project / "sub").symlink_to("../outside")
    else:
        for name in ("a.txt", "new.txt"):
            (project / "sub" / name).unlink()
            (project / "sub" / name).symlink_to(outside / name)
    _, refused = undo(project)

    assert 2 == len(refused)
    assert {"a.txt", "new.txt"} == {*os.listdir(outside)}
    assert ["of the run"] * 2 == [path.read_text() for path in outside.iterdir()]
