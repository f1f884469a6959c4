"""Files that agents work on: what is open, what is closed, and what happens between the look and the use."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from koi_lang.errors import AgentError, KoiError, PermissionDeniedError
from koi_lang.runtime.guards.paths import project_path
from koi_lang.runtime.guards.working_files import working_path
from koi_lang.system.open_folders import open_folder, open_inside

Resolve: TypeAlias = Callable[[Path, str], Path]
SECRETS = [
    ".env", ".env.local", "prod.env", ".ENV", ".env ", ".env.", ".env::$DATA", "\uff0eenv", "keys/id_rsa",
    "id_ed25519.bak", "server.pem", "tls/server.KEY", ".npmrc", ".netrc", ".ssh/config", ".aws/config", "credentials",
    "credentials.json", "client_secret.json", "secrets.yaml", "db-credentials.yml", "service-account.json",
    "terraform.tfstate", "my.kdbx", "tls/a:b.pem", "tls/prod:db.env", "tls/\u2100.pem",
]  # fmt: skip
OPEN = [
    "main.py", ".env.example", ".env.sample", "secrets.py", "test_credentials.py", "id_rsa.pub", "keys.md",
    ".gitignore", ".github/workflows/ci.yml", "monkey.txt", "environment.yml", "docs/secrets.md", "a b.txt", "src/",
    "./src/a.py",
]  # fmt: skip


@pytest.mark.parametrize("path", SECRETS)
def test_names_that_hold_secrets_are_closed(tmp_path: Path, path: str) -> None:
    """However a system may read the name."""
    with pytest.raises(PermissionDeniedError, match="closed to agents"):
        working_path(tmp_path, path)


@pytest.mark.parametrize("path", OPEN)
def test_other_names_are_open(tmp_path: Path, path: str) -> None:
    """Code, templates and public keys are no secrets, whatever they are called after."""
    assert working_path(tmp_path, path).is_relative_to(tmp_path.resolve())


@pytest.mark.parametrize(
    "path",
    ["../x", "a/../../x", "/etc/passwd", "~/x", "C:\\x", "\\\\host\\x", "link/x", "out", "a\x00b", "a\nb", "", " ",
     ".git/config", "sub/.git/hooks/pre-commit", ".koi/runs", ".GIT/config", ".koi"],
)  # fmt: skip
def test_nothing_leads_out(tmp_path: Path, path: str) -> None:
    """Not by dots, roots or links, nor into what Koi and git keep."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "link").symlink_to(tmp_path)
    (project / "out").symlink_to("/etc/passwd")

    with pytest.raises(AgentError):
        working_path(project, path)


@pytest.mark.parametrize("resolve", [working_path, project_path])
@pytest.mark.parametrize(
    ("path", "message", "help"),
    [
        ("src/../b.txt", "has `..` in it", "Write `b.txt`."),
        ("a\\..\\b", "has `..` in it", "Write `b`."),
        ("src/..", "has `..` in it", "Write `.`."),
        ("HERE/src/../b.txt", "has `..` in it", "Write `b.txt`."),
        ("loop/b.txt", "the links on the way to", "Name another file."),
        ("..", "lies outside of the project", "Name a file below the folder of the project, without `..`."),
    ],
)
def test_what_is_wrong_with_a_path(tmp_path: Path, resolve: Resolve, path: str, message: str, help: str) -> None:
    """A path that leads into the project is not said to lie outside, and the one to write is named."""
    (tmp_path / "loop").symlink_to("loop")

    with pytest.raises(AgentError) as caught:
        resolve(tmp_path, path.replace("HERE", str(tmp_path)))

    assert (True, help) == (message in caught.value.message, caught.value.help)


def test_paths_of_programs_begin_in_the_project(tmp_path: Path) -> None:
    """Code names files from the folder of the project; agents may write where it lies, too."""
    with pytest.raises(AgentError, match="is not a path from the folder of the project") as caught:
        project_path(tmp_path, f"{tmp_path}/b.txt")

    assert ("Write `b.txt`.", tmp_path / "b.txt") == (caught.value.help, working_path(tmp_path, f"{tmp_path}/b.txt"))


def test_a_link_to_a_secret_is_closed(tmp_path: Path) -> None:
    """What a link leads to counts as well as its own name."""
    (tmp_path / ".env").write_text("KEY=1")
    (tmp_path / "notes.txt").symlink_to(".env")

    with pytest.raises(PermissionDeniedError, match="hold secrets"):
        working_path(tmp_path, "notes.txt")


def test_absolute_paths_in_the_project_are_taken(tmp_path: Path) -> None:
    """Models write them after having seen one."""
    assert tmp_path.resolve() / "a.py" == working_path(tmp_path, f"{tmp_path.resolve()}/a.py")


def test_settings_are_read_and_not_changed(tmp_path: Path) -> None:
    """`koi.toml` says what programs may do, in any spelling that a system takes for it."""
    assert working_path(tmp_path, "koi.toml")
    for name in ("koi.toml", "Koi.TOML", "koi.toml."):
        with pytest.raises(PermissionDeniedError, match="only be changed by the person"):
            working_path(tmp_path, name, changing=True)


def test_a_link_that_comes_in_between_is_not_followed(tmp_path: Path) -> None:
    """A thread replaces a folder by a link, again and again: nothing outside is ever opened."""
    project, outside = tmp_path / "project", tmp_path / "outside"
    for folder in (project / "src", outside):
        folder.mkdir(parents=True)
    (project / "src/a.txt").write_text("inside")
    (outside / "a.txt").write_text("outside")
    is_over = threading.Event()

    def swap() -> None:
        while not is_over.is_set():
            os.rename(project / "src", project / "kept")
            os.symlink(outside, project / "src")
            os.unlink(project / "src")
            os.rename(project / "kept", project / "src")
            is_over.wait(0.0005)  # long enough for some to come through

    other = threading.Thread(target=swap)
    other.start()
    seen: set[str] = set()
    try:
        for _ in range(2000):
            try:
                with open(open_inside(project, working_path(project, "src/a.txt"))) as file:
                    seen.add(file.read())
            except (KoiError, OSError):
                seen.add("refused")
    finally:
        is_over.set()
        other.join()

    assert "outside" not in seen
    assert "inside" in seen


def test_folders_are_made_on_the_way(tmp_path: Path) -> None:
    """One below the other; a link in the place of one is refused."""
    os.close(open_folder(tmp_path, tmp_path.resolve() / "a/b", make=True))
    (tmp_path / "link").symlink_to("/tmp")

    assert (tmp_path / "a/b").is_dir()
    with pytest.raises(OSError, match=r"link|directory"):
        open_folder(tmp_path, tmp_path.resolve() / "link/b", make=True)
