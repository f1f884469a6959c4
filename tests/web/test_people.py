"""Walks of people through the page of a service, in Chromium against a `koi serve http` of its own.

All of them share one browser and one service. The shortest are one test of the usual suite; each is one of its own in
the thorough one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.service.serving_process import ServiceProcess
from tests.web.conftest import open_browser
from tests.web.people import Visitor, visit, write_desk

if TYPE_CHECKING:
    from playwright.sync_api import Browser


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
    visitor.begin("Writer", "tea")
    visitor.sees("Wait four minutes")
    visitor.page.locator(".work summary", has_text="Researcher: look up facts").click()
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


def allow(visitor: Visitor) -> None:
    """A change is shown as a diff and a command in full; a refusal says why."""
    visitor.enter()
    visitor.begin("Writer", "notes")
    page = visitor.page
    page.locator(".request .diff").wait_for()
    visitor.press("Allow once")
    page.locator(".diff .removed").wait_for()
    visitor.keep("approval-diff")

    assert ["-tea is fine"] == page.locator(".diff .removed").all_inner_texts()
    assert ["+tea is <b>very</b> fine"] == page.locator(".diff .added").all_inner_texts()
    assert [] == visitor.grave_findings()
    visitor.press("Allow once")
    page.locator(".request .exact", has_text="wc -w notes.txt | sort --numeric-sort").wait_for()
    visitor.keep("approval-command")
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


QUICK: tuple[Callable[[Visitor], None], ...] = (talk, answer, allow, plan)


def test_people_use_a_program(place: Place, subtests: pytest.Subtests) -> None:
    """Nobody needs to know the language, nothing is carried out that was only shown, and no other host hears of it."""
    for walk in QUICK:
        with subtests.test(walk.__name__), place.visitor() as visitor:
            walk(visitor)

            assert ([], []) == (visitor.wrong, visitor.strangers())
