"""Images in conversations: pasted, dropped, named or copied; shown as marks, sent with the message that has them."""

from __future__ import annotations

import asyncio
import json
import os
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from koi_lang.cli.chat.images import Attached, clipboard_image, pasted_files
from koi_lang.cli.runs import command as runs
from koi_lang.errors import UsageError
from koi_lang.events import CallStarted
from koi_lang.runtime.journal.reader import read
from koi_lang.runtime.model_calls.images import images_in, value_of
from koi_lang.sessions.message_targets import MessageTarget, text_of
from tests.cli.chatting import CTRL_C, ENTER, WAIT, Typed, let_go, say, typed
from tests.pictures import DARK, RED, png
from tests.playbook.playing import done
from tests.projects import Project

BACKSPACE, CTRL_V = "\x7f", "\x16"
MARK = f"[image 1: a cat.png, {RED.size} bytes]"


@pytest.fixture(autouse=True)
def _here(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.folder)
    (project.folder / "a cat.png").write_bytes(png(255))


def given(talk: Typed) -> Any:
    """What the agent was given last."""
    last = talk.chat.session.last
    return None if last is None else last[2]


def paste(text: str) -> str:
    """What a terminal sends when a text is pasted into it."""
    return f"\x1b[200~{text}\x1b[201~"


@pytest.mark.parametrize("form", ["'{}'", "{}", "file://{}", '"{}" '])
def test_a_dropped_file_is_attached(project: Project, form: str) -> None:
    """A path, quoted, escaped or as an address, becomes a mark, and the image goes with the message."""
    path = project.folder / "a cat.png"
    dropped = form.format(str(path).replace(" ", "%20") if "file" in form else path)

    async def test(talk: Typed) -> None:
        talk.press("see ", paste(dropped))
        await talk.until(lambda: talk.editor.text == f"see {MARK} ")
        talk.press("?", ENTER)
        await talk.until_shown("a cat indeed")

        assert {"message": f"see {MARK} ?", "images": [value_of(RED)]} == given(talk)

    typed(project, test, say("a cat indeed"), done())


def test_a_path_that_is_typed_is_attached(project: Project) -> None:
    """Terminals that do not mark what is pasted type the path of what is dropped; it is no message."""

    async def test(talk: Typed) -> None:
        talk.press(str(project.folder / "a\\ cat.png"), ENTER)
        await talk.until(lambda: talk.editor.text == f"{MARK} ")

        assert None is given(talk)

    typed(project, test)


def test_a_mark_is_deleted_at_once(project: Project) -> None:
    """Backspace behind a mark deletes it whole, and the message then has no image."""

    async def test(talk: Typed) -> None:
        talk.press("hi ", paste("'a cat.png'"))
        await talk.until(lambda: talk.editor.text.endswith("] "))
        talk.press(BACKSPACE)
        await talk.until(lambda: talk.editor.text == "hi ")
        talk.press(ENTER)
        await talk.until_shown("hello")

        assert {"message": "hi"} == given(talk)

    typed(project, test, say("hello"), done())


def test_other_texts_are_pasted_as_they_are(project: Project) -> None:
    """A text that only speaks of a file, or names one that is not there, is a text."""

    async def test(talk: Typed) -> None:
        talk.press(paste("compare a cat.png\r\nwith dog.png"))
        await talk.until(lambda: talk.editor.text == "compare a cat.png\nwith dog.png")

    typed(project, test)


def test_pasted_data_is_attached(project: Project) -> None:
    """An image as an address that contains it is an image, too."""

    async def test(talk: Typed) -> None:
        talk.press(paste(RED.url))
        await talk.until(lambda: talk.editor.text == f"[image 1: pasted, {RED.size} bytes] ")

    typed(project, test)


def test_a_file_that_models_do_not_read_is_told(project: Project) -> None:
    """The reason is shown, and the pasted text stays."""
    (project.folder / "old.bmp").write_bytes(b"BM12")

    async def test(talk: Typed) -> None:
        talk.press(paste("old.bmp"))
        await talk.until_shown("`old.bmp` is no image that models read")
        await talk.until_shown("Models read PNG, JPEG, GIF and WebP.")

        assert "old.bmp" == talk.editor.text

    typed(project, test)


def test_a_command_attaches_files(project: Project) -> None:
    """`/image` takes a path with blanks; one that is not there is told."""

    async def test(talk: Typed) -> None:
        talk.press("/image a cat.png", ENTER)
        await talk.until(lambda: talk.editor.text == f"{MARK} ")
        talk.press(CTRL_C, "/image dog.png", ENTER)
        await talk.until_shown("cannot read `dog.png`: no such file or directory")

    typed(project, test)


def test_images_are_heard_while_the_agent_works(project: Project) -> None:
    """A message with an image that steers has it; what is taken back with Ctrl-C has it still."""

    async def test(talk: Typed) -> None:
        talk.chat.session.run.permissions.allow("shell")
        talk.press("go", ENTER)
        await talk.until_waiting()
        talk.press(paste("'a cat.png'"), "look", ENTER)
        await talk.until_shown("will be heard before the next answer")
        (note,) = talk.chat.session.run.steering.pending_messages()
        assert (f"{MARK} look", (RED,)) == (note.text, note.images)
        talk.press("/back", ENTER)
        await talk.until(lambda: talk.editor.text == f"{MARK} look")

        assert [RED] == talk.chat.attached.of(talk.editor.text)
        let_go(talk.folder)

    typed(project, test, WAIT, done(), done())


# ---------------------------------------------------------------- the clipboard


def tool(folder: Path, name: str, script: str) -> None:
    """A program of some name that reads a clipboard."""
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


@pytest.mark.parametrize(
    ("tools", "expected"),
    [
        ({"xclip": "cat picture"}, "[image 1: clipboard, "),
        ({"wl-paste": "exit 1", "xclip": "cat picture"}, "[image 1: clipboard, "),
        ({"osascript": f"printf '«data PNGf{png(255).hex().upper()}»\\n'"}, "[image 1: clipboard, "),
    ],
)
def test_the_image_in_the_clipboard_is_attached(
    project: Project, monkeypatch: pytest.MonkeyPatch, tools: dict[str, str], expected: str
) -> None:
    """Ctrl-V attaches what the first tool gives that finds an image."""
    (project.folder / "picture").write_bytes(png(255))
    for name, script in tools.items():
        tool(project.folder, name, f"PATH=/usr/bin:/bin\n{script}")
    monkeypatch.setenv("PATH", str(project.folder))

    async def test(talk: Typed) -> None:
        talk.press(CTRL_V)
        await talk.until(lambda: talk.editor.text.startswith(expected))

        assert [RED] == talk.chat.attached.of(talk.editor.text)

    typed(project, test)


@pytest.mark.parametrize(
    ("script", "told"), [("exit 1", "the clipboard holds no image"), ("", "the clipboard cannot be read here")]
)
def test_a_clipboard_without_an_image(
    project: Project, monkeypatch: pytest.MonkeyPatch, script: str, told: str
) -> None:
    """That there is no image, or no tool that could tell, is said with what to do."""
    if script:
        tool(project.folder, "pngpaste", script)
    monkeypatch.setenv("PATH", str(project.folder))

    async def test(talk: Typed) -> None:
        talk.press(CTRL_V)
        await talk.until_shown(told)
        await talk.until_shown("/image PATH")

    typed(project, test)


def test_a_tool_that_hangs_is_not_waited_for(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool has a limited time, and its process is gone afterwards."""
    tool(project.folder, "xclip", 'echo $$ > "$0.pid"\nexec /bin/sleep 60')
    monkeypatch.setenv("PATH", str(project.folder))

    with pytest.raises(UsageError, match="the clipboard holds no image"):
        asyncio.run(clipboard_image(limit_s=0.2))

    with pytest.raises(ProcessLookupError):
        os.kill(int((project.folder / "xclip.pid").read_text()), 0)


# ---------------------------------------------------------------- afterwards


def test_going_back_brings_images_back(project: Project) -> None:
    """A message that is written anew after `/branch` has its image again, and the journal shows no data."""

    async def test(talk: Typed) -> None:
        talk.press(paste("'a cat.png'"), "what?", ENTER)
        await talk.until_shown("a cat")
        await talk.until(lambda: not talk.chat.is_busy)
        shown = CliRunner().invoke(runs, ["show", "last", "--full"]).output
        assert f'"images": ["[image, image/png, {RED.size} bytes]"]' in shown
        assert RED.data not in shown
        journal = talk.chat.session.journal
        assert journal is not None
        (at,) = (entry.n for entry in read(journal).entries if entry.kind == CallStarted.type)
        talk.press(f"/branch {at}", ENTER)
        await talk.until(lambda: talk.editor.text == f"{MARK} what?")

        assert [RED] == talk.chat.attached.of(talk.editor.text)

    typed(project, test, say("a cat"), done())


def test_images_of_a_pipe(project: Project) -> None:
    """`/image` in piped lines belongs to the next message, which a handler of code gets as well."""
    body = "console.log(args.message, args.images[0].mimeType)"
    handler = f"on chat(args: {{ message: string, images?: Json }}) {{ {body} }}"
    project.write("a.koi", f"role Worker {{ can think }}\nagent Main : Worker {{ {handler} }}")

    outcome = project.koi("chat", "a.koi", stdin="/image a cat.png\nwhat?\n")

    assert (0, f"{MARK} what? image/png\n", "") == (outcome.returncode, outcome.stdout, outcome.stderr)


# ---------------------------------------------------------------- parts


def test_numbers_go_on_behind_those_that_are_known() -> None:
    """An image of a conversation that goes on does not get the number of an earlier one."""
    attached = Attached()
    attached.recall("[image 3: x.png, 1 kB] and [image 4: y.png, 1 kB]", [value_of(RED), value_of(DARK)])
    attached.recall("[image 4: y.png, 1 kB] or [image 9: no.png, 1 kB]", [value_of(RED)])

    assert f"[image 5: z(1).png, {RED.size} bytes]" == attached.add("z[1].png", RED)
    assert [DARK, RED] == attached.of("[image 4: y.png, 1 kB] [image 3: x.png, 1 kB] [image 9: no.png, 1 kB]")


def test_several_files_are_dropped_at_once(project: Project) -> None:
    """Files come on one line or on several; one that is none makes all of it a text."""
    (project.folder / "b.png").write_bytes(png())

    assert ["a cat.png", "b.png"] == [path.name for path in pasted_files("'a cat.png' b.png")]
    assert ["a cat.png", "b.png"] == [path.name for path in pasted_files("a cat.png\nb.png\n")]
    assert [] == pasted_files("b.png or c.png") == pasted_files("'b.png")


def test_a_handler_of_texts_takes_no_images() -> None:
    """Where the message itself is the argument, there is no place for images; that is said before anything is sent."""
    with pytest.raises(UsageError, match=r"`Main\.chat` takes a text, which has no place for images"):
        MessageTarget("Main", "chat", None, declared=True).payload("hi", [RED])


def test_a_message_is_found_beside_its_images() -> None:
    """What a handler was given is shown as the message it was."""
    payload = MessageTarget("Main", "chat", "message", declared=True).payload("hi", [RED])

    assert ("hi", (RED,)) == (text_of(payload), images_in(payload))
    assert json.loads(json.dumps(payload)) == payload
    assert b64encode(png(255)).decode() == payload["images"][0]["data"]
