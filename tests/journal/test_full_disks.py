"""Runs whose journal cannot be written any more: they end before the next unsafe effect, and go on later."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from koi_lang.runtime.journal import store
from koi_lang.runtime.journal.reader import read
from tests.projects import Project

COUNT = 60
CODE = f"""
    import effects from "./effects.py"
    role R {{ can execute }}
    agent Main : R {{
      on go(x: Json) {{
        for (let n = 0; n < {COUNT}; n++) {{
          BODY
        }}
        console.log("done")
      }}
    }}
    run Main.go({{}})
    """
EFFECTS = """
    def leave(n):
        with open("effects", "a") as file:
            file.write(f"{n}\\n")

    async def leave_later(n):
        leave(n)
    """
BODIES = {
    "python": "effects.leave(n)",
    "waiting": "await effects.leave_later(n)",
    "shell": 'await this.callAction("shell", { command: "echo " + n + " >> effects", description: "leave" })',
    "together": "await Promise.all([effects.leave_later(n), effects.leave_later(n + 0.5)])",
}
LIMITED = """
    import resource, sys
    from koi_lang.cli import main
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)), resource.RLIM_INFINITY))
    sys.argv[0] = "koi"
    main()
    """


@pytest.fixture
def leaving(project: Project) -> Project:
    """A folder with what leaves effects."""
    project.write("effects.py", EFFECTS)
    return project


def limited(project: Project, size: int) -> subprocess.CompletedProcess[str]:
    """The outcome of a run whose files cannot grow beyond a size."""
    script = project.write("limited.py", LIMITED)
    return project.fork(str(script), str(size), "run", "--quiet", "--allow", "shell", "main.koi")


def left(project: Project) -> list[float]:
    """The effects that took place, in their order."""
    path = project.folder / "effects"
    return [float(line) for line in path.read_text().split()] if path.exists() else []


@pytest.mark.sampled(3)
@pytest.mark.parametrize("size", [5000, 9001, 12003])
@pytest.mark.parametrize("way", list(BODIES))
def test_a_run_whose_disk_is_full_goes_on_later(leaving: Project, way: str, size: int) -> None:
    """It fails with one message before the next effect; resumed with room, no effect is missing or took place twice."""
    leaving.write("main.koi", CODE.replace("BODY", BODIES[way]))
    failed = limited(leaving, size)
    (path,) = store.journals(leaving.folder)
    known, before = read(path), left(leaving)
    done = leaving.koi("resume", "--quiet", "--on-doubt", "retry")

    told = "error: the journal cannot be written any more: file too large\n"
    assert (1, "", told) == (failed.returncode, failed.stdout, failed.stderr[: len(told)])
    assert failed.stderr.count("\n") == 2
    assert 0 < len(before) < COUNT
    # What a command may change is told between its beginning and the command itself.
    not_done = sum(entry.kind == "begun" for entry in known.entries) - len(before)
    assert not_done in ((0, 1) if way == "shell" else (0,))
    assert ((), b"") == (known.faults, known.torn)
    every = [n + part for n in range(COUNT) for part in ((0, 0.5) if way == "together" else (0,))]
    twice = len(left(leaving)) - len(every)
    assert (0, "done\n", every) == (done.returncode, done.stdout, sorted(set(left(leaving))))
    assert twice + not_done == sum("its end is not known" in line for line in done.stderr.splitlines())


def test_a_real_disk_that_is_full(leaving: Project) -> None:
    """A small file system of its own for the journals fills up; what was written there goes on elsewhere."""
    leaving.write("main.koi", CODE.replace("BODY", BODIES["shell"]))
    koi = f"{sys.executable} -m koi_lang"
    script = f"""
        mkdir -p .koi/runs kept && mount -t tmpfs -o size=16k tmpfs .koi/runs || exit 77
        {koi} run --quiet --allow shell main.koi; code=$?
        cp .koi/runs/*.jsonl kept/; exit $code
        """
    failed = leaving.run("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script)
    if failed.returncode == 77 or "unshare" in failed.stderr:
        pytest.skip("file systems cannot be mounted here")
    (saved,) = (leaving.folder / "kept").iterdir()
    saved.rename(leaving.folder / ".koi" / "runs" / saved.name)
    done = leaving.koi("resume", "--quiet", "--on-doubt", "retry")

    told = "error: the journal cannot be written any more: no space left on device\n"
    assert (1, told) == (failed.returncode, failed.stderr[: len(told)])
    assert (0, "done\n") == (done.returncode, done.stdout)
    twice = sum("its end is not known" in line for line in done.stderr.splitlines())
    assert (COUNT + twice, COUNT) == (len(left(leaving)), len(set(left(leaving))))


def test_a_journal_that_was_removed_ends_the_run(leaving: Project) -> None:
    """A run that removes its own journal does nothing unsafe after that."""
    leaving.write("main.koi", CODE.replace("BODY", "effects.leave(n); if (n == 3) { effects.remove() }"))
    with (leaving.folder / "effects.py").open("a") as file:
        file.write('\ndef remove():\n    import glob, os\n    os.unlink(glob.glob(".koi/runs/*.jsonl")[0])\n')
    done = leaving.koi("run", "--quiet", "main.koi")

    assert (1, [0, 1, 2, 3]) == (done.returncode, left(leaving))
    assert "was removed while it was written" in done.stderr


def test_a_playbook_ends_as_code_does(project: Project) -> None:
    """A model's actions are not begun either, also those beside each other."""
    steps = [
        {"intent": "shell", "command": f"echo {n} >> effects; sleep 0.01", "description": "leave"} for n in range(40)
    ]
    project.write("answers.json", json.dumps([{"batch": [{"parallel": steps[n : n + 4]} for n in range(0, 40, 4)]}]))
    playbook = 'role R { can execute }\nagent A : R { on go(x: Json) { playbook """Leave.""" } }\nrun A.go({})\n'
    script = project.write("limited.py", LIMITED)
    project.write("main.koi", playbook)
    words = ("run", "--quiet", "--allow", "shell", "--answers", "answers.json", "main.koi")
    done = project.fork(str(script), "14000", *words)

    assert (1, True) == (done.returncode, "the journal cannot be written any more" in done.stderr)
    (path,) = store.journals(project.folder)
    begun = {entry.data["fields"]["command"][5:7].strip() for entry in read(path).entries if entry.kind == "begun"}
    assert {f"{n:g}" for n in left(project)} <= begun


def test_a_session_that_cannot_be_recorded_any_more_ends(project: Project) -> None:
    """A client is told why its session is over."""
    source = "role R { can execute }\nagent A : R { on go(x: Json) { console.log('x'.repeat(4000)); return 1 } }\n"
    project.write("main.koi", source)
    script = project.write("limited.py", LIMITED)
    call = json.dumps({"type": "run_playbook", "name": "A.go"})
    done = project.fork(str(script), "3000", "rpc", "main.koi", stdin=f"{call}\n")

    messages = [json.loads(line) for line in done.stdout.splitlines()]
    assert ["the journal cannot be written any more: file too large"] == [
        message["error"] for message in messages if message["type"] == "session_failed"
    ]


def test_a_recording_that_cannot_be_written_is_kept(project: Project) -> None:
    """`koi test --update` on a full disk leaves the recording as it is, and says why the test fails."""
    source = 'role R { can execute }\nagent A : R { on go(x: Json) { console.log("one") } }\nrun A.go({})\n'
    project.write("main.koi", source)
    assert 0 == project.koi("run", "main.koi").returncode
    assert 0 == project.koi("runs", "export", "last", "-o", "tests/one.jsonl").returncode
    before = Path(project.folder / "tests" / "one.jsonl").read_bytes()
    project.write("main.koi", source.replace("one", "two" * 400))
    script = project.write("limited.py", LIMITED)
    done = project.fork(str(script), str(len(before) + 10), "test", "--update", "-j", "1")

    assert 1 == done.returncode
    assert "cannot be written any more" in done.stdout + done.stderr
    assert before == Path(project.folder / "tests" / "one.jsonl").read_bytes()
