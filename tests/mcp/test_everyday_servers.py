"""The page with three everyday servers: its program does with real ones what the page says."""

from __future__ import annotations

import json
import tomllib

import pytest

from tests.mcp.servers import node_server, python_server
from tests.pages import ROOT, blocks
from tests.projects import Project

pytestmark = pytest.mark.timeout(600)
SERVERS = {
    "files": (node_server, "server-filesystem"),
    "memory": (node_server, "server-memory"),
    "clock": (python_server, "mcp-server-time"),
}


@pytest.mark.needs("node", "npm")
def test_the_program_of_the_page_does_what_the_page_says(project: Project) -> None:
    """With the servers that `npx` and `uvx` would bring, and with the arguments of the page."""
    found = blocks((ROOT / "docs" / "everyday-mcp.md").read_text("utf-8"))
    for block in found:
        if block.name:
            project.write(block.name, block.text)
    (told,) = [block.text for block in found if block.kind == "text"]
    described = tomllib.loads((project.folder / "koi.toml").read_text("utf-8"))["mcp"]
    lines = []
    for name, (install, package) in SERVERS.items():
        words = [word for word in described[name]["args"] if not word.startswith(("-y", "@")) and word != package]
        options = {**described[name], **install(package, *words)}
        lines += [f"[mcp.{name}]", *(f"{key} = {toml(value)}" for key, value in options.items())]
    project.write("koi.toml", "\n".join(lines))

    ran = project.koi("run", "--quiet", "evening.koi")

    assert (0, told) == (ran.returncode, ran.stdout), ran.stderr


def toml(value: object) -> str:
    """A value as `koi.toml` writes it."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {toml(each)}' for key, each in value.items())} }}"
    return json.dumps(value)
