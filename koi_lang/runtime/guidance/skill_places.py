"""The folder of a skill, wherever it stands."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from koi_lang.errors import AgentError
from koi_lang.system.open_folders import resolve_links

FILE = "SKILL.md"


@dataclass(frozen=True, slots=True)
class SkillFolder:
    """Where a skill stands.

    Attributes:
        name: of the folder, which is that of the skill.
        origin: `project`, `person`, `bundled`, or `program` where a program names it.
        root: the folder that it lies in, links resolved; None where it may be a link to anywhere.
        path: as a person is told.
    """

    name: str
    origin: str
    folder: Path
    root: Path | None
    path: str

    def resolve(self) -> Path:
        """The folder with all links resolved. Raises AgentError where it leads out of the project, or OSError."""
        try:
            found = resolve_links(self.folder)
        except RuntimeError as error:
            raise AgentError("is a link that leads to itself", help="Write a folder in its place.") from error
        if self.root is not None and not found.is_relative_to(self.root.resolve()):
            raise AgentError("leads out of the project", help="Put a copy in its place instead of a link.")
        return found


def skill_folder(path: str, beside: str) -> SkillFolder:
    """The skill that a program imports.

    Args:
        path: of its folder, or of the `SKILL.md` in it.
        beside: the file of the program.
    """
    folder = Path(beside).parent / path
    folder = folder.parent if folder.name == FILE else folder
    found = Path(os.path.normpath(folder))
    return SkillFolder(found.name, "program", found, None, path.removesuffix(f"/{FILE}"))


def tell_path(path: Path) -> str:
    """A path as a person writes it."""
    home = Path.home()
    return f"~/{path.relative_to(home).as_posix()}" if path.is_relative_to(home) else path.as_posix()
