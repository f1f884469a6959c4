"""What bubblewrap is asked for, word by word."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from koi_lang.runtime.command_sandbox import Sandbox, SandboxError
from koi_lang.runtime.guards import closed_files
from koi_lang.runtime.guards.closed_files import TooManyClosedFilesError, find_closed_files
from koi_lang.system.bubblewrap import Confinement, confined_words, find_bubblewrap

ALONE = "--unshare-all --die-with-parent --new-session --cap-drop ALL"
SYSTEM = "--ro-bind / / --dev /dev --proc /proc"


def test_a_whole_command_line() -> None:
    """Mounts stand in the order in which they are to lie over each other, the closed ones last."""
    confinement = Confinement(
        project="/w/p",
        work="/w/p/src",
        empty=["/home", "/tmp"],
        shown=["/home/me/.cargo"],
        changeable=["/w/p/.git"],
        fixed=["/w/p/koi.toml"],
        hidden_folders=["/w/p/.koi"],
        hidden_files=["/w/p/.env"],
    )
    expected = (
        f"/usr/bin/bwrap {ALONE} {SYSTEM} --tmpfs /home --tmpfs /tmp --ro-bind-try /home/me/.cargo /home/me/.cargo "
        "--bind /w/p /w/p --bind /w/p/.git /w/p/.git --ro-bind-try /w/p/koi.toml /w/p/koi.toml "
        "--tmpfs /w/p/.koi --remount-ro /w/p/.koi --ro-bind /dev/null /w/p/.env "
        "--setenv TMPDIR /tmp --chdir /w/p/src -- sh -c"
    ).split()

    assert [*expected, "make all"] == confined_words("/usr/bin/bwrap", confinement, ("sh", "-c", "make all"))


def test_the_network_is_given_back() -> None:
    """Only what is said of the network differs."""
    closed, open_ = (confined_words("bwrap", Confinement("/p", "/p", network=each), ["true"]) for each in (False, True))

    assert ["--share-net"] == [word for word in open_ if word not in closed]
    assert closed == [word for word in open_ if word != "--share-net"]
    assert open_.index("--unshare-all") < open_.index("--share-net")


def test_what_a_project_closes(tmp_path: Path) -> None:
    """Journals before they are there, secrets wherever they are, and what says what programs and git may do."""
    names = (
        "a/.env .env.example a/id_rsa a/notes node_modules/x/cacert.pem koi.toml own.koi .ssh/known_hosts "
        "sub/.koi/runs/1 venv/pyvenv.cfg venv/x.pem .git/HEAD .git/config .git/description .git/hooks/x .git/objects/x "
        ".git/refs/x .git/modules/a/HEAD .git/modules/a/objects/x .git/modules/a/refs/x bare/HEAD bare/objects/x "
        "bare/refs/x half/.git/config"
    )
    for name in names.split():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "linked.pem").symlink_to("a/notes")
    found = find_closed_files(tmp_path, {str(tmp_path / "own.koi").casefold()})

    def below(paths: Iterable[str]) -> list[str]:
        return sorted(str(Path(path).relative_to(tmp_path)) for path in paths)

    assert [".koi", ".ssh", "sub/.koi"] == below(found.folders)
    assert ["a/.env", "a/id_rsa", "a/notes"] == below(found.files)
    names = ("commondir", "config", "config.worktree", "hooks")
    of_git = [f"{folder}/{name}" for folder in (".git", ".git/modules/a", "bare") for name in names]
    missing = [".env", ".koi-config.json", ".mcp.json"]
    assert sorted([*of_git, *missing, ".git/description", "half/.git", "koi.toml", "own.koi"]) == below(found.fixed)
    assert [".git", ".git/modules", ".git/modules/a", "bare", "half/.git"] == below(found.held)


def test_too_much_to_hide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left open because there is much of it."""
    monkeypatch.setattr(closed_files, "MAX_CLOSED", 3)
    for number in range(4):
        (tmp_path / f"{number}.pem").write_text("")
    sandbox = Sandbox("bwrap", tmp_path, tmp_path.parent / "home")

    with pytest.raises(TooManyClosedFilesError, match="more than 3 files that are closed to agents"):
        find_closed_files(tmp_path)
    with pytest.raises(SandboxError, match="more than a sandbox can hide"):
        sandbox.prepare(["true"], tmp_path)


def test_programs_and_folders_that_are_hidden(tmp_path: Path) -> None:
    """A command that could only fail says what shows it what it needs."""
    project, home = tmp_path / "project", tmp_path / "home"
    (home / ".pyenv/bin").mkdir(parents=True)
    project.mkdir()
    (project / "python").symlink_to(home / ".pyenv/bin/python")
    (home / ".pyenv/bin/python").write_text("")
    sandbox = Sandbox("bwrap", project, home)
    shown = Sandbox("bwrap", project, home, ("~/.pyenv",))

    with pytest.raises(SandboxError, match=r'hidden from it; `\[shell\] home = \["~/.pyenv"\]` in `koi.toml` shows it'):
        sandbox.prepare([str(project / "python")], project)
    with pytest.raises(SandboxError, match="it begins in"):
        sandbox.prepare(["true"], home / ".pyenv")
    prepared = shown.prepare([str(project / "python")], project)
    prepared.repositories.end()

    assert str(home / ".pyenv") in prepared.confinement.shown


def test_a_project_brings_no_bubblewrap(tmp_path: Path) -> None:
    """A program of that name in the project, or in a folder of PATH that is relative, confines nothing."""
    for folder in (tmp_path / "project/bin", tmp_path / "bin"):
        folder.mkdir(parents=True)
        (folder / "bwrap").write_text("")
        (folder / "bwrap").chmod(0o755)
    folders = [".", "", str(tmp_path / "project/bin"), str(tmp_path / "nowhere")]

    assert find_bubblewrap(folders, tmp_path / "project") is None
    assert str(tmp_path / "bin/bwrap") == find_bubblewrap([*folders, str(tmp_path / "bin")], tmp_path / "project")
