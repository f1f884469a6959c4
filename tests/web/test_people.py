"""Walks of people through the page of a service, in Chromium against a `koi serve http` of its own.

All of them share one browser and one service. The shortest are one test of the usual suite; each is one of its own in
the thorough one.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.service.serving_process import ServiceProcess
from tests.web.conftest import open_browser
from tests.web.people import DESK, PHONE, TOKENS, Visitor, visit, write_desk

if TYPE_CHECKING:
    from playwright.sync_api import Browser


# A picture of one point.
pytestmark = pytest.mark.needs("chromium")
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
# Whether the button of a piece of code hides nothing of it.
COPY_IS_ABOVE = """(code) =>
  code.querySelector(".copy").getBoundingClientRect().bottom <= code.querySelector("pre code").getClientRects()[0].top
"""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a walk takes place: a browser, a service, and a folder for pictures."""

    browser: Browser
    service: ServiceProcess
    screens: Path

    def visitor(self, **look: object) -> Iterator[Visitor]:
        """Somebody who has entered."""
        return visit(self.browser, self.service, self.screens, **look)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A service of the desk, and a browser."""
    folder = tmp_path_factory.mktemp("people")
    with open_browser() as browser:
        service = write_desk(folder)
        service.start()
        try:
            yield Place(browser, service, folder)
        finally:
            service.end()


def talk(visitor: Visitor) -> None:
    """A text is streamed, told in friendly words, shown as Markdown, and kept among the conversations."""
    visitor.enter()
    visitor.keep("start")
    visitor.begin("Writer")
    visitor.keep("beginning")
    visitor.page.get_by_role("list", name="Examples").get_by_role("button", name="tea").click()
    visitor.page.keyboard.press("Enter")
    visitor.sees("Wait four minutes")
    visitor.page.locator(".work > summary", has_text="Researcher: look up facts").click()
    page = visitor.page
    page.get_by_role("navigation").get_by_text("tea").wait_for()

    assert ["12"] == page.locator("td[align=right]").all_inner_texts()[1:]
    assert "noopener noreferrer nofollow" == page.locator(".markdown a").get_attribute("rel")
    assert 0 == page.locator(".markdown img").count()
    assert [] == visitor.grave_findings()
    visitor.keep("talk")
    visitor.say("thanks")
    visitor.sees("As you like.")


def answer(visitor: Visitor) -> None:
    """Options of a question are buttons; what was chosen stands in the conversation."""
    visitor.enter()
    visitor.begin("Writer", "a question")
    visitor.sees("Which tone?")
    visitor.keep("question")
    assert [] == visitor.grave_findings()
    visitor.press("formal")
    visitor.sees("It is formal.")

    assert "formal" == visitor.page.locator(".decided .given").inner_text()
    assert 0 == visitor.page.locator(".request").count()


def answer_freely(visitor: Visitor) -> None:
    """Who goes on writing answers the question; a message beside it waits for the answer, and says so."""
    page = visitor.page
    visitor.enter()
    visitor.begin("Writer", "a name")
    page.wait_for_selector(".request input:focus")
    heard = page.locator("[aria-live=assertive]").inner_text()
    visitor.say("thanks")
    visitor.sees("Will be heard after your answer")
    page.locator(".request input").click()
    page.keyboard.type("Ada")
    page.wait_for_timeout(500)
    page.keyboard.press("Enter")
    visitor.sees("Hello Ada.")

    assert "You are asked: What is your name?" == heard


def allow(visitor: Visitor) -> None:
    """A change is shown as a diff and a command in full; a refusal says why."""
    visitor.enter()
    visitor.begin("Writer", "notes")
    page = visitor.page
    page.locator(".request .diff").wait_for()
    visitor.press("Allow once")
    page.locator(".request .diff .removed").wait_for()
    visitor.keep("approval-diff")

    assert ["-tea is fine"] == page.locator(".request .diff .removed").all_inner_texts()
    assert ["+tea is <b>very</b> fine"] == page.locator(".request .diff .added").all_inner_texts()
    assert [] == visitor.grave_findings()
    visitor.press("Allow once")
    page.locator(".request .exact", has_text="wc -w notes.txt | sort --numeric-sort").wait_for()
    visitor.keep("approval-command")
    page.locator(".work > summary", has_text="Changes a file").last.click()
    page.locator(".step summary", has_text="changes a file").last.click()
    page.locator(".step .diff .added", has_text="+tea is <b>very</b> fine").wait_for()
    visitor.press("Do not allow")
    page.fill("#reason", "not today")
    visitor.press("Do not allow")
    visitor.sees("Both are decided.")

    assert "not today" in page.locator(".decided.refused").inner_text()


def plan(visitor: Visitor) -> None:
    """Steps of a plan are rewritten, left out and added before it is accepted."""
    visitor.enter()
    visitor.begin("Planner", "a tidy-up")
    page = visitor.page
    page.get_by_label("Step 2", exact=True).fill("Move the very old ones")
    page.get_by_label("Leave step 3 out").click()
    page.get_by_role("button", name="Add a step").click()
    page.get_by_label("Step 3", exact=True).fill("Tell me")
    visitor.keep("plan")
    assert [] == visitor.grave_findings()
    visitor.press("Accept with my changes")
    visitor.sees("It is tidy.")

    assert ["List the files (notes)", "Move the very old ones", "Tell me"] == page.locator(
        ".plan-steps li"
    ).all_inner_texts()


def steer(visitor: Visitor) -> None:
    """What is said while somebody works is heard; *Stop* ends the work, and the conversation goes on."""
    visitor.enter()
    visitor.begin("Writer", "a question")
    visitor.sees("Which tone?")
    visitor.say("Be short.")
    visitor.page.locator(".waiting", has_text="Be short.").wait_for()
    visitor.page.get_by_role("button", name="Stop").click()
    visitor.sees("Stopped.")
    visitor.page.get_by_role("button", name="Stop").wait_for(state="detached")
    visitor.say("thanks")
    visitor.sees("As you like.")


def use_phone(visitor: Visitor) -> None:
    """Everything has its place on a narrow screen: nothing sticks out, and conversations are behind a button."""
    page = visitor.page
    page.set_viewport_size(PHONE)
    visitor.enter()
    visitor.begin("Writer", "notes")
    page.locator(".request .diff").wait_for()
    visitor.keep("phone-approval")

    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.get_by_role("button", name="Allow once").is_visible()
    assert not page.get_by_role("navigation").is_visible()
    page.get_by_role("button", name="Conversations").click()
    page.get_by_role("navigation").get_by_role("link", name="notes").first.wait_for()
    page.wait_for_timeout(300)
    visitor.keep("phone-conversations")
    assert [] == visitor.grave_findings()
    page.keyboard.press("Escape")
    page.get_by_role("navigation").wait_for(state="hidden")
    visitor.press("Do not allow")
    page.keyboard.press("Enter")
    page.locator(".decided.refused").wait_for()


def use_keys(visitor: Visitor) -> None:
    """Choosing, writing, answering and going back need no mouse, and what has the focus is seen."""
    page = visitor.page
    visitor.enter()
    tab_to(visitor, "Writer")
    page.keyboard.press("Enter")
    page.wait_for_selector("#message:focus")
    page.keyboard.type("a question")
    page.keyboard.press("Enter")
    visitor.sees("Which tone?")
    page.wait_for_selector(".request:focus")
    tab_to(visitor, "formal")
    page.wait_for_timeout(500)
    page.keyboard.press("Enter")
    visitor.sees("It is formal.")
    page.wait_for_selector("#message:focus")
    tab_to(visitor, "New conversation", "Shift+Tab")

    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Who can help?").wait_for()


def tab_to(visitor: Visitor, text: str, key: str = "Tab", most: int = 40) -> None:
    """Go from one control to the next until one with a text has the focus."""
    for _ in range(most):
        visitor.page.keyboard.press(key)
        if text in visitor.page.evaluate("document.activeElement.innerText || ''"):
            return
    raise AssertionError(f"`{text}` is not reached with {key}")


def hand_over(visitor: Visitor) -> None:
    """Files are put in with the first message, pictures are shown; what the agent makes is taken out and removed."""
    page = visitor.page
    visitor.enter()
    visitor.begin("Writer")
    page.set_input_files(
        "input[type=file] >> nth=0",
        [
            {"name": "a b.csv", "mimeType": "text/csv", "buffer": b"x,y\n1,2\n"},
            {"name": "dot.png", "mimeType": "image/png", "buffer": b64decode(DOT)},
            {"name": "mistake.txt", "mimeType": "text/plain", "buffer": b"no"},
        ],
    )
    page.get_by_role("button", name="Take mistake.txt away").click()
    visitor.keep("files-added")
    assert [] == visitor.grave_findings()
    visitor.say("notes")
    page.locator(".person img").wait_for()
    visitor.press("Allow once")
    page.locator(".diff .removed").wait_for()
    page.get_by_role("button", name="Stop").click()
    visitor.sees("Stopped.")
    page.locator(".files summary", has_text="2 files").click()
    visitor.keep("files")
    with page.expect_download() as download:
        page.get_by_role("link", name="notes.txt").click()

    assert "notes" == page.locator(".history .here .title").inner_text()
    assert ["a b.csv"] == page.locator(".person .pill").all_inner_texts()
    assert "tea is fine" in download.value.path().read_text()
    assert b"x,y" in visitor.service.request("GET", f"api/runs/{visitor.run}/files/a%20b.csv").content
    page.get_by_role("button", name="Remove a b.csv").click()
    page.locator(".files summary", has_text="1 file").wait_for()


def send_again(visitor: Visitor) -> None:
    """A message stands on the page before the service has it; one that could not be sent says so, and is sent again."""
    page = visitor.page
    visitor.enter()
    visitor.begin("Writer")
    page.route("**/api/runs", lambda route: route.abort() if route.request.method == "POST" else route.continue_())
    visitor.say("thanks")
    page.locator(".letter.failed", has_text="Not sent").wait_for()
    visitor.keep("not-sent")
    page.unroute("**/api/runs")
    visitor.wrong.clear()
    page.get_by_role("button", name="Try again").click()
    visitor.sees("As you like.")

    assert ["You:\nthanks"] == page.locator(".item.person").all_inner_texts()
    assert "" == page.input_value("#message")


def read_from_the_right(visitor: Visitor) -> None:
    """Each bubble, block, title and input has the direction of its text; code has that of code."""
    page = visitor.page
    visitor.enter()
    visitor.begin("Writer", "الشاي")
    visitor.sees("Tea.")
    page.fill("#message", "نعم")
    visitor.keep("right-to-left")
    directions = "(all) => all.map((each) => getComputedStyle(each).direction)"

    assert ["rtl", "rtl", "rtl", "rtl", "ltr"] == page.locator(".answer .part").evaluate_all(directions)
    assert ["rtl"] * 5 == page.locator("ol, blockquote, .bubble > [dir], .where, #message").evaluate_all(directions)
    assert ["ltr"] == page.locator(".answer code").evaluate_all(directions)
    page.locator(".here .title:dir(rtl)").wait_for()


def study(visitor: Visitor) -> None:
    """Code has colours and its language, formulas are drawn and read aloud as TeX, and what is wide scrolls."""
    page = visitor.page
    page.set_viewport_size(PHONE)
    visitor.enter()
    visitor.begin("Writer", "a lesson")
    page.locator(".formula math mfrac").first.wait_for()
    page.locator(".code .hljs-keyword", has_text="agent").wait_for()
    scrolls = "(all) => all.map((each) => each.scrollWidth > each.clientWidth)"

    assert [r"\pi r^2", "r > 0"] == [each.get_attribute("alttext") for each in page.locator("p math").all()]
    assert ["koi", "python", "nobody"] == page.locator(".code .language").all_inner_texts()
    assert "and costs $5 or $6; $HOME stays" in page.locator(".answer p").first.inner_text()
    assert r"$\nonsense{$" == page.locator(".answer p code").last.inner_text()
    assert "plain & <b>simple</b>" == page.locator(".code pre").nth(2).inner_text()
    assert [True] == page.locator(".scroll:has(table)").evaluate_all(scrolls)
    assert "hidden" == page.locator(".formula").last.evaluate("(box) => getComputedStyle(box).overflowY")
    assert [] == page.locator(".formula").evaluate_all(
        "(all) => all.map((box) => box.scrollHeight - box.clientHeight).filter((pixels) => pixels > 0)"
    )
    assert page.locator(".code").last.evaluate(COPY_IS_ABOVE)
    assert [False] == page.locator("html").evaluate_all(scrolls)
    assert [] == visitor.grave_findings()
    assert r"The area is \pi r^2, for r > 0" in page.locator("[role=log]").inner_text()
    visitor.keep_sizes("lesson")
    assert [] == visitor.grave_findings()
    visitor.say("درس")
    page.locator(".item.answer", has_text="بسيطة").locator("math mfrac").first.wait_for()
    page.locator(".item.answer p", has_text="بسيطة").scroll_into_view_if_needed()
    visitor.keep_sizes("lesson-right-to-left")


def write_anew(visitor: Visitor) -> None:
    """A message is written anew, also the first one, or answered again; its other versions are there to look at."""
    page = visitor.page
    visitor.enter()
    visitor.begin("Writer", "one")
    visitor.sees("first")
    visitor.say("one")
    page.locator(".item.answer").nth(1).wait_for()
    page.get_by_role("button", name="Edit").nth(1).click()
    assert len("one") == page.locator("#editing").evaluate("(box) => box.selectionStart")
    page.fill("#editing", "two")
    page.locator(".editing").get_by_role("button", name="Send").click()
    visitor.sees("second")
    page.get_by_text("2 of 2").wait_for()
    page.get_by_role("button", name="Again").click()
    page.get_by_text("3 of 3").wait_for()
    visitor.sees("second")
    visitor.keep("versions")
    assert [] == visitor.grave_findings()
    page.get_by_role("button", name="Version before").click()
    page.get_by_text("2 of 3").wait_for()
    page.get_by_role("button", name="Edit").first.click()
    page.fill("#editing", "thanks")
    page.locator(".editing").get_by_role("button", name="Send").click()
    visitor.sees("As you like.")
    page.get_by_text("2 of 2").wait_for()

    assert 1 == page.locator(".item.person").count()


def fill_in(visitor: Visitor) -> None:
    """A form is seen as a whole; what does not fit is told beside its field before anything is sent."""
    page = visitor.page
    visitor.enter()
    visitor.begin("Writer", "a form")
    page.get_by_label("Email").fill("notmail")
    page.get_by_label("Guests").fill("9")
    visitor.press("Send")
    page.locator("[data-field=room] .wrong", has_text="Choose one.").wait_for()
    visitor.keep("form")

    assert 3 == page.locator(".form .wrong").count()
    assert [] == visitor.grave_findings()
    page.get_by_label("Email").fill("ada@example.org")
    page.get_by_label("Guests").fill("2")
    page.get_by_text("suite").click()
    visitor.press("Send")
    visitor.sees("ada@example.org with 2")
    assert 1 == page.locator(".decided").count()


def come_back(visitor: Visitor) -> None:
    """Who has scrolled up comes back by a button or a message; screen readers hear words without their markup."""
    page = visitor.page
    page.set_viewport_size({"width": 900, "height": 420})
    visitor.enter()
    visitor.begin("Writer", "tea")
    visitor.sees("Wait four minutes")
    heard = page.locator("[role=log]").inner_text()
    latest = page.get_by_role("button", name="Latest")
    page.mouse.move(500, 150)
    page.mouse.wheel(0, -4000)
    latest.wait_for()
    visitor.say("thanks")
    visitor.sees("As you like.")
    latest.wait_for(state="detached")
    page.mouse.move(500, 150)
    page.mouse.wheel(0, -4000)
    latest.click()
    latest.wait_for(state="detached")

    assert "Tea is one plant, Camellia sinensis." in heard
    assert not set("*`|#").intersection(heard)


QUICK: tuple[Callable[[Visitor], None], ...] = (
    *(talk, answer, answer_freely, allow, plan, steer, send_again, read_from_the_right),
    *(come_back, fill_in, study, write_anew, use_keys),
)
SLOW: tuple[Callable[[Visitor], None], ...] = (use_phone, hand_over)


def test_people_use_a_program(place: Place, subtests: pytest.Subtests) -> None:
    """Nobody needs to know the language, nothing is carried out that was only shown, and no other host hears of it."""
    for walk in QUICK:
        with subtests.test(walk.__name__), place.visitor() as visitor:
            walk(visitor)

            assert ([], []) == (visitor.wrong, visitor.strangers())


@pytest.mark.thorough
@pytest.mark.parametrize("walk", SLOW, ids=lambda walk: walk.__name__)
def test_people_use_it_otherwise(place: Place, walk: Callable[[Visitor], None]) -> None:
    """The same on other screens."""
    with place.visitor(color_scheme="dark", reduced_motion="reduce") as visitor:
        walk(visitor)

        assert ([], []) == (visitor.wrong, visitor.strangers())


@pytest.mark.thorough
def test_two_tabs_show_one_conversation(place: Place) -> None:
    """A second tab finds the conversation, and shows what happens in the first one; either may answer."""
    context = place.browser.new_context(viewport=DESK)
    with place.visitor(within=context) as one, place.visitor(within=context) as other:
        one.enter()
        one.begin("Writer", "a question")
        one.sees("Which tone?")
        other.enter("")
        other.page.get_by_role("navigation").get_by_role("link", name="a question").first.click()
        other.press("plain")
        one.sees("It is plain.")
        one.page.locator(".request").wait_for(state="detached")
        other.sees("It is plain.")
        for each in (one, other):
            each.page.locator(".item", has_text="Working").wait_for(state="detached")

        assert [text.page.locator(".item").all_inner_texts() for text in (one,)] == [
            text.page.locator(".item").all_inner_texts() for text in (other,)
        ]
        other.page.reload()
        other.sees("It is plain.")
        assert ([], []) == (one.wrong, other.wrong)
    context.close()


@pytest.mark.thorough
def test_conversations_are_kept_in_order(place: Place) -> None:
    """They are renamed, pinned, exported and deleted, which can be undone; those of programs stand apart."""
    with place.visitor() as visitor:
        page, service = visitor.page, visitor.service
        service.request("POST", "api/runs", {"handler": "Planner.chat", "payload": {"message": "x"}})
        visitor.enter()
        visitor.begin("Writer", "one")
        visitor.sees("first")
        run = visitor.run

        def choose(name: str, about: str) -> None:
            page.locator(".history .here").get_by_role("button", name=f"More about {about}").click()
            page.locator(".menu").get_by_role("button", name=name).click()

        choose("Rename", "one")
        page.get_by_label("Name", exact=True).fill("Unpacked")
        page.keyboard.press("Enter")
        page.locator(".here .title", has_text="Unpacked").wait_for()
        choose("Pin", "Unpacked")
        page.get_by_role("heading", name="Pinned").wait_for()
        with page.expect_download() as download:
            choose("Export", "Unpacked")
        visitor.keep("history")
        page.get_by_role("button", name="New conversation").click()
        page.locator(".history .here").wait_for(state="detached")
        page.get_by_role("button", name="More about Unpacked").click()
        with page.expect_download() as from_outside:
            page.locator(".menu").get_by_role("button", name="Export").click()
        page.get_by_role("link", name="Unpacked").click()
        visitor.sees("first")

        assert "# Unpacked\n\n**You:** one" in download.value.path().read_text()
        assert download.value.path().read_text() == from_outside.value.path().read_text()
        assert "Unpacked" == service.request("GET", f"api/runs/{run}").json()["title"]
        assert "Begun by programs (1)" == page.locator(".programs summary").inner_text()
        choose("Delete", "Unpacked")
        page.get_by_role("button", name="Undo").click()
        page.get_by_role("link", name="Unpacked").click()
        choose("Delete", "Unpacked")
        page.get_by_role("button", name="Undo").wait_for()
        page.get_by_role("button", name="Undo").wait_for(state="detached")
        page.get_by_role("link", name="Unpacked").wait_for(state="detached")

        assert 404 == service.request("GET", f"api/runs/{run}").status_code


def test_a_link_lets_in_who_is_asked_for_the_key(place: Place) -> None:
    """A link that is opened in the tab that asks for the key is as good as one in a new tab, on both pages."""
    with place.visitor() as visitor:
        page, url = visitor.page, place.service.url
        page.goto(f"{url}/dev")
        page.get_by_label("Token").wait_for()
        page.goto(f"{url}/dev#token={place.service.token}")
        page.wait_for_selector(".runs-table, .empty")
        from_dev = page.url
        page.context.clear_cookies()
        page.goto(f"{url}/")
        page.get_by_label("Key").wait_for()
        page.goto(f"{url}/#token={place.service.token}")
        page.get_by_text("Who can help?").wait_for()

        assert (False, False) == ("token" in from_dev, "token" in page.url)


@pytest.mark.thorough
def test_a_wrong_key_is_told(place: Place) -> None:
    """Who has no key is asked for one, a wrong one is refused, and the right one lets in; no address keeps it."""
    with place.visitor() as visitor:
        page = visitor.page
        page.goto(f"{place.service.url}/#token=wrong")
        page.get_by_label("Key").fill("wrong, too")
        page.get_by_role("button", name="Enter").click()
        page.get_by_text("This key is not known here.").wait_for()
        visitor.keep("sign-in")
        assert [] == visitor.grave_findings()
        page.get_by_label("Key").fill(place.service.token)
        page.get_by_role("button", name="Enter").click()
        page.get_by_role("heading", name="Who can help?").wait_for()

        assert place.service.token not in page.url
        assert "" == page.evaluate("document.cookie")
        assert place.service.token not in page.evaluate("JSON.stringify([{ ...localStorage }, { ...sessionStorage }])")


@pytest.mark.thorough
def test_who_signs_out_leaves_nothing_open(place: Place) -> None:
    """All tabs of the browser ask for the key, the one that was signed out has forgotten what was not sent."""
    context = place.browser.new_context(viewport=DESK)
    with place.visitor(within=context) as one, place.visitor(within=context) as other:
        one.enter()
        one.begin("Writer", "a question")
        one.sees("Which tone?")
        other.enter("")
        other.page.get_by_role("link", name="a question").first.click()
        other.sees("Which tone?")
        one.page.fill("#message", "a draft")
        one.keep("signed-in")
        one.page.get_by_role("button", name="Sign out").click()
        one.page.get_by_label("Key").wait_for()
        other.page.get_by_label("Key").wait_for()

        assert ("0", []) == (one.page.evaluate("String(sessionStorage.length)"), context.cookies())
        one.page.reload()
        one.page.get_by_label("Key").fill(place.service.token)
        one.page.get_by_role("button", name="Enter").click()
        one.page.get_by_text("Who can help?").wait_for()
    context.close()


@pytest.mark.thorough
def test_who_is_forgotten_goes_on_after_the_key(place: Place) -> None:
    """Where the service does not know somebody any more, it asks, and the conversation is there again."""
    with place.visitor() as visitor:
        visitor.enter()
        visitor.begin("Writer", "a question")
        visitor.sees("Which tone?")
        visitor.page.context.clear_cookies()
        visitor.say("shorter")
        visitor.page.get_by_label("Key").fill(place.service.token)
        visitor.page.get_by_role("button", name="Enter").click()
        visitor.press("formal")
        visitor.sees("It is formal.")

        assert "shorter" == visitor.page.input_value("#message"), "what could not be sent is still there"


@pytest.mark.thorough
def test_older_conversations_are_found(place: Place) -> None:
    """A search looks through those, too, that were not listed yet."""
    with place.visitor() as visitor:
        own = replace(visitor.service, token=TOKENS["eve"])
        for message in ("the oldest one", *["thanks"] * 32):
            own.begin(handler="Writer.chat", message=message)
        visitor.enter(TOKENS["eve"])
        visitor.page.get_by_role("button", name="Show more").wait_for()
        visitor.page.get_by_label("Search conversations").fill("oldest")
        visitor.page.get_by_role("link", name="the oldest one").click()

        assert 1 == visitor.page.locator(".history .title").count()
        visitor.page.get_by_role("button", name="More about the oldest one").click()
        visitor.page.get_by_role("button", name="Pin").click()
        visitor.page.reload()
        visitor.page.get_by_role("heading", name="Pinned").wait_for()
        assert "the oldest one" == visitor.page.locator(".history .title").first.inner_text()


@pytest.mark.thorough
def test_nobody_sees_what_others_say(place: Place) -> None:
    """Of two people each has their own conversations; the address of one of the other leads nowhere."""
    with place.visitor() as ada, place.visitor() as bob:
        ada.enter(TOKENS["ada"])
        ada.begin("Writer", "a question")
        ada.sees("Which tone?")
        bob.enter(TOKENS["bob"])
        bob.page.get_by_text("No conversations yet").wait_for()
        bob.page.evaluate(f"location.hash = '#/run/{ada.run}'")
        bob.page.get_by_text("This conversation is not there any more.").wait_for()
        bob.keep("not-mine")

        assert 0 == bob.page.locator(".request, .item, #message").count()
        assert bob.page.url.endswith("/#/")
        bob.page.get_by_role("button", name="New conversation").click()
        bob.begin("Writer", "thanks")
        bob.sees("As you like.")
        ada.press("plain")
        ada.sees("It is plain.")
        assert ["a question"] == ada.page.locator(".history .title").all_inner_texts()
        assert ["thanks"] == bob.page.locator(".history .title").all_inner_texts()
