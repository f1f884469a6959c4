"""What `std/workspace` promises: the same tree again, nothing that was left out touched, nothing outside reached."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from koi_lang.runtime.agents.declarations import Role
from koi_lang.runtime.tree.project import ProjectTree
from koi_lang.settings import read_settings
from tests.projects import Project
from tests.std import random_trees

CODER = Role("Coder", ("write_code",))
TREES = 100


@pytest.fixture
def project(tmp_path: Path) -> ProjectTree:
    """An empty project, with a secret beside it."""
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "project").mkdir()
    return ProjectTree(tmp_path / "project", lambda: None, read_settings(tmp_path / "project"))


def restore(project: ProjectTree, kept: dict[str, Any]) -> dict[str, Any]:
    """Put a snapshot back."""
    return project.restore(kept["id"], CODER)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("first", range(0, TREES, 10))
def test_random_trees_come_back(tmp_path: Path, first: int) -> None:
    """Whatever is added, changed, replaced and removed, the tree is the same again, and what is ignored as it is."""
    for seed in range(first, first + 10):
        chance, folder = random.Random(seed), tmp_path / str(seed)
        folder.mkdir()
        project = ProjectTree(folder, lambda: None, read_settings(folder))
        random_trees.make(chance, folder)
        before, kept = random_trees.content(folder), project.snapshot("run")
        random_trees.change(chance, folder)
        ignored = random_trees.content(folder, ignored=True)

        done = restore(project, kept)

        assert random_trees.content(folder, ignored=True) == ignored, seed
        lost = {each["path"].rstrip("/") for each in done["left"]}
        now = random_trees.content(folder)
        assert {path: now.get(path) for path in {**before, **now} if not is_in(path, lost)} == {
            path: state for path, state in before.items() if not is_in(path, lost)
        }, seed


def is_in(path: str, lost: set[str]) -> bool:
    """Whether something, or something around it, is among some paths."""
    return any(path == each or path.startswith(f"{each}/") for each in lost)


def test_a_replayed_run_touches_no_file(project: ProjectTree) -> None:
    """What was kept and restored is in the journal; a replay neither keeps nor restores anything."""
    program = Project(project.folder)
    program.write("note.txt", "first")
    program.write(
        "a.koi",
        """
        import "std/workspace"
        import "std/files"
        role R { can execute }
        agent A : R { on go(args: Json) {
          const before = await snapshot()
          await writeFile("note.txt", "second")
          await writeFile("new.txt", "new")
          const { added, changed } = await changes(before)
          const { written, removed } = await restore(before.id)
          console.log(before.files, added, changed, written, removed, await readFile("note.txt"))
        } }
        run A.go({})
        """,
    )
    said = program.koi("run", "--record", "a.koi").stdout
    (journal,) = (project.folder / ".koi" / "runs").glob("*.jsonl")
    (project.folder / "note.txt").write_text("changed")
    before = random_trees.content(project.folder)

    replayed = program.koi("replay", journal.stem)

    assert said == "1 [ 'new.txt' ] [ 'note.txt' ] [ 'note.txt' ] [ 'new.txt' ] first\n"
    assert (replayed.returncode, said in replayed.stdout) == (0, True), replayed.stdout + replayed.stderr
    assert random_trees.content(project.folder) == before
