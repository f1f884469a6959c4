"""Patterns: those of git for paths, and `*` for names, wherever they are written."""

from __future__ import annotations

from pathlib import Path

import pytest

from koi_lang.grants import matches
from koi_lang.runtime.guards.access_rules import WantedAccess, parse_rule
from koi_lang.runtime.tree.gitignore import IgnoreFile
from koi_lang.service.file_events import stamp_files
from koi_lang.system.globs import file_matcher
from tests.projects import Project

# Patterns of paths with a path, and whether it is meant.
PATHS = [
    ("src/*", "src/b", True),
    ("src/*", "src/a/b", False),
    ("src/**", "src/a/b", True),
    ("docs/**/*.md", "docs/a.md", True),
    ("docs/**/*.md", "docs/x/y/a.md", True),
    ("docs/?.md", "docs/a.md", True),
    ("docs/?.md", "docs/ab.md", False),
    ("docs/[ab].md", "docs/a.md", True),
    ("docs/[!ab].md", "docs/a.md", False),
    ("docs/\\[a].md", "docs/[a].md", True),
    ("docs/\\[a].md", "docs/a.md", False),
    ("a/**/b/*", "a/x/b/c", True),
    ("a/**/b/*", "a/x/b/c/d", False),
]
# With braces, which git does not know, beside them.
BRACES = [
    ("{src,lib}/*.py", "lib/a.py", True),
    ("{src,lib}/*.py", "docs/a.py", False),
    ("a/*.{md,txt}", "a/b.txt", True),
]
# Patterns of names and of words, and texts.
NAMES = [
    ("read_*", "read_file", True),
    ("read_*", "write_file", False),
    ("git *", "git push", True),
    ("ls ?.py", "ls a.py", False),
    ("ls ?.py", "ls ?.py", True),
    ("[ -f *", "[ -f x ]", True),
    ("*.python.org", "docs.python.org", True),
]


@pytest.mark.parametrize(("pattern", "path", "is_meant"), [*PATHS, *BRACES])
def test_paths_are_read_alike(tmp_path: Path, pattern: str, path: str, is_meant: bool) -> None:
    """By rules that allow, by the tools for files, and by `when "file …"`."""
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text("")

    assert is_meant == parse_rule(f"write:{pattern}").covers(WantedAccess("write", path))
    assert is_meant == file_matcher(pattern)(path)
    assert is_meant == (path in stamp_files(tmp_path, pattern, {}))


@pytest.mark.parametrize(("pattern", "path", "is_meant"), PATHS)
def test_paths_are_read_as_by_git(pattern: str, path: str, is_meant: bool) -> None:
    """As in a `.gitignore`."""
    assert is_meant == bool(IgnoreFile(pattern).verdict(path.rpartition("/")[2], path, is_folder=False))


@pytest.mark.parametrize(("pattern", "text", "is_meant"), NAMES)
def test_names_are_read_alike(pattern: str, text: str, is_meant: bool) -> None:
    """By rules for commands and hosts, and by grants of a server's tools: `*` alone is a wildcard."""
    kind = "web" if "." in pattern and " " not in pattern else "run"
    access = WantedAccess(kind, text)

    assert is_meant == matches(pattern, text)
    assert is_meant == parse_rule(f"{kind}:{pattern}").covers(access) == parse_rule(f"{kind}:{pattern}").means(access)


def test_rules_that_deny_mean_all_that_is_in_a_folder() -> None:
    """What an allowing rule would not cover, and the folder itself, so that it is not removed as a whole."""
    denying = parse_rule("write:src/*")

    assert denying.means(WantedAccess("write", "src/a/b"))
    assert parse_rule("write:src/**").means(WantedAccess("write", "src"))
    assert not denying.covers(WantedAccess("write", "src/a/b"))


def test_a_guess_of_a_closed_file_is_not_confirmed(project: Project) -> None:
    """What a file holds that may not be read is not told by writing the same into it either."""
    project.write("koi.toml", '[permissions]\ndeny = ["*:secret/**"]\n')
    project.write("secret/pin.txt", "1234\n")
    project.write(
        "main.koi",
        """
        import "std/code"
        role W { can read, can write }
        agent A : W {
          on go(args: { text: string }) {
            try { return await callAction("write_file", { path: "secret/pin.txt", content: args.text }) }
            catch (error) { return error.message }
          }
          on start(args: Json) {
            console.log(await this.handle("go", { text: "1234\\n" }) === await this.handle("go", { text: "9\\n" }))
          }
        }
        run A.start({})
        """,
    )
    done = project.koi("run", "main.koi")

    assert ("true\n", "") == (done.stdout, done.stderr)
