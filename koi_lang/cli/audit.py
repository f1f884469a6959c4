"""`koi audit`."""

from __future__ import annotations

import json
from typing import Any

import click

from koi_lang import inventory, program
from koi_lang.extensions import additions
from koi_lang.runtime.actions.builtin import allowed
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.engine import Run, Services
from koi_lang.runtime.playbook.delegation import reachable


@click.command()
@click.argument("file")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON list.")
@click.option("--no-extensions", is_flag=True, help="Leave installed extensions out.")
def command(file: str, as_json: bool, no_extensions: bool) -> None:
    """Show what a model may do on behalf of each agent of FILE: actions, agents it can delegate to, skills."""
    audited = audit(file, use_installed=not no_extensions)
    if as_json:
        click.echo(json.dumps(audited, indent=2))
        return
    click.echo("\n\n".join(map(_described, audited)))


def audit(file: str, *, use_installed: bool = True) -> list[dict[str, Any]]:
    """For every agent of a program: name, role, capabilities, actions, targets and skills."""
    module = program.load(file)
    added = additions(module, use_installed=use_installed)
    run = Run(Services(connect=_no_model, teams=lambda: inventory.teams_of(module), added=added))
    return [_audited(run.agent(agent)) for agent in inventory.agents_of(module)]


def _no_model(llm: Any) -> Any:
    raise AssertionError("an audit asks no model")


def _audited(agent: Agent) -> dict[str, Any]:
    may_delegate = agent.role.allows("delegate")
    return {
        "agent": agent.name,
        "role": agent.role.name,
        "capabilities": list(agent.role.capabilities),
        "actions": [kind.name for kind in allowed(agent)],
        "delegates": [f"{m.key}::{event}" for m in reachable(agent) for event in m.events] if may_delegate else [],
        "skills": [f"{skill.name}.{name}" for skill in agent.about.skills() for name in skill.functions],
    }


def _described(audited: dict[str, Any]) -> str:
    head = f"{audited['agent']} : {audited['role']} {{ {', '.join(audited['capabilities'])} }}"
    rows = [f"  {title:<10} {', '.join(audited[title]) or 'none'}" for title in ("actions", "delegates", "skills")]
    return "\n".join([head, *rows])
