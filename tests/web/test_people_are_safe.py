"""What agents, people, tools and files say is shown, and does nothing: in Chromium, against a service."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from tests.service.serving_process import ServiceProcess
from tests.web.conftest import open_browser
from tests.web.injections import FORMS, MARKDOWN
from tests.web.people import Visitor, visit

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.needs("chromium")
ALL = (*FORMS, *MARKDOWN)
# Says what it hears, gives it back as data, and asks about it.
ECHO = """
role Parrot { can execute }
agent Echo : Parrot {
  affordance "<img src=x onerror=window.hit=1> says what it hears"
  on chat(args: { message: string }) {
    if (args.message == "give") return ALL.map(text => ({ [text]: [text] }))
    if (args.message == "fail") throw new Error(ALL.join(" "))
    if (args.message == "print") ALL.forEach(text => console.log(text))
    if (args.message == "ask") {
      await callAction("prompt_user", { question: TEXT, options: OPTIONS })
      await callAction("shell", { command: TEXT, description: TEXT })
    }
    console.log(args.message)
  }
}
"""
# What is in the conversation that could act, or be taken for something of the page.
ACTING = """() => [...document.querySelectorAll('.thread *, .request *, .files *, .history *, .bar *')].flatMap((element) => [
  ...(/^(script|iframe|style|object|embed|link|meta|base|frame|video|audio|marquee)$/i.test(element.tagName)
    || (element.tagName === 'math' && !element.closest('.katex'))
    || (element.closest('math') && element.namespaceURI !== 'http://www.w3.org/1998/Math/MathML') ? [element.outerHTML] : []),
  ...[...element.attributes].filter((each) =>
    /^on|^style$|^srcset$|^formaction$/i.test(each.name)
    || (/^(href|src|action|background)$/i.test(each.name) && !/^(https?:|mailto:|#|data:image\\/(png|jpeg|gif|webp);|api\\/runs\\/)/.test(each.value))
    || (element.tagName === 'IMG' && each.name === 'src' && !each.value.startsWith('data:image/'))
    || (/^(id|name)$/.test(each.name) && element.closest('.thread'))).map((each) => `${each.name}=${each.value}`),
])"""  # noqa: E501


@pytest.fixture(scope="module")
def echo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service of somebody who says what it hears."""
    folder = tmp_path_factory.mktemp("echo")
    data = {"ALL": ALL, "TEXT": "\n\n".join(ALL), "OPTIONS": ALL[:40]}
    text = re.sub("|".join(data), lambda found: json.dumps(data[found[0]]), ECHO)
    (folder / "echo.koi").write_text(text)
    service = ServiceProcess(folder, ("echo.koi", "--rehearse"))
    service.start()
    yield service
    service.end()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser."""
    with open_browser() as opened:
        yield opened


def tell_all(service: ServiceProcess) -> str:
    """A run in which everything was said, printed, given and failed with; its id."""
    run = service.begin(message="print")
    connection = HTTPConnection(service.url.removeprefix("http://"))
    headers = {"Authorization": f"Bearer {service.token}", "Content-Type": "application/json"}
    for text in ("give", "fail", *ALL):
        while True:
            command = {"run": run, "type": "prompt", "message": text}
            connection.request("POST", "/api/command", json.dumps(command), headers)
            if json.load(connection.getresponse())["success"]:
                break
    connection.close()
    service.wait_for_state(run, "idle")
    return run


def require_harmless(visitor: Visitor) -> None:
    """Nothing was carried out, nothing was asked of others, and nothing in the page could act."""
    assert visitor.page.evaluate("window.hit === undefined && document.getElementById('page') !== null")
    assert [] == visitor.page.evaluate(ACTING)
    assert ([], []) == (visitor.strangers(), [line for line in visitor.wrong if "127.0.0.1:9" in line])


@pytest.mark.thorough
def test_what_is_said_does_nothing(browser: Browser, echo: ServiceProcess, tmp_path: Path) -> None:
    """Some 80 texts, said by a person, printed by an agent, given as data with their names, and told as errors."""
    run = tell_all(echo)
    with visit(browser, echo, tmp_path) as visitor:
        dialogs: list[str] = []
        visitor.page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
        visitor.enter()
        visitor.page.evaluate(f"location.hash = '#/run/{run}'")
        visitor.page.locator(".answer").last.wait_for()
        while (more := visitor.page.get_by_role("button", name="Show what was before")).count():
            more.click()
        visitor.page.locator(".failure").first.wait_for()
        visitor.page.locator(".answer math[alttext]").first.wait_for()
        visitor.page.locator(".answer .hljs-keyword").first.wait_for()
        shown = visitor.page.locator(".item").count()
        visitor.page.locator(".answer").last.hover()

        assert shown >= len(ALL) * 3, "what was said, what was printed then, and what at once"
        assert visitor.page.locator(".values dt").count() >= len(ALL)
        assert [] == dialogs
        require_harmless(visitor)
        visitor.keep("injections")


@pytest.mark.thorough
def test_what_is_asked_does_nothing(browser: Browser, echo: ServiceProcess, tmp_path: Path) -> None:
    """Questions, options, commands and reasons are only shown, the command as it is."""
    with visit(browser, echo, tmp_path) as visitor:
        visitor.enter()
        visitor.say("ask")
        visitor.page.locator(".request .choices button").first.wait_for()
        require_harmless(visitor)
        assert list(ALL[:5]) == visitor.page.locator(".choices button").all_text_contents()[:5]
        visitor.page.wait_for_timeout(500)
        visitor.page.locator(".choices button").first.click()
        visitor.page.locator(".request .exact").wait_for()
        visitor.keep("injections-asked")
        allow = visitor.page.get_by_role("button", name="Allow once")
        visitor.page.wait_for_timeout(500)
        assert "true" == allow.get_attribute("aria-disabled"), "the end of the command is not on the screen"
        visitor.page.locator(".request-body").focus()
        visitor.page.keyboard.press("End")
        allow.and_(visitor.page.locator("[aria-disabled=false]")).wait_for()

        require_harmless(visitor)


@pytest.mark.thorough
def test_names_of_files_do_nothing(browser: Browser, echo: ServiceProcess, tmp_path: Path) -> None:
    """What a file is called is a text, and its link leads to it."""
    run = echo.begin(message="files")
    echo.wait_for_state(run, "idle")
    kept = [text for text in ALL if len(text) < 100 and not {*"/\\"} & {*text} and text.isprintable()]
    written = [
        text for text in kept if echo.request("PUT", f"api/runs/{run}/files/{quote(text, safe='')}", {}).is_success
    ]
    with visit(browser, echo, tmp_path) as visitor:
        visitor.enter()
        visitor.page.evaluate(f"location.hash = '#/run/{run}'")
        visitor.page.locator(".files summary").click()
        visitor.page.locator(".files li a").first.wait_for()

        assert len(written) >= 20
        assert sorted(written) == sorted(visitor.page.locator(".files li a").all_text_contents())
        require_harmless(visitor)
