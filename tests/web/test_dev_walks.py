"""The page for developers in a real browser, against a real service: five walks."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pexpect
import pytest

from koi_lang.runtime.journal.entries import line_of
from koi_lang.runtime.journal.line_ends import seal_line
from koi_lang.runtime.journal.reader import read
from koi_lang.runtime.journal.store import path_of
from tests.limits import LIMIT_S
from tests.projects import Project
from tests.service.serving_process import TOKEN, ServiceProcess
from tests.web.conftest import ANSWERS, DESK, open_browser

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

pytestmark = pytest.mark.needs("chromium")
SIZE: Any = {"width": 1440, "height": 860}
START = {"handler": "Editor.start", "payload": {"topic": "green tea"}}
LIMIT_MS = LIMIT_S * 1000


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service in a folder in which a program was run twice before, with different answers of the person."""
    project = Project(tmp_path_factory.mktemp("walks"))
    project.write("main.koi", DESK)
    project.write("answers.json", json.dumps(ANSWERS))
    for answer in ("yes", "no"):
        done = project.koi("run", "--answers", "answers.json", "main.koi", stdin=f"{answer}\n")
        assert done.returncode == 0, done.stderr
    service = ServiceProcess(project.folder, ("main.koi", "--answers", "answers.json"))
    service.start()
    yield service
    service.end()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all walks."""
    with open_browser() as opened:
        yield opened


@pytest.fixture
def page(browser: Browser, served: ServiceProcess) -> Iterator[Page]:
    """A page of a person who is signed in; nothing went wrong on it, and it asked nobody else for anything."""
    context = browser.new_context(viewport=SIZE)
    opened = context.new_page()
    opened.set_default_timeout(LIMIT_MS)
    told: list[str] = []
    opened.on("pageerror", lambda error: told.append(str(error)))
    opened.on("console", lambda message: told.append(message.text) if message.type == "error" else None)
    opened.on("request", lambda request: told.append(request.url) if not request.url.startswith(served.url) else None)
    opened.goto(f"{served.url}/dev#token={TOKEN}")
    opened.wait_for_selector(".runs-table")
    yield opened
    context.close()
    assert told == []


def keep(page: Page, name: str) -> None:
    """Keep pictures of the page in the folder of `KOI_SCREENS`, wide and narrow, light and dark; nothing without it."""
    folder = os.environ.get("KOI_SCREENS")
    for scheme in ("light", "dark") if folder else ():
        for size in ({"width": 1280, "height": 800}, {"width": 360, "height": 740}):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            page.set_viewport_size(size)  # type: ignore[arg-type]
            page.screenshot(path=f"{folder}/{name}-{size['width']}-{scheme}.png")
    if folder:
        page.emulate_media(color_scheme="light")
        page.set_viewport_size(SIZE)


def choose_step(page: Page, title: str) -> None:
    """Click on the first step of a title."""
    page.locator(".step", has=page.get_by_text(title, exact=True)).first.click()


def test_from_the_list_to_the_line_of_an_action(page: Page) -> None:
    """The token leaves the address; a run of the list leads to its steps, and each of these to its line and request."""
    assert "token" not in page.url
    page.locator("tr", has_text="tea is one plant").last.get_by_role("link").click()
    choose_step(page, "prints")
    line = page.inner_text(".line.here code")
    choose_step(page, "counter::count")
    fields = page.inner_text(".inspector")
    choose_step(page, "asks scripted")
    page.get_by_role("tab", name="was told").click()
    request = page.inner_text(".inspector")

    assert 'console.log("counting")' == line.strip()
    assert '"text": "tea is one plant"' in fields
    assert "Have the words of" in request
    assert "Counts the words of a text." in request


def test_a_live_run_is_followed_and_answered(page: Page, served: ServiceProcess) -> None:
    """Steps come as they happen, the question can be answered there, and the run goes on."""
    run = served.begin(**START)
    page.goto(f"{served.url}/dev#/run/{run}")
    page.locator(".request").get_by_role("button", name="yes").click()
    page.wait_for_selector(".step:has-text('call ended')")
    state = page.inner_text("h1 .state")
    request_is_closed = page.locator(".request").count() == 0
    page.get_by_role("tab", name="Costs").click()

    assert (True, "idle") == (request_is_closed, state)
    assert re.search(r"Editor\s+3 requests", page.inner_text(".bars >> nth=0"))


def test_a_branch_is_told_before_it_begins(page: Page, served: ServiceProcess) -> None:
    """The dialog says what is taken over and asked again; the branch has the other answer and stands in the tree."""
    run = served.begin(**START)
    page.goto(f"{served.url}/dev#/run/{run}")
    page.locator(".request").get_by_role("button", name="yes").click()
    page.wait_for_selector(".step:has-text('call ended')")
    choose_step(page, "prompt_user")
    page.get_by_role("button", name="Branch here").click()
    preview = page.inner_text(".preview")
    page.fill("dialog textarea", "no")
    page.get_by_role("button", name="Begin the branch").click()
    page.wait_for_url(lambda url: "/run/" in url and run not in url)
    page.wait_for_selector(".step:has-text('call ended')")
    branch = page.url.rpartition("/")[2]
    page.get_by_role("tab", name="Tree").click()
    family = page.inner_text(".family")
    page.goto(f"{served.url}/dev#/")
    times = [page.locator(f"tr[data-run='{each}'] td").nth(1).inner_text() for each in (run, branch)]

    assert all(re.fullmatch(r"\d\d:\d\d:\d\d", each) for each in times), "the day stands in the heading"
    assert "Taken over: 2 answers of models" in preview
    assert "Asked again: about 1 answer of models" in preview
    assert (run in family, branch in family) == (True, True)
    results = [
        entry.data["result"] for entry in read(path_of(served.folder, branch)).entries if entry.kind == "handler_ended"
    ]
    assert "no" == results[-1]["published"]


def test_two_runs_are_compared(page: Page) -> None:
    """Two that are marked in the list stand side by side; the first difference is the other answer of the person."""
    rows = page.locator("tr", has_text="tea is one plant")
    rows.nth(0).get_by_role("checkbox").check()
    rows.nth(1).get_by_role("checkbox").check()
    page.get_by_role("button", name="Compare 2 of 2").click()
    first = page.inner_text(".difference-row.first")
    page.get_by_role("button", name="Show the difference").first.click()
    words = page.wait_for_selector(".difference-row:not(.first) .difference ins")

    assert re.search(r"result\s.*prompt_user#1", first)
    assert words is not None
    assert words.inner_text() in ("yes", "no")


def test_a_program_is_looked_at_and_run(page: Page, served: ServiceProcess, tmp_path: Path) -> None:
    """Graph, permissions and a form made of the type of a handler; what it begins can be saved and opened offline."""
    page.click("nav >> text=Program")
    page.wait_for_selector(".drawing svg .node-agent")
    page.get_by_role("button", name="Look at the permissions").click()
    page.select_option("select[aria-label=handler]", "Editor.start")
    page.get_by_label("topic").fill("black tea")
    page.get_by_label("loud").check()
    permissions = page.inner_text(".agent-may >> nth=0")
    page.get_by_role("button", name="Run Editor.start").click()
    page.wait_for_url(lambda url: "/run/" in url)
    page.wait_for_selector(".step:has-text('Editor.start')")
    with page.expect_download() as download:
        page.click("text=save as a page")
    saved = tmp_path / "run.html"
    download.value.save_as(saved)

    assert "print" in permissions
    entries = read(path_of(served.folder, page.url.rpartition("/")[2])).entries
    assert {"topic": "black tea", "loud": True} == next(entry.data["args"] for entry in entries if "args" in entry.data)
    assert "counter::count" in saved.read_text("utf-8")


@pytest.mark.thorough
def test_a_run_of_another_process_is_answered(page: Page, served: ServiceProcess) -> None:
    """A run that waits at a terminal can be answered on the page, and goes on there."""
    words = ["-m", "koi_lang", "run", "--answers", "answers.json", "main.koi"]
    environment = Project(served.folder).environment
    terminal = pexpect.spawn(
        sys.executable, words, cwd=served.folder, env=environment, timeout=LIMIT_S, encoding="utf-8"
    )
    terminal.expect("Publish")
    newest = served.get("api/dev/runs?limit=1")["runs"][0]
    page.goto(f"{served.url}/dev#/run/{newest['id']}")
    page.locator(".request").get_by_role("button", name="no").click()
    page.wait_for_selector(".step:has-text('run ended')")
    terminal.expect(pexpect.EOF)
    terminal.close()

    assert (False, 0) == (newest["hosted"], terminal.exitstatus)
    results = [
        entry.data["result"] for entry in read(path_of(served.folder, newest["id"])).entries if "result" in entry.data
    ]
    assert "no" == results[-1]["published"]


def finished(page: Page, served: ServiceProcess) -> str:
    """A session of which the question has been answered on the page; gives its id."""
    run = served.begin(**START)
    page.goto(f"{served.url}/dev#/run/{run}")
    page.locator(".request").get_by_role("button", name="yes").click()
    page.wait_for_selector(".step:has-text('call ended')")
    return run


def test_a_playbook_is_edited_and_kept(page: Page, served: ServiceProcess) -> None:
    """What is asked again and its price stand before the button; the text is in the file once it is kept."""
    run, file = finished(page, served), served.folder / "main.koi"
    before = file.read_text()
    choose_step(page, "prompt_user")
    page.get_by_role("button", name="Edit the playbook").click()
    preview = page.inner_text(".preview")
    can_go_on = page.get_by_role("button", name="Go on with this text").is_enabled()
    text = page.input_value("dialog textarea")
    page.fill("dialog textarea", text.replace("ask whether", "ask at once whether"))
    keep(page, "edit-1-dialog")
    page.get_by_role("button", name="Go on with this text").click()
    page.wait_for_url(lambda url: "/run/" in url and run not in url)
    page.locator(".request").get_by_role("button", name="no").click()
    page.wait_for_selector(".step:has-text('call ended')")
    unchanged = file.read_text()
    page.get_by_text("what is different").click()
    difference = page.inner_text(".edited .difference")
    keep(page, "edit-2-branch")
    page.get_by_role("button", name="Keep in the file").click()
    page.wait_for_selector("text=is in the file")
    after = file.read_text()
    file.write_text(before)

    assert "Taken over: 0 answers of models" in preview
    assert "Asked again: about 3 answers of models" in preview
    assert not can_go_on
    assert (before, before.replace("ask whether", "ask at once whether")) == (unchanged, after)
    assert re.search(r"-.*ask whether[\s\S]*\+.*ask at once whether", difference)


def late_answer(route: Route) -> None:
    """Have a page hear of what was done after it has had time to ask for something."""
    answer = route.fetch()
    time.sleep(1)
    route.fulfill(response=answer)


def test_an_edited_playbook_is_thrown_away(page: Page, served: ServiceProcess) -> None:
    """The branch goes with its text, and the page is back at the run that it went on from.

    It asks for nothing of the branch that is gone, however late it hears of that.
    """
    run = finished(page, served)
    choose_step(page, "prompt_user")
    page.get_by_role("button", name="Edit the playbook").click()
    page.fill("dialog textarea", page.input_value("dialog textarea") + "\nBe brief.")
    page.get_by_role("button", name="Go on with this text").click()
    page.wait_for_url(lambda url: "/run/" in url and run not in url)
    branch = page.url.rpartition("/")[2]
    page.locator(".request").get_by_role("button", name="no").click()
    page.wait_for_selector(".step:has-text('call ended')")
    page.on("dialog", lambda dialog: dialog.accept())
    page.route("**/edit", late_answer)
    page.get_by_role("button", name="Throw away").click()
    page.wait_for_url(f"**/run/{run}")

    assert 404 == served.request("GET", f"api/runs/{branch}").status_code


def test_runs_are_filtered_and_sorted(page: Page, served: ServiceProcess) -> None:
    """Totals stand above the runs of a day; what ended badly today is one press away, and columns sort."""
    program = (
        'role Hand { can execute }\nagent Maker : Hand { on make(args: Json) { throw "no tea" } }\nrun Maker.make({})\n'
    )
    served.folder.joinpath("bad.koi").write_text(program)
    done = Project(served.folder).koi("run", "bad.koi")
    page.get_by_role("button", name="ended badly today").click()
    row = page.locator("tr[data-run]")
    row.filter(has_text="Maker.make").wait_for()
    bad, total = row.all_inner_texts(), page.inner_text(".totals >> nth=0")
    keep(page, "runs-1-bad")
    page.get_by_role("button", name="all runs").click()
    page.get_by_role("button", name="cost", exact=True).click()
    page.wait_for_selector("th[aria-sort=descending]:has-text('cost')")
    keep(page, "runs-2-sorted")
    page.get_by_role("button", name="started").click()
    page.wait_for_selector("th[aria-sort=descending]:has-text('started')")
    keep(page, "runs-3-days")
    page.get_by_label("seconds at least").fill("86400")
    page.wait_for_selector("text=No run is like that")

    assert 1 == done.returncode
    assert [True] == ["failed" in text for text in bad]
    assert "1 run ·" in total
    assert "1 ended badly" in total


def test_a_session_is_replayed_and_kept(page: Page, served: ServiceProcess) -> None:
    """The tab of replays takes sessions, too, and keeps one as a test."""
    run = finished(page, served)
    page.get_by_role("tab", name="Replay").click()
    page.get_by_role("button", name="Replay", exact=True).click()
    page.wait_for_selector("text=Nothing is different")
    page.get_by_label("name of the test").fill("tea")
    page.get_by_role("button", name="Keep as test").click()
    page.wait_for_selector("text=Kept as")
    keep(page, "replay")

    assert run in (served.folder / "tests" / "tea.jsonl").read_text().splitlines()[0]


def test_a_transcript_and_only_what_acts(page: Page, served: ServiceProcess) -> None:
    """What the person saw leads to its step; a session that rests has nothing to pause or cancel."""
    run = finished(page, served)
    controls = page.locator(".talk button").count()
    page.get_by_role("tab", name="Transcript").click()
    said = page.locator(".said pre").all_inner_texts()
    keep(page, "transcript")
    page.locator(".said", has_text="Publish?").get_by_role("button").click()
    page.wait_for_selector(".step.chosen")
    keep(page, "timeline")
    page.set_viewport_size({"width": 360, "height": 740})
    is_narrow = page.evaluate("document.documentElement.scrollWidth <= 360")

    assert run in page.url
    assert 0 == controls
    assert ["counting", "Publish?", "yes"] == said[1:4]
    assert is_narrow


def test_idle_hours_are_drawn_as_a_sliver(page: Page, served: ServiceProcess) -> None:
    """A run that waited for two hours is drawn with room for its work, and can be looked at closer."""
    path = path_of(served.folder, served.get("api/dev/runs?state=ok")["runs"][-1]["id"])
    journal = read(path)
    later = [replace(each, ts=each.ts + 7200 * (each.kind != "asked" and each.n > 15)) for each in journal.entries]
    header = replace(journal.header, run="1d1e1d1e1d1e")
    lines = [line_of(header, str), *(line_of(each, str) for each in later)]
    path.with_name("1d1e1d1e1d1e.jsonl").write_bytes(b"".join(seal_line(line, header.run) for line in lines))
    page.goto(f"{served.url}/dev#/run/1d1e1d1e1d1e")
    page.wait_for_selector(".step:has-text('run ended')")
    keep(page, "idle")
    page.get_by_role("button", name="zoom in").click()

    assert "2 h 00 min" in page.inner_text(".facts-line")
