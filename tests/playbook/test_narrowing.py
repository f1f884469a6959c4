"""A narrowed call may do what the roles of its agents allow and the roles that it is narrowed to allow, too."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from tests.playbook.playing import Played, Player, act, ask, done

ROLES = """
role Worker { can registry, can delegate, can execute }
role Looker { can registry: read }
role Sender { can delegate, can registry }
role Nothing { can think }
agent Hand : Worker {
  state { n: number = 0 }
  on work(args) { playbook "Help." }
  on code(args) { return await this.callAction("registry_set", { key: "code", value: 1 }) }
  on later(args) {
    setTimeout(async () => { try { await this.callAction("registry_set", { key: "late", value: 1 }) } catch { } }, 1)
  }
}
"""
WRITE = act("registry_set", key="k", value=1)


def program(body: str) -> str:
    """A program whose `Main.go` has a body in code, with an agent `Hand` among its peers."""
    more = 'on again(args) { return await this.handle("ask", args) } on ask(args) { playbook "Do the work." }'
    return f"{ROLES}agent Main : Worker {{ on go(args) {{ {body} }} {more} }}\nteam Crew {{ hand: Hand, main: Main }}"


def keys(played: Played) -> Sequence[str]:
    """What stands in the registry at the end."""
    return asyncio.run(played.run.registry.keys(""))


FORMS = {
    "send": 'return await send peers.event("work").as(Looker).any()(args)',
    "send to all": 'return await send peers.event("work").as(Looker).all()(args)',
    "send, filters after": 'return await send peers.as(Looker).event("work").role(Worker).any()(args)',
    "team": 'return await send Crew.event("work").as(Looker).any()(args) timeout 5s',
    "query": 'const asked = peers.event("work").as(Looker).any(); return await asked.execute(args)',
    "query sent": 'const asked = peers.as(Looker); return await send asked.event("work").any()(args)',
    "handle": 'return await this.handle("ask", args, { as: Looker })',
    "handle twice": 'return await this.handle("again", args, { as: Looker })',
    "name": 'return await Hand.handle("work", args, { as: Looker })',
}


@pytest.mark.parametrize("body", FORMS.values(), ids=FORMS)
def test_every_form_narrows(play: Player, body: str) -> None:
    """What the role of the agent allows is neither offered nor done where the other role lacks it."""
    played = play(program(body), [WRITE, done(ok=True)])
    system = played.requests[0].system

    assert ("- registry_get(" in system, "- registry_set(" in system, "## Agents" in system) == (True, False, False)
    assert "which the role `Looker` lacks, to which this call is narrowed. Do not" in played.feedback[1]
    assert [] == keys(played)


def test_the_same_agent_works_narrowed_and_not_at_the_same_time(play: Player) -> None:
    """Neither prompts nor what is permitted leaks between two calls of one agent that overlap."""
    body = (
        'return await Promise.all([Hand.handle("work", {}, { as: Looker }), Hand.work({}), '
        'Hand.handle("work", {}, { as: Nothing })])'
    )
    played = play(program(body), [*[act("registry_set", key="k", value=1)] * 3, *[done()] * 3])
    offered = [
        tuple(name in request.system for name in ("registry_set(", "registry_get(")) for request in played.requests
    ]

    assert [(False, True), (True, True), (False, False)] * 2 == offered
    assert [2, 1] == [len(played.did(type)) - rest for type, rest in (("action_failed", 0), ("action_ended", 3))]


def test_a_wider_role_inside_lifts_nothing(play: Player) -> None:
    """Narrowings add up: a role that allows more, inside of one that allows less, allows nothing more."""
    body = 'return await this.handle("wide", {}, { as: Looker })'
    source = program(body).replace(
        "on again", 'on wide() { return await this.handle("ask", {}, { as: Worker }) } on again'
    )
    played = play(source, [WRITE, done()])

    assert [] == keys(played)
    assert [["Looker"], ["Looker", "Worker"]] == narrowed(played)


def narrowed(played: Played) -> list[Any]:
    """The roles that calls of handlers were narrowed to, as the events tell."""
    started = (event.fields for event in played.events if event.type == "handler_started")
    return [fields["narrowed_to"] for fields in started if "narrowed_to" in fields]


def test_delegates_are_narrowed_too(play: Player) -> None:
    """What a narrowed agent delegates is bound by the same role, whatever the member's own role allows."""
    body = 'return await this.handle("ask", {}, { as: Sender })'
    shell = act("shell", command="true", description="d")
    played = play(program(body), {"Do the work": [ask("hand::work"), done()], "Help": [shell, WRITE, done()]})

    assert "which the role `Sender` lacks" in played.feedback[2]
    assert ["k"] == keys(played)


@pytest.mark.parametrize("event", ["code", "later"])
def test_code_is_bound_by_a_narrowing(play: Player, event: str) -> None:
    """Code may do what its agent's role lacks, but not what the role lacks that its call is narrowed to."""
    free = play(program(f'return await Hand.handle("{event}", {{}})'), [])
    bound = play(program(f'return await Hand.handle("{event}", {{}}, {{ as: Looker }})'), [])

    assert [event[:4]] == keys(free)
    assert [] == keys(bound)


def test_code_calls_functions_that_need_a_permission_only_where_the_narrowing_has_it(play: Player) -> None:
    """A function with `needs` refuses code whose call is narrowed to a role that lacks it, and no other code."""
    skill = 'skill Marks { needs write export function leave(): string { console.log("left") return "left" } }\n'
    source = skill + program('leave(); return await this.handle("mark", {}, { as: Looker })').replace(
        "on again", "on mark() { leave() } on again"
    )
    played = play(source, [])

    assert "`Marks.leave` needs the permission `write`, which the role `Looker` lacks" in played.told
    assert ("left",) == played.printed


def test_code_sends_only_where_the_narrowing_allows_it(play: Player) -> None:
    """A send of code inside of a narrowed call needs `delegate` of the role that it is narrowed to."""
    source = program('return await this.handle("pass", {}, { as: Looker })').replace(
        "on again", 'on pass() { return await send peers.event("work").any()({}) } on again'
    )
    played = play(source, [])

    assert "sending `work` needs the permission `delegate`, which the role `Looker` lacks" in played.told


def test_the_name_of_the_role_stays(play: Player) -> None:
    """Code that asks for the role is told the declared one."""
    source = program('return await this.handle("who", {}, { as: Looker })').replace(
        "on again", "on who() { return this.role } on again"
    )

    assert "Worker" == play(source, []).result


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ('"Looker"', "the options of `handle` are an object, not 'Looker'"),
        ("{ like: Looker }", "`handle` has no option `like`"),
        ('{ as: "Looker" }', "a call is narrowed to a role, and 'Looker' is none"),
        ("{ as: args.none }", "a call is narrowed to a role, and undefined is none"),
        ("{ as: null }", "a call is narrowed to a role, and null is none"),
        ("{ as: Hand }", "a call is narrowed to a role, and [Agent: Hand] is none"),
    ],
)
def test_what_is_no_role_is_refused(play: Player, options: str, told: str) -> None:
    """Nothing is called without the bound that was meant."""
    played = play(program(f'const given = {options}; return await Hand.handle("code", {{}}, given)'), [])

    assert told in played.told
    assert [] == keys(played)


def test_a_call_that_is_not_narrowed_says_nothing_of_it(play: Player) -> None:
    """Events of other calls are what they were."""
    assert [] == narrowed(play(program("return await Hand.work({})"), [done()]))
