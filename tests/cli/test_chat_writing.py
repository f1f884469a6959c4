"""Texts that a model is still writing, in `koi chat`."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest

from koi_lang.cli.chat import editor
from koi_lang.events import CallStarted, Event, LinePrinted, OutputDelta, ThoughtDelta
from koi_lang.llm import sdk_imports
from tests.cli.chatting import CTRL_D, WAIT, Typed, chatting, let_go, say, typed
from tests.cli.screens import Shown
from tests.playbook.playing import done
from tests.projects import Project

LINES = "\n".join(f"{number}. line" for number in range(1, 401))


def test_a_text_is_seen_before_it_is_said(project: Project, terminals: list[Shown]) -> None:
    """What is written while something else goes on stands above the input, rendered, then once among the answers."""
    shown = chatting(project, {"batch": [WAIT, say("It is **ready** now")]}, done(), command="--allow shell")
    terminals.append(shown)
    shown.until("idle")
    shown.child.send("Which?\r")
    before = shown.until("It is ready now\n>")
    let_go(project.folder)
    after = shown.until("exitCode: 0\nIt is ready now\n>")
    shown.child.send(CTRL_D)

    assert "exitCode" not in before
    assert 1 == after.count("It is ready now")


def test_a_long_text_scrolls_while_it_is_written(project: Project, terminals: list[Shown]) -> None:
    """Of a text that is higher than the terminal its end is seen, in at most half of it; in the end all of it is."""
    shown = chatting(project, {"batch": [WAIT, say(LINES)]}, done(), command="--allow shell")
    terminals.append(shown)
    shown.until("idle")
    shown.child.send("Count!\r")
    before = shown.until("400. line\n>")
    let_go(project.folder)
    shown.until("idle")

    assert 20 == before.count(". line")
    assert b" 400 \x1b[0mline" in shown.written or b" 400 line" in shown.written


def test_what_is_not_said_does_not_stay(project: Project, terminals: list[Shown]) -> None:
    """A text whose action is not carried out is gone when the model is asked again."""
    shown = chatting(
        project,
        {"batch": [{**WAIT, "id": "w"}, {**say("never said"), "condition": "${w.output.exitCode} > 0"}]},
        say("at last"),
        done(),
        command="--allow shell",
    )
    terminals.append(shown)
    shown.until("idle")
    shown.child.send("Go\r")
    shown.until("never said")
    let_go(project.folder)
    shown.until("at last")

    assert "never said" not in shown.until("idle")


def test_two_texts_at_once(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the first of two has been said the second is still seen from its beginning."""
    monkeypatch.chdir(project.folder)

    async def test(talk: Typed) -> None:
        view = talk.chat.telling
        path = ("Main.chat#1", "model#1")
        for number, text in ((1, "first"), (2, "second, "), (2, "and its end")):
            view.follow(Event(0, 0.0, "r", "Main", OutputDelta("print", "message", number, text), path))
        view.follow(Event(1, 0.0, "r", "", LinePrinted("first"), ("Main.chat#1", "print#1", "printed#1")))
        written = talk.editor._writing

        assert written is not None
        assert ["second, and its end"] == written.last_lines(80, 10)

    typed(project, test)


def test_what_code_has_a_model_write_is_seen(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until code prints it; what a model writes for a delegate is not for the person."""
    monkeypatch.chdir(project.folder)

    async def test(talk: Typed) -> None:
        view, path = talk.chat.telling, ("Main.chat#1", "model#1")
        written = OutputDelta("call_llm", "result", 1, "a story")
        view.follow(Event(0, 0.0, "r", "Bob", written, ("Main.chat#1", "Bob.go#1", "model#1")))
        assert talk.editor._writing is None

        view.follow(Event(0, 0.0, "r", "Main", written, path))
        assert talk.editor._writing is not None
        assert ["a story"] == talk.editor._writing.last_lines(80, 10)

        view.follow(Event(1, 0.0, "r", "", LinePrinted("a story"), ("Main.chat#1", "printed#1")))
        assert talk.editor._writing is None

    typed(project, test)


def test_what_answers_need_is_loaded_while_the_person_types(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for it after Enter; all of it is there in the releases that are installed."""
    monkeypatch.chdir(project.folder)
    monkeypatch.syspath_prepend(project.folder)
    monkeypatch.setattr(editor, "LOADED_AHEAD", (*editor.LOADED_AHEAD, "loaded_ahead"))
    project.write("loaded_ahead.py", "")

    async def test(talk: Typed) -> None:
        await talk.until(lambda: "loaded_ahead" in sys.modules)

    typed(project, test)
    for name in sdk_imports.CONNECTIONS:
        import_module(name)


def test_thoughts_are_unfolded(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """`/thoughts` shows those of the last turn, without secrets and without what would steer the terminal."""
    monkeypatch.chdir(project.folder)

    async def test(talk: Typed) -> None:
        view, path = talk.chat.telling, ("Main.chat#1", "model#1")
        talk.press("/thoughts\r")
        await talk.until_shown("no model has shown what it thought")
        for event in (
            CallStarted("c", "Main.chat", {}),
            ThoughtDelta("of the turn before"),
            CallStarted("c", "Main.chat", {}),
        ):
            view.follow(Event(1, 0.0, "r", "Main", event, path))
        for piece in ("first ", "then\x1b[2J"):
            view.follow(Event(0, 0.0, "r", "Main", ThoughtDelta(piece), path))
        talk.press("/thoughts\r")
        await talk.until_shown("first then")

    assert "turn before" not in typed(project, test).shown


def test_texts_of_an_earlier_part_do_not_stay(project: Project, terminals: list[Shown]) -> None:
    """When a conversation goes on, what was said before is told as such, and nothing stands above the input."""
    shown = chatting(project, say("said before"), done())
    terminals.append(shown)
    shown.until("idle")
    shown.child.send("Go\r")
    shown.until("said before")
    shown.until("idle")
    shown.child.send(CTRL_D)
    shown.end()
    again = chatting(project, command="--resume last")
    terminals.append(again)
    screen = again.until("going on with")
    screen = again.until("idle")

    assert 1 == screen.count("said before")
