"""Random trees of projects, changes of them, and what stands for all of a tree that is to come back."""

from __future__ import annotations

import os
import random
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

IGNORED = ("x.log", "build")
RULES = "*.log\nbuild/\n"
NAMES = "a b c.txt d.py notes é src 名 x\ny build x.log .hidden".split(" ")
FILE_MODES, FOLDER_MODES = (0o644, 0o755, 0o600, 0o400, 0o666), (0o755, 0o700, 0o555, 0o1777)
TARGETS = ("a", "../b", "/etc/hostname", "nowhere", "src/a", ".")


def make(chance: random.Random, root: Path) -> None:
    """Fill a folder."""
    (root / ".gitignore").write_text(RULES)
    _fill(chance, root, 0)


def _fill(chance: random.Random, folder: Path, depth: int) -> None:
    for name in chance.sample(NAMES, chance.randint(0, 6)):
        _add(chance, folder / name, depth)


def _add(chance: random.Random, path: Path, depth: int) -> None:
    kind = chance.random()
    if os.path.lexists(path):
        return
    if kind < 0.35 and depth < 4:
        path.mkdir()
        _fill(chance, path, depth + 1)
        path.chmod(chance.choice(FOLDER_MODES))
    elif kind < 0.5:
        path.symlink_to(chance.choice(TARGETS))
    else:
        path.write_bytes(chance.randbytes(chance.choice((0, 1, 100, 5000))))
        path.chmod(chance.choice(FILE_MODES))


def change(chance: random.Random, root: Path) -> None:
    """Add, rewrite, replace, remove and move things at random, ignored ones too; `.gitignore` stays."""
    for _ in range(chance.randint(1, 12)):
        known = [path for path in everything(root) if path.name != ".gitignore"]
        folders = [root, *(path for path in known if is_folder(path))]
        path = chance.choice(known or [root / "first"])
        what = chance.random()
        if what < 0.4:
            place = chance.choice(folders) / chance.choice(NAMES)
            _unlock(place)
            _add(chance, place, 2)
        elif what < 0.55 and path.is_file() and not path.is_symlink():
            path.chmod(0o644)  # that of root may be written in any case
            path.write_bytes(chance.randbytes(100))
        elif what < 0.65 and os.path.lexists(path) and not path.is_symlink():
            path.chmod(chance.choice(FOLDER_MODES if is_folder(path) else FILE_MODES))
        elif what < 0.8:
            remove(path)
            _add(chance, path, 2)  # often something else of the same name
        else:
            remove(path)


def remove(path: Path) -> None:
    """Remove whatever is there, also as somebody who may not write everywhere."""
    _unlock(path)
    if is_folder(path):
        for folder in [path, *filter(is_folder, _below(path))]:
            folder.chmod(0o755)
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _unlock(path: Path) -> None:
    """Have the folder of a path be one that its owner may write to."""
    if is_folder(path.parent):
        path.parent.chmod(0o755)


def is_folder(path: Path) -> bool:
    """Whether it is a folder, and no link to one."""
    return path.is_dir() and not path.is_symlink()


def everything(root: Path) -> list[Path]:
    """All paths below a folder, but for what Koi keeps there."""
    return [path for path in sorted(_below(root)) if ".koi" not in path.parts]


def _below(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        yield path
        if is_folder(path):
            yield from _below(path)


def content(root: Path, *, ignored: bool = False) -> dict[str, tuple[int, str | bytes]]:
    """What makes up a tree: kinds and modes, contents and targets of links.

    Args:
        ignored: give what is left out by its name instead of what is not.
    """
    paths = {path.relative_to(root).as_posix(): path for path in everything(root)}
    return {name: _state(path) for name, path in paths.items() if is_left_out(path.relative_to(root), path) is ignored}


def is_left_out(name: Path, path: Path) -> bool:
    """Whether one of the parts of a name is hidden or ignored; `build` is ignored as a folder alone."""
    hidden = any(part.startswith(".") or part.endswith(".log") for part in name.parts)
    return hidden or "build" in name.parts[:-1] or (name.name == "build" and is_folder(path))


def _state(path: Path) -> tuple[int, str | bytes]:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return stat.S_IFLNK, os.readlink(path)
    return mode, path.read_bytes() if stat.S_ISREG(mode) else b""
