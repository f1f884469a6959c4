"""What `koi audit` says that a model may do is what a run then lets it do, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from koi_lang.grants import covers
from koi_lang.sessions.audit import audit
from koi_lang.sessions.options import RunOptions
from tests.mcp.conftest import Shelf, call
from tests.mcp.test_errands import SAMPLE, Person
from tests.mcp.test_reference_servers import page as page
from tests.playbook.playing import Played, act, ask, done

PROGRAM = """
import "std/files"
{web}
role Plain {{ can think }}
role Worker {{ {can} }}
mcp files = {server}
skill Own {{ export function one() {{ return 1 }} }}
skill Other {{ export function two() {{ return 2 }} }}
agent Helper : Plain {{ on help(args) {{ return 1 }}  private on hide(args) {{ return 1 }} }}
agent Stranger : Plain {{ on other(args) {{ return 1 }} }}
team Crew {{ helper: Helper, echo: mcp://files/echo, steps: mcp://files/steps }}
agent Main : Worker {{
  state {{ n = 0 }}
  uses team Crew
  uses skill {skills}
  uses mcp files(echo, gr*, steps)
  on go(args) {{ playbook "Do it." }}
}}
"""
SERVER = {"ask": ["grow"], "deny": ["steps"]}
ACTIONS: dict[str, dict[str, Any]] = {
    "shell": {"command": "true", "description": "d"},
    "update_state": {"updates": {"n": 1}},
    "if": {"condition": True, "then": []},
    "while": {"condition": "false", "actions": []},
    "repeat": {"count": 1, "actions": []},
    "send_message": {"event": "help", "data": {}},
    "registry_set": {"key": "k", "value": 1},
    "registry_get": {"key": "k"},
    "registry_keys": {},
    "registry_search": {"query": {}},
    "registry_delete": {"key": "k"},
    "call_mcp": {"mcp": "files", "tool": "echo", "input": {"text": "a"}},
    "get_mcp_tool_info": {"mcp": "files", "tool": "echo"},
    "mcp_read_resource": {"mcp": "files"},
    "mcp_get_prompt": {"mcp": "files"},
}
DELEGATES = {
    "helper::help": {},
    "helper::hide": {},
    "stranger::other": {},
    "echo::echo": {"text": "a"},
    "steps::steps": {},
}
SKILLS = {"Own.one": {}, "Other.two": {}, "FileChanges.writeFile": {"path": "notes.txt", "text": "x"}}
CODE = act("call_skill", skill="FileChanges", function="writeFile", input={"path": "tool.py", "text": "x"})


def source(shelf: Shelf, *can: str, skills: str = "Own, FileChanges", server: dict[str, Any] = SERVER) -> str:
    """A program whose `Main` has some permissions."""
    allowed = ", ".join(f"can {permission}" for permission in can or ("think",))
    web = 'import "std/http"' if "Http" in skills else ""
    return PROGRAM.format(can=allowed, web=web, skills=skills, server=json.dumps({**shelf.raw(), **server}))


def audited(shelf: Shelf, program: str, allow: Sequence[str] = ()) -> dict[str, Any]:
    """What is said of `Main`."""
    file = shelf.play.folder / "audited.koi"
    file.write_text(program, "utf-8")
    return next(one for one in audit(str(file), RunOptions(allow=allow)) if one["agent"] == "Main")


@pytest.fixture(autouse=True)
def here(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    """An audit is about the current folder."""
    monkeypatch.chdir(shelf.play.folder)


def attempts() -> dict[str, dict[str, Any]]:
    """An action for everything that a model may want to do."""
    skills = {name: name.partition(".")[::2] for name in SKILLS}
    return {
        **{name: act(name, **fields) for name, fields in ACTIONS.items()},
        **{name: ask(name, data) for name, data in DELEGATES.items()},
        **{
            name: act("call_skill", skill=skill, function=function, input=SKILLS[name])
            for name, (skill, function) in skills.items()
        },
        "write_code": CODE,
        "state_updates": act("return", data={"state_updates": {"n": 7}}),
    }


def done_by(played: Played) -> set[str]:
    """The attempts that were carried out, the last of which ends the playbook if it is."""
    assert played.error is None, played.told
    ended = {"state_updates"} if played.state("Main")["n"] == 7 else set()
    told = zip(attempts(), played.feedback[1:], strict=False)
    return {name for name, text in told if text.startswith("✅")} - {"state_updates"} | ended


def allowed_by(told: dict[str, Any]) -> set[str]:
    """The attempts that an audit says are possible."""
    writes = (
        {"write_code"} if "write_code" in told["capabilities"] and "FileChanges.writeFile" in told["skills"] else set()
    )
    updates = {"state_updates"} if "return with state_updates" in told["state"] else set()
    return {*told["actions"], *told["delegates"], *told["skills"]} & attempts().keys() | writes | updates


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "can",
    [
        (), ("execute",), ("delegate",), ("registry",), ("registry:read",), ("registry:write",), ("call_mcp",),
        ("write_code",), ("write",), ("read", "write_code"), ("write", "write_code"),
        ("execute", "delegate", "registry", "call_mcp", "write", "write_code"),
    ],
    ids=",".join,
)  # fmt: skip
def test_a_run_allows_what_an_audit_says(shelf: Shelf, can: tuple[str, ...]) -> None:
    """Each action, delegation, skill and kind of file, for each permission."""
    program = source(shelf, *can)
    host = Person(approvals=["yes"] * 2)
    played = shelf.play(program, [*attempts().values(), done()], host=host)

    assert allowed_by(audited(shelf, program)) == done_by(played)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("allow", [(), ("shell",), ("shell:echo *", "shell:true"), ("mcp:files",)])
def test_commands_that_need_no_question(shelf: Shelf, allow: tuple[str, ...]) -> None:
    """A command is run without asking just where an audit says so."""
    program, host, commands = source(shelf, "execute"), Person(), ("echo a", "echo a b", "true", "false")
    tries = [act("shell", command=command, description="d") for command in commands]
    shelf.play(program, [*tries, done()], host=host, allow=allow)
    told = audited(shelf, program, allow)["commands"]
    asked = [command for command in commands if told["others"] == "ask" and not covers(told["allowed"], command)]

    assert [f"run `{command}`: d" for command in asked] == host.asked


@pytest.mark.sampled(3)
@pytest.mark.parametrize("allow", [(), ("mcp:files",), ("mcp:files:gr*",), ("mcp:files:model",), ("mcp:other",)])
def test_tools_that_need_a_question(shelf: Shelf, allow: tuple[str, ...]) -> None:
    """Tools are called, asked about, or refused as an audit says, and so is a server's wish for a model."""
    program, host = source(shelf, "call_mcp"), Person()
    tools = ("echo", "grow", "steps", "die")
    played = shelf.play(program, [*(call(tool, text="a") for tool in tools), done()], host=host, allow=allow)
    (told,) = audited(shelf, program, allow)["mcp"]
    shown = {tool for tool in tools if covers(told["granted"], tool) and not covers(told["deny"], tool)}
    asked = {tool for tool in shown if covers(told["ask"], tool) and not covers(told["allowed"], tool)}

    assert (shown, len(asked)) == ({"echo", "grow"}, len(host.asked))
    assert [tool in shown - asked for tool in tools] == [text.startswith("✅") for text in played.feedback[1:5]]


@pytest.mark.parametrize("allow", [(), ("mcp:files",), ("mcp:files:model",)])
def test_a_server_that_may_ask_the_model(shelf: Shelf, allow: tuple[str, ...]) -> None:
    """A server's request for a model is granted without asking just where an audit says so."""
    program, host = shelf.program(code=f"on code(args) {{ {SAMPLE} }}", **shelf.raw()), Person()
    shelf.play(program, ["green"], call="Main.code", host=host, allow=allow)
    (told,) = audited(shelf, program, allow)["mcp"]

    assert told["may_ask_model"] is (host.asked == [])


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("skills", "can"), [("Own", "web_access"), ("Http", "web_access"), ("Http", "think")])
@pytest.mark.parametrize("is_allowed", [True, False])
def test_hosts_that_are_reached(shelf: Shelf, page: str, skills: str, can: str, is_allowed: bool) -> None:
    """A host of this machine is reached just where an audit names it."""
    host = page.removeprefix("http://").partition("/")[0]
    if is_allowed:
        Path("koi.toml").write_text(f'[http]\nallow = ["{host}"]\n', "utf-8")
    program = source(shelf, can, skills=skills)
    fetch = act("call_skill", skill="Http", function="fetchText", input={"url": page})
    played = shelf.play(program, [fetch, done()])

    assert (host in audited(shelf, program)["hosts"]["allowed"]) is played.feedback[1].startswith("✅")
