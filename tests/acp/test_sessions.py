"""Conversations of an editor: going on with earlier ones, modes, commands, trust, MCP servers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import acp
import pytest
from acp import schema

from tests.acp.editors import Editor, edit
from tests.acp.test_turns import answers
from tests.playbook.playing import act, done
from tests.projects import Project

PROGRAM = '''
    role Worker { can execute }
    agent Main : Worker {
      on chat(args: { message: string }) { playbook """Answer: {{args.message}}""" }
    }
    '''
WITH_SERVER = '''
    role Worker { can call_mcp, can execute }
    agent Main : Worker {
      uses mcp notes
      on chat(args: { message: string }) { playbook """Answer: {{args.message}}""" }
    }
    '''
SERVER = Path(__file__).parents[1] / "mcp/server.py"


@pytest.fixture
def program(project: Project) -> Project:
    """A project with a program."""
    project.write("a.koi", PROGRAM)
    return project


def test_going_on_with_a_conversation(program: Project) -> None:
    """An earlier conversation is listed, told again, and goes on; the model remembers it."""
    first = answers(program, act("print", message="First."), act("shell", command="true", description="x"), done())
    ids: list[str] = []

    async def begin(editor: Editor) -> None:
        session = await editor.begin()
        ids.append(session)
        await editor.say(session, "one\ntwo")

    async def go_on(editor: Editor) -> None:
        folder = str(program.folder)
        (listed,) = (await editor.koi.list_sessions(cwd=folder)).sessions
        assert (ids[0], folder, "one two") == (listed.session_id, listed.cwd, listed.title)
        loaded = await editor.koi.load_session(cwd=folder, session_id=ids[0], mcp_servers=[])
        assert "work" == loaded.modes.current_mode_id
        kinds = [update["sessionUpdate"] for _, update in editor.updates if "command" not in update["sessionUpdate"]]
        assert ["user_message_chunk", "agent_message_chunk", "tool_call", "tool_call_update"] == kinds
        assert ("one\ntwo", "First.") == (editor.text("user_message_chunk"), editor.text())
        assert "end_turn" == await editor.say(ids[0], "three")
        assert "First.Second." == editor.text()

    async def resume(editor: Editor) -> None:
        await editor.koi.resume_session(cwd=str(program.folder), session_id=ids[0], mcp_servers=[])
        assert "end_turn" == await editor.say(ids[0], "four")
        assert "Third." == editor.text()
        with pytest.raises(acp.RequestError, match="there is no run `f00`"):
            await editor.koi.load_session(cwd=str(program.folder), session_id="f00", mcp_servers=[])

    edit(program, begin, "a.koi", *first, "--allow", "shell")
    edit(program, go_on, "a.koi", *answers(program, 0, 1, 2, act("print", message="Second."), done()))
    edit(program, resume, "a.koi", *answers(program, *range(5), act("print", message="Third."), done()))
    shown = program.koi("resume", ids[0])

    async def load(editor: Editor) -> None:
        with pytest.raises(acp.RequestError, match=f"`--resume {ids[0]} --trust`"):
            await editor.koi.load_session(cwd=str(program.folder), session_id=ids[0], mcp_servers=[])

    edit(program, load, "a.koi", KOI_CONFIG_DIR=str(program.folder / "other"))

    assert f"`koi chat a.koi --resume {ids[0]}`" in shown.stderr


def test_plan_mode(program: Project) -> None:
    """A conversation may begin in plan mode; an accepted plan ends that, and its steps are those of the editor."""
    steps = [{"text": "Look"}, {"text": "Write"}]
    model = [
        act("shell", command="touch x", description="x"),
        act("propose_plan", steps=steps),
        act("finish_step", step=1),
        done(),
    ]

    async def talk(editor: Editor) -> None:
        session = await editor.begin()
        await editor.koi.set_session_mode(session_id=session, mode_id="plan")
        assert ["plan"] == [update["currentModeId"] for update in editor.told("current_mode_update")]
        with pytest.raises(acp.RequestError, match="there is no mode `ask`"):
            await editor.koi.set_session_mode(session_id=session, mode_id="ask")
        await editor.say(session, "x")
        await editor.say(session, "yes")

    editor = edit(program, talk, "a.koi", *answers(program, *model))

    assert ["plan", "work"] == [update["currentModeId"] for update in editor.told("current_mode_update")]
    plans = [[entry["status"] for entry in update["entries"]] for update in editor.told("plan")]
    assert [["pending", "pending"], ["completed", "pending"]] == plans
    assert "failed" == editor.told("tool_call_update")[0]["status"]
    assert not (program.folder / "x").exists()


def test_commands(program: Project) -> None:
    """The editor is told the commands; a message that begins with another word and a slash is a message."""

    async def talk(editor: Editor) -> None:
        session = await editor.begin()
        await editor.until(lambda: editor.told("available_commands_update"))
        for text in ("/cost", "/model", "/effort low"):
            assert "end_turn" == await editor.say(session, text)
        with pytest.raises(acp.RequestError, match="nothing was said yet"):
            await editor.say(session, "/compact")
        with pytest.raises(acp.RequestError, match="`set_thinking_level`"):
            await editor.say(session, "/effort nope")
        assert "end_turn" == await editor.say(session, "/usr/bin is full")

    editor = edit(program, talk, "a.koi", *answers(program, act("print", message="!"), done()))

    (told,) = editor.told("available_commands_update")
    assert ["compact", "cost", "effort", "model"] == [each["name"] for each in told["availableCommands"]]
    assert "0 requests" in editor.text()
    assert "`/model provider/model`" in editor.text()
    assert editor.text().endswith("`low` from now on!")


def test_folders_that_nobody_trusts(program: Project) -> None:
    """What a folder that the editor names would widen does not count, whatever was said about another folder."""
    program.write("inner/koi.toml", '[shell]\nallow = ["touch *"]\n')
    asked = answers(program, act("shell", command="touch x", description="x"), done())

    async def talk(editor: Editor) -> None:
        await editor.say(await editor.begin("inner"), "x")

    config = str(program.folder / "config")
    editor = edit(program, talk, "a.koi", *asked, "--trust-folder", KOI_TRUST_FOLDER="", KOI_CONFIG_DIR=config)
    trusting = edit(program, talk, "a.koi", *asked, KOI_TRUST_FOLDER="1", KOI_CONFIG_DIR=config)

    assert (1, 0) == (len(editor.permissions), len(trusting.permissions))
    assert (program.folder / "inner/x").exists()
    assert "warning: " in editor.errors


def test_servers_of_the_editor(project: Project) -> None:
    """A program uses an MCP server that the editor names, under the rules of a folder, also of one without trust."""
    project.write("a.koi", WITH_SERVER)
    call = act("call_mcp", mcp="notes", tool="read", input={"path": "x"})
    server = schema.McpServerStdio(
        name="notes", command=sys.executable, args=[str(SERVER)], env=[schema.EnvVariable(name="X", value="1")]
    )

    async def talk(editor: Editor) -> None:
        with pytest.raises(acp.RequestError, match="there is no MCP server `notes`"):
            await editor.begin()
        project.write("koi.toml", '[mcp.notes]\nask = ["*"]\n')
        editor.decide = allow
        opened = await editor.koi.new_session(cwd=str(project.folder), mcp_servers=[server])
        await editor.say(opened.session_id, "x")

    async def allow(request: dict[str, Any]) -> str:
        return "yes"

    editor = edit(project, talk, "a.koi", *answers(project, call, done()), KOI_TRUST_FOLDER="")

    assert 1 == len(editor.permissions)
    assert "read x" == editor.told("tool_call")[-1]["title"]
    assert "completed" == editor.told("tool_call_update")[-1]["status"]
