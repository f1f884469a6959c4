"""The skills that Koi brings: they can be used anywhere, and what they teach is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from koi_lang.program import build
from koi_lang.runtime.guidance.skill_files import MAX_PART, read_part
from koi_lang.runtime.guidance.skill_folders import find_skills
from koi_lang.runtime.guidance.skill_places import SkillFolder
from koi_lang.system import resources
from tests.projects import Project

SKILLS = resources.standard_skills() / "skills"
PROGRAM = re.compile(r"^```koi\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PAGES = sorted(SKILLS.rglob("*.md"))


def test_they_can_be_used(project: Path) -> None:
    """Each is offered in an empty project, and is read at once."""
    found = find_skills(project)

    assert [(folder.name, True, "") for folder in sorted(SKILLS.iterdir())] == [
        (entry.place.name, entry.counts, entry.problem) for entry in found
    ]
    assert all("next" not in read_part(entry.place, "", 1) for entry in found)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_their_programs_are_clean(page: Path, project: Path) -> None:
    """No check has anything to say about them, and their tests pass."""
    here = Project(project)
    programs = PROGRAM.findall(page.read_text("utf-8"))

    assert programs
    assert len(page.read_text("utf-8")) < MAX_PART
    for number, text in enumerate(programs):
        file = here.write(f"{number}.koi", text)
        assert () == build.check(str(file), strict=True).diagnostics
        if 'test "' in text:
            done = here.koi("test", file.name)
            assert (0, "2 passed") == (done.returncode, done.stdout[:8]), done.stdout


def test_files_beside_them_are_mentioned() -> None:
    """A model finds out about each file."""
    for skill in SKILLS.iterdir():
        place = SkillFolder(skill.name, "bundled", skill, None, skill.name)
        told = read_part(place, "", 1)["text"]
        beside = [path.relative_to(skill).as_posix() for path in skill.rglob("*.md") if path.name != "SKILL.md"]
        assert all(f"`{path}`" in told for path in beside), beside
