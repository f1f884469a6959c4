"""Ripgrep as a helper: the results are the same with it, and without it whatever goes wrong."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from koi_lang.runtime.concurrency.stoppable_threads import StoppedError
from koi_lang.std import ripgrep
from koi_lang.std.code import searching
from koi_lang.std.code.searching import SearchRequest, grep
from koi_lang.std.ripgrep import Ripgrep
from tests.std.project_folders import fill, give
from tests.std.test_searching import PATTERNS, write_tree

# What ripgrep does with the options that it is given here: names of files that hold a word, each with a NUL behind it.
STAND_IN = """#!{python} -IS
import sys
options, files = sys.argv[1:sys.argv.index("--")], sys.argv[sys.argv.index("--") + 1:]
assert "--files-with-matches" in options and "--null" in options and "--fixed-strings" in options, options
words = [options[at + 1] for at, option in enumerate(options) if option == "-e"]
fold = str.lower if "--ignore-case" in options else str
texts = {file: fold(open(file, encoding="latin-1", newline="").read()) for file in files}
found = [file for file in files if any(fold(word) in texts[file] for word in words)]
sys.stdout.write("".join(file + chr(0) for file in found))
sys.exit(0 if found else 1)
"""
Install = Callable[[str], Path]


@pytest.fixture
def install(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Makes a program the ripgrep of the system, and has it used for small trees."""
    monkeypatch.setattr(searching, "WORTH_A_HELPER", 1)

    def put(text: str) -> Path:
        program = tmp_path_factory.mktemp("programs") / "rg"
        program.write_text(text.replace("{python}", sys.executable))
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
        return program

    return put


def search(root: Path, pattern: str, **more: Any) -> dict[str, Any]:
    """What `grep` gives."""
    return give(grep(root, SearchRequest(pattern, **more)))


def compare(root: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Search random trees with and without the helper; gives how often it was asked and how often results differ."""
    asked: list[object] = []
    files_with = Ripgrep.files_with

    def count(self: Ripgrep, *given: Any, **more: Any) -> set[str] | None:
        told = files_with(self, *given, **more)
        asked.append(told)
        return told

    monkeypatch.setattr(Ripgrep, "files_with", count)
    for seed in range(3):
        folder = root / str(seed)
        write_tree(random.Random(seed), folder)
        fill(folder, {"b.bin": b"foo\0", "wide": "foo".encode("utf-16"), "latin": b"foo \xe9"})
        fill(folder, {"-e": "foo", ".hidden": "foo bar", ".gitignore": "*.log\n", "a.log": "foo"})
        for pattern in PATTERNS:
            with_it = search(folder, pattern)
            monkeypatch.setattr(searching, "WORTH_A_HELPER", 10**9)
            without = search(folder, pattern)
            monkeypatch.setattr(searching, "WORTH_A_HELPER", 1)
            assert without == with_it, (seed, pattern)
    assert None not in asked
    return len(asked)


def test_results_are_the_same(install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a helper tells which files hold the words, the result is that of a search of all files, to the field."""
    install(STAND_IN)

    assert compare(tmp_path, monkeypatch) > 20


@pytest.mark.needs("rg")
def test_results_of_ripgrep_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same with the program itself."""
    monkeypatch.setattr(searching, "WORTH_A_HELPER", 1)

    assert compare(tmp_path, monkeypatch) > 20


FAILING = ("#!/bin/sh\nexit 2\n", "#!/bin/sh\nkill -9 $$\n", "#!/nowhere\n", "#!/bin/sh\nexec sleep 3600\n")


@pytest.mark.parametrize("text", FAILING)
def test_a_failing_helper_is_not_missed(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """Where it ends in an error, cannot be started or takes too long, all files are searched."""
    monkeypatch.setattr(ripgrep, "MAX_S", 0.5)
    install(text)
    fill(tmp_path, {"a.txt": "foo\n"})

    assert 1 == search(tmp_path, "foo")["count"]


def test_large_files_are_counted_all_the_same(install: Install, tmp_path: Path) -> None:
    """A file that is too large for a search is skipped, and not given to the helper."""
    install(STAND_IN)
    fill(tmp_path, {"a.txt": "foo\n"})
    with open(tmp_path / "huge", "wb") as file:
        file.truncate(2 * 2**30)

    assert (1, {"large": 1}) == (search(tmp_path, "foo")["count"], search(tmp_path, "foo")["skipped"])


def test_a_program_of_the_project_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies in the project may be anything; neither that nor a path that is not whole counts as installed."""
    fill(tmp_path, {"bin/rg": "#!/bin/sh\ntouch made\n"})
    (tmp_path / "bin/rg").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    for folder in (str(tmp_path / "bin"), "bin"):
        monkeypatch.setenv("PATH", folder)
        assert Ripgrep.find(tmp_path.resolve()) is None


def test_many_files_are_given_in_parts(install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More names than a command can have are given to several."""
    program = install(STAND_IN)
    monkeypatch.setattr(ripgrep, "MAX_NAMES", 20)
    files = {f"{number:03}.txt": "foo" if number % 7 == 0 else "bar" for number in range(50)}
    fill(tmp_path, files)
    told = Ripgrep(str(program), tmp_path).files_with(["foo"], [*files], ignore_case=True, stop=lambda: None)

    assert {name for name, text in files.items() if text == "foo"} == told


def test_whoever_ends_it_ends_the_helper(install: Install, tmp_path: Path) -> None:
    """A search that nobody waits for leaves no process behind."""
    program = install("#!/bin/sh\nexec sleep 3600\n")

    def stop() -> None:
        raise StoppedError

    with pytest.raises(StoppedError):
        Ripgrep(str(program), tmp_path).files_with(["foo"], ["a"], ignore_case=True, stop=stop)
