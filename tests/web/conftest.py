"""What tests of the pages start from: commands in a folder, recorded runs, Node, and a browser."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from koi_lang.web.pages import STATIC
from tests.journal.commands import Commands
from tests.limits import LIMIT_S
from tests.projects import Project

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
DESK = """
role Boss { can delegate, can execute }
role Hand { can execute }
team Desk { counter: Counter }
agent Counter : Hand {
  affordance "Counts the words of a text."
  on count(args: { text: string }) {
    console.log("counting")
    return { words: args.text.split(" ").length }
  }
}
agent Editor : Boss {
  uses team Desk
  state { last = "" }
  on start(args: { topic: string, loud?: boolean }) {
    playbook "Have the words of {{args.topic}} counted, ask whether to publish, and return { words, published }."
  }
}
run Editor.start({ topic: "tea is one plant" })
"""
ANSWERS = [
    {"id": "n", "actionType": "delegate", "intent": "counter::count", "data": {"text": "tea is one plant"}},
    {"id": "q", "intent": "prompt_user", "question": "Publish?", "options": ["yes", "no"]},
    {
        "batch": [
            {"intent": "update_state", "updates": {"last": "tea"}},
            {"intent": "return", "data": {"words": "${n.output.words}", "published": "${q.output.answer}"}},
        ]
    },
]


@pytest.fixture
def koi(project: Project) -> Commands:
    """Runs commands inside the test process, in an empty folder."""
    return Commands(project)


@pytest.fixture
def desk(koi: Commands) -> Path:
    """The journal of a run with a model, a delegate and a question."""
    done = koi.record(DESK, ANSWERS, stdin="yes\n")
    assert done.code == 0, done.err
    return koi.journal


@pytest.fixture
def node() -> Callable[..., Any]:
    """Runs a piece of JavaScript that may import the modules of the pages; gives the JSON that it prints."""
    program = shutil.which("node")
    assert program is not None, "tests that use this fixture are marked"

    def run(script: str, *words: str) -> Any:
        text = script.replace("STATIC", STATIC.as_uri())
        command = [program, "--input-type=module", "-e", text, *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Chromium of the system, closed in the end; tests that use it are marked.

    While it is open, no event loop can be begun in this thread: what a test records, it records before.
    """
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()
