"""Where skills stand, which of those with one name counts, and why the others do not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from koi_lang import settings
from koi_lang.errors import AgentError
from koi_lang.runtime.guidance.skill_files import read_skill_text
from koi_lang.runtime.guidance.skill_places import FILE, SkillFolder, tell_path
from koi_lang.runtime.host import visible
from koi_lang.system import resources

# Those of a project, the nearer first; then come the person's, and those that Koi brings.
IN_PROJECT = (".agents/skills", ".koi/skills")
# More folders than that in one place are not looked at.
MAX_FOLDERS = 500


@dataclass(frozen=True, slots=True)
class SkillEntry:
    """A skill that was found, whether or not it counts.

    Attributes:
        description: what it is for; empty where it cannot be read.
        problem: why it cannot be used; empty where it can.
        notes: what of it counts for nothing.
        winner: the path of the one of its name that counts; its own, or empty where none does.
    """

    place: SkillFolder
    description: str = ""
    problem: str = ""
    notes: tuple[str, ...] = ()
    winner: str = ""

    @property
    def counts(self) -> bool:
        """Whether it is the one of its name that agents are offered."""
        return self.winner == self.place.path


def find_skills(project: Path) -> list[SkillEntry]:
    """All skills of a project, of the person and of Koi: those of one name stand in the order in which they count."""
    entries = [look_at_skill(place) for place in _places(project)]
    winners: dict[str, str] = {}
    for entry in entries:
        if not entry.problem:
            winners.setdefault(entry.place.name, entry.place.path)
    return [
        SkillEntry(entry.place, entry.description, entry.problem, entry.notes, winners.get(entry.place.name, ""))
        for entry in entries
    ]


def skill_paths(project: Path) -> list[Path]:
    """The files of the skills that are found in the folders of a project and of its person."""
    return [place.folder / FILE for place in _places(project) if place.origin != "bundled"]


def look_at_skill(place: SkillFolder) -> SkillEntry:
    """The state of a skill, apart from others of its name."""
    try:
        text = read_skill_text(place)
    except AgentError as error:
        help = f"; {error.help[0].lower()}{error.help[1:].rstrip('.')}" if error.help else ""
        return SkillEntry(place, problem=f"{error.message}{help}")
    return SkillEntry(place, text.description, "; ".join(text.obstacles), text.notes)


def _places(project: Path) -> Iterator[SkillFolder]:
    """Every folder with a `SKILL.md`, the nearer places first, by name in each."""
    person = settings.config_folder() / "skills"
    bundled = resources.standard_skills() / "skills"
    for base in IN_PROJECT:
        yield from _in_folder("project", project / base, project, base)
    yield from _in_folder("person", person, None, tell_path(person))
    yield from _in_folder("bundled", bundled, None, tell_path(bundled))


def _in_folder(origin: str, base: Path, root: Path | None, shown: str) -> Iterator[SkillFolder]:
    """The skills in a folder.

    Args:
        root: the folder that links do not leave; None where a skill may be a link to anywhere.
    """
    names: list[str] = []
    with suppress(OSError):
        names = sorted(os.listdir(base))[:MAX_FOLDERS]
    for name in names:
        folder = base / name
        if os.path.lexists(folder / FILE):
            yield SkillFolder(name, origin, folder, root, visible(f"{shown}/{name}"))
