"""Efforts of models from vendors' pages, as data.

A level stands here when the vendor's pages name it for the model, or for its family. Where they say that a model always
thinks, or give no way to stop it, `none` is missing; levels above `high` are not asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from koi_lang.settings.efforts import EFFORTS

# How Claude is told: to decide itself, so too but with its own word for not at all, or with a number of tokens.
ClaudeForm: TypeAlias = Literal["adaptive", "between_tools", "budget"]

THINKS = ("low", "medium", "high")
SWITCH = ("none", "high")


@dataclass(frozen=True, slots=True)
class EffortCard:
    """How much some models can be told to think.

    Attributes:
        names: as those of a `ModelCard`.
        efforts: the levels, from the least on; empty where the model cannot be told.
        form: how a Claude is told.
        usual: the level at which a Claude thinks that is told nothing; empty where it does not think then.
    """

    names: str
    efforts: tuple[str, ...]
    form: ClaudeForm = "adaptive"
    usual: str = ""


OPENAI = (
    EffortCard("o1-preview o1-mini gpt-*-chat-latest gpt-[34]* chatgpt-* gpt-audio* text-embedding-*", ()),
    EffortCard("gpt-5-pro", ("high",)),
    EffortCard("gpt-5.[2-9]-pro", ("medium", "high")),
    EffortCard("o[0-9] o[0-9]-* codex-mini-latest gpt-5-codex gpt-5.[1-9]-codex*", THINKS),
    EffortCard("gpt-5 gpt-5-mini gpt-5-nano gpt-6-astra gpt-6.[1-9]* gpt-oss*", THINKS),
    EffortCard("gpt-5.[1-9]* gpt-6-sol gpt-6-luna", EFFORTS),
)
ANTHROPIC = (
    EffortCard("claude-fable-* claude-mythos-*", THINKS, usual="high"),
    EffortCard("claude-opus-5-5", THINKS, usual="medium"),
    EffortCard("claude-sonnet-5-5", EFFORTS, "between_tools", usual="high"),
    EffortCard("claude-haiku-5-5", EFFORTS, usual="medium"),
    EffortCard("claude-opus-5 claude-sonnet-5", EFFORTS, usual="high"),
    EffortCard("claude-opus-4-[6-8] claude-sonnet-4-6", EFFORTS),
    EffortCard("claude-opus-4* claude-sonnet-4* claude-haiku-4* claude-3-7-*", EFFORTS, "budget"),
    EffortCard("claude-3*", ()),
)
OTHERS = (
    EffortCard("gemini-embedding-* gemini-2.0-*", ()),
    EffortCard("gemini-2.5-flash*", EFFORTS),
    EffortCard("gemini-*", THINKS),
    EffortCard("grok-4.3", EFFORTS),
    EffortCard("grok-4.[5-9]", THINKS),
    EffortCard("grok-3-mini*", ("low", "high")),
    EffortCard("grok-4* grok-3* grok-build* grok-code*", ()),
    EffortCard("deepseek-flash deepseek-v4*", ("none", "low", "high")),
    EffortCard("kimi-k3*", ("low", "high")),
    EffortCard("kimi-k2.5 kimi-k2.6", SWITCH),
    EffortCard("kimi-k2*", ()),
    EffortCard("mistral-small-latest mistral-small-2603", SWITCH),
    EffortCard("mistral-medium-latest mistral-medium-2604 mistral-medium-3.5", SWITCH),
    EffortCard("mistral-large-4*", THINKS),
    EffortCard("ministral-* codestral-* mistral-embed mistral-large-2512 pixtral*", ()),
    EffortCard("qwen-plus qwen3*", SWITCH),
    EffortCard("llama3* llama-3* llama4* llama-4* llava*", ()),
)
# The first one with a name that fits counts.
EFFORT_CARDS = (*OPENAI, *ANTHROPIC, *OTHERS)
