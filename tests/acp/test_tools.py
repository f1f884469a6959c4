"""What agents do and ask, as an editor shows it: permissions, tool calls, diffs, plans, questions."""

from __future__ import annotations

import asyncio
import json
import shutil
from typing import Any

import acp
import pytest

from koi_lang.service.live.addresses import connect, socket_path
from tests.acp.editors import Editor, edit
from tests.acp.test_turns import answers
from tests.playbook.playing import act, done
from tests.projects import Project
from tests.test_sample_projects import PROJECTS

FORMS = {"elicitation": {"form": {}}}
ASKING = '''
    role Worker { can execute }
    agent Main : Worker {
      on chat(args: { message: string }) { playbook """Answer: {{args.message}}""" }
    }
    '''


@pytest.fixture
def mending(project: Project) -> tuple[Project, tuple[str, str]]:
    """A project in which something is to be mended, and the answers of a model that does it."""
    shutil.copytree(PROJECTS / "failing-test" / "files", project.folder / "work")
    return project, ("--answers", str(PROJECTS / "failing-test" / "answers.json"))


def decided(*options: str) -> Any:
    """A person who selects some options, one after the other."""
    left = list(options)

    async def decide(request: dict[str, Any]) -> str:
        return left.pop(0)

    return decide


def test_the_agent_of_koi_do_mends_a_project(mending: tuple[Project, tuple[str, str]]) -> None:
    """Each action is a tool call, what needs permission is asked with its difference, and a changed file is a diff."""
    project, options = mending
    bands = project.folder / "work/postage/bands.py"
    before = bands.read_text()

    async def mend(editor: Editor) -> None:
        editor.decide = decided("yes", "always", "yes")
        assert "end_turn" == await editor.say(await editor.begin("work"), "mend the failing test")

    editor = edit(project, mend, *options)

    tools = {update["toolCallId"]: update for update in editor.told("tool_call")}
    ends = {update["toolCallId"]: update for update in editor.told("tool_call_update")}
    assert ["search", "execute", "read", "read", "think", "edit", "edit", "execute"] == [
        tool["kind"] for tool in tools.values()
    ]
    first, command, read = (list(tools)[place] for place in (0, 1, 2))
    assert "list_files **/*.py" == tools[first]["title"]
    assert "`python3 -m unittest discover -q -s tests -t .`" == tools[command]["title"] == ends[command]["title"]
    assert [{"path": str(bands)}] == tools[read]["locations"]
    assert {"completed"} == {end["status"] for end in ends.values()}
    assert "AssertionError: Tuples differ" in ends[command]["content"][0]["content"]["text"]

    asked = editor.permissions
    assert ["allow_once", "allow_always", "reject_once"] == [option["kind"] for option in asked[1]["options"]]
    assert "Always allow changes below `postage`" == asked[1]["options"][1]["name"]
    assert "`Coder` wants to edit `postage/bands.py`" == asked[1]["toolCall"]["title"]
    assert ["execute", "edit", "execute"] == [each["toolCall"]["kind"] for each in asked]
    (preview,) = asked[1]["toolCall"]["content"]
    assert str(bands) == preview["path"]
    assert preview["oldText"] in before
    assert "from bisect import bisect_right\n" in preview["newText"]
    # A rule was given for both edits, and commands are asked about each time.
    assert 3 == len(asked)

    diffs = [each for end in ends.values() for each in end["content"] if each["type"] == "diff"]
    assert [before, bands.read_text()] == [diffs[0]["oldText"], diffs[1]["newText"]]
    assert "all 5 tests pass" in editor.text()


def test_what_code_wants_to_do_has_its_kind(project: Project) -> None:
    """An editor draws the question of code about a file as it draws that of a playbook."""
    program = """
    import "std/code"
    role Writer { can execute, can write }
    agent Main : Writer {
      uses skill CodeChanges
      on chat(args: { message: string }) {
        await this.callSkill("CodeChanges", "write_file", "notes.txt", args.message)
        return "written"
      }
    }
    """
    project.write("a.koi", program)

    async def write(editor: Editor) -> None:
        editor.decide = decided("yes")
        await editor.say(await editor.begin(), "tea")

    editor = edit(project, write, "a.koi")

    assert ["edit"] == [each["toolCall"]["kind"] for each in editor.permissions], editor.errors
    assert {"edit"} == {tool["kind"] for tool in editor.told("tool_call")}


@pytest.mark.parametrize("decision", ["no", "", "unknown"])
def test_what_is_not_allowed_is_not_done(mending: tuple[Project, tuple[str, str]], decision: str) -> None:
    """A refusal, a request that is cancelled, and an answer that was not offered allow nothing."""
    project, options = mending
    bands = project.folder / "work/postage/bands.py"
    before = bands.read_text()

    async def refuse(editor: Editor) -> None:
        editor.decide = decided(*[decision] * 4)
        await editor.say(await editor.begin("work"), "mend the failing test")

    editor = edit(project, refuse, *options)

    assert before == bands.read_text()
    assert 3 == len(editor.permissions)
    assert 3 == sum(update["status"] == "failed" for update in editor.told("tool_call_update"))


def test_a_turn_is_cancelled_while_permission_is_asked(mending: tuple[Project, tuple[str, str]]) -> None:
    """The request is withdrawn, nothing is done, and the tool call has failed."""
    project, options = mending

    async def cancel(editor: Editor) -> None:
        never: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def wait(request: dict[str, Any]) -> str:
            return await never

        editor.decide = wait
        session = await editor.begin("work")
        turn = asyncio.create_task(editor.say(session, "mend it"))
        await editor.until(lambda: editor.permissions)
        await editor.koi.cancel(session_id=session)
        assert "cancelled" == await turn
        never.cancel()

    editor = edit(project, cancel, *options)

    assert ["completed", "failed"] == [update["status"] for update in editor.told("tool_call_update")]


def test_somebody_else_decides(mending: tuple[Project, tuple[str, str]]) -> None:
    """A request that is answered elsewhere, as by `koi dashboard`, is withdrawn, and the turn goes on."""
    project, options = mending

    async def decide_elsewhere(editor: Editor) -> None:
        never: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        refusing = decided("no", "no", "no")
        editor.decide = lambda request: never if len(editor.permissions) == 1 else refusing(request)
        session = await editor.begin("work")
        turn = asyncio.create_task(editor.say(session, "mend it"))
        await editor.until(lambda: editor.permissions)
        connected = connect(socket_path(project.folder / "work", session))
        connected.setblocking(False)
        reader, writer = await asyncio.open_connection(sock=connected)
        writer.write(b'{"type": "follow", "since": 0}\n')
        while (message := json.loads(await reader.readline()))["type"] != "approval_request":
            pass
        answer = {"type": "approve", "request": message["id"], "decision": "yes"}
        writer.write(json.dumps(answer).encode() + b"\n")
        assert "end_turn" == await turn
        writer.close()
        never.cancel()

    editor = edit(project, decide_elsewhere, *options)

    assert "AssertionError: Tuples differ" in editor.told("tool_call_update")[2]["content"][0]["content"]["text"]


def test_a_client_without_permissions(mending: tuple[Project, tuple[str, str]]) -> None:
    """Where the client cannot be asked nothing is allowed."""
    project, options = mending

    async def talk(editor: Editor) -> None:
        async def fail(request: dict[str, Any]) -> str:
            raise acp.RequestError.method_not_found("session/request_permission")

        editor.decide = fail
        await editor.say(await editor.begin("work"), "mend it")

    editor = edit(project, talk, *options)

    assert 3 == sum(update["status"] == "failed" for update in editor.told("tool_call_update"))


def test_questions_are_forms(project: Project) -> None:
    """A question is a form where the editor shows forms; options leave room for other words, and may be declined."""
    project.write("a.koi", ASKING)
    questions = [
        act("prompt_user", question="Name?", id="a"),
        act("prompt_user", question="Tone?", options=["plain", "formal"], id="b"),
        act("prompt_user", question="Again?", options=["plain", "formal"], id="c"),
        act("print", message="${a.output.answer} ${b.output.answer} ${c.output.answer}"),
        act("prompt_user", question="Why?"),
        done(),
    ]

    async def talk(editor: Editor) -> None:
        editor.answers = [{"answer": "Ada"}, {"answer": "formal"}, {"other": "loud"}, None]
        assert "end_turn" == await editor.say(await editor.begin(), "x")

    editor = edit(project, talk, "a.koi", *answers(project, *questions), capabilities=FORMS)

    assert "Ada formal loud" == editor.text()
    assert ["Name?", "Tone?", "Again?", "Why?"] == [question["message"] for question in editor.questions]


def test_questions_are_messages_elsewhere(project: Project) -> None:
    """Without forms a question ends the turn, and the next prompt is its answer; an option may be named by number."""
    project.write("a.koi", ASKING)
    questions = [
        act("prompt_user", question="Tone?", options=["plain", "formal"], id="a"),
        act("print", message="${a.output.answer}"),
        act("prompt_user", question="Why?"),
        done(),
    ]

    async def talk(editor: Editor) -> None:
        session = await editor.begin()
        assert "end_turn" == await editor.say(session, "x")
        assert "Tone?\n1. plain\n2. formal" == editor.text()
        assert "end_turn" == await editor.say(session, "2")
        assert "Tone?\n1. plain\n2. formal\n\nformal\n\nWhy?" == editor.text()
        await editor.koi.cancel(session_id=session)
        assert "end_turn" == await editor.say(session, "another message")

    edit(project, talk, "a.koi", *answers(project, *questions))
