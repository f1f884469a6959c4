"""Commands of the sessions of a service: what they see of the service, and what they take of the machine."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from koi_lang.service.host import SessionHost
from koi_lang.system.bubblewrap import CommandBounds, Confinement, confined_words
from tests.forks import CHECKOUT
from tests.sandbox.conftest import Machine, installed_bubblewrap
from tests.search_path import original_path
from tests.service.hosting import begin, called, play

PROGRAM = """
    role Worker { can execute }
    agent Main : Worker {
      on go(args: Json) {
        return await this.callAction("shell", { command: args.command, description: "to see" })
      }
    }
    """
MARK = "OF ANOTHER"


@pytest.fixture
def service(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a service, which is in none of the folders that are empty for all commands, and bubblewrap."""
    path = original_path(os.environ)
    installed_bubblewrap(path)
    monkeypatch.setenv("PATH", path)
    with tempfile.TemporaryDirectory(prefix=".koi-test-", dir=CHECKOUT) as folder:
        yield Path(folder)


def output(service: Path, command: str, *, is_shared: bool = False) -> str:
    """What a command of a session writes, beside another session that has a file, or works on the same ones."""
    (service / "a.koi").write_text(PROGRAM)

    async def scenario(host: SessionHost) -> str:
        other, own = await begin(host), await begin(host)
        folder = service if is_shared else own.files
        ((service if is_shared else other.files) / "notes.txt").write_text(MARK)
        await called(own, "Main.go", command=f"({command}) > output 2>&1")
        return (folder / "output").read_text()

    return str(play(service, scenario, "a.koi", allow=["shell"], shared=["a"] if is_shared else []))


def test_a_session_sees_nothing_of_the_service(service: Path) -> None:
    """No file of another session, no journal, no settings and no database."""
    (service / ".env").write_text(MARK)
    (service / "koi.toml").write_text(f"# {MARK}\n")
    looks = f"grep -rl '{MARK}' {service}; ls -A {service} ../.. ../../..; cat ../../*/files/*"
    lines = {line.strip() for line in output(service, looks).splitlines()}

    assert not {"a.koi", ".env", "koi.toml", "service.sqlite", "runs", MARK} & lines
    assert not [line for line in lines if line.endswith(("notes.txt", "/.env", "koi.toml"))]


@pytest.mark.parametrize("is_shared", [False, True])
def test_commands_of_sessions_are_bounded(service: Path, is_shared: bool) -> None:
    """Memory, files, the folders that are their own, and namespaces; also where all sessions work on one folder."""
    text = output(
        service,
        "ulimit -d; ulimit -f; for folder in /tmp /dev/shm; do df --output=size $folder | tail -1; done; "
        "echo x > /dev/x; unshare -Ur true",
        is_shared=is_shared,
    )
    memory, file, *folders = [int(line) for line in text.splitlines()[:4]]

    assert (4 << 20, 2 << 20, [256 << 10] * 2) == (memory, file, folders)
    assert "Read-only file system" in text
    assert "unshare failed" in text


def confined(project: Path, bounds: CommandBounds, text: str) -> str:
    """What a bounded command writes in bubblewrap."""
    program = installed_bubblewrap(original_path(os.environ))
    confinement = Confinement(str(project), str(project), empty=["/tmp"], bounds=bounds)
    words = confined_words(program, confinement, ("sh", "-c", text))
    done = subprocess.run(words, capture_output=True, text=True, cwd=project)
    return done.stdout + done.stderr


def test_bounds_hold(service: Path) -> None:
    """Of memory, of a file, and of a folder in memory; a command within them does not notice."""
    bounds = CommandBounds(memory_bytes=200 << 20, processes=50, file_bytes=1 << 20, folder_bytes=2 << 20)
    text = confined(
        service,
        bounds,
        f"{sys.executable} -IS -c 'bytearray(300 << 20)' 2>&1 | tail -1; head -c 3000000 /dev/zero > big; "
        "for n in 1 2 3; do head -c 900000 /dev/zero > /tmp/$n || echo full; done; echo well",
    )

    assert "MemoryError" in text
    assert 1 << 20 == (service / "big").stat().st_size
    assert "full" in text
    assert "well" in text
    assert "well\n" == confined(service, CommandBounds(), "echo well")
    assert "well\n" == confined(service, CommandBounds(folder_bytes=None), "echo well")
