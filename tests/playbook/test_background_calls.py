"""Calls in the background: begun by code and by playbooks, awaited, cancelled, and told of when they end."""

from __future__ import annotations

from typing import Any

import pytest

from tests.playbook.playing import Played, Player, act, ask, done

PROGRAM = """
role Lead { can delegate, can execute }
role Worker { can execute }
agent Digger : Worker {
  affordance "Digs."
  on dig(args: { n: number }) {
    await new Promise(done => setTimeout(done, args.n))
    if (args.n == 3) throw new Error("rock")
    console.log("dug", args.n)
    return args.n * 2
  }
}
team Site { digger: Digger }
agent Main : Lead {
  uses team Site
  on go(args) { playbook "Have it dug in the background." }
  on codes() {
    const dig = start peers.event("dig").any()({ n: 20 })
    console.log("goes on", dig.state, dig.id)
    const never = start peers.event("dig").any()({ n: 60000 })
    console.log(await dig, dig.state, await dig)
    console.log(never.cancel(), never.cancel())
    try { await never } catch (error) { console.log(error.message, never.state) }
    const failing = start peers.event("dig").any()({ n: 3 })
    try { await failing } catch (error) { console.log(error.message, failing.state) }
    return await Promise.all([1, 2].map(n => start peers.event("dig").all()({ n })))
  }
  on late() {
    const dig = start peers.event("dig").any()({ n: 60000 }) timeout 10ms
    try { await dig } catch (error) { return error.message }
  }
  on leaves() {
    start peers.event("dig").any()({ n: 3 })
    return "gone"
  }
}
agent Other : Lead { on go(args) { return await this.callAction("await_call", { call: args.id }) } }
"""


def dig(n: int, **fields: Any) -> dict[str, Any]:
    """A delegation in the background."""
    return {**ask("digger::dig", {"n": n}), "background": True, **fields}


def batch(play: Player, *actions: dict[str, Any]) -> Played:
    """A run with some actions in one answer, and one more answer."""
    return play(PROGRAM, [{"batch": list(actions)}, done()])


def test_code_starts_calls(play: Player) -> None:
    """`start` gives a handle at once, with a state; `await` gives the result, as often as it is asked for."""
    played = play(PROGRAM, [], call="Main.codes")

    assert (
        "goes on running c1",
        "dug 20",
        "40 done 40",
        "true false",
        "the call `c2` (`dig`) was cancelled cancelled",
        "rock failed",
        "dug 1",
        "dug 2",
    ) == played.printed
    assert [[2], [4]] == played.result


def test_a_started_call_may_take_so_long(play: Player) -> None:
    """`timeout` ends a call in the background, too."""
    played = play(PROGRAM, [], call="Main.late")

    assert "`Main` got no answer to `dig` within 0.01 s" == played.result


def test_a_failure_that_nobody_awaits_is_one_of_the_run(play: Player) -> None:
    """As that of any promise."""
    with pytest.raises(Exception, match="rock"):
        play(PROGRAM, [], call="Main.leaves")


def test_a_playbook_goes_on_beside_a_call(play: Player) -> None:
    """A delegation in the background gives an id at once, and `await_call` its result."""
    start = dig(20, id="x")
    answers = [
        {"batch": [start, act("await_call", call="c1", data={}, id="y"), done(x="${x.output}", y="${y.output}")]}
    ]
    played = play(PROGRAM, answers)

    assert {"call": "c1", "state": "running"} == played.result["x"]
    assert {"call": "c1", "name": "Digger.dig", "state": "done", "result": 40} == played.result["y"]
    assert "goes on while you work" in played.requests[0].system


def test_background_may_stand_among_the_fields_of_the_payload(play: Player) -> None:
    """Small models write flat fields; a payload that declares such a field keeps it."""
    flat = {"intent": "digger::dig", "n": 1, "background": True}
    declares = PROGRAM.replace("n: number }", "n: number, background?: boolean }")

    assert '"call":"c1"' in batch(play, flat).feedback[1]
    assert '"call":"c1"' in batch(play, ask("digger::dig", {"n": 1, "background": True})).feedback[1]
    for kept in (flat, ask("digger::dig", {"n": 1, "background": True})):
        assert "digger::dig -> 2" in play(declares, [kept, done()]).feedback[1]


def test_the_end_is_told_before_the_next_answer(play: Player) -> None:
    """In one line, once, unless the playbook has asked for the outcome."""
    wait = act("shell", command="sleep 0.2", description="to wait")
    answers = [{"batch": [dig(1), dig(3), dig(2), act("await_call", call="c3"), wait]}, act("list_calls"), done()]
    played = play(PROGRAM, answers, allow=["shell"])

    told = [message.text for message in played.requests[-1].messages if message.text.startswith("Meanwhile")]
    assert [
        "Meanwhile call c1 (`Digger.dig`) has ended; `await_call` gives its result.",
        "Meanwhile call c2 (`Digger.dig`) has failed: rock.",
    ] == told
    assert '"state":"failed"' in played.feedback[-1].replace('": "', '":"')


def test_several_are_awaited_for_some_time(play: Player) -> None:
    """A list of ids gives a list; what goes on after `seconds` is running."""
    waits = act("await_call", call=["c1", "c2"], seconds=0.3, id="y")
    played = play(
        PROGRAM, [{"batch": [dig(1), dig(60000), waits, act("cancel_call", call="c2"), done(y="${y.output}")]}]
    )

    assert ["done", "running"] == [each["state"] for each in played.result["y"]["calls"]]


def test_calls_that_are_none(play: Player) -> None:
    """What is not there, has ended, or belongs to another agent says so."""
    ended = [dig(1), act("await_call", call="c1"), act("cancel_call", call="c1")]

    assert "`Main` has no call `c9` in the background" in batch(play, act("await_call", call="c9")).feedback[1]
    assert "the call `c1` (`Digger.dig`) has ended already: done" in batch(play, *ended).feedback[1]
    assert "`Other` has no call `c1`" in play(PROGRAM, [], call="Other.go", payload={"id": "c1"}).told
    assert "nobody `Main` can reach handles `nobody::dig`" in batch(play, dig(1, intent="nobody::dig")).feedback[1]


def test_no_more_than_twenty_go_on(play: Player) -> None:
    """The next one is refused; a budget counts those that go on."""
    played = play(PROGRAM, [{"batch": [dig(100)] * 21}, done()])

    assert "20 calls of this run go on already" in played.feedback[1]
