"""`AGENTS.md`: which files count, how much of them, and what is left out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from koi_lang.runtime.guidance.instructions import MAX_BYTES, MAX_OWN_BYTES, read_instructions, read_own_instructions


def test_the_nearest_instructions_come_last(project: Path) -> None:
    """From the root of the repository to the folder in which the program is run, and on to where it stands."""
    (project / ".git").mkdir()
    inner = project / "packages" / "web"
    (inner / "agents").mkdir(parents=True)
    for folder in (project, inner, inner / "agents"):
        (folder / "AGENTS.md").write_text(f"In {folder.name}.")
    (project.parent / "AGENTS.md").write_text("Not of the project.")

    found, problems = read_instructions(inner, inner / "agents" / "program.koi")
    assert ["AGENTS.md", "packages/web/AGENTS.md", "packages/web/agents/AGENTS.md"] == [each.path for each in found]
    assert ["In project.", "In web.", "In agents."] == [each.text for each in found]
    assert not problems


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="only root gives folders away")
@pytest.mark.parametrize("whose", [".", ".git"])
def test_a_repository_of_somebody_else_is_none(project: Path, whose: str) -> None:
    """Whoever can write above a project does not speak for it."""
    (project / ".git").mkdir()
    (project / "AGENTS.md").write_text("Of somebody else.")
    (project / "own").mkdir()
    (project / "own" / "AGENTS.md").write_text("Own.")
    os.chown(project / whose, 12345, -1)

    assert ["Own."] == [file.text for file in read_instructions(project / "own", None)[0]]


def test_of_long_instructions_both_ends_are_told(project: Path) -> None:
    """Whole lines and whole characters, with how much is left out between them."""
    line = "ä" * 70 + "\n"
    (project / "AGENTS.md").write_text("First.\n" + line * 70_000 + "Last.", "utf-8")

    ((file,), problems) = read_instructions(project, None)
    assert not problems
    assert ("First.", "Last.") == (file.text.split("\n")[0], file.text.split("\n")[-1])
    assert "bytes of this file are left out here …]" in file.text
    assert len(file.text.encode()) < MAX_BYTES + 100
    assert {"", "ä"} == {part[:1] for part in file.text.split("\n")[1:-1] if not part.startswith("[")} | {""}


def test_instructions_that_cannot_be_read_are_left_out(project: Path) -> None:
    """With a sentence on each: not UTF-8, a pipe, a link out of the project, a link to a secret."""
    (project / ".env").write_text("KEY=secret")
    (project.parent / "outside.md").write_text("Outside.")
    file = project / "AGENTS.md"
    told = []
    for make in (
        lambda: file.write_bytes(b"caf\xe9"),
        lambda: os.mkfifo(file),
        lambda: file.symlink_to(project.parent / "outside.md"),
        lambda: file.symlink_to(project / ".env"),
        lambda: file.mkdir(),
    ):
        make()
        found, problems = read_instructions(project, None)
        assert not found
        told += problems
        file.rmdir() if file.is_dir() and not file.is_symlink() else file.unlink()

    begin = "the instructions in `AGENTS.md` are left out: the file "
    assert 5 == len(told)
    assert all(line.startswith(begin) and "\n" not in line for line in told)
    assert "is not UTF-8 text" in told[0]
    assert "KEY" not in "".join(told)


def test_nothing_hides_in_a_text(project: Path) -> None:
    """Characters that nobody sees are left out, and every end of a line is one."""
    (project / "AGENTS.md").write_bytes("\ufeffa\u202eb\x1b[2Jc\U000e0041\u200d\r\nd\u2028e\x85f\tg".encode())

    assert "ab[2Jc\u200d\nd\ne\nf\tg" == read_instructions(project, None)[0][0].text


def test_the_person_has_instructions_of_their_own(project: Path) -> None:
    """In one file beside the settings, which may be a link; of a long one both ends; none where there is none."""
    assert ([], []) == read_own_instructions()
    person = Path(os.environ["KOI_CONFIG_DIR"])
    person.mkdir()
    elsewhere = project.parent / "dotfiles.md"
    (person / "AGENTS.md").symlink_to(elsewhere)
    elsewhere.write_text("Be brief.\n")
    ((own,), _) = read_own_instructions()
    elsewhere.write_text("Be brief.\n" * 5_000)
    ((long,), _) = read_own_instructions()

    assert ("Be brief.", True) == (own.text, own.path.endswith("/AGENTS.md"))
    assert len(long.text) < MAX_OWN_BYTES + 100


@pytest.mark.parametrize("way", ["link to nothing", "link to itself", "secret", "folder"])
def test_own_instructions_that_cannot_be_read_are_left_out(project: Path, way: str) -> None:
    """With a sentence."""
    person = Path(os.environ["KOI_CONFIG_DIR"])
    person.mkdir()
    (project / ".env").write_text("KEY=secret")
    targets = {"link to nothing": "gone", "link to itself": "AGENTS.md", "secret": project / ".env"}
    file = person / "AGENTS.md"
    file.mkdir() if way == "folder" else file.symlink_to(targets[way])
    found, (problem,) = read_own_instructions()

    assert ([], True, False) == (found, "are left out: the file " in problem, "KEY" in problem)
