"""Servers that others have written, each installed once into a folder of the user's cache, with fixed versions.

Every Python server lives in an environment of its own: they may need another version of the library than Koi does.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from tests.npm import cache_folder, locked, npm_package, require_installed

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
    folder = cache_folder("python") / f"{name}@{PYTHON[name]}"
    with locked(folder.with_name(f"{folder.name}.lock")):
        if not (folder / "installed").exists():
            _install(f"{name}=={PYTHON[name]}", folder)
    return {"command": str(folder / "bin" / name), "args": list(words)}


def _install(package: str, folder: Path) -> None:
    """Make an environment with one package; it counts as installed when everything is there."""
    shutil.rmtree(folder, ignore_errors=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", package]
    require_installed(package, sys.executable, "-m", "venv", str(folder))
    require_installed(package, *pip)
    (folder / "installed").touch()
