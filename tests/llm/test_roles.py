"""Models by role: which settings count for a block that names one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Any

import pytest

from koi_lang.llm.messages import Request
from tests.playbook.conftest import play
from tests.playbook.playing import Player, Voice, act, solo

__all__ = ["play"]

USUAL: dict[str, dict[str, Any]] = {
    "default": {"provider": "openai", "model": "usual", "context_tokens": 9000},
    "judge": {"provider": "anthropic", "model": "strict"},
}


async def answer(request: Request) -> AsyncIterator[str]:
    """The end of a playbook."""
    yield '{"intent": "return", "data": {}}'


def asked(play: Player, block: str, usual: Mapping[str, Mapping[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings that the model of an agent is connected with, and all that count for it."""
    blocks: list[Mapping[str, Any]] = []

    def connect(llm: Mapping[str, Any]) -> Voice:
        blocks.append(llm)
        return Voice(answer)

    models: dict[str, Any] = {role: partial(dict, options) for role, options in usual.items()}
    played = play(solo(more=f"  llm default = {block}"), Voice(answer), connect=connect, models=models)
    if played.error is not None:
        raise played.error
    agent = next(iter(played.run._agents.values()))
    return dict(blocks[0]), played.run.models.options(agent)


def test_a_block_takes_the_model_of_a_role(play: Player) -> None:
    """What `koi.toml` says about the role counts, and nothing of what it says about others."""
    assert asked(play, '{ role: "judge" }', USUAL) == (USUAL["judge"], USUAL["judge"])


def test_options_beside_a_role_count_before_it(play: Player) -> None:
    """As with every block."""
    block, _ = asked(play, '{ role: "judge", temperature: 0.1 }', USUAL)

    assert block == {**USUAL["judge"], "temperature": 0.1}


def test_a_role_that_nobody_has_is_the_usual_model(play: Player) -> None:
    """It counts as for an agent without a block, and where there is none, nothing is left of the role."""
    usual = {"default": USUAL["default"]}

    assert asked(play, '{ role: "judge" }', usual) == (USUAL["default"], USUAL["default"])
    assert asked(play, '{ role: "judge" }', {}) == ({}, {})


CALLS = """
role W {{ can execute }}
agent Main : W {{
  {blocks}
  on say() {{ playbook "Say hi." }}
  on go() {{ return await this.handle("say", {{}}, {{ model: "{model}", effort: "low" }}) }}
}}
run Main.go()
"""
OF_AGENT = 'llm {role} = {{ provider: "openai", model: "{model}", base_url: "http://127.0.0.1:9/v1" }}'


@pytest.mark.parametrize(
    ("model", "roles", "expected"),
    [
        ("small", ("default", "small"), "small"),
        ("small", ("default",), "default"),
        ("default", ("default",), "default"),
        ("m2", ("default", "small"), "m2"),
    ],
)
def test_a_model_of_a_call_stays_at_the_address_of_its_agent(
    play: Player, model: str, roles: tuple[str, ...], expected: str
) -> None:
    """A role is first one of the agent; one that nobody declares is the agent's model."""
    asked: list[Mapping[str, Any]] = []

    def connect(llm: Mapping[str, Any]) -> Voice:
        asked.append(llm)
        return Voice(answer)

    blocks = "\n  ".join(OF_AGENT.format(role=role, model=role) for role in roles)
    play(CALLS.format(blocks=blocks, model=model), Voice(answer), connect=connect, models={})

    assert asked == [{"provider": "openai", "model": expected, "base_url": "http://127.0.0.1:9/v1", "effort": "low"}]


def test_an_unknown_role_is_told(play: Player) -> None:
    """A role that is computed cannot be checked before."""
    played = play(solo(more='  llm default = { role: "ju" + "ge2" }'), [act("return")])

    assert "`llm` of `Main` names no role `juge2`" in played.told
    assert "did you mean `judge`?" in played.told
