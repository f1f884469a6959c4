"""Changes of the registry are carried out once, also by runs that are killed between a change and its entry."""

from __future__ import annotations

import json
import signal
from itertools import groupby

import pytest

from koi_lang.runtime.journal import store
from tests.projects import Project

PROGRAM = '''
    role R { can execute, can registry:write, can registry:read }
    agent Main : R {
      on go(x: Json) {
        await registry.set("mail", "to Ada")
        if (await registry.delete("mail")) console.log("sent")
        console.log(await registry.delete("mail"))
        await registry.set("a", 1)
        await registry.set("b", 2)
        console.log(await Promise.all([registry.delete("a"), registry.has("b"), registry.delete("c")]))
        await registry.set("c", 3)
        console.log(await registry.clear(), await registry.keys())
        await registry.set("last", await registry.clear())
      }
    }
    agent Model : R { on go(x: Json) { playbook """Tidy up.""" } }
    run Main.go({})
    run Model.go({})
    '''
ANSWERS = [
    {
        "batch": [
            {"intent": "registry_set", "key": "old", "value": 1},
            {"id": "d", "intent": "registry_delete", "key": "old"},
            {"id": "e", "intent": "registry_delete", "key": "old"},
            {"intent": "print", "message": "${d.output.deleted} ${e.output.deleted}"},
            {"intent": "return", "data": {}},
        ]
    }
]
# A case takes every fourth entry.
STEP = 8
PRINTED = ["sent", "false", "[ true, true, false ]", "2 []", "true false"]


@pytest.fixture
def tidying(project: Project) -> Project:
    """A program that changes the registry in every way."""
    project.write("main.koi", PROGRAM)
    project.write("answers.json", json.dumps(ANSWERS))
    return project


@pytest.mark.sampled(1)
@pytest.mark.parametrize("first", range(2, 2 + STEP))
@pytest.mark.parametrize("when", ["after", "before"])
def test_a_run_killed_around_any_change_is_resumed(tidying: Project, when: str, first: int) -> None:
    """Wherever it is killed, the resumed run prints what a whole one prints and leaves the same behind."""
    done = tidying.fork("-m", "tests.journal.killing", str(first), str(STEP), when)
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]

    assert len(outcomes) > 40 // STEP, done.stderr
    for outcome in outcomes:
        has_ended = not outcome["killed"] or "has ended well" in outcome["err"]
        assert has_ended or (-signal.SIGKILL, 0) == (outcome["killed"], outcome["resumed"]), outcome
        out = outcome["out"].splitlines()
        # A line whose entry was not written yet is shown again.
        assert PRINTED == out or (when == "before" and PRINTED == [line for line, _ in groupby(out)]), outcome
        assert [["last", "0"]] == [entry[2:] for entry in outcome["registry"]["entries"]], outcome
        assert [] == outcome["registry"]["idempotency_keys"], outcome


MEMORY = """
    role R { can execute, can registry:write, can registry:read }
    agent Main : R {
      on go(x: Json) {
        await registry.set("a", 1)
        await registry.set("b", 2)
        await registry.delete("a")
        await this.callAction("registry_set", { key: "c", value: 3 })
        await this.callAction("shell", { command: "test -e go || kill -9 $PPID", description: "die" })
        console.log(await registry.keys(), await registry.get("b"))
      }
    }
    agent Model : R { on go(x: Json) { playbook \"\"\"Keep something.\"\"\" } }
    run Model.go({})
    run Main.go({})
    """
KEEPING = [
    {"intent": "registry_set", "key": "d", "value": 4},
    {"intent": "registry_set", "key": "e", "value": 5},
    {"intent": "registry_delete", "key": "d"},
    {"intent": "return", "data": {}},
]


def test_entries_in_memory_are_there_again(project: Project) -> None:
    """A registry that no file holds is filled again when a run goes on in another process."""
    project.write(".koi-config.json", '{"registry": {"backend": "memory"}}')
    project.write("main.koi", MEMORY)
    project.write("answers.json", json.dumps([{"batch": KEEPING}]))
    words = ("run", "--quiet", "--allow", "shell", "--answers", "answers.json", "main.koi")
    killed = project.koi(*words)
    project.write("go", "")
    done = project.koi("resume", "--quiet", "--on-doubt", "retry")

    assert (-signal.SIGKILL, "[ 'e', 'b', 'c' ] 2\n") == (killed.returncode, done.stdout)
    assert "nothing is different" in project.koi("replay", "last").stderr


def test_another_run_is_not_overwritten(project: Project) -> None:
    """What was set by a run that was killed right then is not set once more when somebody has changed it since."""
    source = """
        role R { can execute, can registry:write, can registry:read }
        agent Main : R { on go(x: Json) { await registry.set("k", "FIRST"); console.log(await registry.get("k")) } }
        run Main.go({})
        """
    project.write("other.koi", source.replace("FIRST", "second"))
    project.write("main.koi", source)
    script = project.write("killed.py", KILLED)
    killed = project.fork(str(script), "run", "--quiet", "main.koi")
    assert (-signal.SIGKILL, "second\n") == (killed.returncode, project.koi("run", "other.koi").stdout)
    run = next(path.stem for path in store.journals(project.folder) if b"main.koi" in path.read_bytes())

    assert "second\n" == project.koi("resume", "--quiet", run).stdout


KILLED = """
    import sys
    from tests.journal.killing import kill_before
    from koi_lang.cli import main
    kill_before(4)
    sys.argv[0] = "koi"
    main()
    """
