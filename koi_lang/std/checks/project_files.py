"""Files of a project and reports of its tools, none of which is trusted: they may be pipes, links, or endless."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from hashlib import sha256
from itertools import islice
from pathlib import Path

from koi_lang.system.open_folders import read_regular_file

# How many files and folders of a project are looked at.
MAX_ENTRIES = 100_000
MAX_SETTINGS_BYTES = 1_000_000
# Folders with what is not the project's own.
FOREIGN = frozenset(("node_modules", "venv", "env", "site-packages", "__pycache__", "build", "dist", "target"))
# Files of tests by their names, and folders in which every file belongs to them.
TEST_FILE = re.compile(r"test_.+\.py|.+_test\.(?:py|go)|(?:.+[._-])?(?:test|spec)(?:-.+)?\.[mc]?[jt]sx?")
TEST_FOLDERS = frozenset(("test", "tests", "__tests__", "spec", "testdata"))
# Files that settle how tests run, or which.
TEST_SETTINGS = re.compile(
    r"conftest\.py|sitecustomize\.py|\.?pytest\.(?:ini|toml)|tox\.ini|noxfile\.py|\.mocharc\..+"
    r"|(?:jest|vitest|vite|karma|playwright|ava)\.(?:config|setup|workspace)\..+|\.coveragerc"
)
# Files of which only some parts do that: keys of JSON, sections of the others.
PARTS_OF_JSON = {"package.json": ("scripts", "type", "jest", "mocha", "ava", "c8", "nyc", "vitest", "tap")}
SECTION = re.compile(r"^\[+([^\]\n]+)\]+[^\n]*\n(?:(?!\[).*\n?)*", re.M)
PARTS_OF_SECTIONS = {
    "pyproject.toml": ("tool.pytest", "tool.coverage", "tool.tox", "tool.hatch.envs"),
    "setup.cfg": ("tool:pytest", "coverage", "aliases"),
    "Cargo.toml": ("lib", "bin", "test"),
}


def read_setting(file: Path) -> str:
    """The text of a file with settings; empty where there is none."""
    try:
        return read_regular_file(file, MAX_SETTINGS_BYTES).decode("utf-8-sig", "replace")
    except OSError:
        return ""


def has_name(folder: Path, is_meant: Callable[[str], bool]) -> bool:
    """Whether a project has a file whose name is meant."""
    return any(is_meant(os.path.basename(path)) for path in _paths(folder))


def has_setting(folder: Path, is_meant: Callable[[str], bool]) -> bool:
    """Whether a file whose name is meant stands in the folder of a project itself."""
    return any(is_meant(name) for _, _, names in islice(os.walk(folder), 1) for name in names)


def hash_test_files(folder: Path) -> dict[str, str]:
    """The test files and the test configuration of a project, each with a digest.

    Digests of test files begin with `test`; of settings only the parts about tests count.
    """
    found: dict[str, str] = {}
    for path in map(Path, _paths(folder)):
        is_test = TEST_FILE.fullmatch(path.name) is not None or not TEST_FOLDERS.isdisjoint(path.parts[:-1])
        kind = "settings" if TEST_SETTINGS.fullmatch(path.name) else "test" if is_test else ""
        if not kind and path.name not in PARTS_OF_JSON and path.name not in PARTS_OF_SECTIONS:
            continue
        try:
            data = read_regular_file(folder / path, MAX_SETTINGS_BYTES)
        except OSError:
            data = b""
        part = data if kind else _test_settings_in(path.name, data.decode("utf-8-sig", "replace"))
        if kind or part:
            found[path.as_posix()] = f"{kind or 'settings'} {sha256(part).hexdigest()[:16]}"
    return found


def _test_settings_in(name: str, text: str) -> bytes:
    """The settings of tests in a file that has others, too."""
    if name in PARTS_OF_SECTIONS:
        wanted = PARTS_OF_SECTIONS[name]
        return "".join(each[0] for each in SECTION.finditer(text) if each[1].strip().startswith(wanted)).encode()
    try:
        package = json.loads(text)
    except (ValueError, RecursionError):
        return text.encode()
    known = package if isinstance(package, dict) else {}
    part = {key: known[key] for key in PARTS_OF_JSON[name] if key in known}
    return json.dumps(part, sort_keys=True).encode() if part else b""


def _paths(folder: Path) -> Iterator[str]:
    """The paths of files in a project, a bounded number; hidden folders and foreign ones are left out."""
    left = MAX_ENTRIES
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in FOREIGN)
        place = os.path.relpath(here, folder)
        yield from (os.path.join(place, name) for name in names)
        left -= len(folders) + len(names)
        if left < 0:
            return
