"""The effort of a model: the requested one, the supported one, and its form in a request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from koi_lang.llm.cards import ModelCard
from koi_lang.llm.connection import Provider
from koi_lang.llm.effort_list import SWITCH
from koi_lang.settings.efforts import EFFORTS

# Tokens that are kept free for thoughts, beside those of the answer, and Anthropic's least number of them.
ROOM: Mapping[str, int] = {"low": 4_000, "medium": 12_000, "high": 24_000}
MIN_BUDGET = 1_024


def available_effort(effort: str, provider: Provider, card: ModelCard) -> str:
    """The level that comes nearest to one: the least that is not below it; empty where nothing can be told."""
    if card.efforts is None or provider.effort_form == "openrouter" or not effort:
        return effort
    above = [level for level in card.efforts if EFFORTS.index(level) >= EFFORTS.index(effort)]
    return (above or [*card.efforts[-1:], ""])[0]


def room_for_thoughts(effort: str, provider: Provider, card: ModelCard) -> int:
    """Tokens that a Claude may take for thoughts beside its answer, also where it thinks without being asked to."""
    return ROOM.get(available_effort(effort or card.usual_effort, provider, card), 0)


def chat_effort(effort: str, provider: Provider, card: ModelCard) -> dict[str, Any]:
    """The fields of a chat completion for an effort; empty where none can be sent."""
    level = available_effort(effort, provider, card)
    return FORMS[provider.effort_form](level, card) if level else {}


def responses_effort(effort: str, provider: Provider, card: ModelCard) -> dict[str, Any]:
    """The same for the Responses interface, where models that think are asked for a summary of it, too."""
    level = available_effort(effort, provider, card)
    reasoning = {"effort": level} if level else {}
    summary = {"summary": "auto"} if card.efforts and level != "none" else {}
    return {"reasoning": reasoning | summary} if reasoning or summary else {}


def claude_effort(effort: str, provider: Provider, card: ModelCard, max_tokens: int) -> dict[str, Any]:
    """The same for the body of a message, `thinking` and `output_config`.

    Args:
        max_tokens: most tokens of thoughts and answer together.
    """
    level = available_effort(effort, provider, card)
    if not level:
        return {}
    if level == "none":
        return {"thinking": {"type": "between_tools" if card.effort_form == "between_tools" else "disabled"}}
    if card.effort_form == "budget":
        tokens = min(ROOM[level], max_tokens // 2)
        return {"thinking": {"type": "enabled", "budget_tokens": tokens}} if tokens >= MIN_BUDGET else {}
    # Newer models say what they think only where they are asked to.
    return {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": level}}


def _with_level(level: str, card: ModelCard) -> dict[str, Any]:
    return {"reasoning_effort": level}


def _with_switch(level: str, card: ModelCard) -> dict[str, Any]:
    """A switch, where the model has one, beside the level, where it has several."""
    efforts = card.efforts or EFFORTS
    switch = {"thinking": {"type": "disabled" if level == "none" else "enabled"}} if "none" in efforts else {}
    has_levels = level != "none" and len(set(efforts) - {"none"}) > 1
    return {**switch, **({"reasoning_effort": level} if has_levels else {})}


def _with_flag(level: str, card: ModelCard) -> dict[str, Any]:
    return {"enable_thinking": level != "none"}


def _with_object(level: str, card: ModelCard) -> dict[str, Any]:
    return {"reasoning": {"effort": level}}


def _with_default(level: str, card: ModelCard) -> dict[str, Any]:
    """Models that can only be switched have a word of their own for being switched on."""
    return {"reasoning_effort": "default" if card.efforts == SWITCH and level != "none" else level}


def _with_switch_or_level(level: str, card: ModelCard) -> dict[str, Any]:
    has_switch = card.efforts is not None and "none" in card.efforts
    return {"reasoning": {"enabled": level != "none"}} if has_switch else {"reasoning_effort": level}


FORMS: Mapping[str, Callable[[str, ModelCard], dict[str, Any]]] = {
    "reasoning_effort": _with_level,
    "switch": _with_switch,
    "enable_thinking": _with_flag,
    "openrouter": _with_object,
    "groq": _with_default,
    "together": _with_switch_or_level,
}
