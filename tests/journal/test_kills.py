"""Runs that are killed at every entry boundary of their journal end as if nothing had happened."""

from __future__ import annotations

import json
import signal
from collections import Counter
from typing import Any

import pytest

from tests.journal.killing import RUN
from tests.projects import Project

SLICES = 42
PROGRAM = '''
    import effects from "./effects.py"
    role Boss { can delegate, can execute, can registry:write, can registry:read }
    team Outer { north: North, south: South }
    team Inner { writer: Writer, counter: Counter }
    agent Writer : Boss { on write(args: { n: number }) {
      effects.leave("writer " + args.n)
      console.log("writer", args.n, typeof Date.now(), Math.random() < 1)
      return { written: args.n }
    } }
    agent Counter : Boss {
      state { total = 0 }
      on count(args: { n: number }) {
        this.state.total += args.n
        await registry.set("total:" + args.n, this.state.total)
        await new Promise(done => setTimeout(done, args.n))
        return { total: await registry.get("total:" + args.n) }
      }
    }
    agent North : Boss { uses team Inner  on work(args: Json) { playbook """North side of {{args.job}}.""" } }
    agent South : Boss { uses team Inner  on work(args: Json) { playbook """South side of {{args.job}}.""" } }
    agent Lead : Boss {
      uses team Outer
      on start(args: Json) { playbook """Lead both sides.""" }
    }
    run Lead.start({})
    '''
EFFECTS = """
    def leave(text):
        with open("effects", "a") as file:
            file.write(text + "\\n")
        return len(text)
    """


def delegate(intent: str, **data: Any) -> dict[str, Any]:
    """An action for a team member."""
    return {"actionType": "delegate", "intent": intent, "data": data}


def shell(text: str) -> dict[str, Any]:
    """An action that leaves a line outside of the process."""
    return {"intent": "shell", "command": f"echo {text} >> effects", "description": "leave a line"}


def side(name: str, first: int) -> list[Any]:
    """The answers for one side: four delegates at the same time, then an effect of its own."""
    four = [delegate("writer::write", n=first), delegate("counter::count", n=first + 1)]
    four += [delegate("writer::write", n=first + 2), delegate("counter::count", n=first + 3)]
    return [
        {"batch": [{"parallel": four}, shell(name)]},
        {
            "batch": [
                {"id": "t", "intent": "registry_get", "key": f"total:{first + 3}"},
                {"intent": "print", "message": f"{name} ${{t.output.found}}"},
            ]
        },
        {"intent": "return", "data": {"side": name}},
    ]


ANSWERS = {
    "North side": side("north", 1),
    "South side": side("south", 5),
    "Lead both": [
        {
            "batch": [
                {"parallel": [delegate("north::work", job="wall"), delegate("south::work", job="wall")]},
                shell("lead"),
            ]
        },
        {"batch": [{"intent": "print", "message": "both sides done"}, {"intent": "return", "data": {"ok": True}}]},
    ],
}


@pytest.fixture
def building(project: Project) -> Project:
    """The program, its effects, and the answers of its model."""
    project.write("main.koi", PROGRAM)
    project.write("effects.py", EFFECTS)
    project.write("answers.json", json.dumps(ANSWERS))
    return project


@pytest.mark.sampled(1)
@pytest.mark.parametrize("first", range(1, SLICES + 1))
def test_a_run_killed_at_any_entry_is_resumed(building: Project, first: int) -> None:
    """The output is that of a run that was not killed, and every effect took place once, but for those in doubt."""
    whole = building.koi(*RUN)
    expected, effects = (
        sorted(whole.stdout.splitlines()),
        Counter((building.folder / "effects").read_text().splitlines()),
    )
    (building.folder / "effects").unlink()
    done = building.fork("-m", "tests.journal.killing", str(first), str(SLICES))
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]

    assert (7, 7) == (sum(effects.values()), len(expected)), whole.stderr
    assert len(outcomes) > 1, done.stderr
    for outcome in outcomes:
        told = (outcome["lines"], outcome["err"])
        has_ended = not outcome["killed"] or "has ended well" in outcome["err"]
        assert has_ended or (-signal.SIGKILL, 0) == (outcome["killed"], outcome["resumed"]), told
        assert expected == sorted(outcome["out"].splitlines()), told
        twice = Counter(outcome["effects"].splitlines()) - effects
        assert Counter() == effects - Counter(outcome["effects"].splitlines()), told
        assert all(count == 1 and in_doubt(effect, outcome["err"]) for effect, count in twice.items()), told


def in_doubt(effect: str, told: str) -> bool:
    """Whether the person was told that an effect may have taken place."""
    return any("its end is not known" in line and effect in line for line in told.splitlines())
