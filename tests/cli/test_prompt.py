"""`koi prompt`: the first request of a call, held against what a provider is really sent."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from koi_lang.program import loader
from koi_lang.sessions.options import RunOptions
from koi_lang.sessions.prepared import prepare_program
from koi_lang.sessions.prompt_preview import call_named, preview_prompt
from koi_lang.settings import read_settings
from tests.llm.meanings import meaning
from tests.llm.server import Answer, ModelServer
from tests.projects import Project

EXAMPLES = Path(__file__).parents[2] / "examples"
TRANSPORTS = ("text", "schema", "tools")
MODELS = {"openai": "gpt-5.4-mini", "anthropic": "claude-sonnet-5-5"}
WAYS = [(provider, transport) for provider in MODELS for transport in TRANSPORTS]
PROGRAM = """
role Worker {{ can execute, can delegate }}
role Reader {{ can read }}

type Note = {{ title: string, pages: number }}
type Report = {{ text: string, notes: Note[] }}

skill Words {{
  affordance "Counts."
  export async function count(text: string): Promise<number> {{ return text.length }}
}}

agent Helper : Worker {{
  affordance "Helps."
  on help(args: {{ what: string }}) {{ playbook "Help with {{{{args.what}}}}." }}
}}
team Office {{ helper: Helper }}

{agents}

agent Main : Worker {{
  on go() {{ {calls} }}
}}
run Main.go()
"""
AGENT = """
agent {name} : {role} {{
  uses team Office
  uses skill Words
  state {{ seen: number = 3 }}
  llm default = {{ provider: "{provider}", model: "{model}", base_url: "{url}", transport: "{transport}" }}
  on write(args: Note): Report {{
    playbook "Write about {{{{args.title}}}} for the {{{{state.seen}}}}rd time, and {{{{args.pages + 1}}}} pages."
  }}
}}
"""
NOTE = {"title": "tea & <milk>", "pages": 2}
KEYS = "OPENAI_API_KEY=sk-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\nANTHROPIC_API_KEY=sk-ant-bbbbbbbbbbbbbbbbbbbbbbbbbbbb\n"


def name_of(provider: str, transport: str) -> str:
    """The agent of a way."""
    return f"{provider}_{transport}".title()


def program(url: str) -> str:
    """An agent for each provider and transport, all called once."""
    agents, calls = [], []
    for provider, transport in WAYS:
        name = name_of(provider, transport)
        # Delegates and changes of the state are given anything, so that no schema can hold a model to them.
        role = "Reader" if transport == "schema" else "Worker"
        address = f"{url}/v1" if provider == "openai" else url
        fields = {"provider": provider, "model": MODELS[provider], "url": address, "transport": transport}
        agents.append(AGENT.format(name=name, role=role, **fields))
        calls.append(f"try {{ await {name}.write({json.dumps(NOTE)}) }} catch (error) {{ console.log(error.message) }}")
    return PROGRAM.format(agents="".join(agents), calls="  ".join(calls))


async def requests_of(project: Project) -> tuple[list[Any], list[Any], Any]:
    """What `koi run` has sent, what is shown of the same calls, and what the command says of the last one."""
    async with ModelServer([Answer(status=400, error={"error": {"message": "no"}})]) as server:
        path = str(project.write("ways.koi", program(server.url)))
        await asyncio.to_thread(project.koi, "run", "--no-record", "ways.koi")
        sent, shown = [asked.body for asked in server.requests], []
        ready = prepare_program(path, loader.load_compiled(path), RunOptions(settings=read_settings(project.folder)))
        for way in WAYS:
            call = call_named(ready, f"{name_of(*way)}.write", payload=NOTE)
            shown.append((await preview_prompt(ready, call, lambda line: None)).as_data())
        words = ["prompt", "ways.koi", f"{name_of(*WAYS[-1])}.write", "--args", json.dumps(NOTE), "--json"]
        told = await asyncio.to_thread(project.koi, *words)
        assert len(WAYS) == len(sent) == len(server.requests), "something was sent for a preview"
    return sent, shown, json.loads(told.stdout)


def test_bodies_are_those_that_sdks_send(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """For both SDKs and all transports, `body` is word for word the first request of the same call."""
    for line in KEYS.splitlines():
        monkeypatch.setenv(*line.split("=", 1))

    sent, shown, told = asyncio.run(requests_of(project))

    assert sent == [each["body"] for each in shown]
    assert sent[-1] == told["body"]
    assert [transport for _, transport in WAYS] == [each["transport"] for each in shown]


DESK = """
role Boss { can delegate }
role Reader { can read }
agent Helper : Boss { on help(args: { what: string, n?: number }) { playbook "Help with {{args.what}}." } }
agent Coder : Boss { on code() { console.log("code runs") } }
team Office { helper: Helper, coder: Coder }
agent Chief : Boss { uses team Office  on go() { playbook "Have it done." } }
run Coder.code()
"""


@pytest.fixture
def desk(project: Project) -> Project:
    """A folder with a program whose agents know each other."""
    project.write("desk.koi", DESK)
    return project


def counts(done: CompletedProcess[str]) -> dict[str, int]:
    """The parts that stderr lists, with their tokens."""
    rows = [line.split() for line in done.stderr.splitlines() if line.startswith("  ")]
    words = [[word for word in row if word.replace(",", "").isdigit()] for row in rows]
    return {row[0]: int(found[0].replace(",", "")) for row, found in zip(rows, words, strict=True)}


def test_parts_add_up(desk: Project) -> None:
    """Standard output is the request, standard error counts each of its parts, and the last line is their sum."""
    done = desk.koi("prompt", "desk.koi", "Chief.go")

    told = counts(done)
    total = told.pop("in")
    assert {"rules", "actions", "members", "playbook", "messages", "marks"} == told.keys()
    assert total == sum(told.values())
    assert done.stdout.startswith("--- system\nYou are the agent `Chief`.")
    assert "code runs" not in done.stdout


def test_fields_have_stand_ins(desk: Project) -> None:
    """Without arguments, names and types stand for what the handler takes."""
    done = desk.koi("prompt", "desk.koi", "Helper.help")

    assert '"args":{"what":"⟨what: string⟩","n":"⟨n: number⟩"}' in done.stdout


def test_arguments_are_checked(desk: Project) -> None:
    """What does not fit the type of the handler is refused, as in a run."""
    wrong = desk.koi("prompt", "desk.koi", "Helper.help", "--arg", "n=1")

    assert 1 == wrong.returncode
    assert "`Helper.help` cannot take what it is given: `what` is missing" in wrong.stderr
    assert "It takes (what: string, n?: number)" in wrong.stderr


def test_names_cannot_be_computed_with(project: Project) -> None:
    """Where a placeholder needs a value and not a name for it, the person is told to give one."""
    project.write(
        "n.koi", 'role R { can x }\nagent A : R { on go(args: { n: number }) { playbook "{{args.n.toFixed(1)}}" } }\n'
    )

    without, given = project.koi("prompt", "n.koi"), project.koi("prompt", "n.koi", "--arg", "n=2")

    assert "give it values with `--args`" in without.stderr
    assert '{"⟨args.n.toFixed(1)⟩":"2.0"}' in given.stdout


def test_prompts_by_rules_ask_no_model(project: Project) -> None:
    """A request that is only shown has all fragments that a model would choose from."""
    small = 'llm small = { provider: "openai", model: "small", base_url: "http://127.0.0.1:9" }'
    project.write(
        "r.koi",
        'role R { can x }\nprompt Long = "Be long."\nprompt Short = "Be short."\n'
        'prompt Tone = compose { fragments: { long: Long, short: Short } rules: "One of them." }\n'
        f'agent A : R {{ {small} on go() {{ playbook Tone + "Greet." }} }}\n',
    )
    done = project.koi("prompt", "r.koi")

    assert (0, [True, True]) == (done.returncode, [f"Be {size}." in done.stdout for size in ("long", "short")])


def test_code_asks_no_model(desk: Project) -> None:
    """A handler that is code has no request; the playbooks are listed."""
    done = desk.koi("prompt", "desk.koi", "Coder.code")

    assert "`Coder.code` is code, so it begins with no request to a model" in done.stderr
    assert "`Helper.help`, `Chief.go`" in done.stderr


def test_calls_may_be_narrowed_and_delegated(desk: Project) -> None:
    """`--as` takes away what the role lacks; a member that was asked may ask back."""
    narrowed = desk.koi("prompt", "desk.koi", "Chief.go", "--as", "Reader")
    delegated = desk.koi("prompt", "desk.koi", "Helper.help", "--delegated")

    assert "## Agents" not in narrowed.stdout
    assert "- ask_parent(" in delegated.stdout


def test_no_key_is_needed(desk: Project) -> None:
    """A model that is named is not asked, so that nobody has to have its key."""
    done = desk.koi("prompt", "desk.koi", "Helper.help", "-m", "openai/gpt-5.4-mini")

    assert 0 == done.returncode
    assert "Helper.help to openai/gpt-5.4-mini, with its actions as tools" in done.stderr


def test_secrets_are_taken_out(desk: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key of the environment that stands in an argument is not shown."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-cccccccccccccccccccccccccccccccc")

    done = desk.koi("prompt", "desk.koi", "Helper.help", "--arg", "what=sk-cccccccccccccccccccccccccccccccc")

    assert 0 == done.returncode
    assert "cccccc" not in done.stdout


def test_servers_are_not_started(project: Project) -> None:
    """The tools of MCP servers are left out, which is said, unless they may be started."""
    project.write(
        "tools.koi",
        'role W { can call_mcp }\nmcp files = { command: "no-such-server" }\n'
        'agent A : W { uses mcp files  on go() { playbook "Look." } }\n',
    )

    done = project.koi("prompt", "tools.koi")

    assert 0 == done.returncode
    assert "the tools of `files` are asked for at run time, and are not here; `--connect` starts it" in done.stderr


def test_servers_may_be_started(project: Project) -> None:
    """With `--connect`, MCP servers are asked, and their tools stand in the request."""
    for name in ("mcp-files.koi", "mcp-files-server.py"):
        shutil.copy(EXAMPLES / name, project.folder)

    done = project.koi("prompt", "mcp-files.koi", "Librarian.answer", "--connect")

    assert "\n## MCP tools, for call_mcp\n" in done.stdout
    assert "are asked for at run time" not in done.stderr


def test_members_are_scored_for_a_sentence(desk: Project) -> None:
    """By words, nearest first; where a model for embeddings is configured, by that, too, and it alone is asked."""
    plain = desk.koi("prompt", "desk.koi", "Chief.go", "--intent", "help me out")

    assert re.search(r"\nnear in words from 0.35\n  helper::help +\d.\d\d in words\n  coder::code +0", plain.stderr)

    async def ask() -> tuple[str, int]:
        async with ModelServer(["{}"], embed=meaning) as server:
            about = f'{{ model = "openai/embed", base_url = "{server.url}", min_score = 0.2 }}'
            desk.write("koi.toml", f"[models]\nembedding = {about}\n")
            told = await asyncio.to_thread(desk.koi, "prompt", "desk.koi", "Chief.go", "--intent", "help me out")
            assert [] == [each for each in server.requests if each.method == "POST"], "a model is asked for an answer"
            return told.stderr, len(server.embedded)

    told, embedded = asyncio.run(ask())
    assert 1 == embedded
    assert re.search(r"from 0.35, in meaning from 0.2\n  helper::help +\d.\d\d in words +-?\d.\d\d in meaning\n", told)
