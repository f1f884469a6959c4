"""Breaks while people use a program: of the connection, of the service, and of their patience."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.service.serving_process import TOKEN, ServiceProcess
from tests.web.cable import Cable
from tests.web.conftest import open_browser
from tests.web.people import TOKENS, Visitor, visit, write_desk, write_users
from tests.web.slow_model import slow_model

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.thorough, pytest.mark.needs("chromium")]
SENTENCES = [f"This is sentence {number} of a story." for number in range(1, 61)]
TELLER = """
role R { can advise }
agent Teller : R {
  affordance "Tells long stories"
  llm default = { provider: "openai", model: "x", base_url: "URL", transport: "text" }
  on chat(args: { message: string }) { playbook "Tell {{args.message}}" }
}
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser."""
    with open_browser() as opened:
        yield opened


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., ServiceProcess]]:
    """Starts services, which end with the test."""
    with ExitStack() as ends:

        def start(service: ServiceProcess) -> ServiceProcess:
            service.start()
            ends.callback(service.end)
            return service

        yield start


def write_teller(folder: Path, url: str) -> ServiceProcess:
    """A service whose agent has a provider of its own."""
    (folder / "teller.koi").write_text(TELLER.replace("URL", url))
    (folder / ".env").write_text("OPENAI_API_KEY=sk-mark\n")
    write_users(folder)
    return ServiceProcess(folder, ("teller.koi",))


def story() -> dict[str, Any]:
    """An answer that takes a while."""
    return {"intent": "return", "data": {"answer": " ".join(SENTENCES)}}


def test_a_cut_connection_goes_on_where_it_was(
    browser: Browser, serve: Callable[..., ServiceProcess], tmp_path: Path
) -> None:
    """In the middle of a text the page says that the connection is lost, and then shows each sentence once."""
    with slow_model(story(), pause_s=0.02) as (url, _):
        service = serve(write_teller(tmp_path, url))
        cable = Cable(service.url)
        with visit(browser, replace(service, url=cable.url), tmp_path) as visitor:
            visitor.enter()
            visitor.say("a story")
            visitor.sees(SENTENCES[4])
            cable.cut()
            visitor.page.get_by_text("The connection is lost.").wait_for()
            visitor.keep("lost")
            visitor.page.fill("#message", "still writing")
            cable.mend()
            visitor.page.get_by_text("The connection is there again.").wait_for()
            visitor.sees(SENTENCES[-1])
            visitor.page.get_by_role("button", name="Stop").wait_for(state="detached")

            assert [" ".join(SENTENCES)] == visitor.page.locator(".answer .markdown").all_inner_texts()
            assert "still writing" == visitor.page.input_value("#message")
        cable.remove()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_restarted_service_goes_on(
    browser: Browser, serve: Callable[..., ServiceProcess], tmp_path: Path, number: signal.Signals
) -> None:
    """A question that was open is asked again after the restart, and its answer is taken; nothing is shown twice."""
    service = serve(write_desk(tmp_path))
    with visit(browser, service, tmp_path) as visitor:
        visitor.enter()
        visitor.begin("Writer", "a question")
        visitor.sees("Which tone?")
        service.end(number)
        visitor.page.get_by_text("The connection is lost.").wait_for()
        service.start()
        visitor.page.get_by_text("The connection is lost.").wait_for(state="detached")
        go_on = visitor.page.get_by_role("button", name="Go on")
        go_on.or_(visitor.page.get_by_role("button", name="formal")).first.wait_for()
        visitor.keep("restarted")
        if go_on.count():
            go_on.click()
        visitor.press("formal")
        visitor.sees("It is formal.")

        assert ["formal"] == visitor.page.locator(".decided .given").all_inner_texts()
        assert 1 == visitor.page.locator(".item.person").count()
        visitor.say("thanks")
        visitor.sees("As you like.")


def test_a_changed_program_says_why_and_goes_on(
    browser: Browser, serve: Callable[..., ServiceProcess], tmp_path: Path
) -> None:
    """Where a conversation does not fit any more, the page says so in a sentence, and one button begins another one."""
    service = serve(write_desk(tmp_path))
    program = tmp_path / "desk.koi"
    with visit(browser, service, tmp_path) as visitor:
        visitor.enter()
        visitor.begin("Writer", "a question")
        visitor.sees("Which tone?")
        first = visitor.run
        service.end()
        program.write_text(
            program.read_text().replace(
                'on chat(args: { message: string }) { playbook "Help',
                'on talk(args: { message: string }) { playbook "Help',
            )
        )
        service.start()
        visitor.page.get_by_text("the program has changed since").first.wait_for()
        visitor.keep("changed")
        visitor.page.get_by_role("button", name="Go on in a new conversation").click()
        visitor.page.wait_for_url(lambda url: first not in url)
        visitor.say("thanks")
        visitor.sees("As you like.")

        assert 1 == visitor.page.locator(".item.person").count()


def test_a_stop_loses_no_words(browser: Browser, serve: Callable[..., ServiceProcess], tmp_path: Path) -> None:
    """The half answer stays, also after a reload, and what was not heard stands in the input again."""
    with slow_model(story(), pause_s=0.02) as (url, _):
        service = serve(write_teller(tmp_path, url))
        with visit(browser, service, tmp_path) as visitor:
            visitor.enter(TOKENS["ada"])
            visitor.say("a story")
            visitor.sees(SENTENCES[3])
            visitor.say("and shorter")
            visitor.page.locator(".waiting", has_text="and shorter").wait_for()
            visitor.page.fill("#message", "please")
            visitor.page.get_by_role("button", name="Stop").click()
            visitor.sees("Stopped.")
            visitor.keep("stopped")

            assert "and shorter\n\nplease" == visitor.page.input_value("#message")
            half = visitor.page.locator(".answer .markdown").inner_text()
            visitor.page.reload()
            visitor.sees("Stopped.")
            assert SENTENCES[3] in half
            assert half.startswith(visitor.page.locator(".answer .markdown").inner_text()[:-1])


def test_failures_have_two_texts(browser: Browser, serve: Callable[..., ServiceProcess], tmp_path: Path) -> None:
    """People read what they can do, and a reference; admins read the cause, too. *Try again* says it once more."""
    service = serve(write_teller(tmp_path, "http://127.0.0.1:9/v1"))
    for token, causes in ((TOKENS["ada"], 0), (TOKEN, 1)):
        with visit(browser, service, tmp_path) as visitor:
            visitor.enter(token)
            visitor.say("a story")
            visitor.sees("The assistant cannot be reached.")
            text = visitor.page.locator(".failure").inner_text()
            visitor.keep(f"failed-{causes}")

            assert "OPENAI" not in text
            assert "127.0.0.1" not in text
            assert f"Reference {visitor.run}-" in text
            assert causes == visitor.page.locator(".cause", has_text="nothing listens there").count()
            visitor.page.get_by_role("button", name="Try again").click()
            visitor.page.locator(".item.person").nth(1).wait_for()


def test_a_rehearsal_says_so(browser: Browser, serve: Callable[..., ServiceProcess], tmp_path: Path) -> None:
    """Who chats with a program that has no model reads that nobody is there, and who they are."""
    service = write_desk(tmp_path)
    service.words = ("desk.koi", "--rehearse")
    with visit(browser, serve(service), tmp_path) as visitor:
        visitor.enter(TOKENS["ada"])
        visitor.begin("Writer", "tea")
        visitor.page.get_by_text("No model is connected").wait_for()

        assert "ada" == visitor.page.locator(".corner span").first.inner_text().strip()


def test_eight_tabs_work_at_once(browser: Browser, serve: Callable[..., ServiceProcess], tmp_path: Path) -> None:
    """Browsers open six connections for requests to a host; each tab follows its run over a WebSocket instead."""
    with slow_model(story(), pause_s=0.3, size=16) as (url, hurry), ExitStack() as tabs:
        service = serve(write_teller(tmp_path, url))
        context = browser.new_context()
        tabs.callback(context.close)
        visitors = [tabs.enter_context(visit(browser, service, tmp_path, within=context)) for _ in range(8)]
        for visitor in visitors:
            visitor.enter()
            visitor.say("a story")
            visitor.sees(SENTENCES[0])

        assert [True] * 8 == [visitor.page.get_by_role("button", name="Stop").is_visible() for visitor in visitors]
        assert not [address for visitor in visitors for address in visitor.asked if "/events" in address]
        hurry.set()
        visitors[-1].sees(SENTENCES[-1])


def test_where_no_socket_opens_events_do(
    browser: Browser, serve: Callable[..., ServiceProcess], tmp_path: Path
) -> None:
    """A proxy that lets no WebSocket through takes nothing from the page."""
    service = serve(write_desk(tmp_path))
    with visit(browser, service, tmp_path) as visitor:
        shut = "window.WebSocket = class { constructor() { setTimeout(() => this.onclose()); } close() {} };"
        visitor.page.add_init_script(shut)
        visitor.enter()
        visitor.begin("Writer", "thanks")
        visitor.sees("As you like.")

        assert [True] == ["/events" in address for address in visitor.asked if "/events" in address or "/ws" in address]
        assert [] == visitor.wrong


def test_writing_never_waits(browser: Browser, serve: Callable[..., ServiceProcess], tmp_path: Path) -> None:
    """While some 100 tokens arrive in a second, a key is drawn with the next frames."""
    with slow_model(story(), pause_s=0.01) as (url, _):
        service = serve(write_teller(tmp_path, url))
        with visit(browser, service, tmp_path) as visitor:
            visitor.enter()
            visitor.say("a story")
            visitor.sees(SENTENCES[2])
            late = type_measured(visitor, "the quick brown fox jumps over the lazy dog")

            assert visitor.page.locator(".growing").count() == 1, "it has ended before it was measured"
            assert sorted(late)[len(late) // 2] < 50, late


def type_measured(visitor: Visitor, text: str) -> list[float]:
    """How many milliseconds it takes from each key to the frame behind it."""
    visitor.page.evaluate(
        """window.late = []; document.getElementById('message').addEventListener('input', (event) => {
             const at = event.timeStamp;
             requestAnimationFrame(() => requestAnimationFrame(() => late.push(performance.now() - at))); })"""
    )
    for letter in text:
        visitor.page.keyboard.type(letter)
    look = f"(done) => {{ const look = () => late.length < {len(text)} ? setTimeout(look, 20) : done(late); look(); }}"
    return list(visitor.page.evaluate(f"new Promise({look})"))
