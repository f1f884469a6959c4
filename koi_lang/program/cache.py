"""Compiled modules by the content of the files they were made from, so that an unchanged program starts at once."""

from __future__ import annotations

import contextlib
import hashlib
import marshal
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

from koi_lang import settings
from koi_lang.system import resources
from koi_lang.version import __version__

SUFFIX = ".koic"
# A file begins with the hash of the rest: damaged code could end the whole process.
CHECK_SIZE = hashlib.sha256().digest_size


@dataclass(frozen=True, slots=True)
class CachedModule:
    """A compiled module.

    Attributes:
        files: content hash of every file it depends on, by path.
        warnings: what the checks said, as text.
        tests: the names of its tests and the lines on which they begin.
    """

    code: CodeType
    files: Mapping[str, str]
    warnings: tuple[str, ...] = ()
    tests: tuple[tuple[str, int], ...] = ()

    def version(self) -> str:
        """One hash for the content of all files of the program, wherever they are."""
        return digest("\n".join(sorted(self.files.values())).encode())


def digest(data: bytes) -> str:
    """The hash that stands for a file's content."""
    return hashlib.sha256(data).hexdigest()


def find(path: str) -> CachedModule | None:
    """The compiled module of a file, if there is one and none of its files has changed."""
    try:
        stored = _place(path).read_bytes()
    except OSError:
        return None
    data = stored[CHECK_SIZE:]
    if not _is_whole(stored):
        return None
    fields = marshal.loads(data)
    entry = CachedModule(fields["code"], fields["files"], tuple(fields["warnings"]), tuple(fields["tests"]))
    return entry if all(_is_current(file, known) for file, known in entry.files.items()) else None


def _is_whole(stored: bytes) -> bool:
    return hashlib.sha256(stored[CHECK_SIZE:]).digest() == stored[:CHECK_SIZE]


def _is_current(path: str, known: str) -> bool:
    try:
        return digest(Path(path).read_bytes()) == known
    except OSError:
        return False


def store(path: str, entry: CachedModule) -> None:
    """Keep a compiled module; a folder that cannot be written to is no error."""
    fields = {"code": entry.code, "files": dict(entry.files)}
    data = marshal.dumps(fields | {"warnings": list(entry.warnings), "tests": list(entry.tests)})
    with contextlib.suppress(OSError):
        replace_file(_place(path), hashlib.sha256(data).digest() + data)


def replace_file(target: Path, data: bytes) -> None:
    """Write and rename, so that readers see all of it or nothing."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{os.urandom(8).hex()}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, target)
    except OSError:
        os.unlink(temporary)
        raise


def _place(path: str) -> Path:
    made_by = f"{path}\0{__version__}\0{sys.implementation.cache_tag}\0{_compiler_stamp()}"
    return settings.cache_folder() / (hashlib.sha256(made_by.encode()).hexdigest()[:32] + SUFFIX)


@cache
def _compiler_stamp() -> str:
    """Changes when the compiler itself does, as it may in a checkout; a process goes on with the one it has loaded."""
    compiler = _newest(str(resources.PACKAGE / "compiler"))
    return f"{compiler}-{resources.grammar().stat().st_mtime_ns}"


def _newest(folder: str) -> int:
    """When something in a folder changed last, in nanoseconds."""
    with os.scandir(folder) as entries:
        return max(
            (_newest(entry.path) if entry.is_dir() else entry.stat().st_mtime_ns)
            for entry in entries
            if entry.name != "__pycache__"
        )


def stats() -> dict[str, Any]:
    """Where the cache is, how many modules it holds, and their size in bytes."""
    files = _files()
    return {"folder": str(settings.cache_folder()), "files": len(files), "bytes": sum(f.stat().st_size for f in files)}


def count_damaged() -> int:
    """How many compiled modules are not whole; they are compiled anew when they are needed."""
    return sum(not _is_whole(file.read_bytes()) for file in _files() if file.suffix == SUFFIX)


def clear() -> int:
    """Remove everything; gives how many files there were."""
    files = _files()
    for file in files:
        file.unlink(missing_ok=True)
    return len(files)


def _files() -> list[Path]:
    folder = settings.cache_folder()
    return sorted([*folder.glob(f"*{SUFFIX}"), *folder.glob("grammar-*.lark")])
