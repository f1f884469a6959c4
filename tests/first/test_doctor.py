"""`koi doctor`: each finding has the command that mends it, and the exit code says whether something is broken."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from koi_lang.health import machine as health
from koi_lang.health.machine import _holds
from koi_lang.health.project import settings_files
from koi_lang.settings import read_settings
from koi_lang.settings.project import SECTION_NAMES
from tests.first.machine import GREETER, KEY, Machine, Outcome
from tests.first.test_errors import refused
from tests.llm.server import Answer, ModelServer

SERVERS = """
    mcp here = { command: "python3", args: ["-c", "pass"] }
    mcp gone = { command: "no-such-server" }
    mcp far = { type: "http", url: "URL" }
    """


def findings(done: Outcome, about: str) -> list[dict[str, Any]]:
    """The findings of one kind, of those that are printed as JSON."""
    return [found for found in json.loads(done.out) if found["about"] == about]


def test_a_new_machine_has_only_a_warning(machine: Machine) -> None:
    """Without a key `koi run` still rehearses at a terminal: exit code 0, and the command that stores a key."""
    done = machine.now("doctor", "--json")
    (keys,) = findings(done, "keys")

    assert (done.code, done.err, keys["level"], keys["fix"]) == (0, "", "warning", "koi connect")
    assert "rehearses at a terminal, and what needs a model is refused elsewhere" in keys["text"]
    assert [found for found in json.loads(done.out) if found["level"] == "error"] == []


def test_the_page_ends_with_how_many(machine: Machine) -> None:
    """People see a line for each finding, its command below, and the count at the end."""
    machine.project.write("koi.toml", '[shell]\nsandbox = "none"\n')
    lines = machine.now("doctor", "--offline").out.splitlines()

    assert lines[0].split()[:2] == ["ok", "python"]
    assert [line.split() for line in lines if "→" in line] == [["→", "koi", "connect"]]
    assert lines[-1] == "1 warning"


def reached(machine: Machine, *answers: Answer | str, models: tuple[str, ...] = ()) -> Outcome:
    """The outcome of the doctor while OpenAI is a server."""
    machine.set(OPENAI_API_KEY=KEY)

    async def run() -> Outcome:
        async with ModelServer(answers or (Answer(),), models=models) as server:
            machine.use(server)
            return await machine.koi("doctor", "--json")

    return asyncio.run(run())


def test_a_provider_that_answers_is_fine(machine: Machine) -> None:
    """The key that counts is named with its place, and its provider is asked for its models."""
    machine.project.write(".env", "OPENAI_API_KEY=another-key-0123456789-LAST\n").chmod(0o600)

    done = reached(machine, models=("a", "b"))

    assert done.code == 0
    assert [found["text"] for found in findings(done, "keys")] == [
        "openai: OPENAI_API_KEY …MARK from environment; not used: .env …LAST"
    ]
    assert findings(done, "providers")[0]["text"] == "openai answers: 2 models"


def test_a_wrong_key_is_broken(machine: Machine) -> None:
    """The command that mends it stores another one."""
    done = reached(machine, *refused(401))

    assert (done.code, findings(done, "providers")[0]["fix"]) == (1, "koi connect openai")


def test_offline_asks_nobody(machine: Machine) -> None:
    """With `--offline` a provider that cannot be reached is not noticed."""
    machine.set(OPENAI_API_KEY=KEY, OPENAI_BASE_URL="http://127.0.0.1:9/v1")

    online, offline = machine.now("doctor", "--json"), machine.now("doctor", "--offline", "--json")

    assert (online.code, offline.code, findings(offline, "providers")) == (1, 0, [])
    assert "nothing listens there" in findings(online, "providers")[0]["text"]


@pytest.mark.parametrize(
    ("place", "mode", "level", "fix"),
    [
        ("config", 0o755, "error", "chmod 700 {}"),
        ("config/keys.json", 0o640, "error", "chmod 600 {}"),
        ("config/signing.key", 0o640, "error", "chmod 600 {}"),
        ("config/.keys-1", 0o604, "error", "chmod 600 {}"),
        ("cache", 0o777, "error", "chmod go-w {}"),
        ("project/.env", 0o644, "warning", "chmod 600 .env"),
        ("project/.koi/runs/a.jsonl", 0o644, "warning", "chmod 600 .koi/runs/a.jsonl"),
        ("project/.koi/registry/registry.sqlite", 0o644, "warning", "chmod 600 .koi/registry/registry.sqlite"),
        ("project/.koi/chat-history", 0o604, "warning", "chmod 600 .koi/chat-history"),
    ],
)
def test_what_others_can_read_or_change_is_found(machine: Machine, place: str, mode: int, level: str, fix: str) -> None:
    """Each file with its command; running the command makes the finding go away."""
    machine.now("connect", "openai", "--no-test", said=f"{KEY}\n")
    machine.cache.mkdir(exist_ok=True)
    path = machine.base / place
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    path.chmod(mode)

    (found,) = findings(machine.now("doctor", "--offline", "--json"), "permissions")
    os.system(f"cd {machine.folder} && {found['fix']}")
    (mended,) = findings(machine.now("doctor", "--offline", "--json"), "permissions")

    assert (found["level"], found["fix"], mended["level"]) == (level, fix.format(path), "ok")


def test_a_damaged_key_for_signatures_is_found(machine: Machine) -> None:
    """With the command that removes it; journals from before are then asked about."""
    machine.config.mkdir(mode=0o700, exist_ok=True)
    (machine.config / "signing.key").write_text("half")
    (machine.config / "signing.key").chmod(0o600)
    (found,) = [
        found for found in findings(machine.now("doctor", "--offline", "--json"), "keys") if found["fix"][:2] == "rm"
    ]

    assert ("error", f"rm {machine.config}/signing.key") == (found["level"], found["fix"])


def test_journals_that_take_much_room_are_found(machine: Machine) -> None:
    """More than a gigabyte of them and what lies beside them is a warning, with the command that removes old ones."""
    runs = machine.folder / ".koi" / "runs"
    (runs / "a.output").mkdir(parents=True)
    for name, size in (("a.jsonl", 600_000_000), ("b.jsonl", 300_000_000), ("a.output/1-stdout.txt", 200_000_000)):
        assert [] == findings(machine.now("doctor", "--offline", "--json"), "journals")
        with (runs / name).open("wb") as file:
            file.truncate(size)
    (found,) = findings(machine.now("doctor", "--offline", "--json"), "journals")

    assert ("warning", "koi runs delete --older 30d") == (found["level"], found["fix"])
    assert found["text"].startswith("2 journals take 1.1 GB in ")


def test_links_are_found_before_they_are_needed(machine: Machine) -> None:
    """`.koi` and what is in it; a folder that is none of these is no fault."""
    state, elsewhere = machine.folder / ".koi", machine.folder / "elsewhere"
    for folder in (state / "runs", elsewhere):
        folder.mkdir(parents=True)
    (state / "outputs").symlink_to(elsewhere)
    (state / "registry").symlink_to("missing")
    inside = findings(machine.now("doctor", "--offline", "--json"), "project")
    state.rename(machine.folder / "moved")
    state.symlink_to("moved")
    whole = findings(machine.now("doctor", "--offline", "--json"), "project")

    assert ["`.koi/outputs` is a link", "`.koi/registry` is a link"] == [each["text"].split(",")[0] for each in inside]
    assert ["`.koi` is a link"] == [each["text"].split(",")[0] for each in whole]


@pytest.mark.parametrize("section", SECTION_NAMES)
def test_every_section_is_read(tmp_path: Path, section: str) -> None:
    """No run is the first to say that a section is broken."""
    (tmp_path / "koi.toml").write_text(f"[{section}]\nno_such_key = 1\n")

    assert ["no_such_key" in found.text for found in settings_files(read_settings(tmp_path))] == [True]


def test_mcp_servers_of_the_programs_are_looked_for(machine: Machine) -> None:
    """A command that is not installed and an address where nobody answers are errors; no server is started."""
    machine.project.write("a.koi", SERVERS.replace("URL", "http://127.0.0.1:9/mcp"))

    done = machine.now("doctor", "--json")

    assert [found["level"] for found in findings(done, "mcp")] == ["ok", "error", "error"]
    assert "`no-such-server` of `gone` is not installed" in findings(done, "mcp")[1]["text"]
    assert done.code == 1


def test_servers_are_started_only_on_request(machine: Machine) -> None:
    """With `--start-servers` a command that is no MCP server is found out."""
    machine.project.write(
        "a.koi", 'mcp here = { command: "python3", args: ["-c", "raise SystemExit(\'no server\')"] }\n'
    )

    done = machine.now("doctor", "--offline", "--start-servers", "--json")

    assert [(found["level"], "no server" in found["text"]) for found in findings(done, "mcp")] == [("error", True)]


@pytest.mark.parametrize(
    ("name", "text"),
    [("koi.toml", "[limits]\nturns = 0\n"), ("koi.toml", "["), (".koi-config.json", "[]"), (".env", "\udcff")],
)
def test_configuration_that_cannot_be_read_is_found(machine: Machine, name: str, text: str) -> None:
    """Each broken file is an error that names it."""
    (machine.folder / name).write_bytes(text.encode("utf-8", "surrogateescape"))

    done = machine.now("doctor", "--offline", "--json")

    assert (done.code, done.err) == (1, "")
    assert all(found["level"] == "error" and name in found["text"] for found in findings(done, "project"))
    assert findings(done, "project") != []


def test_the_models_of_the_project_are_shown_or_found_wrong(machine: Machine) -> None:
    """`[models]` is part of the findings, and a provider that does not exist an error."""
    toml = machine.project.write("koi.toml", '[models]\nsmall = "openai/gpt-4o-mini"\n')
    good = findings(machine.now("doctor", "--offline", "--json"), "models")
    toml.write_text('[models]\nsmall = "opnai/gpt-4o-mini"\n')
    bad = findings(machine.now("doctor", "--offline", "--json"), "models")

    assert [(found["level"], found["text"]) for found in good] == [("ok", "small: openai/gpt-4o-mini")]
    assert [(found["level"], "Did you mean `openai/gpt-4o-mini`?" in found["fix"]) for found in bad] == [
        ("error", True)
    ]


def test_a_damaged_cache_is_found(machine: Machine) -> None:
    """A file that is not whole is a warning; clearing the cache mends it."""
    machine.project.write("a.koi", GREETER)
    machine.now("run", "--rehearse", "a.koi")
    (file,) = machine.cache.glob("*.koic")
    file.write_bytes(file.read_bytes()[:-1])

    (found,) = findings(machine.now("doctor", "--offline", "--json"), "cache")
    machine.now(*found["fix"].split()[1:])

    assert (found["level"], findings(machine.now("doctor", "--offline", "--json"), "cache")[0]["level"]) == (
        "warning",
        "ok",
    )


def test_a_damaged_file_of_keys_is_found(machine: Machine) -> None:
    """The doctor goes on after it."""
    machine.config.mkdir(mode=0o700)
    (machine.config / "keys.json").write_text("{")

    done = machine.now("doctor", "--offline", "--json")

    assert done.code == 1
    assert findings(done, "keys")[0]["fix"].startswith("rm ")
    assert findings(done, "disk") != []


def test_a_full_disk_is_found(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some megabytes left are a warning, almost none an error."""
    levels = []
    for free in (10**9, 10**8, 10**6):
        monkeypatch.setattr(shutil, "disk_usage", lambda place, free=free: shutil._ntuple_diskusage(0, 0, free))
        levels += {finding.level for finding in health.disk(machine.folder)}

    assert levels == ["ok", "warning", "error"]


@pytest.mark.parametrize(
    ("found", "sign", "bound", "expected"),
    [
        ("3.0.52", ">=", "3.0.50", True),
        ("25.7.0", "<", "26", True),
        ("2.0", "<", "2", False),
        ("1.9", ">=", "1.10", False),
    ],
)
def test_versions_are_compared_as_numbers(found: str, sign: str, bound: str, expected: bool) -> None:
    """1.10 is newer than 1.9."""
    assert _holds(found, sign, bound) is expected


def test_a_broken_file_is_told_once(machine: Machine) -> None:
    """However many settings a file has, that it cannot be read is one finding."""
    machine.project.write("koi.toml", "[limits")

    done = machine.now("doctor", "--offline", "--json")

    assert [found["fix"] for found in findings(done, "project")] == ["edit koi.toml: It holds TOML, such as `[shell]`."]


def test_servers_of_the_settings_are_looked_for(machine: Machine) -> None:
    """A server that only `.mcp.json` describes is looked for, and a variable that it lacks is told."""
    servers = {"gone": {"command": "no-such-server"}, "far": {"url": "http://${NO_SUCH_HOST}/"}}
    machine.project.write(".mcp.json", json.dumps({"mcpServers": servers}))

    told = [found["text"] for found in findings(machine.now("doctor", "--offline", "--json"), "mcp")]

    assert told == [
        "the command `no-such-server` of `gone` is not installed",
        "the MCP server `far` in `.mcp.json`: the variable `NO_SUCH_HOST` is not set",
    ]


SERVED = """
    [serve]
    programs = ["gone.koi"]
    http = "0.0.0.0:8420"
    [serve.hooks]
    "run.ended" = ["https://127.0.0.1:9/x?key=mark", "http://203.0.113.9.example/"]
    [serve.hook_secrets]
    out = "short"
    "/github" = "${NOT_SET}"
    """


def test_a_service_that_is_too_open_is_told(machine: Machine) -> None:
    """Each finding of `[serve]` names what is wrong, and none repeats the address of a hook, which may be secret."""
    machine.project.write("koi.toml", SERVED).chmod(0o644)
    found = findings(machine.now("doctor", "--offline", "--json"), "service")
    told = {each["text"]: each["level"] for each in found}

    assert {
        "there is no program `gone.koi`": "error",
        "`0.0.0.0:8420` is reached from other machines, and everybody there is the admin": "warning",
        "`0.0.0.0:8420` answers to no name but its number": "warning",
        "others can read koi.toml, in which the secret of `out` stands": "error",
        "the secret of `out` has fewer than 16 characters": "warning",
        "the secret of `/github` is not there: the variable `NOT_SET` is not set": "error",
        "a hook cannot be told: `127.0.0.1` is no public address": "error",
        "a hook is told over `http`, which everybody on the way to `203.0.113.9.example` reads": "warning",
    } == told


def test_a_service_with_users_is_fine(machine: Machine) -> None:
    """What has users, limits and a secret of the environment needs no word."""
    users = f'[serve.users]\nada = "sha256:{"a" * 64}"\n[serve.limits]\nusd_per_user = 1\n'
    machine.project.write("koi.toml", users)

    assert [("ok", "1 user and whoever has the token of the start")] == [
        (each["level"], each["text"]) for each in findings(machine.now("doctor", "--offline", "--json"), "service")
    ]
