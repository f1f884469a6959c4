"""Agents to the cards by which others know them."""

from __future__ import annotations

from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    HTTPAuthSecurityScheme,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)

from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.agents.declarations import Handler
from koi_lang.version import __version__

BINDING = "JSONRPC"
VERSION = "1.0"
TEXT, DATA = "text/plain", "application/json"
AUTH_SCHEME = "bearer"


def public_handlers(agent: type[Agent]) -> list[Handler]:
    """The handlers that others may call."""
    return [handler for handler in agent.about.handlers.values() if not handler.private]


def card_of(agent: type[Agent], url: str, *, needs_token: bool) -> AgentCard:
    """The card of an agent.

    Args:
        url: where it takes calls.
    """
    about = agent.about
    card = AgentCard(
        name=about.name,
        description=about.affordance or f"The agent {about.name} of a Koi program.",
        version=__version__,
        supported_interfaces=[AgentInterface(url=url, protocol_binding=BINDING, protocol_version=VERSION)],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=[TEXT, DATA],
        default_output_modes=[TEXT, DATA],
        skills=[_skill_of(agent, handler) for handler in public_handlers(agent)],
    )
    if needs_token:
        card.security_schemes[AUTH_SCHEME].CopyFrom(
            SecurityScheme(http_auth_security_scheme=HTTPAuthSecurityScheme(scheme="bearer"))
        )
        card.security_requirements.append(SecurityRequirement(schemes={AUTH_SCHEME: StringList()}))
    return card


def _skill_of(agent: type[Agent], handler: Handler) -> AgentSkill:
    # Not its playbook, which is for the operator alone.
    description = handler.affordance or agent.about.affordance or handler.event
    return AgentSkill(id=handler.event, name=handler.event, description=description, tags=["koi"])
