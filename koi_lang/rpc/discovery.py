"""Commands that say what there is: agents with their handlers, commands, models."""

from __future__ import annotations

from typing import Any

from koi_lang.rpc.commands import all_commands, command
from koi_lang.runtime.schema import signature_text
from koi_lang.sessions.session import Session


@command()
async def list_agents(session: Session) -> Any:
    """The agents of the program with their handlers."""
    return {"agents": [_agent(session, agent) for agent in session.served.agents]}


def _agent(session: Session, agent: Any) -> dict[str, Any]:
    about = agent.about
    working = {work.agent for work in session.run.steering.at_work}
    teams = [team.name for team in about.teams()]
    told = {"name": about.name, "affordance": about.affordance, "role": about.role().name, "teams": teams}
    return {
        **told,
        "working": about.name in working,
        "handlers": [_handler_fields(handler) for handler in about.handlers.values()],
    }


def _handler_fields(handler: Any) -> dict[str, Any]:
    return {
        "name": handler.event,
        "affordance": handler.affordance,
        "playbook": handler.playbook,
        "private": handler.private,
        "takes": signature_text(handler.schema) if handler.schema else "",
    }


@command()
async def get_commands(session: Session) -> Any:
    """What can be asked for: handlers for `run_playbook`, and the commands of this protocol."""
    handlers = [
        {
            "name": f"{agent.about.name}.{handler.event}",
            "description": handler.affordance or agent.about.affordance,
            "source": "program",
            "takes": signature_text(handler.schema) if handler.schema else "",
        }
        for agent in session.served.agents
        for handler in agent.about.handlers.values()
        if not handler.private
    ]
    return {"commands": handlers, "protocol": [each.as_data() for each in all_commands()]}


@command(holds=False)
async def get_available_models(session: Session, refresh: bool = False) -> Any:
    """The models of all providers that are connected; lists are kept for a day."""
    return {"models": await session.served.choice.available(refresh)}
