"""What several tests need: programs to diagnostics and to text."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from koi_lang.compiler.compile import check_program
from koi_lang.diagnostics import Diagnostic, render
from koi_lang.program.files import DiskFiles

HERE = Path(__file__).resolve().parent


class FolderFiles:
    """The files of a folder, known by their path from there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, path: str) -> bytes:
        """The content of a file."""
        return (self.folder / path).read_bytes()

    def is_file(self, path: str) -> bool:
        """Whether there is a file."""
        return (self.folder / path).is_file()

    def package(self, name: str) -> str | None:
        """The parts of the standard library are there, and no package."""
        return DiskFiles().package(name) if name.startswith("std/") else None

    def has_module(self, name: str) -> bool:
        """The modules of Python itself are there."""
        return name in sys.stdlib_module_names

    def names(self, folder: str) -> list[str]:
        """The names in a folder, or the parts of the standard library."""
        if folder == "std":
            return DiskFiles().names(folder)
        return sorted(path.name for path in (self.folder / folder).glob("*"))


class TextFiles:
    """Files that only exist as texts by path."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts

    def read(self, path: str) -> bytes:
        """The content of a file."""
        return self.texts[path].encode("utf-8", "surrogatepass")

    def is_file(self, path: str) -> bool:
        """Whether there is a file."""
        return path in self.texts

    def package(self, name: str) -> str | None:
        """No package is installed."""

    def has_module(self, name: str) -> bool:
        """The modules of Python itself are there."""
        return name in sys.stdlib_module_names

    def names(self, folder: str) -> list[str]:
        """The names of all files."""
        return sorted(self.texts)


def diagnostics_of(path: Path) -> list[Diagnostic]:
    """Everything that is wrong with the program in a file; messages name it by its file name."""
    return list(check_program(path.name, FolderFiles(path.parent)).diagnostics)


def diagnostics_of_text(text: str, others: Mapping[str, str] = MappingProxyType({})) -> list[Diagnostic]:
    """Everything that is wrong with a program that may import other texts by their path."""
    return list(check_program("test.koi", TextFiles({**others, "test.koi": text})).diagnostics)


def must_not_compile(text: str) -> tuple[Diagnostic, ...]:
    """The diagnostics of a program that has some; anything else that comes out fails the test."""
    found = diagnostics_of_text(text)
    assert found, f"nothing is wrong with {text!r}"
    return tuple(found)


def rendered(diagnostics: list[Diagnostic]) -> str:
    """Diagnostics as a terminal shows them, a blank line between two."""
    return "".join(f"{render(diagnostic)}\n\n" for diagnostic in diagnostics).removesuffix("\n")
