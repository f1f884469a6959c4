"""Git in the sandbox beside files that it does not see: it leaves them as they are."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.sandbox.conftest import Machine
from tests.sandbox.test_confinement import start
from tests.sandbox.test_repositories import ME, git

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="GIT IS MISSING: repositories are not tested")
COMMIT = f"git {' '.join(ME)} commit -qm b"
STASH = f"git {' '.join(ME)} stash"


def make(folder: Path, *tracked: str) -> None:
    """A repository with a file, and with some closed ones that it tracks; others are not ignored."""
    git(folder, "init", "-q", "-b", "main", ".")
    for name in ("a", *tracked):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("TOKEN=1\n")
    git(folder, "add", "-f", "a", *tracked)
    git(folder, "commit", "-qm", "a")
    (folder / "keys").mkdir(exist_ok=True)
    for name in ("keys/id_rsa", "keys/my [odd] server.pem"):
        (folder / name).write_text("secret\n")


@pytest.mark.parametrize("tracked", [[], [".env"], [".env", "conf/a b.pem"]])
def test_git_works_beside_closed_files(confined: Machine, tracked: list[str]) -> None:
    """Nothing but what the command has changed is added, stashed and shown, and the files stay as they were."""
    folder = confined.project
    make(folder, *tracked)
    before = [(folder / name).read_bytes() for name in (*tracked, "keys/id_rsa")]

    added = start(confined, f"git status --short; echo b > a; git add -A && {COMMIT} && git show --stat --format= HEAD")
    stashed = start(confined, f"echo c > a; {STASH} -q && {STASH} pop -q && git status --short && git diff --stat HEAD")
    stashed_all = start(confined, f"touch new; {STASH} -qu && git status --short; {STASH} pop -q; git status --short")

    assert (0, " a | 2 +-\n 1 file changed, 1 insertion(+), 1 deletion(-)\n") == added
    assert (0, " M a\n a | 2 +-\n 1 file changed, 1 insertion(+), 1 deletion(-)\n") == stashed
    assert (0, " M a\n?? new\n") == stashed_all
    assert before == [(folder / name).read_bytes() for name in (*tracked, "keys/id_rsa")]
    assert [] == [each for each in tracked if f" M {each}" in git(folder, "status", "--short")]


def test_git_works_beside_closed_files_of_odd_names(confined: Machine) -> None:
    """A clone may bring names that are no UTF-8, or of two lines."""
    folder = confined.project
    make(folder)
    for name in (b"k\xff.pem", b"k\nx.pem", b"k\\*.pem"):
        Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_text("secret\n")

    told = start(confined, f"git status --short; echo b > a; git add -A && {COMMIT} && git show --stat --format= HEAD")

    assert (0, " a | 2 +-\n 1 file changed, 1 insertion(+), 1 deletion(-)\n") == told


def test_a_tracked_file_that_the_person_has_changed(confined: Machine) -> None:
    """Its content does not get into a commit of a command, whatever its size is, and nobody sees it."""
    folder = confined.project
    make(folder, ".env")
    (folder / ".env").write_text("TOKEN=of the person\n")

    ended = start(confined, f"echo b > a; git add -A && {COMMIT} && git show --stat --format= HEAD; cat .env")

    assert (0, " a | 2 +-\n 1 file changed, 1 insertion(+), 1 deletion(-)\n" + "\n" * 20) == ended
    assert "TOKEN=1\n" == git(folder, "show", "HEAD:.env")
    assert " M .env" in git(folder, "status", "--short")


def test_settings_of_git_in_variables(confined: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the person have names of keys, so that no command has them; git does not miss one of them."""
    make(confined.project)
    monkeypatch.setenv("GIT_CONFIG_COUNT", "9")
    monkeypatch.setenv("GIT_CONFIG_KEY_8", "alias.mine")
    monkeypatch.setenv("GIT_CONFIG_VALUE_8", "status --short")

    assert (0, "") == start(confined, "git status --short")


def test_repositories_in_others_and_worktrees(confined: Machine) -> None:
    """What is closed is so from the top of the worktree that it lies in."""
    make(confined.project, "inner.pem")
    make_inner = confined.project / "lib"
    make_inner.mkdir()
    make(make_inner, ".env")
    git(confined.project, "worktree", "add", "-q", "tree")
    (confined.project / "tree/sub.env").write_text("x")

    assert (0, "?? lib/\n?? tree/\n") == start(confined, "git status --short")
    assert (0, "M  a\n") == start(confined, "cd lib && echo b > a && git add -A && git status --short")
    assert (0, "M  a\n") == start(confined, "cd tree && echo b > a && git add -A && git status --short")


def test_a_worktree_with_a_tracked_file_is_added(confined: Machine) -> None:
    """It has the file as it was committed, which the history of git shows as well."""
    make(confined.project, ".env")
    (confined.project / ".env").write_text("TOKEN=of the person\n")
    ended = start(confined, "git worktree add -q tree && git -C tree status --short && git show HEAD:.env")

    assert (0, "TOKEN=1\n") == ended
    assert "TOKEN=1\n" == (confined.project / "tree/.env").read_text()


def test_patterns_of_the_person_count(confined: Machine) -> None:
    """Where the home folder shows what git is to ignore everywhere, it is ignored."""
    make(confined.project)
    (confined.home / ".config/git").mkdir(parents=True)
    (confined.home / ".config/git/ignore").write_text("*.swp")
    confined.set_up('home = ["~/.config/git"]')
    (confined.project / "x.swp").touch()

    assert (0, "?? koi.toml\n") == start(confined, "git status --short")
