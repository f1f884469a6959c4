"""Servers that others have written, each installed once into a folder of the user's cache, with fixed versions.

Every Python server lives in an environment of its own: they may need another version of the library than Koi does.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.limits import LIMIT_S
from tests.npm import locked, npm_package

NODE = {
    "server-everything": "2026.8.31",
    "server-filesystem": "2026.8.31",
    "server-memory": "2026.8.31",
}
PYTHON = {
    "mcp-server-time": "2026.10.19",
    "mcp-server-fetch": "2026.10.24",
    "mcp-server-git": "2026.10.19",
}

__all__ = ["NODE", "PYTHON", "node_server", "python_server"]


def node_server(name: str, *words: str) -> dict[str, object]:
    """The options of a server written for Node; one version of it is installed if it is not yet."""
    folder = npm_package(f"@modelcontextprotocol/{name}", NODE[name])
    script = folder / "node_modules" / "@modelcontextprotocol" / name / "dist" / "index.js"
    return {"command": "node", "args": [str(script), *words]}


def python_server(name: str, *words: str) -> dict[str, object]:
    """The options of a server written in Python; the test is skipped where it cannot be installed."""
    folder = _cache() / f"{name}@{PYTHON[name]}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder.with_name(f"{folder.name}.lock")):
        if not (folder / "installed").exists():
            _install(f"{name}=={PYTHON[name]}", folder)
    return {"command": str(folder / "bin" / name), "args": list(words)}


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "koi-test-servers" / "python"


def _install(package: str, folder: Path) -> None:
    """Make an environment with one package; it counts as installed when everything is there."""
    shutil.rmtree(folder, ignore_errors=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", package]
    for command in ([sys.executable, "-m", "venv", str(folder)], pip):
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        if done.returncode:
            pytest.skip(f"`{package}` CANNOT BE INSTALLED, SO NOTHING IS TESTED AGAINST IT:\n{done.stderr[-500:]}")
    (folder / "installed").touch()
