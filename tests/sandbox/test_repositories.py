"""Repositories of git and commands in the sandbox: what a command leaves there runs nothing outside of it."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from koi_lang.runtime.actions.command_output import Output
from koi_lang.runtime.command_process import start_command
from koi_lang.runtime.command_sandbox import find_sandbox
from koi_lang.runtime.guards.commands import Command, place_of
from koi_lang.runtime.guards.repositories import harmless_settings
from koi_lang.settings import read_settings
from koi_lang.system.open_folders import CLOCK_STEP_S
from tests.limits import LIMIT_S
from tests.playbook.playing import Player
from tests.sandbox.conftest import Machine
from tests.sandbox.test_confinement import run, start, wait_for

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="GIT IS MISSING: repositories are not tested")
ME = ("-c", "user.name=x", "-c", "user.email=x@x")
EVIL = r"[core]\n\tfsmonitor = touch RAN\n"
# Lets a repository that is not called `.git` have files, in a folder that is an argument of `printf`.
BARE = r"\trepositoryformatversion = 0\n\tbare = false\n\tworktree = %s\n"
# Has a repository read more settings, from a file of its own.
LAYERED = r"\trepositoryformatversion = 1\n\tbare = false\n[extensions]\n\tworktreeConfig = true\n"
HOOK = r"#!/bin/sh\ntouch RAN\n"


def git(folder: Path, *words: str, check: bool = True) -> str:
    """What git of the person writes."""
    done = subprocess.run(["git", *ME, *words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0 or not check, done
    return done.stdout


def make_repository(folder: Path) -> None:
    """A repository with one commit, as git makes it where templates hold nothing."""
    folder.mkdir(exist_ok=True)
    git(folder, "init", "-q", "--template=", "-b", "main", ".")
    (folder / ".git/info").mkdir()
    (folder / "a").write_text("a\n")
    git(folder, "add", "a")
    git(folder, "commit", "-qm", "a")


def work_as_the_person(folder: Path) -> None:
    """What people and editors do in a folder without thinking of it."""
    git(folder, "status", check=False)
    git(folder, "commit", "--allow-empty", "-qm", "b", check=False)


def in_a_repository(project: Path) -> None:
    """A project that is a repository without hooks."""
    make_repository(project)


def in_no_repository(project: Path) -> None:
    """A project without git."""


def in_a_project_with_others(project: Path) -> None:
    """A repository that holds a linked worktree, a submodule, and one of its own."""
    make_repository(project.parent / "library")
    make_repository(project)
    git(project, "-c", "protocol.file.allow=always", "submodule", "-q", "add", str(project.parent / "library"), "lib")
    git(project, "commit", "-qm", "lib")
    git(project, "worktree", "add", "-q", "tree")
    make_repository(project / "own")


def in_a_project_with_packages(project: Path) -> None:
    """A project without git, with a package that is a repository."""
    (project / "node_modules").mkdir()
    make_repository(project / "node_modules/sub")


Preparation = Callable[[Path], None]
COPY = f"cp -r .git evil; printf '{EVIL}' >> evil/config"
WAYS = [
    (in_a_repository, f"{COPY}; echo ../evil > .git/commondir", ""),
    (in_a_repository, f"mkdir -p .git/hooks; cd .git/hooks; printf '{HOOK}' > pre-commit; chmod +x pre-commit", ""),
    (in_a_repository, f"git config extensions.worktreeConfig true; printf '{EVIL}' > .git/config.worktree", ""),
    (
        in_a_repository,
        "rm .git/HEAD; cp -r .git/objects .git/refs .; echo ref: refs/heads/main > HEAD;"
        f" printf '{EVIL}{BARE}' $PWD > config",
        "",
    ),
    (
        in_a_repository,
        "git checkout -qb side; mkdir .git/rebase-merge; cd .git/rebase-merge; echo 'exec touch RAN' > git-rebase-todo;"
        " echo refs/heads/side > head-name; git rev-parse HEAD | tee onto > orig-head; touch interactive",
        "rebase",
    ),
    (in_no_repository, f"git init -q .; mkdir -p .git; printf '{EVIL}' >> .git/config", ""),
    (in_no_repository, f"git init -q sub; printf '{EVIL}' >> sub/.git/config", "sub"),
    (
        in_a_repository,
        f"mkdir node_modules; cd node_modules; git init -q sub; printf '{EVIL}' >> sub/.git/config;"
        " git -C sub -c user.name=x -c user.email=x@x commit -q --allow-empty -m x; cd ..; git add -f node_modules/sub",
        "",
    ),
    (in_a_project_with_packages, f"printf '{EVIL}' >> node_modules/sub/.git/config", "node_modules/sub"),
    (
        in_a_project_with_packages,
        f"cd node_modules/sub/.git; mkdir -p hooks; printf '{HOOK}' > hooks/pre-commit; chmod +x hooks/pre-commit",
        "node_modules/sub",
    ),
    (
        in_no_repository,
        "git init -q sub; cd sub/.git; mkdir -p hooks hooks.disabled; "
        f"printf '{HOOK}' > hooks/pre-commit; chmod +x hooks/*; chmod a-r . ..",
        "sub",
    ),
    (in_no_repository, f"git init -q --bare sub; printf '{EVIL}{BARE}' $PWD/sub > sub/config", "sub"),
    (
        in_no_repository,
        f"git init -q x; mv x/.git x/y; printf '{EVIL}' >> x/y/config; mkdir sub; ln -s ../x/y sub/.git",
        "sub",
    ),
    (in_a_project_with_others, f"{COPY}; rm -f tree/.git; echo 'gitdir: ../evil' > tree/.git", "tree"),
    (in_a_project_with_others, f"{COPY}; echo $PWD/evil > .git/worktrees/tree/commondir", "tree"),
    (
        in_a_project_with_others,
        f"mv .git/modules .git/x; cp -r .git/x .git/modules; printf '{EVIL}' >> .git/modules/lib/config",
        "lib",
    ),
    (
        in_a_project_with_others,
        "mkdir -p .git/modules/lib/hooks; cd .git/modules/lib/hooks;"
        f" printf '{HOOK}' > pre-commit; chmod +x pre-commit",
        "lib",
    ),
    (in_a_project_with_others, f"mv own x; mkdir own; git init -q own; printf '{EVIL}' >> own/.git/config", "own"),
    (
        in_a_project_with_others,
        f"git worktree add -q new; echo ../../../evil > .git/worktrees/new/commondir; {COPY}",
        "new",
    ),
    *(
        (
            in_a_repository,
            f"git init -q --bare {store}; printf '{EVIL}{BARE}' $PWD > {store}/config; ln -s {store} sub",
            "sub",
        )
        for store in (".git/objects/evil", ".git/refs/heads/evil", "x/.koi/evil", "x/.git/evil")
    ),
    (
        in_no_repository,
        "git init -q --bare x; git init -q --bare sub; rm -r x/HEAD sub/objects sub/refs sub/config;"
        " echo ../x > sub/commondir;"
        f" printf '{EVIL}{LAYERED}' > x/config;"
        f" printf '[core]\\n{BARE}' $PWD/sub > sub/config.worktree",
        "sub",
    ),
]


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("prepare", "text", "place"), WAYS)
def test_no_way_out(confined: Machine, prepare: Preparation, text: str, place: str) -> None:
    """What a command leaves is not run by git of the person; without the sandbox it is."""
    mark = confined.home / "ran"
    text = text.replace("RAN", str(mark))
    prepare(confined.project)
    start(confined, text)
    if place == "rebase":
        git(confined.project, "rebase", "--continue", check=False)
    elif (confined.project / place).is_dir():
        work_as_the_person(confined.project / place)

    assert not mark.exists()


EVERYDAY = """
set -e
alias me="git -c user.name=x -c user.email=x@x"
echo b > b; git add b; me commit -qm b; echo c >> b; me stash -q; me stash pop -q; me commit -aqm c
git checkout -qb side HEAD~1; me commit --allow-empty -qm d; me rebase -q main; git tag t; me merge -q main
git worktree list | wc -l; git worktree add -q new; git worktree remove new; git gc -q; git fsck --no-dangling
cd lib; touch x; git add x; me commit -qm x
cd ../tree; touch y; git add y; me commit -qm y
cd ../own; me commit -qm z --allow-empty; git log --format=%s
"""


def test_git_works_in_the_sandbox(confined: Machine) -> None:
    """In a repository, its submodules and its worktrees; nothing is left that git has not made."""
    in_a_project_with_others(confined.project)
    before = {path.name for path in (confined.project / ".git").iterdir()}
    code, output = start(confined, EVERYDAY)
    left = {path.name for path in (confined.project / ".git").iterdir()} - before

    assert (0, "2\nz\na\n") == (code, output)
    assert ["d", "c", "b", "lib", "a"] == git(confined.project, "log", "--format=%s").split()
    assert {"hooks", "packed-refs", "ORIG_HEAD", "AUTO_MERGE"} >= left


def test_stand_ins_stay_for_commands_that_run_at_the_same_time(confined: Machine) -> None:
    """One that has ended takes nothing from one that still runs; afterwards none is left."""
    make_repository(confined.project)
    text = "touch begun; while test -e begun; do sleep 0.01; done; echo x > .git/commondir"

    async def main() -> str:
        state = await find_sandbox(confined.project, read_settings(confined.project))
        command = Command(text, place_of(None, confined.project), "", sandbox=state.sandbox)
        output = Output()
        waiting, quick = (
            await start_command(command, is_merged=True),
            await start_command(replace(command, text="true")),
        )
        await quick.read_to_end([Output(), Output()], LIMIT_S)
        await asyncio.to_thread(wait_for, (confined.project / "begun").exists)
        (confined.project / "begun").unlink()
        await waiting.read_to_end([output], LIMIT_S)
        return output.text()

    assert "Read-only file system" in asyncio.run(main())
    assert not (confined.project / ".git/commondir").exists()
    assert not (confined.project / ".git/config.worktree").exists()


def test_repositories_of_the_person_stay_as_they_are(confined: Machine) -> None:
    """Wherever they are, and whatever they say, also while a command changes others."""
    places = [confined.project / name for name in ("own", ".venv/src/lib", "a/b/bare.git", "node_modules/lib")]
    for place in places:
        place.mkdir(parents=True)
        git(place, "init", "-q", *(["--bare"] if place.suffix else []))
        git(place, "config", "core.editor", "vi")
        folder = place if place.suffix else place / ".git"
        (folder / "hooks/post-commit").write_text("#!/bin/sh\n")
    (confined.project / ".venv/pyvenv.cfg").write_text("")
    before = {path: path.read_bytes() for path in confined.project.rglob("*") if path.is_file()}
    (confined.project / "locked").mkdir(mode=0o555)
    time.sleep(2 * CLOCK_STEP_S)
    start(confined, "git init -q new; mv own moved; mv moved own")

    assert 0o555 == (confined.project / "locked").stat().st_mode & 0o777
    assert before.items() <= {path: path.read_bytes() for path in confined.project.rglob("*") if path.is_file()}.items()


def test_the_person_and_the_model_are_told(play: Player, confined: Machine) -> None:
    """What was disabled is named, and stays as it was beside the place of git."""
    result = run(play, confined, "git init -q sub && cd sub && git config core.fsmonitor false")
    line = "`sub/.git/config` could run programs outside of the sandbox and is now `sub/.git/config.disabled`"

    assert [line] == result["disabled"]
    assert "\tfsmonitor = false\n" in (confined.project / "sub/.git/config.disabled").read_text()
    assert "false" != git(confined.project / "sub", "config", "--default", "none", "core.fsmonitor").strip()


def test_hooks_that_are_a_link(confined: Machine) -> None:
    """The folder of the project that they stand in is not changed; another link in their place counts for nothing."""
    make_repository(confined.project)
    (confined.project / "hooks").mkdir()
    (confined.project / ".git/hooks").symlink_to("../hooks")
    mark = confined.home / "ran"
    hook = HOOK.replace("RAN", str(mark))
    write = f"printf '{hook}' > pre-commit; chmod +x pre-commit"
    code, _ = start(
        confined, f"mkdir own; (cd own; {write}); rm .git/hooks; ln -s ../own .git/hooks; cd hooks && {write}"
    )
    work_as_the_person(confined.project)

    assert code != 0
    assert not mark.exists()


HARMLESS = '[core]\n\tbare = false\n[remote "origin"]\n\turl = https://example.org/a.git\n'


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        (HARMLESS, HARMLESS),
        ("[CORE]\n\tBare = false\n", "[CORE]\n\tBare = false\n"),
        ("[core] fsmonitor = x\n", ""),
        ("[core]\n\tbare = false\\\n\tfsmonitor = x\n", "[core]\n"),
        ('[core "a]"]\nfsmonitor = x\n', '[core "a]"]\n'),
        ("[include]\n\tpath = x\n[core]\n\tworktree = /\n", "[core]\n"),
        ("[alias]\n\tname = !x\n", ""),
        ('[remote "a"]\n\turl = ext::sh -c x\n\tuploadpack = x\n', '[remote "a"]\n'),
        ("[core]\r\n\tbare = false\r\n\thooksPath = x\r\n", "[core]\r\n\tbare = false\r\n"),
        ("\tbare = false\n\xef\xbb\xbf[core]\n\tfsmonitor\n", ""),
    ],
)
def test_settings_of_new_repositories(text: str, rest: str) -> None:
    """Lines that run nothing stay, whatever stands around them; all others go."""
    assert rest == harmless_settings(text)
