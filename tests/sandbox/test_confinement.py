"""What a command cannot do, tried with a stand-in for bubblewrap that confines by the same means of the kernel."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from koi_lang.runtime.actions.command_output import Output
from koi_lang.runtime.command_process import start_command
from koi_lang.runtime.command_sandbox import find_sandbox
from koi_lang.runtime.guards.access_rules import parse_rule
from koi_lang.runtime.guards.commands import Command, place_of
from koi_lang.runtime.guards.permissions import NO_RESTRICTIONS, Restrictions
from koi_lang.runtime.shared_sandbox import SharedSandboxes
from koi_lang.settings import read_settings
from tests.limits import LIMIT_S
from tests.playbook.playing import Player, act, done, solo
from tests.playbook.test_shell import Deciding, command
from tests.sandbox.conftest import Machine

PROGRAM = solo("execute")


def run(play: Player, machine: Machine, text: str, **fields: Any) -> Any:
    """What an allowed command gives in the project."""
    answers = [{"batch": [command(text, id="x", **fields), act("return", data="${x.output}")]}]
    played = play(PROGRAM, answers, allow=["shell"], folder=machine.project)
    assert played.error is None, played.error
    return played.result


def start(machine: Machine, text: str, restrictions: Restrictions = NO_RESTRICTIONS) -> tuple[int | None, str]:
    """The exit code and the output of a command of which nobody has looked at the words."""

    async def main() -> tuple[int | None, str]:
        state = await find_sandbox(machine.project, read_settings(machine.project))
        assert state.sandbox is not None
        sandbox = replace(state.sandbox, restrictions=restrictions)
        asked = Command(text, place_of(None, machine.project), "", sandbox=sandbox)
        output = Output()
        started = await start_command(asked, is_merged=True)
        return await started.read_to_end([output], 30), output.text()

    return asyncio.run(main())


def test_the_project_is_written_and_nothing_else(play: Player, confined: Machine, outside: tuple[Path, Path]) -> None:
    """What a command writes beside the project is refused, or gone with it."""
    of_system, short_lived = outside
    told = run(
        play,
        confined,
        f"echo a > made; echo b > ../beside; echo c > {of_system}; echo d > {short_lived}; cat {short_lived}",
    )

    assert "a\n" == (confined.project / "made").read_text()
    assert "d\n" == told["stdout"]
    assert "Read-only file system" in told["stderr"]
    assert [False] * 3 == [each.exists() for each in (confined.home / "../beside", *outside)]


def test_the_home_folder_is_empty_but_for_what_is_listed(play: Player, confined: Machine) -> None:
    """What `home` lists is read, and not written; the rest is not there."""
    confined.set_up('home = ["~/.cargo"]')
    for name in (".cargo/config", ".ssh-keys"):
        (confined.home / name).parent.mkdir(exist_ok=True)
        (confined.home / name).write_text(f"of {name}\n")
    told = run(
        play, confined, "cat ~/.ssh-keys; cat ~/.cargo/config; touch ~/.cargo/x; ls -A ~; touch ~/cache && echo kept"
    )

    assert "of .cargo/config\n.cargo\nkept\n" == told["stdout"]
    assert "ssh-keys: No such file" in told["stderr"]
    assert [".cargo", ".ssh-keys"] == sorted(os.listdir(confined.home))


CLOSED_FILES = (".env", "sub/key.pem", ".koi/runs/1", ".git/config", ".git/hooks/pre-commit")
CLOSED_TRIES = (
    "cat .env link sub/key.pem .koi/runs/1", "mv .env x", "rm -f .env", "mv .koi x", "echo > .koi/x",
    "echo > koi.toml", "mv koi.toml x", "echo > .git/config", "echo > .git/hooks/x", "mv .git x",
    "umount .env", "unshare -Urm sh -c 'umount .env; umount -l .env; cat .env'",
    "mv sub x && cat x/key.pem", "cp -r . /tmp/x; grep -r SECRET /tmp/x/sub /tmp/x/x",
)  # fmt: skip


def test_what_is_closed_stays_closed(confined: Machine) -> None:
    """Secrets and journals are not read, moved or replaced; settings and what git runs are not changed."""
    confined.set_up("")
    for name in CLOSED_FILES:
        (confined.project / name).parent.mkdir(parents=True, exist_ok=True)
        (confined.project / name).write_text("SECRET")
    (confined.project / "link").symlink_to(".env")
    told = [start(confined, each) for each in CLOSED_TRIES]

    assert [] == [each for each, (code, _) in zip(CLOSED_TRIES, told, strict=True) if code == 0]
    assert "SECRET" not in str(told)
    assert "SECRET" == (confined.project / ".env").read_text() == (confined.project / ".git/config").read_text()


NAMES = ("koi.toml", ".mcp.json", ".koi-config.json", ".env")
MAKING = (
    "echo a > {}",
    "rmdir {}",
    "mv {} x",
    "mkdir -p {} && echo a > {}/a",
    "cp -r sub x && mv -T x {}",
    "ln -s sub {}",
)


def test_settings_that_are_missing_are_not_made(confined: Machine) -> None:
    """Later runs would obey them; what lies in their place meanwhile is gone with the command."""
    (confined.project / "sub").mkdir()
    text = " ; ".join(way.replace("{}", name) + " && echo done" for name in NAMES for way in MAKING)
    _, told = start(confined, f"{text}; echo a > sub/koi.toml; ls -A . > seen; exit 0")

    assert "done" not in told
    assert {*NAMES} <= {*(confined.project / "seen").read_text().split()}
    assert [] == [name for name in NAMES if (confined.project / name).exists()]


def test_settings_that_the_person_makes_meanwhile_stay(confined: Machine) -> None:
    """They are not seen as missing, by a run that begins at the time either, and are not taken away."""

    async def main() -> tuple[bool, list[str]]:
        state = await find_sandbox(confined.project, read_settings(confined.project))
        asked = Command("read line", place_of(None, confined.project), "", sandbox=state.sandbox)
        started = await start_command(asked, is_merged=True)
        during = read_settings(confined.project)
        (confined.project / "koi.toml").rmdir()
        confined.set_up("")
        await started.end()
        return during.has_project_file, [name for name in NAMES if (confined.project / name).exists()]

    assert (False, ["koi.toml"]) == asyncio.run(main())


def test_a_project_that_nobody_can_write_needs_nothing_in_their_place(
    confined: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a file system can only be read, no command makes settings either."""

    def refuse(path: str, mode: int = 0o777) -> None:
        raise OSError(errno.EROFS, "Read-only file system", path)

    (confined.project / ".koi").mkdir()
    monkeypatch.setattr(os, "mkdir", refuse)

    assert (0, "done\n") == start(confined, "echo done")


def test_an_environment_of_python_may_be_called_like_settings(confined: Machine) -> None:
    """A folder `.env` that holds something is a folder like any other."""
    (confined.project / ".env").mkdir()
    (confined.project / ".env/pyvenv.cfg").write_text("")

    assert (0, "") == start(confined, "echo a > .env/made")


@pytest.mark.skipif(shutil.which("git") is None, reason="GIT IS MISSING: repositories in the sandbox are not tested")
def test_git_does_not_see_what_lies_in_the_place_of_settings(confined: Machine) -> None:
    """Adding everything adds what is there."""
    subprocess.run(["git", "init", "-q", "."], cwd=confined.project, check=True)
    _, told = start(confined, "echo a > a; git add -A && git status --porcelain")

    assert "A  a\n" == told


@pytest.mark.skipif(shutil.which("git") is None, reason="GIT IS MISSING: repositories in the sandbox are not tested")
def test_what_git_needs_is_left(play: Player, confined: Machine) -> None:
    """A repository can be committed to."""
    env = "git -c user.name=x -c user.email=x@x"
    subprocess.run(["git", "init", "-q", "."], cwd=confined.project, check=True)
    told = run(play, confined, f"echo a > a && git add a && {env} commit -qm a && git log --format=%s")
    told = run(play, confined, f"echo b > b && git add b && {env} commit -qm b && git log --format=%s")

    assert ("b\na\n", 0) == (told["stdout"], told["exitCode"]), told


@pytest.fixture
def server() -> Iterator[int]:
    """The port of a server on this machine, which greets whoever comes."""
    with socket.create_server(("127.0.0.1", 0)) as opened:

        def greet() -> None:
            with contextlib.suppress(OSError):
                while True:
                    with opened.accept()[0] as guest:
                        guest.sendall(b"welcome\n")

        threading.Thread(target=greet, daemon=True).start()
        yield opened.getsockname()[1]
        opened.shutdown(socket.SHUT_RDWR)


def test_there_is_no_network(play: Player, confined: Machine, server: int) -> None:
    """A server of this machine is not reached, which it is without the sandbox."""
    ask = f"bash -c 'read -r line < /dev/tcp/127.0.0.1/{server} && echo $line'"
    inside = run(play, confined, ask)
    confined.set_up('sandbox = "none"')
    outside = run(play, confined, ask)

    assert (False, "") == (inside["success"], inside["stdout"])
    assert "Connection refused" in inside["stderr"]
    assert "welcome\n" == outside["stdout"]


OPEN, HALF = ["shell", "web:**"], ["shell", "web:docs.python.org"]
DENYING = Restrictions(deny=(parse_rule("web:127.0.0.1"),))


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("can", "allow", "restrictions", "told"),
    [
        (("web_access",), OPEN, NO_RESTRICTIONS, "welcome\n"),
        ((), OPEN, NO_RESTRICTIONS, ""),
        (("web_access",), HALF, NO_RESTRICTIONS, ""),
        (("web_access",), ["shell"], NO_RESTRICTIONS, ""),
        (("web_access",), OPEN, DENYING, ""),
    ],
)
def test_the_network_needs_a_role_and_a_rule(
    play: Player, confined: Machine, server: int, can: tuple[str, ...], allow: list[str], restrictions: Restrictions,
    told: str,
) -> None:  # fmt: skip
    """Both, and no rule that a command could get round."""
    ask = command(f"bash -c 'read -r line < /dev/tcp/127.0.0.1/{server} && echo $line'", id="x")
    answers = [{"batch": [ask, act("return", data="${x.output.stdout}")]}]
    played = play(solo("execute", *can), answers, allow=allow, restrictions=restrictions, folder=confined.project)

    assert told == played.result


def processes(mark: str) -> list[str]:
    """The processes whose command lines hold a text."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (line := (folder / "cmdline").read_bytes().decode("utf-8", "replace")):
                found.append(line)
    return found


def wait_for(is_so: Callable[[], bool]) -> None:
    """Wait a moment until something is so."""
    deadline = time.monotonic() + LIMIT_S
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.02)


def own_time(seconds: int) -> str:
    """Some seconds to sleep, written so that no other process of the machine sleeps as long."""
    return f"{seconds}.{os.getpid():07d}"


def wait_until_gone(mark: str) -> list[str]:
    """What is left of a command after a moment."""
    wait_for(lambda: not processes(mark))
    return processes(mark)


def test_a_command_that_takes_too_long_ends_with_its_children(play: Player, confined: Machine) -> None:
    """Also those that have left its group and its session."""
    time_s = own_time(61)
    told = run(play, confined, f"setsid sh -c 'trap \"\" TERM; sleep {time_s}; true' & sleep {time_s}", timeout_ms=700)

    assert "took longer than 0.7 s" in told["error"]
    assert [] == wait_until_gone(time_s)


def test_a_cancelled_command_ends_with_its_children(confined: Machine) -> None:
    """The same for a command that is not waited for any more."""
    begun = confined.project / "begun"
    time_s = own_time(62)
    command = Command(f"setsid sleep {time_s} & touch begun; sleep {time_s}", place_of(None, confined.project), "")

    async def cancel() -> None:
        state = await find_sandbox(confined.project, read_settings(confined.project))
        started = await start_command(replace(command, sandbox=state.sandbox))
        reading = asyncio.create_task(started.read_to_end((Output(), Output()), 60))
        await asyncio.to_thread(wait_for, begun.exists)
        reading.cancel()
        await asyncio.wait([reading])

    asyncio.run(cancel())

    assert [] == wait_until_gone(time_s)


def test_a_command_in_the_background_ends_with_the_run(play: Player, confined: Machine) -> None:
    """It is confined like any other."""
    time_s = own_time(63)
    answers = [command(f"sleep {time_s}", background=True), done()]
    played = play(PROGRAM, answers, allow=["shell"], folder=confined.project)

    assert played.error is None
    assert [] == wait_until_gone(time_s)


def test_the_person_is_told_where_it_runs(play: Player, confined: Machine) -> None:
    """The question says that the command is confined; without a sandbox it does not."""
    host = Deciding()
    play(PROGRAM, [command("true"), done()], host=host, folder=confined.project)
    play(solo("execute", "web_access"), [command("true"), done()], host=host, folder=confined.project, allow=["web:**"])
    confined.set_up('sandbox = "none"')
    play(PROGRAM, [command("true"), done()], host=host, folder=confined.project)

    where = ("in the sandbox, without network", "in the sandbox, with network")
    assert [*(f"run `true` {each}: to see" for each in where), "run `true`: to see"] == host.requested


def together(play: Player, machine: Machine, *commands: dict[str, Any]) -> list[Any]:
    """What commands of one run give."""
    batch = [{**each, "id": f"r{number}"} for number, each in enumerate(commands)]
    asked = {f"r{number}": f"${{r{number}.output}}" for number in range(len(commands))}
    played = play(PROGRAM, [{"batch": [*batch, done(**asked)]}], allow=["shell"], folder=machine.project)
    assert played.error is None, played.told
    return list(played.result.values())


SERVER = "python3 -c 'import http.server as h; h.test(h.SimpleHTTPRequestHandler, port=8999, bind=\"127.0.0.1\")' 2>&1"
ASK = "python3 -c 'import urllib.request as r; print(r.urlopen(\"http://127.0.0.1:8999/page\").read().decode())'"


def test_commands_of_a_run_meet(play: Player, confined: Machine) -> None:
    """A server in the background answers the next command, though none of them has a network of the machine."""
    (confined.project / "page").write_text("hello")
    begun, asked, stopped, again = together(
        play,
        confined,
        command(f"PYTHONUNBUFFERED=1 {SERVER}", until="Serving"),
        command(ASK),
        act("stop_command", command=1),
        command(ASK),
    )

    assert "running" == begun["state"]
    assert "hello\n" == asked["stdout"]
    assert "stopped" == stopped["state"]
    assert not again["success"]


def test_a_file_that_is_closed_since_is_closed(play: Player, confined: Machine) -> None:
    """A file that was replaced outside of the sandbox, or has come since, is hidden from later commands."""
    secret = confined.project / "keys.env"
    secret.write_text("old")

    async def main() -> str:
        state = await find_sandbox(confined.project, read_settings(confined.project))
        place = place_of(None, confined.project)
        async with asyncio.TaskGroup() as group:
            sandboxes = SharedSandboxes(group)

            async def read(text: str) -> bytes:
                asked = Command(text, place, "", sandbox=state.sandbox)
                held = await sandboxes.start(asked, is_merged=True)
                written = await held.streams[0].read()
                await held.is_gone.wait()
                await held.check_repositories()
                return written

            first = group.create_task(read("while [ ! -e go ]; do sleep 0.01; done"))
            meets = await read("cat keys.env")
            (confined.project / "other").write_text("fresh")
            (confined.project / "other").rename(secret)
            replaced = await read("cat keys.env")
            (confined.project / "new.env").write_text("fresh")
            added = await read("cat new.env")
            (confined.project / "go").touch()
            await first
            await sandboxes.end()
        return (meets + replaced + added).decode()

    assert "fresh" not in asyncio.run(main())


def test_commands_with_and_without_network_do_not_meet(play: Player, confined: Machine) -> None:
    """A role without the network has a sandbox of its own, so it reaches no server of one that has it."""
    program = """
role Open { can execute, can web_access, can delegate }
role Closed { can execute }
agent Main : Open {
  uses team T
  on go(args) {
    await this.callAction("shell", { command: args.server, description: "d", until: "Serving" })
    const own = await this.callAction("shell", { command: args.ask, description: "d" })
    return [own.success, (await Other.ask(args)).success]
  }
}
agent Other : Closed { on ask(args) { return await this.callAction("shell", { command: args.ask, description: "d" }) } }
team T { o: Other }
"""
    (confined.project / "page").write_text("hello")
    payload = {"server": f"PYTHONUNBUFFERED=1 {SERVER.replace('8999', '8997')}", "ask": ASK.replace("8999", "8997")}
    played = play(program, [], allow=["shell", "web:**"], folder=confined.project, payload=payload)

    assert [True, False] == played.result


def test_folders_of_koi_in_the_project_are_hidden(confined: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies in the cache is run later, and the configuration says what may be done; so with one to be made."""
    (confined.project / "own/cache").mkdir(parents=True)
    (confined.project / "own/cache/grammar").write_text("of Koi")
    monkeypatch.setenv("KOI_CACHE_DIR", str(confined.project / "own/cache"))
    monkeypatch.setenv("KOI_CONFIG_DIR", str(confined.project / "own/config"))
    code, output = start(
        confined, "ls -A own/cache; echo x > own/cache/grammar; mkdir -p own/config; echo x > own/config/y"
    )

    assert code != 0
    assert "grammar\n" not in output
    assert "of Koi" == (confined.project / "own/cache/grammar").read_text()
    assert [] == os.listdir(confined.project / "own/config")
