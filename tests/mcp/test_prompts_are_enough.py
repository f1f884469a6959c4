"""Each tool of the reference servers is called rightly from what a prompt says of it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from koi_lang.runtime.mcp import process
from tests.mcp.conftest import Shelf
from tests.mcp.reader import Reader
from tests.mcp.servers import node_server, python_server
from tests.mcp.test_errands import Person
from tests.mcp.test_reference_servers import page as page
from tests.playbook.playing import Played, Voice

# The first test of each server may have to install it.
pytestmark = pytest.mark.timeout(600)


def read(shelf: Shelf, options: dict[str, Any], **wishes: Any) -> tuple[Played, list[str]]:
    """What comes of a playbook whose model calls each tool as the prompt says, and the tools that it called."""
    reader = Reader({name.replace("__", "."): value for name, value in wishes.items()})
    return shelf.play(shelf.program(**options), Voice(reader.speak)), reader.called


def failures(played: Played) -> list[str]:
    """What the model was told about calls that failed."""
    assert played.error is None, played.told
    return [text for text in played.feedback if text.startswith("❌")]


@pytest.mark.needs("node", "npm")
def test_files(shelf: Shelf, tmp_path: Path) -> None:
    """Fourteen tools, one with a list of objects: each is accepted and does what it should."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    (folder / "a.txt").write_text("one\ntwo\n", "utf-8")
    here, file = str(folder), str(folder / "a.txt")
    on_folders = ("list_directory", "list_directory_with_sizes", "directory_tree", "search_files")
    wishes = {"path": file, "paths": file, "oldText": "one", "newText": "three", "content": "one\ntwo\n", "head": 1}
    wishes |= {f"{tool}__path": here for tool in on_folders} | {"create_directory__path": f"{here}/new"}
    wishes |= {"source": file, "destination": f"{here}/b.txt", "get_file_info__path": f"{here}/b.txt"}
    played, called = read(shelf, node_server("server-filesystem", here), **wishes)

    assert ([], 14) == (failures(played), len(called))
    assert "three\ntwo\n" == (folder / "b.txt").read_text("utf-8")


@pytest.mark.needs("node", "npm")
def test_memory(shelf: Shelf, tmp_path: Path) -> None:
    """Nine tools that take lists of objects with lists in them."""
    options = {**node_server("server-memory"), "env": {"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}}
    wishes = {"name": "Ada", "entityName": "Ada", "from": "Ada", "to": "Ada", "entityType": "person"}
    played, called = read(shelf, options, **wishes, contents="likes engines", delete_entities__entityNames="Bob")

    assert ([], 9) == (failures(played), len(called))
    assert '"observations":["likes engines"]' in (tmp_path / "memory.jsonl").read_text("utf-8")


@pytest.mark.needs("node", "npm")
def test_everything(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    """Enumerations, defaults, numbers with bounds; the only tool that is not called needs tasks, and is not told."""
    monkeypatch.setattr(process, "LEAVE_S", 0.2)  # what it simulates keeps it from ending by itself
    data = "data:text/plain;base64,aGk="
    reader = Reader({"data": data, "duration": 0.1, "url": "https://example.org", "prompt": "Name a colour."})
    person = Person(approvals=["yes"] * 3, answers=["Ada", "yes", *[""] * 20])
    played = shelf.play(shelf.program(**node_server("server-everything")), Voice(reader.speak), host=person)

    assert [] == failures(played)
    assert {"get-sum", "get-annotated-message", "get-resource-links", "gzip-file-as-resource"} <= set(reader.called)
    assert "simulate-research-query" not in reader.called


@pytest.mark.counterpart
def test_time(shelf: Shelf) -> None:
    """What a text has to look like stands in its description, which is told whole."""
    zones = {"timezone": "Etc/UTC", "source_timezone": "Europe/London", "target_timezone": "Asia/Tokyo"}
    played, called = read(shelf, python_server("mcp-server-time"), **zones, time="12:00")

    assert ([], ["get_current_time", "convert_time"]) == (failures(played), called)
    assert "24-hour format (HH:MM)" in played.requests[0].system


@pytest.mark.counterpart
def test_fetch(shelf: Shelf, page: str) -> None:
    """The whole description of the only tool is told: its end says the opposite of its beginning."""
    options = {**python_server("mcp-server-fetch", "--allow-private-ips")}
    played, called = read(shelf, {**options, "env": {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}}, url=page)

    assert ([], ["fetch"]) == (failures(played), called)
    assert "Now you can fetch the most up-to-date information and let the user know that." in played.requests[0].system


@pytest.mark.needs("git")
def test_git(shelf: Shelf, tmp_path: Path) -> None:
    """Twelve tools, some with fields that may be null."""
    repository = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", "-b", "main", str(repository)], check=True)
    (repository / "new.txt").write_text("new", "utf-8")
    for command in (["add", "."], ["-c", "user.name=A", "-c", "user.email=a@b", "commit", "-qm", "first"]):
        subprocess.run(["git", "-C", str(repository), *command], check=True)
    (repository / "new.txt").write_text("newer", "utf-8")
    subprocess.run(["git", "-C", str(repository), "add", "."], check=True)
    wishes = {"repo_path": str(repository), "target": "main", "files": "new.txt", "message": "more", "revision": "main"}
    played, called = read(shelf, python_server("mcp-server-git"), **wishes, branch_name="side", branch_type="local")

    assert ([], 12) == (failures(played), len(called))
