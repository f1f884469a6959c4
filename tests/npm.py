"""Packages that tests use as counterparts, each installed once into a folder of the user's cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path

import pytest

from tests.limits import LIMIT_S


def npm_package(name: str, version: str) -> Path:
    """The folder with the `node_modules` that hold one version of a package and what it needs.

    It is installed when it is asked for the first time on this machine; scripts of packages are not run. Tests that
    ask at the same time wait for each other.
    """
    folder = cache_folder("npm") / f"{name}@{version}"
    folder.parent.mkdir(exist_ok=True)
    with locked(folder.with_name(f"{folder.name}.lock")):
        if not folder.is_dir():
            _install(f"{name}@{version}", folder)
    return folder


def npm_program(name: str, version: str, command: str) -> Path:
    """The path of a command that a package brings along."""
    return npm_package(name, version) / "node_modules" / ".bin" / command


def locked_packages(project: Path) -> Path:
    """The `node_modules` of what a project's `package-lock.json` names, installed once for each state of that file."""
    manifests = [project / name for name in ("package.json", "package-lock.json")]
    state = sha256(manifests[1].read_bytes()).hexdigest()[:16]
    folder = cache_folder("npm") / f"{project.name}-{state}"
    with locked(folder.with_name(f"{folder.name}.lock")):
        if not folder.is_dir():
            _install(project.name, folder, *manifests)
    return folder / "node_modules"


def cache_folder(kind: str) -> Path:
    """The folder for packages of a kind; one of this machine where the user has no folder that can be written."""
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        folder = (Path(base) if base else Path.home() / ".cache") / "koi-test-servers" / kind
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except (OSError, RuntimeError):
        pass
    folder = Path(tempfile.gettempdir()) / f"koi-test-servers-{os.getuid()}" / kind
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def require_installed(package: str, *command: str) -> None:
    """Carry out a command that installs a package; tests are skipped where it cannot be, and say so."""
    if problem := _problem_of(*command):
        pytest.skip(f"`{package}` CANNOT BE INSTALLED, SO NOTHING IS TESTED AGAINST IT:\n{problem[-500:]}")


@cache
def _problem_of(*command: str) -> str:
    """Why a command fails, which is tried once; empty where it does not."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return f"it takes longer than {LIMIT_S:g} s"
    return (done.stderr or f"exit code {done.returncode}") if done.returncode else ""


def _install(package: str, folder: Path, *manifests: Path) -> None:
    """Install beside the folder, under a name that is given up when everything is there."""
    waiting = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(waiting, ignore_errors=True)
    waiting.mkdir()
    for manifest in manifests:
        shutil.copy(manifest, waiting)
    what = ["ci"] if manifests else ["install", package]
    require_installed(package, "npm", *what, "--prefix", str(waiting), "--ignore-scripts", "--no-audit", "--no-fund")
    waiting.rename(folder)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock that other processes respect."""
    import fcntl

    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
