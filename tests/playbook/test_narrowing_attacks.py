"""A model that tries everything, over random trees of delegates and narrowings, gets what all roles around it allow.

What is allowed is worked out from the place in the run where something happened, and not from what the runtime knows.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from koi_lang.events import Event
from koi_lang.llm.messages import Request
from koi_lang.runtime.host import ApprovalDecision, ApprovalRequest
from tests.playbook.playing import Player, Voice, act, ask, done
from tests.running import RecordingHost

# What an agent's own role allows, and what calls are narrowed to.
ROLES = {
    "Any": ("execute", "delegate", "registry", "write"),
    "Sender": ("delegate", "registry:read"),
    "Writer": ("delegate", "registry:write", "write"),
    "Runner": ("execute", "delegate"),
    "Looker": ("registry:read",),
}
NEEDS = {
    "shell": "execute",
    "update_state": "execute",
    "if": "execute",
    "repeat": "execute",
    "registry_set": "registry:write",
    "registry_get": "registry:read",
    "registry_delete": "registry:write",
    "registry_keys": "registry:read",
    "send_message": "delegate",
}
AGENTS = ("Any", "Any", "Sender", "Writer", "Runner", "Any")
AGENT = """
agent A{n} : {role} {{
  uses team Crew
  uses skill Marks
  state {{ mark: string = "" }}
  on work(args) {{ playbook "Do the work." }}
  on code(args) {{ await this.callAction("registry_set", {{ key: args.tag, value: 1 }}) }}
  on timer(args) {{
    setTimeout(async () => {{
      try {{ await this.callAction("registry_set", {{ key: args.tag, value: 1 }}) }} catch {{ }}
    }}, 1)
  }}
  on mark(args) {{ leave(args.tag) }}
{narrowing}
}}
"""
NARROWING = """
  on as{role}(args) {{ return await this.handle("work", args, {{ as: {role} }}) }}
  on send{role}(args) {{ return await send peers.event("work").as({role}).any()(args) }}
  on code{role}(args) {{ return await this.handle(args.event, args, {{ as: {role} }}) }}
"""


def program() -> str:
    """A team in which every agent can have any other one work, narrowed to any role or not."""
    roles = "".join(f"role {name} {{ {', '.join(_can(word) for word in can)} }}\n" for name, can in ROLES.items())
    narrowing = "".join(NARROWING.format(role=role) for role in ROLES)
    agents = "".join(AGENT.format(n=n, role=role, narrowing=narrowing) for n, role in enumerate(AGENTS))
    skill = (
        'skill Marks { needs write export function leave(tag: string): string { console.log(tag) return "left" } }\n'
    )
    return f"{roles}{skill}{agents}team Crew {{ {', '.join(f'a{n}: A{n}' for n in range(len(AGENTS)))} }}"


def _can(word: str) -> str:
    return f"can {word.replace(':', ': ')}"


@dataclass(slots=True)
class Denying(RecordingHost):
    """A person who is asked for commands, which is late enough to have gone wrong, and allows none."""

    commands: list[str] = field(default_factory=list)

    async def approve(self, request: ApprovalRequest) -> ApprovalDecision:
        """Keep what is asked for."""
        self.commands.append(f"{request.what} {request.detail}")
        return ApprovalDecision("no")


@dataclass(slots=True)
class Adversary:
    """Answers with random actions, all at once, and then returns.

    Attributes:
        left: how many actions it still tries.
    """

    chance: random.Random
    left: int
    tags: int = 0

    async def speak(self, request: Request) -> AsyncIterator[str]:
        """An answer to a request: the first of a call tries things, the second one ends it."""
        begins = request.task is not None and not list(request.task.results)
        yield json.dumps({"parallel": [self.action() for _ in range(10)]} if begins and self.left > 0 else done())

    def action(self, depth: int = 0) -> dict[str, Any]:
        """One thing that some role does not allow."""
        self.left -= 1
        tag = self.tag()
        kind = self.chance.choice((*NEEDS, "delegate", "delegate", "skill", "return"))
        match kind:
            case "delegate":
                return self.delegation(tag)
            case "skill":
                return act("call_skill", skill="Marks", function="leave", input={"tag": tag})
            case "return":
                return act("return", data={"state_updates": {"mark": tag}})
            case "if" if depth < 2:
                return act("if", condition=True, then=[self.action(depth + 1), self.action(depth + 1)])
            case "repeat" if depth < 2:
                return act("repeat", count=1, actions=[self.action(depth + 1)])
            case "shell":
                return act("shell", command=f"true {tag}", description=tag)
            case "update_state":
                return act("update_state", updates={"mark": tag})
            case "send_message":
                return act("send_message", event=self.event(), data=self.payload(tag))
            case "registry_get" | "registry_delete":
                return act(kind, key="hidden")
            case "registry_keys":
                return act(kind)
            case _:
                return act("registry_set", key=tag, value=1)

    def delegation(self, tag: str) -> dict[str, Any]:
        """Some event of some agent, in some spelling."""
        member, event = f"a{self.chance.randrange(len(AGENTS))}", self.event()
        name = self.chance.choice((f"{member}::{event}", f"{member}.{event}", event))
        return ask(name, self.payload(tag))

    def event(self) -> str:
        """An event that every agent handles."""
        narrowing = [f"{word}{role}" for word in ("as", "send", "code") for role in ROLES]
        return self.chance.choice(("work", "code", "timer", "mark", *narrowing))

    def payload(self, tag: str) -> dict[str, Any]:
        """What an event is given."""
        return {"tag": tag, "event": self.chance.choice(("code", "timer", "mark"))}

    def tag(self) -> str:
        """Something that nothing else holds."""
        self.tags += 1
        return f"tag{self.tags}x"


def allowed(path: Sequence[str], *, by_model: bool) -> set[str]:
    """What may be done at a place: what all narrowings around it allow, and for a model the role of its agent, too."""
    can = set(CAN["Any"])
    labels = [label.partition("#")[0] for label in path]
    handlers = [label for label in labels if label[:1] == "A" and "." in label]
    for event in (label.partition(".")[2] for label in handlers):
        can &= next((CAN[role] for role in ROLES if event in (f"as{role}", f"send{role}", f"code{role}")), can)
    if by_model and handlers:
        can &= CAN[AGENTS[int(handlers[-1][1])]]
    return can


CAN = {
    name: {word for word in {*NEEDS.values(), *have} if word in have or word.partition(":")[0] in have}
    for name, have in ROLES.items()
}


def breaches(events: Sequence[Event]) -> Iterator[str]:
    """Actions, changes of states and outputs that were carried out where they are not allowed."""
    for event in events:
        needs = ""
        match event.type:
            case "action_ended":
                needs = NEEDS.get(event.fields["intent"], "")
            case "state_changed":
                needs = "execute"
        if needs and needs not in allowed(event.path, by_model=True):
            yield f"{event.type} {event.fields} at {event.path}"


def places_of(events: Sequence[Event]) -> dict[str, set[str]]:
    """What may be done where a tag was given: by a model's action, or by the code of a handler."""
    found: dict[str, set[str]] = {}
    for event in events:
        fields = event.fields.get("fields") or {}
        if event.type == "action_started":
            tag = fields.get("key") or fields.get("description") or (fields.get("input") or {}).get("tag")
            found[str(tag)] = allowed(event.path, by_model=True)
        if event.type == "handler_started" and event.fields["event"] in ("code", "timer", "mark"):
            found[str(event.fields["args"]["tag"])] = allowed(event.path, by_model=False)
    return found


# Of a run, and the calls in which it makes them.
TRIES, CALLS = 1000, 60


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(10))
def test_nothing_outside_of_all_roles_is_carried_out(play: Player, seed: int) -> None:
    """Whatever a model tries, through whomever: effects need what every role around them allows."""
    model, host = Adversary(random.Random(seed), TRIES), Denying()
    voice = Voice(model.speak)
    calls = [(f"A{n % len(AGENTS)}.work", {}) for n in range(CALLS)]
    played = play.each(program(), voice, calls, host=host, detailed=True)[0]
    places, keys = places_of(played.events), asyncio.run(played.run.registry.keys("tag"))
    tried = played.did("action_started")

    assert [] == list(breaches(played.events))
    assert [] == [key for key in keys if "registry:write" not in places[key]]
    assert [] == [what for what in host.commands if not _may_run(what, places)]
    assert [] == [line for line in host.printed if line in places and "write" not in places[line]]
    assert TRIES <= TRIES - model.left
    assert all((keys, host.commands, host.printed, len(tried) > TRIES / 2))


def _may_run(what: str, places: dict[str, set[str]]) -> bool:
    return any(f"{tag} " in f"{what} " or what.endswith(tag) for tag, can in places.items() if "execute" in can)


def test_nothing_is_changed_in_plan_mode(play: Player) -> None:
    """The same model in a run in plan mode: no command is asked about, no entry, state or output is changed."""
    model, host = Adversary(random.Random(4), TRIES), Denying()
    calls = [(f"A{n % len(AGENTS)}.work", {}) for n in range(CALLS)]
    played = play.each(program(), Voice(model.speak), calls, host=host, detailed=True, plan=True)[0]

    assert [] == [*asyncio.run(played.run.registry.keys("tag")), *host.commands, *host.printed]
    assert [] == [event for event in played.events if event.type == "state_changed"]
    assert {"registry_get", "registry_keys"} <= set(played.did())
    assert model.left <= 0
