"""What an agent may use of a server: `uses mcp files(read_*)`, and the rules of whoever describes the server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from koi_lang.grants import covers, matches
from koi_lang.program.declarations import servers_of
from koi_lang.runtime.host import Approval
from koi_lang.settings import read_settings
from koi_lang.settings.project import allowed_tools
from tests.mcp.conftest import Shelf, call
from tests.mcp.test_calls import HEADING
from tests.mcp.test_errands import SAMPLE, Person
from tests.playbook.playing import Played, act
from tests.support import diagnostics_of_text

DENIED = "🚫 call_mcp DENIED: `Main` may not use `steps` of the MCP server `files`. Do not try it again."


def granted(shelf: Shelf, granted: str, *answers: Any, body: str = "", **options: Any) -> Played:
    """What comes of some answers, or of code, where an agent uses a part of a server."""
    code = f"on code(args) {{ {body} }}" if body else ""
    source = shelf.program(code=code, **{**shelf.raw(), **options}).replace("uses mcp files", f"uses mcp {granted}")
    return shelf.play(source, [*answers, act("return", data={})], call="Main.code" if body else "Main.go")


def ruled(
    shelf: Shelf, body: str, *approvals: Approval, allow: tuple[str, ...] = (), **rules: Any
) -> tuple[Played, Person]:
    """What comes of code that uses a server with rules, and what the person was asked."""
    host = Person(approvals=list(approvals))
    source = shelf.program(code=f"on code(args) {{ {body} }}", **shelf.raw(), **rules)
    return shelf.play(source, ["green"], call="Main.code", host=host, allow=allow), host


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("read", "read", True),
        ("read", "Read", False),
        ("read_*", "read_", True),
        ("*_file", "my_file", True),
        ("a*b*c", "aXbYc", True),
        ("a*b*c", "acb", False),
        ("ab*ba", "aba", False),
        ("*", "", True),
        ("[a-z]?", "[a-z]?", True),
        ("*a" * 30, "a" * 100_000 + "b", False),
    ],
)
def test_patterns(pattern: str, text: str, fits: bool) -> None:
    """`*` stands for any characters, everything else for itself; no pattern takes long."""
    assert fits is matches(pattern, text)


def test_patterns_have_a_kind() -> None:
    """A pattern of tools covers neither documents nor prompts, and the other way round."""
    assert [True, False, False, True] == [
        covers(["*"], "x"),
        covers(["*"], "x", "prompt"),
        covers(["prompt:*"], "x"),
        covers(["resource:docs://*"], "docs://a", "resource"),
    ]


def test_a_model_sees_what_is_granted(shelf: Shelf) -> None:
    """Tools that are not granted stand in no prompt, are not found, and calls of them are denied."""
    told = (act("get_mcp_tool_info", mcp="files", tool=tool) for tool in ("steps", "what it"))
    played = granted(shelf, "files(echo, gr*)", call("steps"), *told, call("echo", text="a"))
    section = played.requests[0].system.partition(HEADING)[2].partition("\n\n")[0]

    assert ["- files.echo(", "- files.grow("] == [line.partition("(")[0] + "(" for line in section.splitlines()[3:]]
    assert f"{DENIED}\nContinue." == played.feedback[1]
    assert "🚫 get_mcp_tool_info DENIED" in played.feedback[2]
    assert '"found":2' in played.feedback[3]
    assert '✅ call_mcp -> {"result":"a"}' in played.feedback[4]


@pytest.mark.parametrize(
    "body",
    [
        'return await files[args.x ?? "steps"]()',
        'return await files.call(args.x ?? "steps")',
        "const { steps } = files  return await steps()",
        'return await callAction("call_mcp", { mcp: "files", tool: "steps" })',
        'return await callAction("mcp_read_resource", { mcp: "files", uri: "shelf://plain" })',
        'return await files.resource(args.x ?? "shelf://plain")',
        'return await files.prompt(args.x ?? "greet", { who: "Ada" })',
    ],
)
def test_code_reaches_what_is_granted(shelf: Shelf, body: str) -> None:
    """However code names a tool, a document or a prompt that is not granted, it gets an error that says what is."""
    played = granted(shelf, "files(echo)", body=body)

    assert "error: `Main` may not use `" in played.told
    assert "= help: `uses mcp files(echo)` is all that it is granted." in played.told


def test_documents_and_prompts_are_granted_by_name(shelf: Shelf) -> None:
    """`resource:` and `prompt:` grant these; lists hold no others."""
    body = """
        const names = (await files.prompt()).prompts.map(one => one.name)
        return [(await files.resource("shelf://plain")).text, await files.resource(), names]
    """
    played = granted(shelf, 'files("resource:shelf://*", prompt:leave)', body=body)

    assert "on paper" == played.result[0], played.told
    assert (["shelf://plain"], 1) == (
        [r["uri"] for r in played.result[1]["resources"]],
        len(played.result[1]["templates"]),
    )
    assert [] == played.result[2]


TWO = """
role Worker {{ can call_mcp, can delegate }}
mcp files = {options}
agent Main : Worker {{
  uses mcp files(steps)
  uses mcp files(echo)
  uses team All
  on code(args) {{ return await send peers.event("ask").all()({{}}) }}
  on ask(args) {{ await files.steps()  return await files.echo({{ text: "a" }}) }}
}}
agent Other : Worker {{
  uses mcp files(echo)
  on ask(args) {{ return await files.echo({{ text: "b" }}) }}
}}
team All {{ main: Main, other: Other }}
"""


def test_grants_add_up_and_share_a_process(shelf: Shelf) -> None:
    """Of a server that is used twice all is granted that is granted anywhere; agents with other grants share it."""
    played = shelf.play(TWO.format(options=json.dumps(shelf.raw())), [], call="Main.code")

    assert ([{"result": "a"}, {"result": "b"}], 1) == (played.result, len(shelf.processes())), played.told


def test_a_member_grants_one_tool(shelf: Shelf) -> None:
    """A member of a team is one tool: its agent may use no other of that server."""
    module = shelf.play.load('mcp my_files = { command: "x" }\nteam All { a: mcp://my_files/echo }\n')
    (member,) = module.All.members().values()

    assert [("echo",)] == [server.granted for server in member.about.mcps()]


def test_a_pattern_without_tools_is_noted_once(shelf: Shelf) -> None:
    """A pattern that covers no tool is probably misspelt; whoever runs the program is told, once."""
    notes: list[str] = []
    source = shelf.program(**shelf.raw(), deny=["dye"]).replace("uses mcp files", "uses mcp files(ecko, s*, prompt:x)")
    shelf.play(source, [call("steps"), act("return", data={})], note=notes.append)

    assert [
        "`uses mcp files(ecko)` covers no tool; did you mean `echo`?",
        "`deny of the MCP server files: dye` covers no tool; did you mean `die`?",
    ] == notes


@pytest.mark.parametrize(
    ("uses", "code", "message"),
    [
        ("files(read_*)", "await files.write_file({})", "`uses mcp files(…)` does not grant `write_file`"),
        ("files(a), files(b)", 'await files["c"]()', "`uses mcp files(…)` does not grant `c`"),
        ("files(a)", 'await files.call("b")', "`uses mcp files(…)` does not grant `b`"),
        ("files(*)", 'await files.prompt("b")', "`uses mcp files(…)` does not grant `b`"),
        ("files(read_*)", "await files.read_file({})", ""),
        ("files(read_*), files", "await files.write_file({})", ""),
        ("files(a), other", "await other.b({})", ""),
    ],
)
def test_code_is_checked(uses: str, code: str, message: str) -> None:
    """A tool that code names and its agent is not granted is an error of the program."""
    agent = f"agent A : R {{ uses mcp {uses}\n on go(args) {{ {code} }} }}"
    program = f'role R {{ can call_mcp }}\nmcp files = {{ command: "x" }}\n{agent}'

    assert [message] * bool(message) == [found.message for found in diagnostics_of_text(program)]


# ---------------------------------------------------------------- rules


def test_the_person_agrees_to_a_call(shelf: Shelf) -> None:
    """A tool under `ask` is used if the person agrees, who sees the arguments; `always` counts for this tool."""
    body = 'const a = await files.echo({ text: "a" })  return [a, await files.echo({ text: "b" }), await files.steps()]'
    once, asked = ruled(shelf, body, "yes", "no", ask=["e*"])
    always, heard = ruled(shelf, body, "always", ask=["e*"])

    assert ['use `echo` of the MCP server `files`: {"text": "a"}'] == asked.asked[:1]
    assert "the person did not allow `echo` of the MCP server `files`" in once.told
    assert ([{"result": "a"}, {"result": "b"}, {"result": "done"}], 1) == (always.result, len(heard.asked))


def test_nobody_agrees(shelf: Shelf) -> None:
    """Without a person it is not used, and the message says how to allow it beforehand."""
    source = shelf.program(**shelf.raw(), ask=["echo"])
    played = shelf.play(source, [call("echo", text="a"), act("return", data={})])

    assert "nobody can be asked to allow `echo` of the MCP server `files`, so it was not used" in played.feedback[1]


@pytest.mark.parametrize("rule", ["mcp:files", "mcp:files:echo", "mcp:files:e*"])
def test_allowed_beforehand(shelf: Shelf, rule: str) -> None:
    """`--allow` agrees for the person."""
    played, host = ruled(shelf, 'return await files.echo({ text: "a" })', ask=["*"], allow=(rule,))

    assert ({"result": "a"}, []) == (played.result, host.asked)


def test_what_is_denied_is_denied_to_all(shelf: Shelf) -> None:
    """A tool under `deny` stands in no prompt, and neither models nor code can use it, whatever is allowed."""
    (shelf.play.folder / "koi.toml").write_text('[mcp.files]\ndeny = ["echo", "prompt:*"]\n', "utf-8")
    played = shelf(call("echo", text="a"), **shelf.raw())
    coded, _ = ruled(shelf, 'return await files.echo({ text: "a" })', allow=("mcp:files",))

    assert "files.echo" not in played.requests[0].system
    assert "🚫 call_mcp DENIED: the rules for the MCP server `files` deny `echo`" in played.feedback[1]
    assert "the rules for the MCP server `files` deny `echo`" in coded.told


def test_a_rule_that_is_none(shelf: Shelf) -> None:
    """A rule of another shape ends the call: nothing is used under rules that nobody can read."""
    played, _ = ruled(shelf, 'return await files.echo({ text: "a" })', deny="echo")

    assert "error: `deny` of the MCP server `files` is no list of patterns" in played.told


def test_a_model_is_allowed_beforehand(shelf: Shelf) -> None:
    """`--allow mcp:files:model` lets the server ask for a model; the rule for all tools does not."""
    allowed, _ = ruled(shelf, SAMPLE, allow=("mcp:files:model",))
    refused, host = ruled(shelf, SAMPLE, allow=("mcp:files", "mcp:files:*"))

    assert "green" == allowed.result["content"]["text"]
    assert ("the person did not allow it", 1) == (refused.result["message"], len(host.asked))


def test_a_tool_that_is_called_model(shelf: Shelf) -> None:
    """The consent to a tool of that name is none to ask for a model."""
    body = f'await callAction("call_mcp", {{ mcp: "files", tool: "model" }})  {SAMPLE}'
    source = shelf.program(code=f"on code(args) {{ {body} }}", **shelf.raw("model"), ask=["model"])
    host = Person(approvals=["always", "no"])
    played = shelf.play(source, ["green"], call="Main.code", host=host, allow=("mcp:files:mode",))

    assert (2, "the person did not allow it") == (len(host.asked), played.result["message"])


def test_rules_of_the_folder_allow(shelf: Shelf, tmp_path: Any) -> None:
    """`allow` in `koi.toml` is the same as `--allow`; in `.mcp.json` it allows nothing."""
    (tmp_path / "koi.toml").write_text('[mcp.my-files]\nallow = ["write_*", "model"]\n', "utf-8")
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"x": {"command": "y", "allow": ["*"]}}}), "utf-8")
    rules = [f"mcp:{name}:{pattern}" for name in ("my-files", "my_files") for pattern in ("write_*", "model")]

    assert sorted(rules) == sorted(allowed_tools(read_settings(tmp_path)))


def test_servers_are_listed_for_an_audit(shelf: Shelf, tmp_path: Any) -> None:
    """What an agent may use of which server can be told without starting one; values that may be secret are not."""
    (tmp_path / "koi.toml").write_text('[mcp.files]\ndeny = ["die"]\n', "utf-8")
    options = {"url": "https://example.org/mcp", "headers": {"Authorization": "Bearer x"}, "ask": ["write_*"]}
    source = shelf.program(**options).replace("uses mcp files", "uses mcp files(read_*), gone")
    about, gone = servers_of(shelf.play.load(source).Main, read_settings(tmp_path))

    assert {
        "server": "files",
        "granted": ["read_*"],
        "transport": "http",
        "url": "https://example.org/mcp",
        "headers": ["Authorization"],
        "ask": ["write_*"],
        "deny": ["die"],
    } == about
    assert ("gone", "there is no MCP server `gone`") == (gone["server"], gone["problem"])
