"""Events to who is at work, with what, and what came of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from koi_lang.cli.ui.activity import ActionOutcome, Activity
from koi_lang.cli.ui.activity_text import doing, doing_now
from koi_lang.events import (
    ActionEnded,
    ActionFailed,
    ActionStarted,
    Event,
    EventData,
    HandlerEnded,
    HandlerStarted,
    McpProgress,
    ModelAnswered,
    ModelAsked,
    RetryStarted,
)
from koi_lang.runtime.events import Events
from koi_lang.runtime.playbook.partial_reply import ReplyPreview

LEAD, ANN, TWIN = ("Lead.go#1",), ("Lead.go#1", "ann::go#1", "Ann.go#1"), ("Lead.go#1", "ann::go#2", "Ann.go#1")


class Told:
    """Work that is told events; what has ended is kept."""

    def __init__(self, known: Callable[[str, tuple[str, ...]], bool] | None = None) -> None:
        self.now = 0.0
        self.work = Activity(lambda: self.now, lambda text: text.replace("hunter2", "[redacted]"))
        self.ended: list[ActionOutcome] = []
        self._events = Events("r", known=known)
        self._events.subscribe(self._follow)

    def _follow(self, event: Event) -> None:
        outcome = self.work.follow(event)
        if outcome is not None:
            self.ended.append(outcome)

    def __call__(self, data: EventData, *path: str, agent: str = "Ann") -> None:
        """Something has happened."""
        self._events.emit(data, agent, path=path)

    @property
    def lines(self) -> list[str]:
        """Who is at work with what."""
        return [f"{'  ' * worker.depth}{self.work.label(worker)}: {doing(worker)}" for worker in self.work.workers()]


@pytest.fixture
def told() -> Told:
    """A run in which `Lead` has one `Ann` do something, and then another."""
    told = Told()
    told(HandlerStarted("go"), *LEAD, agent="Lead")
    for path in (ANN, TWIN):
        told(ActionStarted("ann::go", ""), *path[:2], agent="Lead")
        told(HandlerStarted("go"), *path)
    return told


def test_agents_of_one_name_are_numbered(told: Told) -> None:
    """Two calls of one agent can be told apart, also when the first of them has ended."""
    assert ["Lead: 0 of 2 done: ann::go", "  Ann 1: working", "  Ann 2: working"] == told.lines

    told(HandlerEnded("go"), *ANN)

    assert ["Lead: 0 of 2 done: ann::go", "  Ann 2: working"] == told.lines


def test_an_agent_within_itself_is_one() -> None:
    """A handler that calls another one of its agent has no number; several at once are told apart."""
    told = Told()
    told(HandlerStarted("work"), "Coder.work#1", agent="Coder")
    told(HandlerStarted("change"), "Coder.work#1", "Coder.change#1", agent="Coder")
    one = told.lines
    told(HandlerStarted("change"), "Coder.work#1", "Coder.change#2", agent="Coder")

    assert ["Coder: working", "  Coder: working"] == one
    assert ["Coder 1: working", "  Coder 1: working", "  Coder 2: working"] == told.lines


@pytest.mark.parametrize(("result", "ok"), [({"success": False, "exitCode": 3}, False), ({"success": True}, True)])
def test_a_failed_command_is_no_success(told: Told, result: dict[str, object], ok: bool) -> None:
    """What says of itself that it failed is marked as a failure, although the action has a result."""
    told(ActionStarted("shell", "", {"command": "make"}), *ANN, "shell#1")
    told(ActionEnded("shell", result), *ANN, "shell#1")

    assert [ok] == [outcome.ok for outcome in told.ended]


def test_the_innermost_action_is_named(told: Told) -> None:
    """Of a loop and what it does, the latter is shown; the loop is none of several actions at once."""
    told(ActionStarted("repeat", "", {"count": 2}), *ANN, "repeat#1")
    told(ActionStarted("shell", "", {"command": "ls\n -l hunter2"}), *ANN, "repeat#1", "shell#1")

    assert "  Ann 1: shell ls -l [redacted]" == told.lines[1]


def test_an_outcome_has_its_time_and_result(told: Told) -> None:
    """What has ended is told with what it was given, what it gave, and the seconds between."""
    told(ActionStarted("registry_get", "", {"key": "x"}), *ANN, "registry_get#1")
    told.now = 2.5
    result = {"found": ["a\n", "hunter2"], "no": None}
    told(ActionEnded("registry_get", result), *ANN, "registry_get#1")

    (outcome,) = told.ended
    assert ("Ann 1", "registry_get x", True) == (outcome.worker, outcome.step.what, outcome.ok)
    assert ("found: [a, [redacted]]", 2.5) == (outcome.result, outcome.seconds)


def test_the_progress_of_a_tool_is_shown(told: Told) -> None:
    """A tool that tells how far it is has that beside its name, until it ends."""
    told(ActionStarted("call_mcp", "", {"mcp": "files"}), *ANN, "call_mcp#1")
    told(McpProgress("files", "copy", 3, 4, "copying"), *ANN, "call_mcp#1")
    during = told.lines[1]
    told(ActionFailed("call_mcp", {"error": "it broke"}), *ANN, "call_mcp#1")

    assert ("  Ann 1: call_mcp files 75 % copying", "  Ann 1: working") == (during, told.lines[1])
    assert [(False, "it broke")] == [(outcome.ok, outcome.result) for outcome in told.ended]


def test_only_the_model_that_was_asked_is_heard(told: Told) -> None:
    """Text counts between a request and the end of its answer; its last word waits until it is whole."""
    before = told.work.wrote((*ANN, "model#1"), "early ")
    told(ModelAsked("m"), *ANN, "model#1")
    during = told.work.wrote((*ANN, "model#1"), "one two\nthree hun")
    written = told.work.preview(told.work.workers()[1])
    told(ModelAnswered("m", {}, None), *ANN, "model#1")

    assert (False, True, ReplyPreview("prose", text="one two three")) == (before, during, written)
    assert not told.work.wrote((*ANN, "model#1"), "late ")


@pytest.mark.parametrize(
    ("text", "columns", "expected"),
    [
        ("", 40, "thinking"),
        ("This is hunter2 and some prose that goes on", 30, "…ted] and some prose that goes"),
        ("This is short ", 7, "thinking"),
        ('{"thought": "First I look ', 40, "thinking: First I look"),
        ('{"intent": "print", "message": "Hello Ada, ', 40, 'writing print "Hello Ada,…"'),
        ('{"intent": "print", "message": "Hello Ada, how are you"', 30, 'writing print "…, how are you"'),
        ('{"intent": "print", "message": "你好世界你好世界"', 26, 'writing print "…你好世界"'),
        ('{"intent": "print", "message": "Hello Ada, ', 0, "writing print"),
        ('{"message": "Hello Ada, ', 40, 'writing "Hello Ada,…"'),
        ('[{"intent": "a"}, {"intent": "b"', 40, "planning (2 actions)"),
        ('{"intent": "hunter2\\n\\u001b[2J"', 40, "writing [redacted]"),
    ],
)
def test_what_a_model_writes_is_told(told: Told, text: str, columns: int, expected: str) -> None:
    """While a model writes, its line says which action that is and what with, as far as there is room for it."""
    told(ModelAsked("m"), *ANN, "model#1")
    told.work.wrote((*ANN, "model#1"), text)

    assert expected == doing_now(told.work, told.work.workers()[1], columns, "…")


def test_what_is_recalled_is_not_told() -> None:
    """Of a run that goes on, whoever is still at work is shown as soon as something new happens there."""
    told = Told(known=lambda type, path: "shell#2" not in path)
    told(HandlerStarted("go"), *LEAD, agent="Lead")
    told(ActionStarted("ann::go", ""), *ANN[:2], agent="Lead")
    told(HandlerStarted("go"), *ANN)
    told(ActionStarted("shell", ""), *ANN, "shell#1")
    told(ActionEnded("shell", {}), *ANN, "shell#1")
    before = told.lines
    told(ActionStarted("shell", ""), *ANN, "shell#2")

    assert ([], []) == (before, told.ended)
    assert ["Lead: ann::go", "  Ann: shell"] == told.lines


def test_another_attempt_is_shown(told: Told) -> None:
    """What failed is seen while a handler is tried again, and while a model is asked again."""
    told(RetryStarted(handler="go", attempt=1, tries=3, delay_s=0.2, error="no hunter2"), *ANN)
    told(RetryStarted("m", attempt=1, tries=3, delay_s=2.0, error="busy"), *TWIN)

    assert ["  Ann 1: attempt 2 of 3 after: no [redacted]", "  Ann 2: asks again in 2 s: busy"] == told.lines[1:]
