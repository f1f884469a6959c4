"""Phases of agents: what they allow, what begins them, and the effort of their models."""

from __future__ import annotations

from typing import Any

import pytest

from koi_lang.llm.scripted import ScriptedModel
from tests.playbook.playing import Played, Player, act, ask, done

PROGRAM = """
role Lead { can write, can execute, can delegate, can registry }
role Worker { can execute, can registry }
agent Scout : Worker {
  on look(args: { ok: boolean }) { return { ok: args.ok } }
  on store() { return await this.callAction("registry_set", { key: "k", value: 1 }) }
}
team Crew { scout: Scout }
agent Main : Lead {
  uses team Crew
  phases {
    exploring { cannot write, cannot registry:write, effort: low }
    building { can write, can execute, effort: high }
    resting { can execute }
  }
  transitions {
    when session.start { phase("exploring").start() }
    when scout.result { if (scout.result.ok === true) { phase("building").start() } else { effort(medium) } }
    when phase("building").done, error.tool { phase(resting).start() }
    when user.message { effort(none) }
  }
  on go(args) { playbook "Do the work." }
  on codes() {
    const before = this.phase
    await send peers.event("look").any()({ ok: true })
    return [before, this.phase]
  }
}
"""


def run(play: Player, *answers: Any) -> Played:
    """A run of the lead, whose model may ask for anything."""
    return play(PROGRAM, [*answers, done()], allow=["write:**", "shell"])


def phases(played: Played) -> list[str]:
    """The phases that began, in order."""
    return [event.fields["phase"] for event in played.events if event.type == "phase_started"]


def test_code_sees_the_phase(play: Player) -> None:
    """The first call begins a session; a result of a member is an event under its key."""
    played = play(PROGRAM, [], call="Main.codes")

    assert ["exploring", "building"] == played.result == phases(played)


def test_a_phase_takes_permissions_away(play: Player) -> None:
    """Also from what the agent asks others to do; it is told which phase lacks what."""
    played = run(play, act("registry_set", key="k", value=1), ask("scout::store"), act("registry_get", key="k"))

    assert (
        "`registry_set` needs the permission `registry:write`, which the role `exploring` lacks" in played.feedback[1]
    )
    assert "- registry_set(" not in played.requests[0].system
    assert ["exploring", "resting"] == phases(played)


def test_a_phase_gives_nothing_that_the_role_lacks(play: Player) -> None:
    """`can registry` of a phase does not open the registry to a role without it."""
    program = PROGRAM.replace("can delegate, can registry }", "can delegate }")
    program = program.replace("{ can write, can execute, effort", "{ can registry, effort")
    played = play(program, [ask("scout::look", {"ok": True}), act("registry_get", key="k"), done()])

    assert ["exploring", "building", "resting"] == phases(played)
    assert "`registry_get` needs the permission `registry:read`, which the role `Lead` lacks" in played.feedback[2]


def test_the_work_of_a_phase_is_done(play: Player) -> None:
    """`phase_done` is offered to agents with phases."""
    played = run(play, ask("scout::look", {"ok": True}), act("phase_done"))

    assert ["exploring", "building", "resting"] == phases(played)
    assert "- phase_done(" in played.requests[0].system


@pytest.mark.parametrize(
    ("answers", "efforts"),
    [
        ([], ["low"]),
        ([ask("scout::look", {"ok": True})], ["low", "high"]),
        ([ask("scout::look", {"ok": False})], ["low", "medium"]),
        ([ask("scout::look", {"ok": True}), act("shell", command="exit 1")], ["low", "high", None]),
    ],
)
def test_the_effort_is_that_of_the_phase(play: Player, answers: list[Any], efforts: list[str | None]) -> None:
    """Entering a phase resets what was set before."""
    seen: list[str | None] = []
    model = ScriptedModel([*answers, done()])

    def connect(llm: Any) -> Any:
        seen.append(llm.get("effort"))
        return model

    play(PROGRAM, model, allow=["shell"], connect=connect)

    assert efforts == [effort for number, effort in enumerate(seen) if number == 0 or effort != seen[number - 1]]
