"""Followers that say nonsense, vanish, read nothing or are no friends; runs that compute, or are killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest

from koi_lang.service.live import addresses
from tests.forks import CHECKOUT
from tests.limits import LIMIT_S
from tests.live.following import (
    Follower,
    at_terminal,
    following,
    journal_numbers,
    let_go,
    program,
    question,
    socket_of,
    sockets,
    started,
    wait_for,
)
from tests.projects import Project

WORKS = "run a.koi --allow shell".split()
NONSENSE = (
    b"\n",
    b"nonsense\n",
    b"\xff\xfe\n",
    b"[1]\n",
    b'{"type":1}\n',
    b'{"type":"followw"}\n',
    b"[" * 5000 + b"\n",
)
WRONG = (
    ("follow", {"since": "x"}),
    ("follow", {"since": -1}),
    ("follow", {"answers": 1}),
    ("new_session", {}),
    ("prompt", {"message": "hi"}),
    ("answer", {"request": "request-9", "answer": "x"}),
    ("steer", {"message": " "}),
    ("get_entries", {"limit": 0}),
)


def waiting(project: Project, behind: str = "") -> None:
    """A program that waits until a test lets it go."""
    project.write("a.koi", program(f'console.log("one"); {wait_for(project)}; {behind}; console.log("two")'))


@pytest.mark.thorough
def test_nonsense_is_answered_and_harms_nobody(project: Project) -> None:
    """Each line gets a refusal; whoever follows beside is told all."""
    waiting(project)
    with started(project, *WORKS) as run, following(project) as other:
        client = Follower(socket_of(project))
        for line in NONSENSE:
            client.socket.sendall(line)
        codes = [client.until("response")["error_code"] for _ in NONSENSE[1:]]
        codes += [client.ask(command, **fields)["error_code"] for command, fields in WRONG]
        client.socket.sendall(b'{"type":"get_sta')
        client.close()
        let_go(project)
        other.to_end()

        assert 0 == run.wait()
    assert {"parse_error", "invalid_request", "unknown_command", "unknown_request"} == set(codes)
    assert journal_numbers(project) == other.entries()


def test_forty_follow_at_once(project: Project) -> None:
    """Each is told everything once, however they come and go; some are killed in the middle."""
    waiting(project, behind='for (let i = 0; i < 200; i++) { console.log("line " + i) }')
    script = "import sys, time; from tests.live.following import Follower; from pathlib import Path\n"
    script += "each = Follower(Path(sys.argv[1])); each.follow(); print('here', flush=True); time.sleep(60)"
    with started(project, *WORKS) as run:
        path = socket_of(project)
        killed = [
            subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, env=project.environment)
            for _ in range(2)
        ]
        followers = [Follower(path) for _ in range(40)]
        for each in followers:
            each.follow()
        for process in killed:
            assert process.stdout is not None
            process.stdout.readline()
        let_go(project)
        for process in killed:
            process.kill()
            process.communicate()
        for each in followers:
            each.to_end()
            each.close()
        assert 0 == run.wait()

    assert [journal_numbers(project)] * 40 == [each.entries() for each in followers]


def test_who_reads_nothing_is_cut_off(project: Project) -> None:
    """Behind 8 MB; the run is not slower for that, and others are told all."""
    many = 'const text = "x".repeat(100000); for (let i = 0; i < 150; i++) { console.log(text + i) }'
    waiting(project, behind=f'{many}; console.log("three"); {wait_for(project, "end")}')
    with started(project, *WORKS) as run:
        assert run.stdout is not None
        with following(project) as slow, following(project) as quick:
            quick.until("printed")
            slow.until("printed")
            reading = threading.Thread(target=quick.to_end)
            reading.start()
            let_go(project)
            while "three" not in run.stdout.readline():
                pass
            slow.to_end()
            let_go(project, "end")
            reading.join()

    assert journal_numbers(project) == quick.entries()
    assert ("cut_off", True) == (slow.seen[-1]["type"], len(slow.entries()) < len(quick.entries()))


def test_a_program_that_computes_is_followed_and_aborted(project: Project) -> None:
    """What it prints comes while it computes; `abort` ends it although it waits for nothing."""
    project.write("a.koi", program('let i = 0; while (true) { i++; if (i % 200000 == 0) { console.log("at " + i) } }'))
    with started(project, "run", "a.koi") as run, following(project) as client:
        client.until("printed")
        client.send("abort")
        client.to_end()
        out, err = run.communicate(timeout=LIMIT_S)

    assert 130 == run.returncode
    assert "the run was aborted" in err
    assert "at 200000" in out


def test_a_killed_run_leaves_a_socket_that_is_recognised(project: Project) -> None:
    """Connecting is refused; `koi runs attach` says so, and the next run of the folder removes it."""
    project.write("a.koi", program(question("Name?")))
    with at_terminal(project, "run", "a.koi") as terminal:
        terminal.expect_exact("Name?")
        path = socket_of(project)
        terminal.kill(signal.SIGKILL)
        # Until nobody holds the terminal, so that none is told that it goes away; `expect` looks at one process alone.
        with suppress(OSError):
            while os.read(terminal.child_fd, 1024):
                pass
    end = time.monotonic() + LIMIT_S
    while True:
        try:
            addresses.connect(path).close()
        except ConnectionRefusedError:
            break
        assert time.monotonic() < end

    assert [path] == sockets(project)
    assert "does not work any more (interrupted)" in project.koi("runs", "attach", path.stem).stderr
    project.write("b.koi", program('console.log("one")'))
    assert 0 == project.koi("run", "b.koi").returncode
    assert [] == sockets(project)


OWN = """
    import os, sys
    from pathlib import Path
    from koi_lang.service.live.addresses import connect

    connection = connect(next(Path(".koi/live").glob("*.sock")))
    print(connection.makefile().readline())
    """
CONTAINER = "unshare --user --map-root-user --pid --fork --mount-proc --kill-child".split()


def own_command(project: Project) -> None:
    """A program whose command connects to the socket of the run, and that prints what it hears."""
    project.write("own.py", OWN)
    command = f"PYTHONPATH={CHECKOUT} {sys.executable} own.py"
    ask = f'await callAction("shell", {{ command: {json.dumps(command)}, description: "to test" }})'
    project.write("a.koi", program(f"console.log(JSON.stringify({ask}))"))
    project.write("koi.toml", '[shell]\nsandbox = "none"\n')


def test_a_command_of_the_run_may_not_answer_for_the_person(project: Project) -> None:
    """What agents start must not allow what agents want."""
    own_command(project)

    assert "a command of the run itself may not follow it" in project.koi(*WORKS).stdout


def test_a_command_in_a_container_may_not_answer_for_the_person(project: Project) -> None:
    """There the run is often process 1."""
    if shutil.which("unshare") is None or subprocess.run([*CONTAINER, "true"], capture_output=True).returncode != 0:
        pytest.skip("NAMESPACES ARE MISSING: runs in containers are not tested")
    own_command(project)
    run = [*CONTAINER, sys.executable, "-m", "koi_lang", *WORKS]
    environment = {**project.environment, "PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run(run, cwd=project.folder, env=environment, capture_output=True, text=True)

    assert "a command of the run itself may not follow it" in done.stdout, done.stderr


def test_processes_of_the_run() -> None:
    """Its own, those that have ended since, and those that are not shown; not those that it was begun by."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, text=True) as child:
        is_own = addresses.is_descendant(child.pid)
        child.communicate("\n")

    assert is_own
    assert addresses.is_descendant(child.pid)
    assert addresses.is_descendant(0)
    assert not addresses.is_descendant(os.getppid())
    assert not addresses.is_descendant(1)


def test_long_paths_have_sockets_too(project: Project) -> None:
    """Although systems take some hundred bytes only."""
    folder = project.folder / ("x" * 100) / ("y" * 100)
    folder.mkdir(parents=True)
    deep = Project(folder)
    waiting(deep)
    with started(deep, *WORKS), following(deep) as client:
        client.until("printed")
        let_go(deep)
        client.to_end()

    assert journal_numbers(deep) == client.entries()


@pytest.mark.parametrize("how", ["file", "link", "taken"])
def test_a_folder_that_takes_no_socket(project: Project, how: str) -> None:
    """The run goes on without one, and says nothing; nothing elsewhere is touched."""
    live, elsewhere = project.folder / ".koi" / "live", project.folder / "elsewhere"
    live.parent.mkdir()
    elsewhere.mkdir(mode=0o755)
    if how == "file":
        live.write_text("mine")
    elif how == "link":
        live.symlink_to(elsewhere)
    else:
        live.mkdir(mode=0o500)
    project.write("a.koi", program('console.log("one")'))

    outcome = project.koi("run", "a.koi")

    assert (0, "one\n", "") == (outcome.returncode, outcome.stdout, outcome.stderr)
    assert ([], 0o755) == (os.listdir(elsewhere), elsewhere.stat().st_mode & 0o777)


def test_a_socket_of_something_else_is_not_trusted(project: Project) -> None:
    """A file, or a link, in the place of a socket is nobody to talk to."""
    path = addresses.socket_path(project.folder, "f00d")
    path.parent.mkdir(parents=True)
    path.write_text("no socket")

    with pytest.raises(addresses.ForeignSocketError):
        addresses.connect(path)
    assert (False, False) == (addresses.remove_if_stale(path), addresses.is_there(path))
