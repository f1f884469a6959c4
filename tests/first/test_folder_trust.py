"""A folder of a stranger narrows what runs may do, and widens it only once the person trusts it."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Sequence
from dataclasses import dataclass

import click
import pexpect
import pytest

from koi_lang import settings
from koi_lang.cli.options import settings_here
from koi_lang.cli.ui.trust import AGREED
from koi_lang.health.project import settings_files
from koi_lang.settings import read_settings
from tests import forks
from tests.first.machine import ANYBODY, GREETING, KEY, Machine, Outcome
from tests.limits import LIMIT_S
from tests.llm.server import ModelServer
from tests.test_folder_trust import HOSTILE

TOUCHING = """
    role Worker { can execute }
    agent Main : Worker {
      on start(args: Json) { await callAction("shell", { command: "touch done", description: "" }) }
    }
    run Main.start({})
    """
NOT_TRUSTED = "warning: settings of this folder do not count before you trust it (`koi trust`): "


@pytest.fixture(autouse=True)
def _without_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but the person's word has settings count."""
    monkeypatch.delenv(settings.TRUST_VARIABLE)


@dataclass(frozen=True, slots=True)
class Clone:
    """A folder that somebody has cloned, with servers of its author and of the provider."""

    machine: Machine
    stranger: ModelServer
    provider: ModelServer

    def write(self, text: str = HOSTILE, name: str = "koi.toml") -> None:
        """Write a settings file; `STRANGER` is the address of the author's server."""
        self.machine.project.write(name, text.replace("STRANGER", self.stranger.url)).chmod(0o600)

    async def asks(self, *words: str) -> tuple[bool, bool]:
        """Whether a command sends requests to the stranger, and to the provider."""
        before = len(self.stranger.requests), len(self.provider.requests)
        await self.machine.koi(*words)
        return len(self.stranger.requests) > before[0], len(self.provider.requests) > before[1]


async def open_clone(machine: Machine, stranger: ModelServer, provider: ModelServer) -> Clone:
    """A clone of a person who has a key."""
    machine.use(provider)
    machine.set(OPENAI_API_KEY=KEY)
    machine.project.write("greeter.koi", ANYBODY)
    machine.project.write("touching.koi", TOUCHING)
    clone = Clone(machine, stranger, provider)
    clone.write()
    return clone


def test_no_key_is_sent_before_the_person_agrees(machine: Machine) -> None:
    """The provider is asked where it always is; the address of the folder is asked after `--trust-folder`."""

    async def run() -> list[tuple[bool, bool]]:
        async with ModelServer([GREETING]) as stranger, ModelServer([GREETING]) as provider:
            clone = await open_clone(machine, stranger, provider)
            found = [await clone.asks("run", "greeter.koi")]
            found.append(await clone.asks("run", "--trust-folder", "greeter.koi"))
            found.append(await clone.asks("run", "greeter.koi"))
            clone.write(HOSTILE.replace("usd = 0.5", "usd = 0.6"))
            found.append(await clone.asks("run", "greeter.koi"))
            clone.write(HOSTILE.replace("touch *", "touch **"))
            found.append(await clone.asks("run", "greeter.koi"))
            return found

    theirs, own = (True, False), (False, True)
    assert [own, theirs, theirs, theirs, own] == asyncio.run(run())


COMMANDS: Sequence[tuple[tuple[str, ...], str]] = (
    (("run", "touching.koi"), ""),
    (("do", "--max-requests", "2", "run `touch done`"), ""),
    (("chat", "greeter.koi", "--event", "hello"), "Ada\n"),
    (("repl", "touching.koi"), "await send peers.event('start').any()({})\n"),
    (("rpc", "touching.koi"), '{"type": "run"}\n'),
    (("serve", "mcp", "greeter.koi"), ""),
    (("eval", "touching.koi"), ""),
    (("test", "."), ""),
    (("serve", "http", "greeter.koi", "--http", "nowhere"), ""),
    (("service", "jobs"), ""),
    (("audit", "touching.koi"), ""),
    (("prompt", "greeter.koi", "Greeter.hello"), ""),
)


@pytest.mark.parametrize(("words", "said"), COMMANDS, ids=lambda each: "-".join(each[:2]) if each[1:] else "")
def test_commands_say_what_does_not_count(machine: Machine, words: tuple[str, ...], said: str) -> None:
    """Nothing is allowed by the folder, the stranger gets no request, and one line says why."""
    machine.project.write("a.test.koi", 'test "one" { assert 1 == 1 }\n')

    async def run() -> tuple[Outcome, int]:
        async with ModelServer([GREETING]) as stranger, ModelServer([GREETING]) as provider:
            await open_clone(machine, stranger, provider)
            return await machine.koi(*words, said=said), len(stranger.requests)

    done, requests = asyncio.run(run())

    assert (0, 1) == (requests, done.err.count(NOT_TRUSTED)), done.err
    assert not (machine.folder / "done").exists()


def test_a_service_serves_nothing_else(machine: Machine) -> None:
    """Where the programs of `[serve]` do not count, std/coder is not what stands in for them."""
    machine.project.write("koi.toml", '[serve]\nprograms = ["greeter.koi"]\n')

    done = machine.now("serve", "http")

    assert (2, True) == (done.code, "the programs of `[serve]` do not count" in done.err)


def test_a_journal_trusts_no_folder(machine: Machine) -> None:
    """A run that goes on was begun with `--trust-folder`, which is no word for what the folder says since."""
    machine.project.write("koi.toml", '[shell]\nallow = ["touch *"]\n')
    machine.project.write("a.koi", TOUCHING.replace('"" })', '"" })\nthrow new Error("later")'))
    assert NOT_TRUSTED not in machine.now("run", "--trust-folder", "a.koi").err
    machine.project.write("koi.toml", '[shell]\nallow = ["**"]\n')

    assert NOT_TRUSTED in machine.now("resume", "last").err


def test_python_asks_nobody(machine: Machine) -> None:
    """A program of Python says by an option that all settings count."""
    machine.project.write("koi.toml", '[shell]\nallow = ["touch *"]\n')
    machine.project.write("touching.koi", TOUCHING)
    script = "import koi_lang\nkoi_lang.run('touching.koi', output=print, {})"

    refused = machine.project.fork_python(script.format(""))
    assert NOT_TRUSTED in refused.stderr
    assert not (machine.folder / "done").exists()
    done = machine.project.fork_python(script.format("trust_folder=True"))
    assert ("", True) == (done.stderr, (machine.folder / "done").exists())


def test_a_server_of_the_folder_is_not_started(machine: Machine) -> None:
    """A program that uses it is told why there is none."""
    machine.project.write("koi.toml", HOSTILE.replace("STRANGER", "http://127.0.0.1:9"))
    machine.project.write(
        "a.koi", "role R { can execute }\nagent A : R { uses mcp files\n on a(args: Json) {} }\nrun A.a({})\n"
    )

    done = machine.now("run", "a.koi")

    assert "the MCP server `files` in `koi.toml` does not count: its folder is not trusted" in done.err
    assert not (machine.folder / "started").exists()


def test_the_person_is_asked_once(machine: Machine) -> None:
    """At a terminal, before anything runs: no goes on without, yes with it, and neither is asked again."""
    machine.project.write("koi.toml", '[shell]\nallow = ["touch *"]\n[limits]\nusd = 1\n')
    machine.project.write("touching.koi", TOUCHING)

    def answers(*lines: str) -> str:
        python, *words = forks.koi("run", "touching.koi")
        environment = {**machine.project.environment, "NO_COLOR": "1", "KOI_PLAIN": "1"}
        with pexpect.spawn(
            python, words, cwd=str(machine.folder), env=environment, encoding="utf-8", timeout=LIMIT_S
        ) as child:
            child.logfile_read = shown = io.StringIO()
            for line in lines:
                child.expect("Trust this folder|Allow[?]")
                child.sendline(line)
            child.expect(pexpect.EOF)
            return shown.getvalue()

    answers("n", "n")
    assert not (machine.folder / "done").exists()
    assert NOT_TRUSTED in answers("n")  # the question is about the command
    machine.project.write("koi.toml", '[shell]\nallow = ["touch *", "true"]\n')
    answers("y")
    assert (machine.folder / "done").exists()
    assert "question" not in answers()


def test_the_doctor_names_what_does_not_count(machine: Machine) -> None:
    """It looks at all settings, so that what is wrong with those that do not count is told, too."""
    machine.project.write("koi.toml", '[shell]\nallow = ["ls"]\n[http]\nallow = 1\n')

    found = list(settings_files(read_settings(machine.folder)))

    assert [("warning", "koi trust"), ("error", "edit koi.toml")] == [
        (each.level, each.fix.partition(":")[0]) for each in found
    ]


def test_watching_asks_again(machine: Machine) -> None:
    """The word for what a folder widens is no word for what is written there later, in the same command, too."""
    machine.project.write("koi.toml", '[shell]\nallow = ["touch *"]\n')
    with click.Context(click.Command("run")) as context:
        context.meta[AGREED] = True
        found = [settings_here().is_trusted]
        machine.project.write("koi.toml", '[shell]\nallow = ["**"]\n')
        found += [settings_here().is_trusted, settings_here().is_trusted]

    assert [True, False, False] == found


def test_koi_trust(machine: Machine) -> None:
    """It shows what a folder widens, trusts it, lists it, and forgets it."""
    assert "the settings of this folder widen nothing\n" == machine.now("trust").out
    machine.project.write("koi.toml", '[shell]\nallow = ["touch *"]\n')

    listed = "  commands run without a question: `touch *`\n"
    assert (
        f"error: this folder is not trusted:\n{listed}  = help: Write `koi trust --yes`.\n" == machine.now("trust").err
    )
    assert listed == machine.now("trust", "--yes").out
    assert f"this folder is trusted:\n{listed}" == machine.now("trust").out
    assert f"{machine.folder}\n" == machine.now("trust", "--list").out
    machine.now("trust", "--remove")
    assert "you trust no folder\n" == machine.now("trust", "--list").out


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("koi.toml", '[permissions]\nallow = ["mcp:files:read"]\n', 'Write `allow = ["read"]` below `[mcp.files]` in'),
        (
            "koi.toml",
            '[permissions]\ndeny = ["mcp:files"]\n',
            'Write `deny = ["*"]` below `[mcp.files]` in `koi.toml`.',
        ),
        ("koi.toml", '[permissions]\nask = ["shell:ls"]\n', "Did you mean `run`?"),
        ("koi.toml", "[permissions\n", "`koi.toml` cannot be read"),
        (".mcp.json", "{", "`.mcp.json` cannot be read"),
    ],
)
def test_what_cannot_be_read_is_not_trusted(machine: Machine, file: str, text: str, message: str) -> None:
    """`koi trust` says what is wrong, and so does `koi doctor`; nothing is agreed to."""
    machine.project.write("koi.toml", '[shell]\nallow = ["ls"]\n')
    machine.project.write(file, text)

    done, listed, doctor = (
        machine.now(*words.split()) for words in ("trust --yes", "trust --list", "doctor --offline")
    )

    assert (True, "you trust no folder\n") == (done.code != 0, listed.out)
    assert (True, True) == (message in done.err, message in doctor.out)


def test_nothing_is_trusted_by_a_file_in_the_folder(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A configuration in the project could be written by an agent."""
    monkeypatch.setenv("KOI_CONFIG_DIR", str(machine.folder / "own"))
    machine.project.write("koi.toml", '[shell]\nallow = ["touch *"]\n')

    assert "your configuration lies in this folder" in machine.now("trust", "--yes").err
    assert not read_settings(machine.folder).is_trusted


def test_a_filled_variable_is_a_part_of_what_is_trusted(machine: Machine) -> None:
    """What `.env` puts into a command is agreed to with the command."""
    machine.project.write(".mcp.json", '{"mcpServers": {"a": {"command": "${TOOL}"}}}')
    machine.project.write(".env", "TOOL=ls\nOTHER=1\n").chmod(0o600)
    machine.now("trust", "--yes")
    found = [read_settings(machine.folder).is_trusted]
    for text in ("TOOL=ls\nOTHER=2\n", "TOOL=touch\nOTHER=2\n"):
        machine.project.write(".env", text)
        found.append(read_settings(machine.folder).is_trusted)

    assert [True, True, False] == found


def test_a_new_project_is_trusted(machine: Machine) -> None:
    """`koi init` agrees to what it writes, and not to a file that was there."""
    machine.now("init", "--template", "mcp", "new")
    (machine.folder / "old").mkdir()
    machine.project.write("old/.mcp.json", '{"mcpServers": {"a": {"command": "touch"}}}')
    machine.patch.chdir(machine.folder / "old")
    machine.now("init")

    assert [True, False] == [read_settings(machine.folder / name).is_trusted for name in ("new", "old")]
