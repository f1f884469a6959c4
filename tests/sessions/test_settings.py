"""One program that meets every section of `koi.toml` and what else a project says: each surface decides the same."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import koi_lang
from koi_lang.service.host import SessionHost
from koi_lang.service.job_service import JobRuns
from tests import forks
from tests.projects import Project
from tests.service.hosting import begin, called, play, until
from tests.serving.conftest import INITIALIZE

PROGRAM = """
    import "std/code"
    import "std/http"
    import "std/workspace"
    import inside from "./inside.py"

    role Worker { can execute, can read, can web_access, can delegate, can call_mcp }
    team Desk { helper: a2a://127.0.0.1:9/agents/helper }
    mcp shelf = { command: "none" }

    agent Main : Worker {
      expose mcp
      uses team Desk
      uses mcp shelf, described
      uses skill Http, CodeWeb, Workspace
      uses instructions
      uses skills

      on go(args: { message: string }) {
        const probes = {
          shell: async () => await this.callAction("shell", { command: "true", description: "x" }),
          permissions: async () => await fetchText("http://denied.example/"),
          hosts: async () => await fetchText("http://127.0.0.1:9/"),
          search: async () => (await web_search("tea")).source,
          a2a: async () => await send peers.event("ask").any()({ n: 1 }),
          snapshots: async () => { inside.fill(); return await snapshot() },
        }
        for (const name of Object.keys(probes)) {
          let decision = ""
          try { decision = JSON.stringify(await probes[name]()) } catch (error) { decision = error.message }
          inside.note(name, decision)
        }
        await inside.look()
        return "done"
      }
    }
    """
INSIDE = """
    import json
    from pathlib import Path

    from koi_lang.errors import error_of
    from koi_lang.runtime.context import current, handling
    from koi_lang.std.rubrics import find_rubric

    def note(name, decision):
        with Path(__file__).with_name("decisions.jsonl").open("a") as file:
            file.write(json.dumps([name, decision]) + "\\n")

    def fill():
        current.get().folder.joinpath("large.bin").write_bytes(bytes(2_000_000))

    async def look():
        run, agent = current.get(), handling.get()[0]
        shelf, described = (run.servers.access(server).rules for server in agent.about.mcps())
        note("mcp", [shelf.deny, described.ask])
        note("models", error_of(run.models.of, agent).message)
        note("limits", run.patience.repeats)
        told = await run.guidance.look(agent)
        note("instructions", [each["text"] for each in told.get("instructions", ())])
        note("rubric", (await find_rubric("own"))["origin"])
        note("skills", [each["name"] for each in told.get("skills", ()) if each["name"] != "koi-programs"])
    """
SETTINGS = """
    [shell]
    allow = ["true"]
    sandbox = "bwrap"
    [permissions]
    allow = ["web:127.0.0.1"]
    deny = ["web:denied.example"]
    [http]
    allow = ["127.0.0.1:9"]
    [web]
    search = "http://127.0.0.1:9"
    [a2a.tokens]
    "127.0.0.1:9" = "${TOKEN_OF_NOBODY}"
    [snapshots]
    megabytes = 1
    [models]
    default = "openai/gpt-of-the-settings"
    [limits]
    repeats = 7
    [mcp.shelf]
    deny = ["*"]
    """
RUBRIC = """
    ---
    name: own
    kind: evaluator
    description: x
    dimensions:
      - name: clarity
        weight: 1
        description: x
    ---
    Judge.
    """
DECISIONS = {
    "shell": "`koi.toml` has commands run in a sandbox only, and bubblewrap is not installed",
    "permissions": "the person did not allow to open `http://denied.example/`: the rule `web:denied.example` of the"
    " person denies it",
    "hosts": "`http://127.0.0.1:9/` cannot be reached: All connection attempts failed",
    "search": '"searxng"',
    "a2a": "the variable `TOKEN_OF_NOBODY` is not set",
    "snapshots": "snapshots of this project would take more than 1 MB",
    "mcp": [["*"], ["write"]],
    "models": "the provider `openai` needs a key, and `OPENAI_API_KEY` is not set",
    "limits": 7,
    "instructions": ["The rules of the house."],
    "skills": ["own"],
    "rubric": "project",
}


@pytest.fixture
def house(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project with the program and its settings."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    project.write("main.koi", PROGRAM)
    project.write("inside.py", INSIDE)
    project.write("koi.toml", SETTINGS)
    project.write(".mcp.json", '{"mcpServers": {"described": {"command": "none", "ask": ["write"]}}}')
    project.write(".agents/evaluators/own/SKILL.md", RUBRIC)
    project.write("AGENTS.md", "The rules of the house.")
    project.write(".agents/skills/own/SKILL.md", "---\nname: own\ndescription: x\n---\nx\n")
    return project


def sent_until(
    house: Project, words: list[str], messages: list[dict[str, Any]], is_last: Callable[[dict[str, Any]], bool]
) -> None:
    """A command whose input ends behind a message of its own: what is under way at the end has only some seconds."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        forks.koi(*words), cwd=house.folder, env=house.environment, stdin=pipe, stdout=pipe, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("".join(json.dumps(message) + "\n" for message in messages))
        process.stdin.flush()
        while not is_last(json.loads(process.stdout.readline())):
            pass


def run(house: Project) -> None:
    """`koi run`."""
    house.write("run.koi", PROGRAM + '    run Main.go({ message: "x" })\n')
    house.koi("run", "run.koi")


def chat(house: Project) -> None:
    """`koi chat`."""
    house.koi("chat", "main.koi", stdin="x\n")


def rpc(house: Project) -> None:
    """`koi rpc`."""
    command = {"type": "run_playbook", "name": "Main.go", "args": {"message": "x"}}
    sent_until(
        house, ["rpc", "main.koi"], [command], lambda message: message.get("event", {}).get("type") == "call_ended"
    )


def serve_mcp(house: Project) -> None:
    """`koi serve mcp`."""
    messages = [
        {"id": 0, "method": "initialize", "params": INITIALIZE},
        {"method": "notifications/initialized"},
        {"id": 1, "method": "tools/call", "params": {"name": "go", "arguments": {"message": "x"}}},
    ]
    sent = [{"jsonrpc": "2.0", **message} for message in messages]
    sent_until(house, ["serve", "mcp", "main.koi"], sent, lambda message: message.get("id") == 1)


def serve_http(house: Project) -> None:
    """A session of `koi serve http`."""

    async def scenario(host: SessionHost) -> None:
        await until(await begin(host, "Main.go", message="x"), "idle")

    play(house.folder, scenario, "main.koi")


def serve_jobs(house: Project) -> None:
    """A job of `koi serve http`."""

    async def scenario(host: SessionHost) -> None:
        jobs = JobRuns(host)
        await jobs.start("0123456789ab", "main", "Main.go", {"message": "x"})
        await jobs.wait_for_end("0123456789ab")

    play(house.folder, scenario, "main.koi")


def evaluate(house: Project) -> None:
    """`koi eval`."""
    house.write("main.eval.koi", PROGRAM + '    eval "decides" { await Main.go({ message: "x" }) }\n')
    house.koi("eval")


def python(house: Project) -> None:
    """`koi_lang.open`, with the folder of the project."""

    async def main() -> None:
        async with koi_lang.open(house.folder / "main.koi", folder=house.folder) as program:
            await program.agent("Main").go({"message": "x"})

    asyncio.run(main())


SURFACES: list[Callable[[Project], None]] = [run, chat, rpc, serve_mcp, serve_http, serve_jobs, evaluate, python]


def decisions(house: Project) -> dict[str, object]:
    """What the program met, by section."""
    lines = Path(house.folder / "decisions.jsonl").read_text("utf-8").splitlines()
    return dict(map(json.loads, lines))


@pytest.mark.parametrize("surface", SURFACES)
def test_the_same_decisions_everywhere(house: Project, surface: Callable[[Project], None]) -> None:
    """Whatever prepares the run, the settings of the project count, and nothing else does."""
    surface(house)

    assert DECISIONS == decisions(house)


def test_a_session_has_no_settings_of_its_own(house: Project) -> None:
    """Whatever it writes among its files changes nothing, neither at once nor after it was asleep."""
    others = {
        "koi.toml": "[shell]\nsandbox = 'none'\n[snapshots]\nmegabytes = 9\n",
        ".mcp.json": "{}",
        ".env": "TOKEN_OF_NOBODY=x",
        "AGENTS.md": "x",
    }

    async def scenario(host: SessionHost) -> list[dict[str, object]]:
        session = await begin(host)
        files, found = house.folder / ".koi" / "sessions" / session.id / "files", []
        for _ in range(2):
            for name, text in others.items():
                (files / name).write_text(text)
            await called(session, "Main.go", message="x")
            found.append(decisions(house))
            assert 1 == await host.put_to_sleep(0)
        return found

    assert [DECISIONS, DECISIONS] == play(house.folder, scenario, "main.koi")


def test_a_run_keeps_the_settings_that_it_began_with(project: Project) -> None:
    """A command that writes a `koi.toml` opens no host in the same run, but in the next one."""
    project.write(
        "main.koi",
        """
        import "std/http"
        role Worker { can execute, can web_access }
        agent Main : Worker {
          uses skill Http
          on go(args: { text: string }) {
            await this.callAction("shell", { command: `printf '${args.text}' > koi.toml`, description: "x" })
            try { await fetchText("http://127.0.0.1:9/") } catch (error) { console.log(error.message) }
          }
        }
        run Main.go({ text: '[http]\\nallow = ["127.0.0.1:9"]\\n' })
        """,
    )
    first, second = (project.koi("run", "main.koi", "--allow", "shell").stdout for _ in range(2))

    assert "`127.0.0.1` is no public address\n" == first
    assert "cannot be reached" in second


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ('{ temperature = "hot" }', ": `temperature` cannot be 'hot'"),
        ("{ temperature = nan }", ": `temperature` cannot be nan"),
        ("{ max_tokens = 0 }", ": `max_tokens` cannot be 0"),
        ("{ top_p = 2 }", ": `top_p` cannot be 2"),
        ('{ cache = "maybe" }', ": `cache` cannot be 'maybe'"),
        ('{ base_url = "not a url" }', ": `base_url` cannot be 'not a url'"),
        ('{ transport = "post" }', ": `transport` cannot be 'post'"),
        ('{ model = "openai/a", fallback = [{ model = "openai/b", seed = "x" }] }', ": `seed` cannot be 'x'"),
        ('{ fallback = "openai/b" }', ": `fallback` is not a list of models"),
        ('"openai/"', " names no model"),
        ('{ model = "" }', " names no model"),
    ],
)
def test_wrong_options_of_models_are_told_before_anything_runs(project: Project, model: str, said: str) -> None:
    """With the role and the file, also where the program asks no model; `koi doctor` says the same."""
    project.write("a.koi", "role W { can think }\nagent A : W { on go() { console.log('went') } }\nrun A.go()\n")
    project.write("koi.toml", f"[models]\nsmall = {model}\n")

    run, doctor = project.koi("run", "a.koi"), project.koi("doctor", "--offline")

    assert (2, "") == (run.returncode, run.stdout)
    assert f"`small` in `[models]` of `koi.toml`{said}" in run.stderr
    assert f"`small` in `[models]` of `koi.toml`{said}" in doctor.stdout + doctor.stderr
