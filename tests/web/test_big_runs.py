"""Long runs and many of them stay quick: ten thousand entries in a browser, two thousand journals in a list."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import pytest

from koi_lang.runtime.journal import store
from koi_lang.runtime.journal.entries import Header, JournalEntry, line_of
from koi_lang.runtime.journal.line_ends import seal_line
from koi_lang.runtime.journal.reader import read_header
from koi_lang.service.users import EVERYBODY
from koi_lang.web.page_file import run_page
from koi_lang.web.run_library import RunLibrary
from tests.web.conftest import open_browser

FRAMES = """async () => {
  const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const [list, closer, farther] = [".steps .virtual", ".lane-tools button", ".lane-tools button + button"].map(
    (each) => document.querySelector(each));
  const took = [];
  for (let turn = 0; turn < 20; turn += 1) {
    const begin = performance.now();
    list.scrollTop = turn * 5000;
    (turn % 4 < 2 ? closer : farther).click();
    await frame();
    took.push(performance.now() - begin);
  }
  return took.sort((one, two) => one - two)[10];
}"""


def long_journal(folder: Path, count: int) -> Path:
    """A journal with many entries of twelve agents that an editor asks one after the other."""
    header = Header("b16b00b5", 1000.0, str(folder / "a.koi"), "0", "0.1.0", ("run", "a.koi"))
    entries = [("handler_started", ("Editor.start#1",), "Editor", {"event": "start", "args": {"topic": "tea"}})]
    for turn in range(count // 4):
        path, name = ("Editor.start#1", f"a::work#{turn}"), f"Agent{turn % 12}"
        inner = (*path, f"{name}.work#1")
        entries += [
            ("begun", path, "Editor", {"intent": "a::work", "id": "", "fields": {"data": turn}}),
            ("handler_started", inner, name, {"event": "work", "args": {"n": turn}}),
            ("handler_ended", inner, name, {"event": "work", "result": turn}),
            ("done", path, "Editor", {"intent": "a::work", "result": turn}),
        ]
    lines = [line_of(JournalEntry(n, 1000 + n / 50, *entry), str) for n, entry in enumerate(entries, 1)]
    path = store.path_of(folder, header.run)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(seal_line(line, header.run) for line in (line_of(header, str), *lines)))
    return path


@pytest.mark.thorough
@pytest.mark.needs("chromium")
def test_ten_thousand_entries_move_smoothly(tmp_path: Path) -> None:
    """A run of that length is shown within 5 s, and half of its frames take less than a quarter of a second."""
    page_file = tmp_path / "run.html"
    page_file.write_text(run_page(long_journal(tmp_path, 10_000), str), "utf-8")
    with open_browser() as browser:
        page = browser.new_page(viewport={"width": 1440, "height": 860})
        begin = time.monotonic()
        page.goto(page_file.as_uri())
        page.wait_for_selector(".step")
        shown_s = time.monotonic() - begin
        frame_ms = page.evaluate(FRAMES)
        rows = page.locator(".step").count()

    assert shown_s < 5
    assert frame_ms < 250  # 35 ms on a machine that does nothing else
    assert rows < 100


@pytest.mark.thorough
def test_two_thousand_journals_are_listed_at_once(desk: Path) -> None:
    """The list takes less than 0.5 s of work, and a tenth of a second when nothing has changed."""
    header, folder = read_header(desk), desk.parents[2]
    for number in range(2000):
        run = f"{number:012x}"
        with store.path_of(folder, run).open("wb") as file:
            store.export(desk, file, replace(header, run=run, started=header.started + number))
    library = RunLibrary(folder)
    took = []
    for _ in range(2):
        begin = time.process_time()
        found = asyncio.run(library.all(EVERYBODY))
        took.append(time.process_time() - begin)

    assert 2001 == len(found)
    assert took[0] < 0.5
    assert took[1] < 0.1
