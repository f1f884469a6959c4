"""Paths and names of packages to the files behind them: the file system as the compiler sees it."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.machinery import PathFinder
from pathlib import Path

from koi_lang.errors import UsageError
from koi_lang.runtime.modules.python_files import find_spec
from koi_lang.source import SCRIPT_SUFFIXES
from koi_lang.system import resources

SUFFIX = ".koi"
PASSED_OVER = frozenset({"node_modules", "__pycache__"})
# Stands before the first line of a workflow script, so that all lines keep their numbers.
SCRIPT_HEAD = 'import "std/workflow" agent {name} : WorkflowRunner {{ uses skill Workflow on start(args: any) {{ '
SCRIPT_BUDGET = "const budget = workflowBudget(); "
SCRIPT_META = "let meta = {}; void meta; "
SCRIPT_TAIL = "\n}} }}\nrun {name}.start({{}})\n"
# At the beginning of a line, or what stands for it in older modules.
IMPORT = re.compile(rb"^[ \t]*(?:import\b(?![ \t]*[(.])|(?:const|let|var)[^=\n]*=[ \t]*require[ \t]*\()", re.MULTILINE)
EXPORTED_META = re.compile(r"^export\s+const\s+meta\b(?=\s*=)", re.MULTILINE)


class DiskFiles:
    """The file system as the compiler sees it."""

    def read(self, path: str) -> bytes:
        """The content of a file; of a workflow script that of its program."""
        content = Path(path).read_bytes()
        if not path.endswith(SCRIPT_SUFFIXES):
            return content
        imported = IMPORT.search(content)
        if imported is not None:
            line = content.count(b"\n", 0, imported.start()) + 1
            help = "Have an agent read or do what the script needs, or write a program of Koi, which can import Python."
            place = f"{os.path.relpath(path)}:{line}"
            raise UsageError(f"`{place}` imports something, which workflow scripts cannot", help=help)
        return script_program(content)

    def is_file(self, path: str) -> bool:
        """Whether there is a file."""
        return Path(path).is_file()

    def names(self, folder: str) -> list[str]:
        """The names in a folder, or for `std` those of the standard library."""
        if folder == "std":
            return sorted(path.stem for path in resources.standard_skills().glob(f"*{SUFFIX}"))
        with suppress(OSError):
            return sorted(os.listdir(folder))
        return []

    def has_module(self, name: str) -> bool:
        """Whether Python finds a module of its own or an installed one; nothing of it is executed.

        Installed packages may make the modules in them when they are imported, so only their top is looked for.
        """
        top, _, inner = name.partition(".")
        if name in sys.modules:
            return True
        spec = None
        with suppress(ImportError, ValueError):
            spec = importlib.util.find_spec(top)
        if spec is None or not inner or top not in sys.stdlib_module_names:
            return spec is not None
        for length in range(2, name.count(".") + 2):
            spec = PathFinder.find_spec(".".join(name.split(".")[:length]), spec.submodule_search_locations or [])
            if spec is None:
                return False
        return True

    def package(self, name: str) -> str | None:
        """The Koi file of a standard skill or of an installed Python package."""
        if name.startswith("std/"):
            return _existing(resources.standard_skills() / f"{name.removeprefix('std/')}{SUFFIX}")
        spec = find_spec(name.replace("/", "."))
        if spec is None:
            return None
        for folder in spec.submodule_search_locations or ():
            found = _existing(Path(folder) / f"index{SUFFIX}")
            if found is not None:
                return found
        return spec.origin if spec.origin and spec.origin.endswith((SUFFIX, ".py")) else None


def script_program(script: bytes, name: str = "Script", *, is_read: bool = False) -> bytes:
    """A workflow script in JavaScript as the program that runs it: the body of the handler `start` of an agent.

    `export const meta = …` becomes an assignment, which need not be used; everything else stays as it is written.

    Args:
        name: of the agent.
        is_read: whether people read the program, where `meta` is a constant as in the script.
    """
    text = script.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    head = SCRIPT_HEAD.format(name=name)
    if re.search(r"\bbudget\b", text):
        head += SCRIPT_BUDGET
    exported = EXPORTED_META.search(text)
    if exported is not None:
        head += "" if is_read else SCRIPT_META
        kept = "const meta" if is_read else f"{'meta':>{len(exported[0])}}"
        text = f"{text[: exported.start()]}{kept}{text[exported.end() :]}"
    return f"{head}{text}{SCRIPT_TAIL.format(name=name)}".encode("utf-8", "surrogateescape")


def inside(folder: Path, suffix: str) -> Iterator[Path]:
    """The files in a folder, at any depth, whose name has an ending; folders of tools are passed over."""
    for here, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not is_tool_folder(Path(here, name))]
        yield from (Path(here, name) for name in names if name.endswith(suffix))


def programs(paths: Sequence[str]) -> list[str]:
    """The files that paths name, each once, those of a folder in the order of their names. Raises UsageError."""
    files: dict[str, None] = {}
    for path in paths:
        found = [path] if not os.path.isdir(path) else sorted(str(file) for file in inside(Path(path), SUFFIX))
        if not found:
            raise UsageError(f"there is no `*.koi` in `{path}`", help="name a file, or a folder with programs.")
        files |= dict.fromkeys(found)
    return list(files)


def is_tool_folder(folder: Path) -> bool:
    """Whether a folder belongs to a tool: hidden ones, packages, environments of Python."""
    return folder.name.startswith(".") or folder.name in PASSED_OVER or (folder / "pyvenv.cfg").exists()


def _existing(path: Path) -> str | None:
    return path.as_posix() if path.is_file() else None


def absolute(path: str) -> str:
    """The path that names a file everywhere: absolute, links resolved, with `/`."""
    return Path(path).resolve().as_posix()
