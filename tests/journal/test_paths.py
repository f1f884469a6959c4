"""Paths say where in a run something happened, however long things take."""

from __future__ import annotations

import pytest

from koi_lang.runtime.replay.location import MAX_TRAIL, branch, current_path, enter, enter_run, leave_run
from tests.playbook.playing import Played, Player, act, ask, done

PAUSE = "await new Promise(done => setTimeout(done, Math.random() * 3))"
PROGRAM = f"""
role Boss {{ can delegate, can execute }}
agent Worker : Boss {{
  uses team Crew
  on work(args: {{ n: number }}) {{
    {PAUSE}
    await send peers.event("note").any()({{ n: args.n }})
    setTimeout(() => {{ console.log("later") }}, Math.random() * 3)
    await Promise.all([1, 2, 3].map(async m => {{ {PAUSE}; await send peers.event("note").any()({{ n: m }}) }}))
  }}
}}
agent Clerk : Boss {{ on note(args: {{ n: number }}) {{ {PAUSE}; console.log(args.n) }} }}
team Crew {{ worker: Worker, clerk: Clerk }}
agent Main : Boss {{
  uses team Crew
  on go(args) {{ playbook "Let others work." }}
}}
"""
RETRYING = """
role Boss { can delegate, can execute }
agent Main : Boss {
  uses team Crew
  state { tries = 0 }
  resilience "go" { retry_max_attempts = 2 }
  on go(args) {
    this.state.tries += 1
    for (let n = this.state.tries; n <= 3; n++) { await send peers.event("note").any()({}) }
    if (this.state.tries < 2) { throw new Error("again") }
  }
}
agent Clerk : Boss { on note(args) { } }
team Crew { clerk: Clerk }
"""
ANSWER = {
    "batch": [
        {"parallel": [ask("worker::work", {"n": n}) for n in (1, 2)]},
        ask("worker::work", {"n": 3}),
        act("repeat", count=2, actions=[act("print", message="again")]),
        done(),
    ]
}


def paths_of(played: Played) -> list[tuple[str, tuple[str, ...]]]:
    """Type and path of every event, in an order of their own."""
    assert played.error is None
    return sorted((event.type, event.path) for event in played.events)


@pytest.mark.parametrize("count", [20, pytest.param(200, marks=pytest.mark.thorough)])
def test_paths_do_not_depend_on_time(play: Player, count: int) -> None:
    """Many runs with random pauses in parallel branches, timers and promises have the same paths."""
    runs = [paths_of(play(PROGRAM, [ANSWER])) for _ in range(count)]
    orders = {tuple(path for _, path in run) for run in runs}

    assert len(orders) == 1
    assert ("printed", ("Main.go#1", "repeat#1", "print#2", "printed#1")) in runs[0]


def test_every_action_and_request_has_a_path_of_its_own(play: Player) -> None:
    """No two actions, handler calls or requests of a run share a path."""
    found = [path for type, path in paths_of(play(PROGRAM, [ANSWER])) if type.endswith(("_started", "_asked"))]

    assert len(found) == len(set(found))


def test_an_attempt_counts_anew(play: Player) -> None:
    """With `resilience`, how far the first attempt came does not change the paths of the second one."""
    found = [path for type, path in paths_of(play(RETRYING, [])) if type == "handler_started" and len(path) > 1]

    first = [("Main.go#1", "attempt#1", f"Clerk.note#{n}") for n in (1, 2, 3)]
    second = [("Main.go#1", "attempt#2", f"Clerk.note#{n}") for n in (1, 2)]
    assert first + second == found


def test_branches_are_counted_when_they_start() -> None:
    """Work beside the current code has a path of its own, and leaves the counts of its starter alone."""
    token = enter_run()
    with enter("Ada.go"):
        contexts = [branch(), branch()]
        inner = contexts[1].run(branch)
        with enter("print"):
            printing = current_path()
    leave_run(token)

    assert [("Ada.go#1", "~1"), ("Ada.go#1", "~2")] == [context.run(current_path) for context in contexts]
    assert (("Ada.go#1", "~2.1"), ("Ada.go#1", "print#1")) == (inner.run(current_path), printing)


def test_branches_of_branches_stay_short() -> None:
    """A timer that sets the next one again and again does not make paths, or what is kept of them, longer."""
    token = enter_run()
    context, seen = branch(), set()
    for _ in range(1000):
        context = context.run(branch)
        seen.add(context.run(current_path))
    leave_run(token)

    assert 1000 == len(seen)
    assert all(len(path) == 1 and len(path[0]) <= MAX_TRAIL + 1 for path in seen)


def test_outside_of_runs_there_is_no_path() -> None:
    """Without a run nothing is counted."""
    with enter("Ada.go"):
        assert () == branch().run(current_path)
