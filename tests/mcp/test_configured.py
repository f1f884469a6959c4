"""Servers that `.mcp.json` and `koi.toml` describe, for programs that use a name without declaring it."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from koi_lang.errors import KoiError, SettingsError
from koi_lang.runtime.agents.declarations import Mcp
from koi_lang.runtime.mcp.configured import options_of
from koi_lang.runtime.mcp.connection import McpConnection
from koi_lang.runtime.mcp.servers import Servers
from koi_lang.settings import read_settings
from tests.mcp.conftest import RAW, Shelf
from tests.projects import Project

PROGRAM = """
role Worker { can call_mcp }
agent Main : Worker { uses mcp shelf  on go(args) { console.log((await shelf.echo({ text: "hello" })).result) } }
run Main.go({})
"""


def describe(folder: Path, **servers: Any) -> None:
    """Write `.mcp.json`."""
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": servers}), "utf-8")


def test_a_program_uses_a_server_it_does_not_declare(shelf: Shelf, project: Project) -> None:
    """`uses mcp shelf` finds the server in the folder that the program is run in."""
    describe(project.folder, shelf={**shelf.raw(), "type": "stdio"})
    project.write("main.koi", PROGRAM)

    done, checked = project.koi("run", "main.koi"), project.koi("check", "main.koi")

    assert ("hello\n", "", 0) == (done.stdout, done.stderr, done.returncode)
    assert "main.koi: no problems\n" == checked.stderr


def test_where_it_was_looked_for_is_said_before_anything_runs(project: Project) -> None:
    """A program does not start where nothing describes the server it uses, and a check of it warns of that."""
    project.write("main.koi", PROGRAM.replace("console.log(", 'console.log("too late", '))
    checked, strict, done = (project.koi(*words, "main.koi") for words in (("check",), ("check", "--strict"), ("run",)))

    assert (0, 65) == (checked.returncode, strict.returncode)
    assert checked.stderr.startswith("warning: there is no MCP server `shelf` [E0205]\n --> main.koi:2:32\n")
    assert (65, "") == (done.returncode, done.stdout)
    assert done.stderr.startswith("error: there is no MCP server `shelf` [E0205]\n --> main.koi:2:32\n")
    assert "as `mcp shelf = { command: … }`, nor described in `.mcp.json` or `koi.toml` of `" in done.stderr


def test_addresses_of_teams_are_looked_up_too(project: Project) -> None:
    """A team that lists a tool of a server which nothing describes keeps its program from starting."""
    project.write(
        "main.koi",
        """
        role Worker { can think }
        team Shelf { echo: mcp://far-away/echo }
        agent Main : Worker { uses team Shelf  on go(args) { return 1 } }
        run Main.go({})
        """,
    )

    done, checked = project.koi("run", "main.koi"), project.koi("check", "main.koi")

    assert (65, True) == (done.returncode, "error: there is no MCP server `far-away` [E0205]" in done.stderr)
    assert "warning: there is no MCP server `far-away` [E0205]" in checked.stderr


def test_tables_of_koi_toml_come_first(tmp_path: Path) -> None:
    """Both files are read; where they describe one name, the table counts."""
    describe(tmp_path, a={"command": "json"}, b={"command": "json"})
    (tmp_path / "koi.toml").write_text('[mcp.a]\ncommand = "toml"\nargs = ["-x"]\n', "utf-8")

    found = [options_of(name, read_settings(tmp_path)) for name in "ab"]
    assert [{"command": "toml", "args": ["-x"]}, {"command": "json"}] == found


def test_rules_of_koi_toml_hold_for_servers_of_the_other_file(tmp_path: Path) -> None:
    """A table that names no server of its own adds its options to what `.mcp.json` says."""
    describe(tmp_path, a={"command": "json", "timeout_s": 5})
    (tmp_path / "koi.toml").write_text('[mcp.a]\ndeny = ["delete_*"]\ntimeout_s = 9\n', "utf-8")

    assert {"command": "json", "timeout_s": 9, "deny": ["delete_*"]} == options_of("a", read_settings(tmp_path))


def test_names_with_hyphens(tmp_path: Path) -> None:
    """A name of a program, which has no hyphen, finds the name that has one."""
    describe(tmp_path, **{"my-files": {"command": "a"}})

    assert {"command": "a"} == options_of("my_files", read_settings(tmp_path))


def test_variables_are_filled_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`${NAME}` is a variable of the environment, else of `.env`; `${NAME:-…}` has a default."""
    monkeypatch.setenv("SHELF_HOME", "/oak")
    (tmp_path / ".env").write_text("SHELF_TOKEN=secret\n", "utf-8")
    env = {"A": "${SHELF_HOME}/a", "B": "${SHELF_TOKEN}", "C": "${SHELF_NONE:-d}", "D": "${SHELF_NONE:-}", "E": "$E"}
    describe(tmp_path, a={"command": "x", "args": ["${SHELF_HOME}"], "env": env})

    found = options_of("a", read_settings(tmp_path))

    assert {"A": "/oak/a", "B": "secret", "C": "d", "D": "", "E": "$E"} == found["env"]
    assert ["/oak"] == found["args"]


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        (".mcp.json", "{", "`.mcp.json` cannot be read: "),
        (".mcp.json", '{"servers": {}}', "there is no MCP server `a`"),
        (".mcp.json", '{"mcpServers": []}', "`.mcp.json` holds no object `mcpServers`"),
        (".mcp.json", '{"mcpServers": {"a": "npx"}}', "`a` in `.mcp.json` describes no MCP server"),
        ("koi.toml", 'mcp = "npx"', "`mcp` in `koi.toml` describes no MCP server"),
        (
            ".mcp.json",
            '{"mcpServers": {"a": {"command": "${NEVER_SET}"}}}',
            "the MCP server `a` in `.mcp.json`: the variable `NEVER_SET` is not set",
        ),
    ],
)
def test_broken_files_are_told(tmp_path: Path, file: str, text: str, told: str) -> None:
    """What is wrong with a file is said with its name."""
    (tmp_path / file).write_text(text, "utf-8")

    with pytest.raises(SettingsError) as raised:
        options_of("a", read_settings(tmp_path))

    assert raised.value.message.startswith(told)
    assert raised.value.help


UNUSED = "role Worker { can think }\nagent Main : Worker { on go() { console.log('went') } }\nrun Main.go({})\n"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ('command = "a"\ndenny = ["del"]', "the MCP server `x` in `koi.toml` has no option `denny`"),
        ('comand = "a"', "the MCP server `x` in `koi.toml` has no option `comand`"),
        ('command = "a"\ntimeout = 5', "the MCP server `x` in `koi.toml` has no option `timeout`"),
        ('deny = "del"', "`deny` in `[mcp.x]` of `koi.toml` is no list of texts"),
        ("timeout_s = -1", "`timeout_s` of the MCP server `x` must be a number above 0, not -1"),
        ("timeout_s = inf", "`timeout_s` of the MCP server `x` must be a number above 0, not inf"),
        ("start_timeout_s = nan", "`start_timeout_s` of the MCP server `x` must be a number above 0, not nan"),
        ("command = 3", "the MCP server `x` is not declared completely: `command` must be a text, not 3"),
        ('command = "a"\nargs = "b"', "the MCP server `x` is not declared completely: `args` must be a list"),
        ('url = "http://a"\ntype = "htp"', "the MCP server `x` is not declared completely: `type` must be one of"),
    ],
)
def test_wrong_options_are_told_before_anything_runs(project: Project, options: str, said: str) -> None:
    """Those of `koi.toml` also where the program uses no server, by whatever looks at the settings."""
    project.write("main.koi", UNUSED)
    project.write("koi.toml", f"[mcp.x]\n{options}\n")

    run, audit, doctor = (project.koi(*words) for words in (("run", "main.koi"), ("audit", "main.koi"), ("doctor",)))

    assert (2, "") == (run.returncode, run.stdout)
    assert said in run.stderr
    assert said in audit.stderr
    assert said in doctor.stdout + doctor.stderr


def test_options_of_other_programs(tmp_path: Path) -> None:
    """They may stand in `.mcp.json`; what is nearly one of ours is a slip of the pen."""
    foreign = {"command": "a", "timeout": 60, "auth": {}, "disabled": False, "autoApprove": [], "trust": True}
    describe(tmp_path, foreign=foreign, slip={"command": "a", "denny": ["del"]}, none={"cmd": "a"})
    settings = read_settings(tmp_path)

    assert foreign == options_of("foreign", settings)
    with pytest.raises(SettingsError, match=r"the MCP server `slip` in .* has no option `denny`") as raised:
        options_of("slip", settings)
    assert (raised.value.help or "").startswith("Did you mean `deny`?")
    with pytest.raises(KoiError, match="the MCP server `none` is not declared completely: `command` is missing"):
        options_of("none", settings)


def test_keys_are_handed_on_by_name_only(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server has the environment of the program without its keys, except those that its declaration names."""
    for name in ("OAK_API_KEY", "ELM_API_KEY", "OAK_PLACE"):
        monkeypatch.setenv(name, name.lower())
    names = ["OAK_API_KEY", "ELM_API_KEY", "OAK_PLACE"]
    body = (
        f"return await Promise.all({json.dumps(names)}.map(async name => (await files.environment({{ name }})).value))"
    )
    source = shelf.program(code=f"on code(args) {{ {body} }}", **shelf.raw(ELM_API_KEY=""))
    played = shelf.play(source, [], call="Main.code")

    assert [None, "elm_api_key", "oak_place"] == played.result


@pytest.mark.parametrize("cwd", [{}, {"cwd": "."}])
def test_paths_of_a_server_are_those_of_the_project(tmp_path: Path, cwd: dict[str, str]) -> None:
    """Wherever the process was started that uses it, such as a service, or a Python that opens a program."""
    shutil.copy(RAW, tmp_path / "server.py")
    about = {"command": sys.executable, "args": ["server.py"], **cwd}
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"here": about}}), "utf-8")

    async def main() -> McpConnection:
        async with asyncio.TaskGroup() as group:
            servers = Servers(group, read_settings(tmp_path))
            try:
                return await servers.connect(Mcp("here"))
            finally:
                servers.stop()

    assert "echo" in asyncio.run(main()).tools
