"""Compiled programs are kept, and compiled again when anything they were made from has changed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from koi_lang import settings
from koi_lang.compiler import lalr
from koi_lang.program import build, cache
from koi_lang.program.files import absolute
from tests import forks
from tests.limits import LIMIT_S
from tests.projects import Project

MAIN = """
    import "./parts/words.koi"
    role Worker { can execute }
    agent Main : Worker { on start(args: Json) { console.log(greeting()) } }
    run Main.start({})
    """
WORDS = 'skill Words { export function greeting(): string { return "hello" } }'
# The role lacks the permission to send.
SUSPECT = """
    role Worker { can execute }
    agent Main : Worker {
      uses team Own
      on start(args: Json) { await send peers.event("other").any()(args) }
      on other(args: Json) { return args }
    }
    team Own { main: Main }
    run Main.start({})
    """
# Runs a program and says whether the parser was needed.
RUN = """
    import sys
    from koi_lang.cli import main
    try:
        main(["run", *sys.argv[1:], "main.koi"])
    except SystemExit as end:
        print("parsed" if "lark" in sys.modules else "not parsed", end.code)
    """


@pytest.fixture
def cached(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A program of two files that was run once, with a cache of its own."""
    lalr._lark.cache_clear()  # so that they are written, or read, again
    build.check(str(project.write("main.koi", MAIN)))
    (tables,) = settings.cache_folder().glob("*.lark")
    monkeypatch.setenv("KOI_CACHE_DIR", str(tmp_path / "cache"))
    settings.cache_folder().mkdir()
    shutil.copy(tables, settings.cache_folder())
    project.write("parts/words.koi", WORDS)
    assert ran(project) == ("hello\n", "", True)
    return project


def ran(project: Project) -> tuple[str, str, bool]:
    """What a run writes to stdout and stderr, and whether it has written modules to the cache."""
    before = written()
    done = project.koi("run", "main.koi")
    return done.stdout, done.stderr, written() != before


def written() -> list[tuple[int, int]]:
    """The files that hold modules, and when each was written."""
    return [(path.stat().st_ino, path.stat().st_mtime_ns) for path in modules()]


def modules() -> list[Path]:
    """The files of the cache that hold modules."""
    return sorted(settings.cache_folder().glob("*.koic"))


def test_an_unchanged_program_is_not_parsed(cached: Project) -> None:
    """The second run takes all modules from the cache."""
    assert cached.python(RUN).stdout == "hello\nnot parsed 0\n"


@pytest.mark.parametrize("name", [pytest.param("main.koi", marks=pytest.mark.thorough), "parts/words.koi"])
def test_a_changed_file_is_compiled_again(cached: Project, name: str) -> None:
    """A change of the program or of an imported file is seen at once."""
    path = cached.folder / name
    path.write_text(path.read_text("utf-8").replace("hello", "good day") + "\n", "utf-8")

    changed, again = cached.python(RUN).stdout, ran(cached)

    greeting = "hello" if name == "main.koi" else "good day"
    assert (changed, again) == (f"{greeting}\nparsed 0\n", (f"{greeting}\n", "", False))


def test_a_removed_import_is_noticed(cached: Project) -> None:
    """A program whose import has gone is compiled again, which tells so."""
    (cached.folder / "parts/words.koi").unlink()

    outcome = cached.koi("run", "main.koi")

    assert (outcome.returncode, outcome.stdout) == (65, "")
    assert outcome.stderr.startswith("error: there is no file")


def test_a_change_back_is_found(cached: Project) -> None:
    """What counts is the content of a file, not when it was written."""
    path = cached.folder / "main.koi"
    path.write_text(path.read_text("utf-8"), "utf-8")

    assert ran(cached) == ("hello\n", "", False)


def test_an_imported_file_is_cached_for_itself(cached: Project) -> None:
    """Each file has its own module in the cache, whoever imports it."""
    found = cache.find(absolute(str(cached.folder / "parts/words.koi")))

    assert (len(modules()), found is not None) == (2, True)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: b"not a module",
        lambda data: data[:-1],
        lambda data: data[: len(data) // 2],
        lambda data: data[:80] + bytes([data[80] ^ 1]) + data[81:],
        lambda data: data + b"more",
    ],
)
def test_damaged_files_are_ignored(cached: Project, damage: Callable[[bytes], bytes]) -> None:
    """A cache file that is cut, changed or something else is written anew, and nobody notices."""
    for path in modules():
        path.write_bytes(damage(path.read_bytes()))

    assert [ran(cached), ran(cached)] == [("hello\n", "", True), ("hello\n", "", False)]


def test_a_cache_that_cannot_be_written_is_no_error(cached: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no folder can be made, programs are compiled each time."""
    taken = cached.write("taken", "a file where a folder is wanted")

    monkeypatch.setenv("KOI_CACHE_DIR", str(taken))

    assert [ran(cached), ran(cached)] == [("hello\n", "", False)] * 2


def test_two_processes_at_once(cached: Project) -> None:
    """Processes that compile the same program at the same time do not disturb each other."""
    cache.clear()
    words = forks.koi("run", "main.koi")

    running = [
        subprocess.Popen(words, cwd=cached.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)
    ]
    outcomes = [process.communicate(timeout=LIMIT_S) for process in running]

    assert outcomes == [(b"hello\n", b"")] * 2
    assert (ran(cached), len(modules())) == (("hello\n", "", False), 2)


def test_nothing_else_is_left_in_the_folder(cached: Project) -> None:
    """No temporary file stays behind."""
    assert {".koic", ".lark"} == {path.suffix for path in settings.cache_folder().iterdir()}


def test_tables_fit_where_they_were_copied_to(cached: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In another folder the tables of the parser are read, and not made and written again."""
    (tables,) = settings.cache_folder().glob("*.lark")
    (tmp_path / "other").mkdir()
    copied = Path(shutil.copy(tables, tmp_path / "other"))
    before = copied.stat().st_mtime_ns
    monkeypatch.setenv("KOI_CACHE_DIR", str(copied.parent))

    lalr._token_parser.cache_clear()
    lalr.parse_tokens("")

    assert before == copied.stat().st_mtime_ns


def test_warnings_are_shown_again(project: Project) -> None:
    """A cached program warns as it did when it was compiled."""
    project.write("main.koi", SUSPECT)

    first, second = project.koi("run", "main.koi"), project.koi("run", "main.koi")

    assert first.stderr.startswith("warning: ")
    assert (second.stderr, second.returncode) == (first.stderr, 0)


def test_strict_looks_again(project: Project) -> None:
    """`--strict` finds in a cached program what it finds in a new one."""
    project.write("main.koi", SUSPECT)

    codes = [project.koi(*words, "main.koi").returncode for words in (["run"], ["run", "--strict"], ["run"])]

    assert codes == [0, 65, 0]


def test_no_cache_compiles_anew(cached: Project) -> None:
    """`--no-cache` parses a program that is in the cache."""
    outcome = cached.run(sys.executable, "-X", "importtime", "-m", "koi_lang", "run", "--no-cache", "main.koi")

    assert (outcome.stdout, " lark\n" in outcome.stderr) == ("hello\n", True)


def test_the_command_shows_the_cache(cached: Project) -> None:
    """`koi cache stats` tells the folder, how many files are in it, and their size."""
    shown = dict(line.split(maxsplit=1) for line in cached.koi("cache", "stats").stdout.splitlines())

    size = sum(path.stat().st_size for path in settings.cache_folder().iterdir())
    assert shown == {"folder": str(settings.cache_folder()), "files": "3", "size": f"{size / 1024:.1f} KiB"}


def test_the_command_clears_the_cache(cached: Project) -> None:
    """`koi cache clear` removes all files, those of others excepted; a second time there is nothing to remove."""
    kept = settings.cache_folder() / "somebody's.txt"
    kept.write_text("kept")

    shown = [cached.koi("cache", "clear").stdout for _ in range(2)]

    assert shown == ["removed 3 files\n", "removed 0 files\n"]
    assert list(settings.cache_folder().iterdir()) == [kept]


def test_a_cache_that_does_not_exist_is_empty(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asking for the cache before anything was compiled is no error."""
    monkeypatch.setenv("KOI_CACHE_DIR", str(tmp_path / "nowhere"))

    shown = project.koi("cache").stdout

    assert shown == f"folder  {tmp_path / 'nowhere'}\nfiles   0\nsize    0.0 KiB\n"
