"""Going back in recorded runs: the same place is the same, whichever way one has come."""

from __future__ import annotations

import random

import pytest

from tests.dap.client import Client, debugging
from tests.dap.programs import record, write_team
from tests.projects import Project

ACTION = "Counter.count: "
PARALLEL = """
    role Boss { can execute, can delegate }
    role Worker { can execute }

    agent Lead : Boss {
      uses team Crew
      state { done: number = 0 }
      on start(args: { texts: string[] }) {
        const counted = await Promise.all(args.texts.map(async text => {
          const one = await send peers.event("count").role(Worker).any()({ text })
          this.state.done += 1
          return one.words
        }))
        let total = 0
        for (const words of counted) {
          total += twice(words)
        }
        return total
      }
    }

    agent Counter : Worker {
      on count(args: { text: string }): { words: number } {
        playbook \"\"\"
          Count the words of ${args.text}.
          Return { words }.
        \"\"\"
      }
    }

    skill Parts {
      export function twice(n: number): number {
        const result = n * 2
        return result
      }
    }

    team Crew { counter = Counter }

    run Lead.start({ texts: ["one", "two words", "and three words"] })
    """


def test_one_steps_back(project: Project) -> None:
    """A step back leads to the line before, with the values of then; out of a call to its caller; and forward again."""
    path = write_team(project)
    run = record(project)

    with debugging(project, run) as client:
        client.launch({path: [16]})
        assert client.stop() == "breakpoint 16 Lead.report"
        assert client.variables() == {
            "this": "{ name: 'Lead', role: 'Boss', state: { words: 5 } }", "args": "{ words: 5 }", "many": "true",
        }  # fmt: skip
        assert client.go("stepBack") == "step 15 Lead.report"
        assert "many" not in client.variables()
        assert client.go("stepBack") == "step 11 Lead.start"
        assert client.go("stepBack") == "step 10 Lead.start"
        assert client.go("stepBack") == "step 9 Lead.start"
        assert "words: 0" in client.variables()["this"]
        assert client.go("stepBack") == "step 8 Lead.start"
        assert client.go("stepIn") == f"step 22 {ACTION}print"
        assert client.go("next") == f"step 22 {ACTION}return"
        assert client.go("stepBack") == f"step 22 {ACTION}print"
        assert client.go() == "breakpoint 16 Lead.report"


def test_one_goes_back_to_a_breakpoint_that_was_set_since(project: Project) -> None:
    """Backwards, breakpoints stop as they do forwards, also those that nobody has come by."""
    path = write_team(project)
    run = record(project)

    with debugging(project, run) as client:
        client.launch({path: [16]})
        assert client.stop() == "breakpoint 16 Lead.report"
        client.set_breakpoints(path, {"line": 22, "condition": 'action == "print"'}, 9)
        assert client.go("reverseContinue") == "step 9 Lead.start"


def test_one_goes_back_to_the_beginning(project: Project) -> None:
    """It stops where no breakpoint does, and from there the run goes forward again."""
    path = write_team(project)
    run = record(project)

    with debugging(project, run) as client:
        client.launch({path: [{"line": 22, "condition": 'action == "print"'}, 16]})
        assert client.stop() == f"breakpoint 22 {ACTION}print"
        assert client.go() == "breakpoint 16 Lead.report"
        assert client.go("reverseContinue") == f"step 22 {ACTION}print"
        assert client.go("reverseContinue") == "step 31 run"
        assert client.go() == f"breakpoint 22 {ACTION}print"


def test_a_call_is_begun_again(project: Project) -> None:
    """`restartFrame` leads to the first line of a call on the stack."""
    path = write_team(project)
    run = record(project)

    with debugging(project, run) as client:
        client.launch({path: [16]})
        client.stop()
        frames = client.stack()
        assert client.go("restartFrame", frameId=frames[1]["id"]) == "step 8 Lead.start"


def test_nothing_is_shown_or_done_twice(project: Project) -> None:
    """What the program has printed is not printed again when one has gone back; no journal is written."""
    path = write_team(project)
    run = record(project)

    with debugging(project, run) as client:
        client.launch({path: [15]})
        client.stop()
        client.go("reverseContinue")
        assert client.go() == "breakpoint 15 Lead.report"
        assert client.go() == "step 31 run"
        assert client.output() == "counting\n5 words\n"
        assert client.go("stepBack") == "step 31 run"
        assert client.go() == "breakpoint 15 Lead.report"
        assert client.go() == "step 31 run"
        assert client.go() == "terminated"
    assert [f"{run}.jsonl"] == [path.name for path in (project.folder / ".koi" / "runs").glob("*.jsonl")]


def test_only_recorded_runs_go_back(project: Project) -> None:
    """A client is told whether it can go back, before the run begins where it was named then, else as soon as it is."""
    write_team(project)
    run = record(project)

    with debugging(project, "team.koi") as client:
        assert client.request("initialize")["supportsStepBack"] is False
    with debugging(project, run) as client:
        assert client.request("initialize")["supportsStepBack"] is True
    with debugging(project) as client:
        client.request("initialize")
        client.request("launch", run=run)
        assert client.event("capabilities")["body"]["capabilities"]["supportsStepBack"] is True


WAYS = ("next", "stepIn", "stepOut", "continue", "stepBack", "stepBack", "reverseContinue")


def place_of(client: Client) -> str:
    """Where the program is: the levels of its stack and where each is in the run."""
    return str(client.request("koi/place"))


def seen_at(client: Client) -> list[dict[str, str]]:
    """What all levels of the stack show."""
    return [client.variables(level) for level in range(len(client.stack()))]


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(20))
def test_random_walks_see_the_same_at_the_same_place(project: Project, seed: int) -> None:
    """Forward and back at random, some walks in a session: a place has the variables that it had before."""
    walk = random.Random(seed)
    path = write_team(project, *[[{"intent": "return", "data": {"words": n}}] for n in (1, 2, 3)], text=PARALLEL)
    run = record(project)
    known: dict[str, list[dict[str, str]]] = {}
    met = 0

    with debugging(project, run) as client:
        client.launch({path: [11, 15, 22]}, stopOnEntry=True)
        client.stop()
        for _ in range(5):
            for _ in range(walk.randrange(3, 7)):
                place, seen = place_of(client), seen_at(client)
                met += place in known
                assert known.setdefault(place, seen) == seen
                is_end = "'end'" in place
                assert client.go("stepBack" if is_end else walk.choice(WAYS)) != "terminated"
    assert met, "no walk has come to a place again"
