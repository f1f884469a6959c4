"""What a program asks the person goes to functions of Python."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import koi_lang
from koi_lang.api.agent import ProgramAgent
from tests.api.conftest import within
from tests.limits import LIMIT_S


async def name(editor: ProgramAgent) -> Any:
    """Have the agent ask for a name."""
    return (await editor.name())["answer"]


async def listing(editor: ProgramAgent) -> Any:
    """Have the agent run a command."""
    return (await editor.list())["stdout"]


async def async_answer(question: str, options: Any) -> str:
    """An answer that could have taken a while."""
    return question.upper()


@pytest.mark.parametrize("ask", [lambda question, options: question.upper(), async_answer])
def test_questions_are_answered(desk: Path, ask: Callable[..., Any]) -> None:
    """A function answers, at once or later."""
    assert "YOUR NAME?" == within(desk, name, ask=ask)


@pytest.mark.parametrize("options", [{}, {"ask": lambda question, options: None}])
def test_nobody_answers(desk: Path, options: Any) -> None:
    """Without a function, or where it gives nothing, the action fails and says what to write."""
    with pytest.raises(koi_lang.KoiError, match="nobody answers the question `Your name\\?`") as failed:
        within(desk, name, **options)

    assert "`ask=lambda question, options: …`" in str(failed.value.help)


@pytest.mark.parametrize("answer", [True, "yes", "always"])
def test_a_permission_is_given(desk: Path, answer: Any) -> None:
    """A function that is told who wants what says yes."""
    asked: list[tuple[str, ...]] = []

    assert "listed\n" == within(desk, listing, approve=lambda *given: asked.append(given) or answer)
    assert [("run `echo listed`", "to see", "Editor")] == asked


def test_always_is_asked_once(desk: Path) -> None:
    """What is allowed for always is not asked for again."""
    asked: list[str] = []

    async def twice(editor: ProgramAgent) -> Any:
        return await listing(editor), await listing(editor)

    def approve(what: str, detail: str, agent: str) -> str:
        asked.append(what)
        return "always"

    assert ("listed\n", "listed\n") == within(desk, twice, approve=approve)
    assert 1 == len(asked)


@pytest.mark.parametrize("options", [{}, {"approve": lambda *given: False}, {"approve": lambda *given: None}])
def test_a_permission_is_denied(desk: Path, options: Any) -> None:
    """Without a function, or where it says no, nothing is run."""
    with pytest.raises(koi_lang.PermissionDeniedError):
        within(desk, listing, **options)


def test_an_answer_that_is_none(desk: Path) -> None:
    """An answer that means nothing is no permission."""
    with pytest.raises(koi_lang.UsageError, match="`approve` gave 'maybe'"):
        within(desk, listing, approve=lambda *given: "maybe")


def test_what_is_allowed_is_not_asked_for(desk: Path) -> None:
    """Rules count as those of the command line."""
    assert "listed\n" == within(desk, listing, allow=["shell:echo *"])


@pytest.mark.parametrize(
    ("options", "message", "help"),
    [
        ({"allow": ["shel"]}, "the rule `shel` allows nothing", "Write `run`"),
        ({"budget": {"dollars": 1}}, "a budget has no `dollars`", "known limits are"),
        ({"budget": {"usd": 0}}, "`usd` of a budget is 0", "Give a number above 0."),
        ({"budget": {"turns": 1.5}}, "`turns` of a budget is 1.5", "Give a whole number above 0."),
        ({"modle": "x"}, "there is no option `modle`", "did you mean `model`?"),
    ],
)
def test_options_that_mean_nothing(desk: Path, options: Any, message: str, help: str) -> None:
    """A slip is told when the program is opened."""
    with pytest.raises(koi_lang.KoiError) as failed:
        koi_lang.open(desk, **options)

    assert (message, True) == (failed.value.message, help in (failed.value.help or ""))


async def cancelled(*given: Any) -> Any:
    """What a callback does whose own waiting was cancelled."""
    raise asyncio.CancelledError


@pytest.mark.parametrize(("work", "callback"), [(name, "ask"), (listing, "approve")])
def test_a_callback_that_is_cancelled(desk: Path, work: Callable[..., Any], callback: str) -> None:
    """Nobody answers, and the call ends with that."""

    async def in_time(editor: ProgramAgent) -> Any:
        return await asyncio.wait_for(work(editor), LIMIT_S)

    with pytest.raises(koi_lang.KoiError, match=r"nobody (answers|can be asked)"):
        within(desk, in_time, **{callback: cancelled})
