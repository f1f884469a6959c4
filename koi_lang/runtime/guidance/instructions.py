"""Instructions in `AGENTS.md`: the person's own, and those of a project in its folder and in nearer ones."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from koi_lang import settings
from koi_lang.errors import KoiError, reason
from koi_lang.runtime.guidance.material import read_ends
from koi_lang.runtime.guidance.skill_places import tell_path
from koi_lang.runtime.host import visible

FILE = "AGENTS.md"
# Of all files together, in bytes; the nearer ones come first, and of what is longer both ends are told.
MAX_BYTES = 32_000
MIN_BYTES = 1_000
# Of the person's own file, which counts in every project.
MAX_OWN_BYTES = 8_000
MAX_FILES = 8
# Folders above the one in which a program is run that are looked at for a repository.
MAX_PARENTS = 20


@dataclass(frozen=True, slots=True)
class InstructionFile:
    """Instructions that stand in a file.

    Attributes:
        path: from the root of the project; that of the person's own file as they write it.
    """

    path: str
    text: str


def read_instructions(project: Path, program: Path | None) -> tuple[list[InstructionFile], list[str]]:
    """The instructions for a program, and the faults of omitted files, a sentence each.

    Args:
        project: the folder in which it is run.
        program: its file, where that is known.
    """
    root = root_of(project)
    files = [file for file in instruction_paths(project, program) if os.path.lexists(file)][-MAX_FILES:]
    found: list[InstructionFile] = []
    problems: list[str] = []
    room = MAX_BYTES
    for file in reversed(files):
        path = visible(file.relative_to(root).as_posix())
        text = _read(file, root, path, max(room, MIN_BYTES), problems)
        if text:
            found.insert(0, InstructionFile(path, text))
            room -= len(text.encode())
    return found, problems


def instruction_paths(project: Path, program: Path | None) -> list[Path]:
    """The places of instructions for a program, from the root of the project to the nearest folder."""
    inner = project.resolve()
    nearest = program.parent if program is not None and program.is_relative_to(inner) else inner
    folders = [root_of(project)]
    for name in nearest.relative_to(folders[0]).parts:
        folders.append(folders[-1] / name)
    return [folder / FILE for folder in folders]


def read_own_instructions() -> tuple[list[InstructionFile], list[str]]:
    """The instructions of the person beside their settings, and the fault of an omitted file.

    The file may be a link to anywhere, as people keep their settings.
    """
    file = settings.config_folder() / FILE
    path, problems = visible(tell_path(file)), list[str]()
    if not os.path.lexists(file):
        return [], []
    base = Path(os.path.realpath(file)).parent
    text = _read(file, base, path, MAX_OWN_BYTES, problems)
    return [InstructionFile(path, text)] if text else [], problems


def _read(file: Path, root: Path, path: str, most: int, problems: list[str]) -> str:
    try:
        return read_ends(file, root, most).strip()
    except (KoiError, OSError) as error:
        why = error.message if isinstance(error, KoiError) else f"cannot be read: {reason(error)}"
        problems.append(f"the instructions in `{path}` are left out: the file {why}")
        return ""


def root_of(project: Path) -> Path:
    """The folder of the repository that a folder lies in; the folder itself where there is none of the same owner.

    So nobody else can make one of a folder that many may write to, such as the one for temporary files.
    """
    base = project.resolve()
    owner = base.stat().st_uid
    above = [base, *list(base.parents)[:MAX_PARENTS]]
    root = next((folder for folder in above if os.path.lexists(folder / ".git")), base)
    is_own = root.stat().st_uid == owner == (root / ".git").lstat().st_uid if root != base else True
    return root if is_own else base
