"""Turns of a conversation in an editor: what is said, how they end, what cannot be carried out."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import acp
import pytest

from tests.acp.editors import Editor, edit, edit_in_loop
from tests.llm.server import ModelServer
from tests.playbook.playing import act, done
from tests.projects import Project

PROGRAM = '''
    import loud from "./loud.py"
    role Worker { can execute }
    agent Main : Worker {
      on chat(args: { message: string, images?: any[] }) { playbook """Answer: {{args.message}}""" }
      on echo(args: { message: string }) { loud.shout(); return args.message }
      on wait(args: { message: string }) {
        console.log("begun")
        await new Promise((resolve) => setTimeout(resolve, 100000))
      }
      on spin(args: { message: string }) {
        console.log("begun")
        await new Promise((resolve) => setTimeout(resolve, 50))
        while (true) { }
      }
      on fail(args: { message: string }) { throw new Error("no such luck") }
      on refuse(args: { message: string }) { loud.refuse() }
    }
    '''
LOUD = """
    import sys
    print("imported")
    def shout() -> None:
        print("called"); sys.stdout.flush()
    def refuse() -> None:
        from koi_lang.errors import AnswerRefusedError
        raise AnswerRefusedError("the model declined")
    """
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="


@pytest.fixture
def program(project: Project) -> Project:
    """A project with a program that imports noisy Python."""
    project.write("a.koi", PROGRAM)
    project.write("loud.py", LOUD)
    return project


def answers(project: Project, *texts: Any) -> tuple[str, str]:
    """Options that have the model answer so."""
    project.write("answers.json", json.dumps(texts))
    return "--answers", str(project.folder / "answers.json")


def test_a_conversation(program: Project) -> None:
    """Texts arrive in pieces while the model writes them, once each; the conversation is recorded in its folder."""
    said = "A text that is long enough to arrive in several pieces."
    (program.folder / "inner").mkdir()

    async def talk(editor: Editor) -> None:
        session = await editor.begin("inner")
        assert "end_turn" == await editor.say(session, "one")
        assert "end_turn" == await editor.say(session, "two")

    scripted = answers(program, act("print", message=said), done(), {"intent": "return", "data": "Second."})
    editor = edit(program, talk, "a.koi", *scripted)

    assert said + "Second." == editor.text()
    assert len(editor.told("agent_message_chunk")) > 2
    ids = {update["messageId"] for update in editor.told("agent_message_chunk")}
    assert 2 == len(ids)
    assert 1 == len(list((program.folder / "inner/.koi/runs").glob("*.jsonl")))
    assert 0 == editor.process.returncode


def test_what_models_take(program: Project) -> None:
    """A real request is streamed, and the editor is told how full the context is and what the conversation has cost."""
    program.write("koi.toml", '[models]\ndefault = "openai/gpt-5.4-mini"\n')
    told = json.dumps([act("print", message="Over the wire."), done()])

    async def talk(editor: Editor) -> None:
        assert "end_turn" == await editor.say(await editor.begin(), "one")

    async def serve() -> Editor:
        async with ModelServer([told]) as server:
            variables = {"OPENAI_API_KEY": "sk-not-a-key", "OPENAI_BASE_URL": f"{server.url}/v1"}
            return await edit_in_loop(program, talk, ("a.koi",), {}, variables)

    editor = asyncio.run(serve())

    assert "Over the wire." == editor.text()
    (usage,) = editor.told("usage_update")
    assert usage["size"] > usage["used"] > 0
    assert usage["cost"]["amount"] > 0


def test_what_an_editor_attaches(program: Project) -> None:
    """Files are named as they are in the folder, what comes with one is quoted, and images are handed on."""
    root = program.folder.as_uri()
    blocks = [
        "Look at ",
        acp.resource_link_block("b.py", f"{root}/src/b%20c.py#L3:4"),
        acp.resource_block(acp.embedded_text_resource(f"{root}/d.md", "# D\n```\ncode\n```\n")),
        acp.image_block(PIXEL, "image/png"),
    ]

    async def talk(editor: Editor) -> None:
        assert "end_turn" == await editor.say(await editor.begin(), *blocks)
        with pytest.raises(acp.RequestError, match="`audio` cannot be read"):
            await editor.say(await editor.begin(), acp.audio_block("", "audio/wav"))

    edit(program, talk, "a.koi", *answers(program, done()))
    (journal,) = (path for path in (program.folder / ".koi/runs").glob("*.jsonl") if "args" in path.read_text())
    entries = map(json.loads, journal.read_text().splitlines())
    args = next(entry["args"] for entry in entries if entry.get("kind") == "call_started")

    assert "Look at `src/b c.py#L3:4`\n\n`d.md`:\n````\n# D\n```\ncode\n```\n````" == args["message"]
    assert ["image/png"] == [image["mimeType"] for image in args["images"]]


def test_stdout_is_the_protocol_alone(program: Project) -> None:
    """What Python code prints goes elsewhere; the client would not understand it."""

    async def talk(editor: Editor) -> None:
        await editor.say(await editor.begin(), "hello")

    editor = edit(program, talk, "a.koi", "Main", "--event", "echo")

    assert "hello" == editor.text()


@pytest.mark.parametrize("event", ["wait", "spin"])
def test_cancelling_a_turn(program: Project, event: str) -> None:
    """A turn ends when it is cancelled, also while code computes, and the conversation goes on."""

    async def talk(editor: Editor) -> None:
        session = await editor.begin()
        turn = asyncio.create_task(editor.say(session, "x"))
        await editor.until(editor.text)
        await editor.koi.cancel(session_id=session)
        assert "cancelled" == await turn
        other = asyncio.create_task(editor.say(session, "x"))
        await editor.until(lambda: editor.text() == "begunbegun")
        await editor.koi.close_session(session_id=session)
        assert "cancelled" == await other

    edit(program, talk, "a.koi", "Main", "--event", event)


def test_how_turns_end(program: Project) -> None:
    """A limit has its reason and a message, a failure is an error that says what has failed."""

    async def reach_a_limit(editor: Editor) -> None:
        assert "max_turn_requests" == await editor.say(await editor.begin(), "x")

    async def refuse(editor: Editor) -> None:
        assert "refusal" == await editor.say(await editor.begin(), "x")

    async def fail(editor: Editor) -> None:
        session = await editor.begin()
        with pytest.raises(acp.RequestError, match="no such luck"):
            await editor.say(session, "x")
        with pytest.raises(acp.RequestError, match="empty message"):
            await editor.say(session, " ")

    limited = edit(
        program, reach_a_limit, "a.koi", *answers(program, *[act("print", message=".")] * 3), "--max-turns=2"
    )
    refused = edit(program, refuse, "a.koi", "Main.refuse")
    edit(program, fail, "a.koi", "Main.fail")

    assert "2 turns" in limited.text()
    assert "the model declined" in refused.text()


def test_several_sessions_at_a_time(program: Project) -> None:
    """Each has its own turn, and each update says whose it is."""

    async def talk(editor: Editor) -> None:
        first, second = await editor.begin(), await editor.begin()
        turns = [asyncio.create_task(editor.say(session, "x")) for session in (first, second)]
        await editor.until(lambda: len(editor.updates) == 2)
        with pytest.raises(acp.RequestError, match="a turn is under way"):
            await editor.say(first, "y")
        await editor.koi.cancel(session_id=first)
        assert "cancelled" == await turns[0]
        assert not turns[1].done()
        await editor.koi.cancel(session_id=second)
        assert ("begun", "begun") == (editor.text(session=first), editor.text(session=second))
        await turns[1]

    edit(program, talk, "a.koi", "Main", "--event", "wait")


def test_bad_input(program: Project) -> None:
    """What cannot be read or carried out is answered with an error of JSON-RPC, and nothing breaks."""
    lines = [
        "{",
        '["x"]',
        '{"jsonrpc": "2.0", "id": 1}',
        '{"jsonrpc": "2.0", "id": [1], "method": "initialize"}',
        '{"jsonrpc": "2.0", "id": 2, "method": "session/nwe"}',
        '{"jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": {"sessionId": "x", "prompt": []}}',
        '{"jsonrpc": "2.0", "id": 4, "method": "session/new", "params": {"cwd": "relative"}}',
        '{"jsonrpc": "2.0", "id": 6, "method": "session/new", "params": {"cwd": "/", "mcpServers": 7}}',
        '{"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": 7}}',
        '{"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": []}}',
        '{"jsonrpc": "2.0", "id": 99, "result": {}}',
        '{"jsonrpc": "2.0", "id": 5, "method": "initialize", "params": {"protocolVersion": 9}}',
    ]

    ended = program.koi("acp", "a.koi", stdin="\n".join(lines))

    responses = [json.loads(line) for line in ended.stdout.splitlines()]
    codes = {response["id"]: response["error"]["code"] for response in responses if "error" in response}
    assert (0, "") == (ended.returncode, ended.stderr)
    assert [-32700, -32700] == [response["error"]["code"] for response in responses[:2]]
    assert {None: -32600, 1: -32600, 2: -32601, 3: -32602, 4: -32602, 6: -32602} == codes
    assert "did you mean `session/new`?" in responses[4]["error"]["message"]
    assert 1 == responses[-1]["result"]["protocolVersion"]


def test_a_turn_that_was_killed_goes_on(program: Project) -> None:
    """A conversation whose process was killed in a turn is loaded with it; it may be cancelled."""
    ids: list[str] = []

    async def die(editor: Editor) -> None:
        ids.append(await editor.begin())
        turn = asyncio.create_task(editor.say(ids[0], "x"))
        await editor.until(editor.text)
        editor.process.kill()
        await editor.process.wait()
        turn.cancel()

    async def go_on(editor: Editor) -> None:
        await editor.koi.load_session(cwd=str(program.folder), session_id=ids[0], mcp_servers=[])
        assert ("x", "begun") == (editor.text("user_message_chunk"), editor.text())
        with pytest.raises(acp.RequestError, match="goes on"):
            await editor.say(ids[0], "y")
        await editor.koi.cancel(session_id=ids[0])
        turn = asyncio.create_task(editor.say(ids[0], "y"))
        await editor.until(lambda: editor.text() == "begunbegun")
        await editor.koi.cancel(session_id=ids[0])
        assert "cancelled" == await turn

    edit(program, die, "a.koi", "Main", "--event", "wait")
    edit(program, go_on, "a.koi", "Main", "--event", "wait")


def test_the_end_while_a_session_begins(program: Project) -> None:
    """The process ends also where a session is being opened that nobody will close."""
    program.write("slow.py", "import time; time.sleep(0.3)")
    program.write("b.koi", PROGRAM.replace("loud.py", "slow.py"))
    begin = {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": str(program.folder)}}

    ended = program.koi("acp", "b.koi", stdin=json.dumps(begin) + "\n")

    assert (0, "") == (ended.returncode, ended.stderr)
    assert 1 == json.loads(ended.stdout.splitlines()[0])["id"]


@pytest.mark.parametrize("event", ["wait", "spin"])
def test_an_editor_that_is_gone(program: Project, event: str) -> None:
    """The end of the input ends what is under way, and the process with it."""

    async def leave(editor: Editor) -> None:
        session = await editor.begin()
        turn = asyncio.create_task(editor.say(session, "x"))
        await editor.until(editor.text)
        assert editor.process.stdin is not None
        editor.process.stdin.close()
        assert 0 == await editor.process.wait()
        turn.cancel()

    edit(program, leave, "a.koi", "Main", "--event", event)
    (journal,) = (program.folder / ".koi/runs").glob("*.jsonl")
    assert '"aborted":true' in journal.read_text()
