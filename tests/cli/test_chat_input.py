"""What keys do in the input of a conversation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from koi_lang.cli.chat import keys
from koi_lang.cli.chat.commands import COMMANDS, TOPICS
from tests.cli.chatting import (
    ALT_ENTER,
    ALT_UP,
    CTRL_C,
    CTRL_D,
    CTRL_R,
    DOWN,
    ENTER,
    ESCAPE,
    LINE_END,
    NEW_LINE,
    PROGRAM,
    SECRET,
    TAB,
    UP,
    WAIT,
    Typed,
    let_go,
    say,
    typed,
)
from tests.playbook.playing import act, done
from tests.projects import Project


@pytest.fixture(autouse=True)
def _here(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.folder)


def messages(talk: Typed) -> list[str]:
    """What the agent was given, call by call."""
    last = talk.chat.session.last
    return [] if last is None else [last[2]["message"]]


def history(project: Project) -> str:
    """What is kept of what was typed."""
    path = project.folder / ".koi" / "chat-history"
    return path.read_text() if path.exists() else ""


def test_enter_sends(project: Project) -> None:
    """A message is given to the handler, and what is printed is shown."""

    async def test(talk: Typed) -> None:
        talk.press("hi", ENTER)
        await talk.until_shown("Hello Ada")

        assert ["hi"] == messages(talk)

    typed(project, test, say("Hello Ada"), done())


@pytest.mark.parametrize("keys", [("one", NEW_LINE, "two"), ("one\\", ENTER, "two")])
def test_a_message_may_have_lines(project: Project, keys: tuple[str, ...]) -> None:
    """Ctrl-J makes a new line, and so does a backslash before Enter."""

    async def test(talk: Typed) -> None:
        talk.press(*keys, ENTER)
        await talk.until_shown("done")

        assert ["one\ntwo"] == messages(talk)

    typed(project, test, done(text="done"))


@pytest.mark.parametrize("end", [ENTER, ESCAPE])
def test_ctrl_r_looks_through_the_history(project: Project, end: str) -> None:
    """What was typed before is found by a part of it, stands in the input again, and is sent as any other text."""

    async def test(talk: Typed) -> None:
        talk.press("tabs or blanks?", ENTER)
        await talk.until_shown("one")
        talk.press(CTRL_R, "blanks", end)
        await talk.until(lambda: talk.editor.text and not talk.is_searching)
        talk.press(LINE_END, " Say!", ENTER)
        await talk.until_shown("two")

        assert ["tabs or blanks? Say!"] == messages(talk)

    typed(project, test, done(text="one"), done(text="two"))


def test_ctrl_c_leaves_the_search(project: Project) -> None:
    """The conversation and the input stay as they were."""

    async def test(talk: Typed) -> None:
        talk.press("first", ENTER)
        await talk.until_shown("one")
        talk.press("half a", CTRL_R, "fir", CTRL_C, LINE_END, " message", ENTER)
        await talk.until_shown("two")

        assert ["half a message"] == messages(talk)

    typed(project, test, done(text="one"), done(text="two"))


def test_the_result_is_shown_where_nothing_was_printed(project: Project) -> None:
    """An agent that prints nothing has answered with what it returns: one text as such, other values as JSON."""

    async def test(talk: Typed) -> None:
        talk.press("hi", ENTER)
        await talk.until_shown("first")
        talk.press("hi", ENTER)
        await talk.until_shown('"b": 2')
        assert "nothing was said" not in talk.shown
        talk.press("hi", ENTER)
        await talk.until_shown("nothing was said")

    typed(project, test, done(text="first"), done(a=1, b=2), done())


def test_enter_steers_while_it_works(project: Project) -> None:
    """What is sent while the agent works is heard before its next answer; Alt-Enter keeps it for the end."""

    async def test(talk: Typed) -> None:
        talk.chat.session.run.permissions.allow("shell")
        talk.press("go", ENTER)
        await talk.until_waiting()
        talk.press("Use tabs.", ENTER)
        await talk.until_shown("before the next answer")
        talk.press("And test.", ALT_ENTER)
        await talk.until_shown("at the end")
        let_go(talk.folder)
        await talk.until_shown("tested")

        heard = [talk.shown.index(f"`Main` hears: {text}") for text in ("Use tabs.", "And test.")]
        assert heard == sorted(heard)

    typed(project, test, WAIT, done(n=1), say("tested"), done())


def test_escape_aborts(project: Project) -> None:
    """Escape ends the work; what was queued comes back into the input, before what stands there."""

    async def test(talk: Typed) -> None:
        talk.chat.session.run.permissions.allow("shell")
        talk.press("go", ENTER)
        await talk.until_waiting()
        talk.press("unheard", ENTER)
        await talk.until_shown("before the next answer")
        talk.press("half")
        await talk.until(lambda: talk.editor.text == "half")
        talk.press(ESCAPE)
        await talk.until(lambda: talk.editor.text == "unheard\nhalf")

        assert not talk.chat.is_busy

    typed(project, test, WAIT)


def test_escape_takes_options_away(project: Project) -> None:
    """The answers that were offered for a permission are gone when Esc has ended the work."""

    async def test(talk: Typed) -> None:
        talk.press("go", ENTER)
        await talk.until(lambda: "yes" in talk.choices)
        talk.press(ESCAPE)
        await talk.until_shown("aborted")
        await talk.until(lambda: not talk.chat.is_busy)

        assert [] == talk.choices

    typed(project, test, WAIT)


def test_a_command_that_has_to_wait_is_told_so(project: Project) -> None:
    """What to do meanwhile is told with commands of a conversation."""

    async def test(talk: Typed) -> None:
        talk.chat.session.run.permissions.allow("shell")
        talk.press("go", ENTER)
        await talk.until_waiting()
        talk.press("/model openai/x", ENTER)
        await talk.until_shown("Wait until that has ended, or end it with `/abort`.")

    typed(project, test, WAIT)


def test_what_comes_too_late_is_the_next_message(project: Project) -> None:
    """What was sent when the model had already answered for the last time is given to the handler afterwards."""

    async def test(talk: Typed) -> None:
        talk.chat.session.run.permissions.allow("shell")
        talk.press("go", ENTER)
        await talk.until_waiting()
        talk.press("too late", ENTER)
        await talk.until_shown("before the next answer")
        let_go(talk.folder)
        await talk.until_shown("second")

        assert ["too late"] == messages(talk)
        assert [] == talk.chat.session.run.steering.pending_messages()

    typed(project, test, f"{json.dumps(WAIT)}\n{json.dumps(done())}", say("second"), done())


def test_alt_up_takes_back(project: Project) -> None:
    """What is queued comes back into the input, and the work goes on."""

    async def test(talk: Typed) -> None:
        talk.chat.session.run.permissions.allow("shell")
        talk.press("go", ENTER)
        await talk.until_waiting()
        talk.press("never", ALT_ENTER)
        await talk.until_shown("at the end")
        talk.press(ALT_UP)
        await talk.until(lambda: talk.editor.text == "never")

        assert talk.chat.is_busy

    typed(project, test, WAIT)


def test_ctrl_c_three_times(project: Project) -> None:
    """Ctrl-C empties the input, then warns, then ends the conversation."""

    async def test(talk: Typed) -> None:
        talk.press("half")
        await talk.until(lambda: talk.editor.text == "half")
        talk.press(CTRL_C)
        await talk.until(lambda: talk.editor.text == "")
        talk.press(CTRL_C)
        await talk.until_shown("press Ctrl-C again")
        assert not talk.chat.over
        talk.press(CTRL_C)
        await talk.until(lambda: talk.chat.over)

    typed(project, test)


def test_ctrl_c_ends_the_work(project: Project) -> None:
    """While the agent works Ctrl-C ends the work, not the conversation."""

    async def test(talk: Typed) -> None:
        talk.chat.session.run.permissions.allow("shell")
        talk.press("go", ENTER)
        await talk.until_waiting()
        talk.press(CTRL_C)
        await talk.until_shown("aborted")

        assert not talk.chat.over

    typed(project, test, WAIT)


def test_ctrl_d_ends_the_conversation(project: Project) -> None:
    """Ctrl-D in an empty input ends the conversation; in a text it deletes a character."""

    async def test(talk: Typed) -> None:
        talk.press("ab", "\x01", CTRL_D)
        await talk.until(lambda: talk.editor.text == "b")
        assert not talk.chat.over
        talk.press(CTRL_C, CTRL_D)
        await talk.until(lambda: talk.chat.over)

    typed(project, test)


def test_history(project: Project) -> None:
    """What was typed can be had again, also in the next conversation of the folder; secrets are not kept."""

    async def first(talk: Typed) -> None:
        talk.press(f"look at {SECRET}", ENTER)
        await talk.until_shown("1")
        await talk.until(lambda: history(project))

    async def second(talk: Typed) -> None:
        talk.press(UP)
        await talk.until(lambda: talk.editor.text == "look at [redacted]")

    typed(project, first, done(text="1"))
    for name in ("go", "a.koi"):
        (project.folder / name).unlink()
    typed(project, second)

    assert (SECRET not in history(project), "0o600") == (
        True,
        oct((project.folder / ".koi/chat-history").stat().st_mode & 0o777),
    )


def test_commands_are_completed(project: Project) -> None:
    """The beginning of a command becomes the command, and what it takes is completed, too."""

    async def test(talk: Typed) -> None:
        talk.press("/comp")
        await talk.until(lambda: talk.choices)
        talk.press(TAB)
        await talk.until(lambda: talk.editor.text == "/compact")
        talk.press(CTRL_C, "/agents M")
        await talk.until(lambda: talk.choices == ["Main"])
        talk.press(TAB)
        await talk.until(lambda: talk.editor.text == "/agents Main")

    typed(project, test)


def test_a_question_is_answered(project: Project) -> None:
    """The options of a question are chosen with the cursor keys; a message that was begun waits until then."""

    async def test(talk: Typed) -> None:
        talk.chat.session.run.permissions.allow("shell")
        talk.press("go", ENTER)
        await talk.until_waiting()
        talk.press("half")
        await talk.until(lambda: talk.editor.text == "half")
        let_go(talk.folder)
        await talk.until_shown("Which colour?\r\n  1. red\r\n  2. green")
        await talk.until(lambda: talk.editor.text == "")
        talk.press(DOWN, DOWN, ENTER)
        await talk.until_shown("You chose green")
        await talk.until(lambda: talk.editor.text == "half")

        assert "green" not in history(project)

    question = act("prompt_user", question="Which colour?", options=["red", "green"], id="c")
    typed(project, test, {"batch": [WAIT, question, say("You chose ${c.output.answer}")]}, done())


@pytest.mark.parametrize("answer", ["yes", "3"])
def test_permission_is_asked_for(project: Project, answer: str) -> None:
    """An action that needs permission waits for a clear answer; what is no answer allows nothing."""

    async def test(talk: Typed) -> None:
        talk.press("go", ENTER)
        await talk.until_shown("2. always")
        talk.press("perhaps", ENTER)
        await talk.until_shown("answer with yes, always or no")
        assert talk.chat.requests
        talk.press(answer, ENTER)
        await talk.until_shown("end")
        assert ("stdout: ran" in talk.shown) == (answer == "yes")

    typed(project, test, act("shell", command="echo ran", description="to see"), say("end"), done())


def test_what_looks_like_a_command_is_no_message(project: Project) -> None:
    """A mistyped command leaves the input, and is in the history; behind a space it is a message."""

    async def test(talk: Typed) -> None:
        talk.press("/cots", ENTER)
        await talk.until_shown("there is no command `/cots`")
        assert "" == talk.editor.text
        talk.press("/nonsense", ENTER)
        await talk.until_shown("there is no command `/nonsense`")
        talk.press(" /cots", ENTER)
        await talk.until_shown("done")

        assert ["/cots"] == messages(talk)

    typed(project, test, done(text="done"))


def test_control_characters_do_no_harm(project: Project) -> None:
    """What a model prints, asks or does cannot steer the terminal."""

    async def test(talk: Typed) -> None:
        talk.press("go", ENTER)
        await talk.until_shown("Really?")
        talk.press("x", ENTER)
        await talk.until_shown("end")

        assert "\x1b]0;" not in talk.shown

    evil = "\x1b]0;evil\x07"
    question = act("prompt_user", question=f"{evil}Really?")
    typed(project, test, {"batch": [say(f"{evil}text"), question, say("end")]}, done())


def test_what_others_write_does_not_disturb_the_input(project: Project) -> None:
    """Lines that Python code writes to the streams of the process are shown above the input."""

    async def test(talk: Typed) -> None:
        print("from Python")
        await talk.until_shown("from Python")

    typed(project, test)


def test_the_history_of_a_folder_that_cannot_be_written(project: Project) -> None:
    """A conversation goes on without a history file."""

    async def test(talk: Typed) -> None:
        talk.press("hi", ENTER)
        await talk.until_shown("Hello")

    Path(".koi/chat-history").mkdir(parents=True)
    typed(project, test, say("Hello"), done())


def test_commands_explain_themselves(project: Project) -> None:
    """All of them in twelve lines, one in its own words, and the one that was meant."""
    project.write("a.koi", PROGRAM)
    project.write("answers.json", "[]")

    shown = project.koi("chat", "a.koi", "--answers", "answers.json", stdin="/help\n/help undo\n/hlep\n/help x\n")

    lines = shown.stdout.splitlines()
    named = {f"/{name}" for names in TOPICS.values() for name in names}
    assert (named | {"/help"}, True) == (set(COMMANDS), len(TOPICS) + 1 + len(keys.HELP) <= 12)
    assert "/undo [yes]  Show what would be put back of the files that this conversation has changed" in lines[-1]
    assert ("Did you mean `/help`?" in shown.stderr, "there is no command `x`" in shown.stderr) == (True, True)


def test_changes_are_shown_as_a_diff(project: Project) -> None:
    """Of what the conversation has changed, from before it to now."""
    project.write("a.koi", 'import "std/code"\n' + PROGRAM.replace("can execute", "can write"))
    project.write("notes.txt", "one\ntwo\n")
    edit = act("edit_file", path="notes.txt", before="two", after="three")
    project.write("answers.json", json.dumps([edit, done()]))
    words = ("chat", "a.koi", "--answers", "answers.json", "--allow", "write:**")

    shown = project.koi(*words, stdin="/diff\nwork\n/diff\n")

    expected = ["--- a/notes.txt", "+++ b/notes.txt", "@@ -1,2 +1,2 @@", " one", "-two", "+three"]
    assert ["no file is changed by this conversation", *expected] == shown.stdout.splitlines(), shown.stderr
