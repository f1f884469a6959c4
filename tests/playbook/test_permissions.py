"""What a role lacks is never done, whatever the model writes."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from koi_lang.runtime.actions.lookup import actions_of, all_actions
from koi_lang.runtime.guards.policy import Policy
from koi_lang.runtime.host import ApprovalDecision, ApprovalRequest
from tests.playbook.playing import Played, Player, act, ask, done, solo
from tests.running import RecordingHost

GATED = ("execute", "delegate", "registry")
SECRET = "s3cret"
PROGRAM = """
role One {{ can think{one} }}
role Two {{ can think{two} }}
skill Marks {{ needs registry  export function mark(by: string) {{ console.log("marked by " + by) }} }}
agent Third : One {{
  on touch(args) {{ console.log("touched by " + args.by) }}
  on seed() {{ await registry.set("hidden", {{ text: "{secret}" }}) }}
}}
agent Helper : Two {{ uses team Crew  uses skill Marks  state {{ n = "" }}  on work(args) {{ playbook "Help." }} }}
team Crew {{ third: Third, helper: Helper }}
agent Main : One {{ uses team Crew  uses skill Marks  state {{ n = "" }}  on go(args) {{ playbook "Do the work." }} }}
"""


@dataclass(slots=True)
class Yielding(RecordingHost):
    """A person who allows everything."""

    commands: list[str] = field(default_factory=list)

    async def approve(self, request: ApprovalRequest) -> ApprovalDecision:
        """Allow it."""
        self.commands.append(request.what)
        return ApprovalDecision("yes")


def simple(who: str) -> list[dict[str, Any]]:
    """Actions with effects that show who caused them, and what needs a permission of each kind."""
    return [
        act("shell", command=f"true {who}", description="d"),
        act("update_state", updates={"n": who}),
        act("return", data={"state_updates": {"n": who}}),
        act("return", stateUpdates={"n": who}),
        act("registry_set", key=who, value=1),
        act("registry_get", key="hidden"),
        act("registry_search", query={"text": {"$exists": True}}),
        act("registry_delete", key="hidden"),
        act("registry_keys", prefix="hid"),
        act("call_skill", skill="Marks", function="mark", input={"by": who}),
        act("Marks.mark", by=who),
        act("Marks__mark", by=who),
        act("send_message", event="touch", data={"by": who}),
        ask("third::touch", {"by": who}),
        act("third.touch", data={"by": who}),
        act("touch", by=who),
        {"actionType": "touch", "by": who},
        {"actionType": "Third::Touch", "data": {"by": who}},
        ask("helper::work", {"by": who}),
        act("print", message="harmless"),
    ]


def spelt(action: dict[str, Any], form: int) -> dict[str, Any]:
    """The same action in another way of writing it."""
    fields = {key: value for key, value in action.items() if key not in ("actionType", "intent")}
    intent = action.get("intent", action["actionType"])
    return [
        action,
        {"type": intent, **fields},
        {"actionType": intent, **fields},
        {"actionType": "direct", "intent": intent, "data": fields},
        {**action, "intent": intent.upper()},
        {**action, "intent": f" {intent} "},
        {"actionType": "delegate", "intent": intent, **fields},
    ][form]


def actions(who: str) -> st.SearchStrategy[dict[str, Any]]:
    """Any action in any spelling, at any depth of control flow and groups."""
    leaves = st.builds(spelt, st.sampled_from(simple(who)), st.integers(0, 6))

    def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        some = st.lists(inner, min_size=1, max_size=3)
        return st.one_of(
            st.builds(lambda then: act("if", condition=True, then=then), some),
            st.builds(lambda other: act("if", condition="false", then=[], **{"else": other}), some),
            st.builds(lambda body: act("while", condition="false", actions=body), some),
            st.builds(lambda body: act("repeat", count=2, actions=body), some),
            st.builds(lambda body: act("repeat", data={"count": 1, "actions": body}), some),
            st.builds(lambda members: {"parallel": members}, some),
            st.builds(lambda members: {"batch": members}, some),
        )

    return st.recursive(leaves, nested, max_leaves=8)


CAPABILITIES = st.sets(st.sampled_from(GATED))


def violations(played: Played, who: str, agent: str, can: set[str], host: Yielding) -> list[str]:
    """What happened on behalf of an agent that its role does not allow."""
    keys = asyncio.run(played.run.registry.keys(""))
    found = {
        "execute": any(who in what for what in host.commands) or agent_state(played, agent) == who,
        "delegate": f"touched by {who}" in host.printed,
        "registry": who in keys or f"marked by {who}" in host.printed,
    }
    return [name for name, happened in found.items() if happened and name not in can]


def agent_state(played: Played, agent: str) -> str:
    """The field that `update_state` changes, of an agent that may never have come to life."""
    return next((live.state["n"] for live in played.run._agents.values() if live.name == agent), "")


@given(CAPABILITIES, CAPABILITIES, st.lists(actions("main"), max_size=4), st.lists(actions("helper"), max_size=3))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_nothing_is_done_that_the_role_lacks(
    play: Player, one: set[str], two: set[str], main: list[Any], helper: list[Any]
) -> None:
    """A model that tries everything gets nothing but what the roles of the agents allow, also through a delegate."""
    one_can, two_can = ("".join(f", can {name}" for name in sorted(can)) for can in (one, two))
    source = PROGRAM.format(one=one_can, two=two_can, secret=SECRET)
    answers = {"Do the work": [*main, done()], "Help": [*helper, done()] * 20}
    host = Yielding()
    _, played = play.each(source, answers, [("Third.seed", None), ("Main.go", {})], host=host, allow=["shell:nothing"])
    told = "".join(message.text for request in played.requests for message in request.messages)

    assert [] == violations(played, "main", "Main", one, host) + violations(played, "helper", "Helper", two, host)
    if "registry" not in one | two:
        assert SECRET not in told
        assert "hidden" in asyncio.run(played.run.registry.keys(""))


FIELDS: dict[str, dict[str, Any]] = {
    "shell": {"command": "true", "description": "d"},
    "stop_command": {"command": 1},
    "list_commands": {},
    "await_call": {"call": "c1"},
    "cancel_call": {"call": "c1"},
    "list_calls": {},
    "tell": {"member": "m", "text": "t"},
    "broadcast": {"text": "t"},
    "inbox": {},
    "update_state": {"updates": {}},
    "if": {"condition": True, "then": []},
    "while": {"condition": "false", "actions": []},
    "repeat": {"count": 1, "actions": []},
    "send_message": {"event": "e", "data": {}},
    "registry_set": {"key": "k", "value": 1},
    "registry_change": {"key": "k", "from": None, "to": 1},
    "registry_get": {"key": "k"},
    "registry_delete": {"key": "k"},
    "registry_keys": {},
    "registry_search": {"query": {}},
    "call_mcp": {"mcp": "m", "tool": "t"},
    "get_mcp_tool_info": {"mcp": "m", "tool": "t"},
    "mcp_read_resource": {"mcp": "m"},
    "mcp_get_prompt": {"mcp": "m"},
}


@pytest.mark.parametrize("kind", [kind for kind in all_actions() if kind.needs], ids=lambda kind: kind.name)
def test_a_missing_permission_is_refused_and_not_offered(play: Player, kind: Any) -> None:
    """The model is told which permission the role lacks, and the action is not in its prompt."""
    played = play(solo("think"), [act(kind.name, **FIELDS[kind.name]), done()])
    lacks = f"`{kind.name}` needs the permission `{kind.needs}`, which the role `Worker` lacks"

    assert f"🚫 {kind.name} DENIED: {lacks}. Do not try it again.\nContinue." == played.feedback[1]
    assert f"- {kind.name}(" not in played.requests[0].system


@pytest.mark.parametrize(
    "kind", [kind for kind in all_actions() if kind.needs and not kind.is_occasional], ids=lambda kind: kind.name
)
def test_a_permission_unlocks_its_actions(play: Player, kind: Any) -> None:
    """A plain capability covers every detail of it: `registry` covers `registry:read`."""
    played = play(solo(str(kind.needs).partition(":")[0]), [act(kind.name, **FIELDS[kind.name]), done()])
    main = next(iter(played.run._agents.values()))

    assert kind in actions_of(main)
    assert "DENIED: `" not in played.feedback[1]


def test_a_delegate_without_the_permission_is_refused(play: Player) -> None:
    """Who may not delegate hears so, is shown nobody, and no handler runs."""
    source = PROGRAM.format(one="", two="", secret=SECRET)
    played = play(source, [ask("third::touch", {"by": "main"}), done()])

    assert "🚫 third::touch DENIED: `third::touch` needs the permission `delegate`" in played.feedback[1]
    assert "third" not in played.requests[0].system
    assert () == played.printed


@pytest.mark.parametrize(
    "answer",
    [
        act("return", data={"state_updates": {"n": 1}}),
        act("return", result={"stateUpdates": {"n": 1}}),
        act("return", data={"state_updates": {}, "stateUpdates": {"n": 1}}),
        act("return", state_updates={"n": 1}),
        act("return", data={"ok": True}, state_updates={"n": 1}),
        act("return", result={"ok": True}, stateUpdates={"n": 1}),
        {"type": "return", "state_updates": {"n": 1}},
        {"parallel": [act("return", state_updates={"n": 1})]},
        {"batch": [act("registry_get", id="x", key="seeded"), act("return", data="${x.output.value}")]},
    ],
)
def test_a_result_changes_no_state_without_permission(play: Player, answer: Any) -> None:
    """However a model puts updates of the state into a result: they need what `update_state` needs."""
    source = solo(
        "registry", more='state { n = 0 } on seed() { await registry.set("seeded", { state_updates: { n: 1 } }) }'
    )
    _, played = play.each(source, [answer, done(ok=True)], [("Main.seed", None), ("Main.go", {})])

    assert ({"ok": True}, {"n": 0}) == (played.result, played.state("Main"))
    assert "needs the permission `execute`, which the role `Worker` lacks; `return` without it" in played.feedback[-1]


def test_a_result_without_updates_needs_no_permission(play: Player) -> None:
    """Models that always send the field, empty, are not refused."""
    assert {"ok": True} == play(solo("think"), [done(state_updates={}, stateUpdates=None, ok=True)]).result


def test_the_policy_is_asked_once_for_what_a_request_may_tell(play: Player) -> None:
    """Nobody asks again for a model that does not look, or for actions that the call has no use for."""
    asked = []
    sys.setprofile(lambda frame, event, _: asked.append(event) if frame.f_code is Policy.verdict.__code__ else None)
    play(solo("think"), [done()])
    sys.setprofile(None)

    assert 0 < asked.count("call") < len(all_actions())
