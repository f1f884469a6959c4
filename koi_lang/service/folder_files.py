"""The files of a folder that a pattern means, with what tells their contents apart."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from koi_lang.system.globs import compile_glob, expand_braces

# Files that are looked at for one pattern; others are left out.
MOST_FILES = 20_000
# Bytes of a file whose content is compared; of larger ones time and size are.
LARGEST = 64 << 20
ANY_FOLDERS = "**"
PASSED_OVER = frozenset({"node_modules", "__pycache__"})


@dataclass(frozen=True, slots=True)
class Stamp:
    """The state of a file at one look.

    Attributes:
        changed: when it was changed last, in nanoseconds.
        size: its bytes.
        content: the hash of its content; empty for a file that is too large.
    """

    changed: int
    size: int
    content: str

    def is_same_content(self, other: Stamp) -> bool:
        """Whether two files have one content, as far as is known."""
        return self.size == other.size and self.content == other.content and bool(self.content or self == other)


Stamps = Mapping[str, Stamp]


def stamp_files(folder: Path, pattern: str, known: Stamps) -> dict[str, Stamp]:
    """The files that a pattern means, by their path within the folder, with `/`.

    Links to folders are not followed; folders whose names begin with a dot are passed over unless the pattern names
    them. A file that cannot be read is left out.

    Args:
        known: as they were found before; what has the same time and size is not read again.
    """
    found: dict[str, Stamp] = {}
    patterns = [each.split("/") for each in expand_braces(pattern)]
    for path in _files(folder, "", compile_glob(pattern), patterns):
        with suppress(OSError):
            found[path] = _stamp(folder / path, known.get(path))
        if len(found) >= MOST_FILES:
            break
    return found


def _files(
    folder: Path, inside: str, is_meant: Callable[[str], bool], patterns: Sequence[Sequence[str]]
) -> Iterator[str]:
    """The paths of files below a folder, sorted; each once."""
    try:
        with os.scandir(folder / inside) as listed:
            entries = sorted(listed, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        path = f"{inside}/{entry.name}" if inside else entry.name
        with suppress(OSError):
            if entry.is_dir(follow_symlinks=False):
                if any(_may_hold(path.split("/"), parts) for parts in patterns):
                    yield from _files(folder, path, is_meant, patterns)
            elif (
                entry.is_file()
                and is_meant(path)
                and (not entry.is_symlink() or Path(entry.path).resolve().is_relative_to(folder.resolve()))
            ):
                yield path


def _may_hold(path: Sequence[str], parts: Sequence[str]) -> bool:
    """Whether a folder may hold files that a pattern means."""
    for name, part in zip(path, parts, strict=False):
        if part == ANY_FOLDERS:
            return not any(_is_passed_over(each) for each in path[parts.index(part) :])
        if not compile_glob(part)(name) or (_is_passed_over(name) and name != part):
            return False
    return len(path) < len(parts)


def _is_passed_over(name: str) -> bool:
    return name.startswith(".") or name in PASSED_OVER


def _stamp(path: Path, known: Stamp | None) -> Stamp:
    """Raises OSError."""
    about = path.stat()
    if known is not None and (known.changed, known.size) == (about.st_mtime_ns, about.st_size):
        return known
    content = sha256(path.read_bytes()).hexdigest()[:32] if about.st_size <= LARGEST else ""
    return Stamp(about.st_mtime_ns, about.st_size, content)
