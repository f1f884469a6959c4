"""Files that a message names as `@PATH`, and commands of the person behind `!`, in conversations."""

from __future__ import annotations

from pathlib import Path

import pytest

from koi_lang.cli.chat.material import BESIDE, MAX_FILE_CHARS, complete_mention, file_texts, message_in, quote_block
from koi_lang.errors import KoiError
from tests.cli.chatting import CTRL_C, CTRL_D, ENTER, Typed, chatting, typed
from tests.cli.screens import Shown
from tests.playbook.playing import done
from tests.projects import Project


@pytest.fixture(autouse=True)
def _here(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.folder)


def message(talk: Typed) -> str:
    """What the agent was given last."""
    last = talk.chat.session.last
    return "" if last is None else str(last[2]["message"])


def test_a_named_file_goes_beside_the_message(project: Project) -> None:
    """As data, in a fence; words that name no file stay words, and the file is there once."""
    project.write("src/a.py", "x = 1\n")

    async def test(talk: Typed) -> None:
        talk.press("What does @src/a.py do, @Ada? See @src/a.py.", ENTER)
        await talk.until_shown("looked")

        expected = "What does @src/a.py do, @Ada? See @src/a.py."
        assert expected + BESIDE + "The file `src/a.py`:\n```\nx = 1\n```" == message(talk)
        assert expected == message_in(message(talk))

    typed(project, test, done(text="looked"))


@pytest.mark.parametrize("name", [".env", ".git/config", "../outside.txt", "data.bin"])
def test_what_agents_may_not_read_is_refused(project: Project, name: str) -> None:
    """Also where the person names it; the message comes back to them."""
    path = project.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"KEY=1\0\xff")

    with pytest.raises(KoiError):
        file_texts(f"Look at @{name}", project.folder, print)


def test_a_path_that_names_no_file_is_told(project: Project) -> None:
    """The person learns that the model gets the word alone; other words behind an `@` are words."""
    told: list[str] = []

    assert [] == file_texts("See @src/b.py, @Ada and @here.", project.folder, told.append)
    assert ["there is no file `src/b.py` in this folder; the model gets the word alone"] == told


def test_a_long_file_is_cut(project: Project) -> None:
    """The rest is counted."""
    project.write("long.txt", "ab" * MAX_FILE_CHARS)

    (text,) = file_texts("@long.txt", project.folder, print)

    assert text.endswith("```\n(30,000 more characters)")


def test_nothing_in_a_text_ends_its_fence() -> None:
    """A file with fences of its own gets a longer one."""
    assert "A:\n````\n```\nb\n```\n````" == quote_block("A", "```\nb\n```\n")


def test_paths_are_completed(project: Project) -> None:
    """Folders end with a slash; hidden files and those closed to agents are not offered."""
    for name in ("src/a.py", "src/b.py", "setup.py", ".env", ".hidden"):
        project.write(name, "")

    offered = [[*complete_mention(text, project.folder)] for text in ("see @s", "@src/", "@src/b", "@.e", "@nowhere/")]

    assert [["setup.py", "src/"], ["src/a.py", "src/b.py"], ["src/b.py"], [], []] == offered


def test_the_input_offers_paths(project: Project) -> None:
    """While the word is typed."""
    project.write("notes.txt", "")

    async def test(talk: Typed) -> None:
        talk.press("see @no")
        await talk.until(lambda: talk.choices)

        assert ["notes.txt"] == talk.choices

    typed(project, test)


def test_a_command_of_the_person_runs_at_once(project: Project) -> None:
    """Its output is shown, a failure has a cross, and the next message alone carries both to the agent."""

    async def test(talk: Typed) -> None:
        talk.press("!echo one; exit 3", ENTER)
        await talk.until_shown("ended with exit code 3")
        assert talk.shown.startswith("one\r\n")
        talk.press("What went wrong?", ENTER)
        await talk.until_shown("first")
        told = message(talk)
        talk.press("And now?", ENTER)
        await talk.until_shown("second")

        ran = "The person ran `echo one; exit 3`, which ended with exit code 3:\n```\none\n```"
        assert "What went wrong?" + BESIDE + ran == told
        assert "And now?" == message(talk)

    typed(project, test, done(text="first"), done(text="second"))


def test_a_command_of_the_person_can_be_ended(project: Project) -> None:
    """By Ctrl-C, which ends nothing else; nothing of it is told."""

    async def test(talk: Typed) -> None:
        talk.press("!sleep 600", ENTER)
        await talk.until(lambda: talk.chat.own.is_running)
        assert "runs your command" in talk.chat.status()
        talk.press(CTRL_C)
        await talk.until_shown("was ended")
        talk.press("hi", ENTER)
        await talk.until_shown("hello")

        assert "hi" == message(talk)

    typed(project, test, done(text="hello"))


def test_commands_and_files_at_a_plain_terminal(project: Project, terminals: list[Shown]) -> None:
    """Lines of a person have them, too."""
    project.write("b.txt", "bees\n")
    shown = chatting(project, done(text="looked"), command="--plain")
    terminals.append(shown)
    shown.until("/help")
    shown.child.send("!echo $((1+1)) bees\r")
    shown.until("2 bees")
    shown.child.send("see @b.txt\r")
    shown.until("looked")
    shown.child.send(CTRL_D)
    shown.end()

    (journal,) = (project.folder / ".koi" / "runs").glob("*.jsonl")
    text = journal.read_text("utf-8")
    assert "The person ran `echo $((1+1)) bees`" in text
    assert "The file `b.txt`" in text


def test_lines_of_a_pipe_are_messages(project: Project) -> None:
    """What others write into a pipe runs nothing and reads no file."""
    project.write("b.txt", "bees\n")
    project.write(
        "a.koi", "role R { can execute } agent A : R { on chat(args: { message: string }) { return args.message } }"
    )

    told = project.koi("chat", "a.koi", "--rehearse", stdin="!touch made @b.txt\n")

    assert "!touch made @b.txt\n" == told.stdout
    assert not Path(project.folder, "made").exists()
