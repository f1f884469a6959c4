"""Servers that others have written, used from code as programs use them; `servers.py` installs them."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from operator import contains
from pathlib import Path
from typing import Any

import pytest

from benchmarks import recalling
from koi_lang.runtime.guidance.notes import FOLDER, parse_note
from tests.mcp.conftest import Shelf
from tests.mcp.servers import node_server, python_server
from tests.mcp.test_errands import Person
from tests.playbook.playing import Played

# The first test of each server may have to install it.
pytestmark = [pytest.mark.timeout(600), pytest.mark.counterpart]


def use(shelf: Shelf, options: dict[str, Any], body: str, *answers: Any, **services: Any) -> Played:
    """What comes of code that calls a server `files`."""
    source = shelf.program(code=f"on code(args) {{ {body} }}", **options)
    played = shelf.play(source, list(answers), call="Main.code", **services)
    assert played.error is None, played.told
    return played


@pytest.mark.needs("node", "npm")
def test_everything_calls(shelf: Shelf) -> None:
    """Texts, structured results and images come back, a wrong argument is refused before it is sent."""
    played = use(
        shelf,
        node_server("server-everything"),
        """
        const sum = await files["get-sum"]({ a: 2, b: 3 })
        const weather = await files["get-structured-content"]({ location: "Chicago" })
        const image = (await files["get-tiny-image"]()).content.find(item => item.type === "image")
        let told = ""
        try { await files["get-sum"]({ a: 2 }) } catch (e) { told = e.message }
        return [sum.result, Object.keys(weather).includes("temperature"), image.mimeType, image.data.length > 100, told]
        """,
    )
    told = "`files.get-sum` cannot be called with this `input`: it lacks `b`"

    assert ["The sum of 2 and 3 is 5.", True, "image/png", True, told] == played.result


@pytest.mark.needs("node", "npm")
def test_everything_tells_progress(shelf: Shelf) -> None:
    """A long operation tells each of its steps."""
    body = 'return await files["trigger-long-running-operation"]({ duration: 0.1, steps: 4 })'
    played = use(shelf, node_server("server-everything"), body)

    assert [1, 2, 3, 4] == [event.fields["progress"] for event in played.events if event.type == "mcp_progress"]


@pytest.mark.needs("node", "npm")
def test_everything_asks_for_a_model(shelf: Shelf) -> None:
    """Its request for a model is answered by the agent's, after the person has agreed."""
    body = 'return await files["trigger-sampling-request"]({ prompt: "Name a colour.", maxTokens: 20 })'
    played = use(shelf, node_server("server-everything"), body, "green", host=Person(approvals=["yes"]))

    assert "green" in json.dumps(played.result)
    assert "Name a colour." in played.requests[0].messages[0].text


@pytest.mark.needs("node", "npm")
def test_everything_asks_the_person(shelf: Shelf) -> None:
    """Its form of many fields is put to the person, one after the other; with nobody there it hears that."""
    options, body = node_server("server-everything"), 'return await files["trigger-elicitation-request"]()'
    host = Person(answers=["Ada", "yes", *[""] * 20])
    answered, declined = use(shelf, options, body, host=host), use(shelf, options, body)

    assert "Ada" in json.dumps(answered.result)
    assert "declined" in json.dumps(declined.result)


@pytest.mark.needs("node", "npm")
def test_everything_has_documents_and_prompts(shelf: Shelf) -> None:
    """Its documents are listed and read, its prompts are text."""
    played = use(
        shelf,
        node_server("server-everything"),
        """
        const { resources, templates } = await files.resource()
        const page = await files.resource(resources[0].uri)
        return [resources.length > 0, templates.length > 0, page.text.length > 0,
                await files.prompt("args-prompt", { city: "Oslo" })]
        """,
    )

    assert [True] * 3 == played.result[:3]
    assert "Oslo" in played.result[3]


@pytest.mark.needs("node", "npm")
def test_files_are_written_and_read(shelf: Shelf, tmp_path: Path) -> None:
    """A file that is written is there; what lies outside of its folder is refused, in its own words."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    played = use(
        shelf,
        node_server("server-filesystem", str(folder)),
        """
        await files.write_file({ path: args.folder + "/a.txt", content: "one\\ntwo" })
        const { content } = await files.read_text_file({ path: args.folder + "/a.txt", head: 1 })
        let told = ""
        try { await files.read_text_file({ path: "/etc/hostname" }) } catch (e) { told = e.message }
        return [content, told]
        """.replace("args.folder", json.dumps(str(folder))),
    )

    assert ("one", "one\ntwo") == (played.result[0], (folder / "a.txt").read_text("utf-8"))
    assert played.result[1].startswith("`files.read_text_file` failed: Access denied - path outside allowed")


@pytest.mark.needs("node", "npm")
def test_a_graph_is_remembered(shelf: Shelf, tmp_path: Path) -> None:
    """What one run tells the memory, the next one finds."""
    options = {**node_server("server-memory"), "env": {"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}}
    entity = '{ name: "Ada", entityType: "person", observations: ["likes engines"] }'
    use(shelf, options, f"return await files.create_entities({{ entities: [{entity}] }})")
    found = use(shelf, options, 'return await files.search_nodes({ query: "engines" })').result

    assert ["Ada"] == [entity["name"] for entity in found["entities"]]


@pytest.mark.needs("node", "npm")
def test_recall_finds_more_than_the_memory_server(shelf: Shelf, tmp_path: Path) -> None:
    """The same notes and questions: asked as it is, and then by its words, as a model would have to try them."""
    project = tmp_path / "notes"
    questions = recalling.write_corpus(project)
    words = [[*recalling.WORD.findall(question), *recalling.RUN.findall(question)] for _, question, _ in questions]
    notes = [parse_note(file.read_text("utf-8"), file.stem) for file in sorted((project / FOLDER).iterdir())]
    entities = [{"name": note.id, "entityType": note.kind, "observations": [note.text]} for note in notes]
    memory = "".join(json.dumps({"type": "entity", **entity}) + "\n" for entity in entities)
    (tmp_path / "memory.jsonl").write_text(memory)
    options = {**node_server("server-memory"), "env": {"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}}
    asked = json.dumps([question for _, question, _ in questions]), json.dumps(words)
    body = f"""
        const names = async (query) => (await files.search_nodes({{ query }})).entities.map(each => each.name)
        const whole = [], ranked = []
        for (const question of {asked[0]}) whole.push((await names(question)).slice(0, 5))
        for (const words of {asked[1]}) {{
          const hits = {{}}
          for (const word of words) for (const name of await names(word)) hits[name] = (hits[name] ?? 0) + 1
          ranked.push(Object.keys(hits).sort((a, b) => hits[b] - hits[a] || (a < b ? -1 : 1)).slice(0, 5))
        }}
        return {{ whole, ranked }}
        """
    answers = [answer for _, _, answer in questions]
    theirs = use(shelf, options, body).result
    ours = [recalling.recall(project, question) for _, question, _ in questions]

    found = [sum(map(contains, way, answers)) for way in (ours, theirs["ranked"], theirs["whole"])]
    assert (200, 60) == (len(notes), len(questions))
    assert [58, 0] == [found[0], found[2]]
    assert found[0] > found[1]


def test_times_are_converted(shelf: Shelf) -> None:
    """A tool of a Python server gives JSON, and says what is wrong with a time zone."""
    played = use(
        shelf,
        python_server("mcp-server-time"),
        """
        const given = { source_timezone: "Europe/Paris", time: "12:00", target_timezone: "Asia/Tokyo" }
        let told = ""
        try { await files.get_current_time({ timezone: "Mars/Olympus" }) } catch (e) { told = e.message }
        return [(await files.convert_time(given)).target.timezone, told]
        """,
    )

    assert "Asia/Tokyo" == played.result[0]
    assert played.result[1].startswith("`files.get_current_time` failed: ")
    assert "Mars/Olympus" in played.result[1]


class Page(BaseHTTPRequestHandler):
    """One page, and no rules for robots."""

    def do_GET(self) -> None:
        """Give it."""
        known = self.path == "/page"
        self.send_response(200 if known else 404)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<html><body><h1>Oak</h1><p>A shelf of oak.</p></body></html>" if known else b"")

    def log_message(self, format: str, *values: Any) -> None:
        """Say nothing."""


@pytest.fixture
def page() -> Iterator[str]:
    """The address of a page on this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/page"
        server.shutdown()
        thread.join()


def test_a_page_is_fetched(shelf: Shelf, page: str) -> None:
    """A server that is called as a built-in function gives a page as text."""
    options = python_server("mcp-server-fetch", "--allow-private-ips")
    direct = {"env": {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}}
    source = shelf.program(code="on code(args) { return await fetch.fetch(args) }", **options, **direct)
    renamed = source.replace("mcp files", "mcp fetch")
    played = shelf.play(renamed, [], call="Main.code", payload={"url": page, "raw": True})

    assert "A shelf of oak." in json.dumps(played.result), played.told


@pytest.mark.needs("git")
def test_a_repository_is_looked_at(shelf: Shelf, tmp_path: Path) -> None:
    """The state of a repository is text; a folder that is none is a failure of the tool."""
    repository = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    (repository / "new.txt").write_text("new", "utf-8")
    path = json.dumps(str(repository))
    played = use(
        shelf,
        python_server("mcp-server-git"),
        f"""
        let told = ""
        try {{ await files.git_status({{ repo_path: "/nowhere" }}) }} catch (e) {{ told = e.message }}
        return [(await files.git_status({{ repo_path: {path} }})).result, told]
        """,
    )

    assert "new.txt" in played.result[0]
    assert played.result[1].startswith("`files.git_status` failed: ")
