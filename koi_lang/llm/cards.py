"""Model cards from vendors' pages, as data: windows, prices, abilities.

A number stands here when the vendor's own page gives it or two independent sources agree; otherwise it is None. Where a
price depends on the hour, or is reduced for a time, the higher one counts, and so does the dearest of the providers
that serve an open model. What a region, a faster service or a search of the web costs on top is not in them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from koi_lang.llm.effort_list import ClaudeForm

PRICES_AS_OF = "2026-11-18"

Prices: TypeAlias = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class ModelCard:
    """Facts about one model, or one family of models; None where they are not known.

    Attributes:
        names: those it has, without their dates; `*` stands for anything, `[0-9]` for a digit.
        context_tokens: most tokens of request and answer together.
        output_tokens: most tokens of an answer.
        prices_usd: per million tokens: input, cached input, output; where nothing is taken off for cached input, it
            costs as much as other input.
        sampling: whether a temperature may be sent; newer models refuse a request that has one.
        schemas: whether the model can be held to a JSON Schema where its provider offers that.
        tools: whether it can be given tools to call.
        responses: whether OpenAI has it, or its thoughts beside tools, behind the Responses interface alone.
        vision: whether it can be shown images.
        input_tokens: most tokens of a request, where it may not fill the window.
        longer: from how many tokens on a request costs more, and how many times as much its input and its answer cost.
        efforts: how much it can be told to think, from the least on; empty where it cannot be told.
        effort_form: how a Claude is told.
        usual_effort: the level at which a Claude thinks that is told nothing; empty where it does not think then.
    """

    names: str
    context_tokens: int | None = None
    output_tokens: int | None = None
    prices_usd: Prices | None = None
    sampling: bool = True
    schemas: bool = True
    vision: bool | None = None
    input_tokens: int | None = None
    longer: tuple[int, float, float] | None = None
    efforts: tuple[str, ...] | None = None
    effort_form: ClaudeForm = "adaptive"
    usual_effort: str = ""
    tools: bool = True
    responses: bool = False


def _embedding(names: str, context: int, price: float) -> ModelCard:
    return ModelCard(names, context, None, (price, price, 0.0), sampling=False, schemas=False, vision=False)


def _loose(
    names: str, context: int, output: int | None = None, prices: Prices | None = None, *, vision: bool = False
) -> ModelCard:
    """A GPT that cannot be held to a schema."""
    return ModelCard(names, context, output, prices, schemas=False, vision=vision)


def _gpt5(names: str, prices: Prices) -> ModelCard:
    """A GPT with the short window; the room for its answer is not to be had for a request."""
    return ModelCard(names, 400_000, 128_000, prices, sampling=False, vision=True, input_tokens=272_000)


def _gpt6(names: str, prices: Prices) -> ModelCard:
    """A GPT with the long window, where long requests cost more."""
    card = replace(_gpt5(names, prices), context_tokens=1_050_000, input_tokens=922_000)
    return replace(card, longer=(272_000, 2.0, 1.5))


def _o(names: str, prices: Prices, *, vision: bool = True) -> ModelCard:
    """A model of OpenAI's o series."""
    return ModelCard(names, 200_000, 100_000, prices, sampling=False, vision=vision)


def _claude(names: str, prices: Prices | None, **more: Any) -> ModelCard:
    """A Claude with the long window."""
    return ModelCard(names, 1_000_000, 128_000, prices, vision=True, **{"sampling": False, **more})


def _older(names: str, output: int, prices: Prices | None, **more: Any) -> ModelCard:
    """A Claude with the short window."""
    return ModelCard(names, 200_000, output, prices, vision=True, **more)


def _gemini(names: str, prices: Prices, **more: Any) -> ModelCard:
    return ModelCard(names, 1_048_576, 65_536, prices, vision=True, **{"sampling": False, **more})


def _grok(names: str, context: int, prices: Prices) -> ModelCard:
    return ModelCard(names, context, None, prices, vision=True, longer=(200_000, 2.0, 2.0))


STAND_IN = ModelCard("rehearsal scripted recorded", prices_usd=(0.0, 0.0, 0.0), vision=False)
EMBEDDING = (
    _embedding("text-embedding-3-small", 8_192, 0.02),
    _embedding("text-embedding-3-large", 8_192, 0.13),
    _embedding("gemini-embedding-001", 2_048, 0.15),
    _embedding("gemini-embedding-2", 8_192, 0.20),
    _embedding("mistral-embed", 8_192, 0.10),
)
OPENAI = (
    ModelCard("gpt-4o-search-preview gpt-4o-mini-search-preview", 128_000, 16_384, sampling=False),
    _loose("gpt-4o-audio-preview", 128_000, 16_384, (2.50, 2.50, 10.00)),
    _loose("gpt-4o-mini-audio-preview", 128_000, 16_384, (0.15, 0.15, 0.60)),
    _loose("gpt-audio gpt-audio-1.5", 128_000, 16_384, (2.50, 2.50, 10.00)),
    _loose("gpt-audio-mini", 128_000, 16_384, (0.60, 0.60, 2.40)),
    _loose("chatgpt-4o-latest", 128_000, 16_384, (5.00, 5.00, 15.00), vision=True),
    _loose("gpt-4o-2024-05-13", 128_000, 4_096, (5.00, 5.00, 15.00), vision=True),
    ModelCard("gpt-4o-mini", 128_000, 16_384, (0.15, 0.075, 0.60), vision=True),
    ModelCard("gpt-4o", 128_000, 16_384, (2.50, 1.25, 10.00), vision=True),
    ModelCard("gpt-4.1-nano", 1_047_576, 32_768, (0.10, 0.025, 0.40), vision=True),
    ModelCard("gpt-4.1-mini", 1_047_576, 32_768, (0.40, 0.10, 1.60), vision=True),
    ModelCard("gpt-4.1", 1_047_576, 32_768, (2.00, 0.50, 8.00), vision=True),
    _loose("gpt-4-turbo gpt-4-vision-preview", 128_000, 4_096, (10.00, 10.00, 30.00), vision=True),
    _loose("gpt-4-0125-preview gpt-4-1106-preview gpt-4-turbo-preview", 128_000, 4_096, (10.00, 10.00, 30.00)),
    _loose("gpt-4-32k gpt-4-32k-0314 gpt-4-32k-0613", 32_768),
    _loose("gpt-4 gpt-4-0314 gpt-4-0613", 8_192, None, (30.00, 30.00, 60.00)),
    _loose("gpt-3.5-turbo-0301 gpt-3.5-turbo-0613", 4_096),
    _loose("gpt-3.5-turbo-16k gpt-3.5-turbo-16k-0613", 16_385, 4_096, (3.00, 3.00, 4.00)),
    _loose("gpt-3.5-turbo-1106", 16_385, 4_096, (1.00, 1.00, 2.00)),
    _loose("gpt-3.5-turbo gpt-3.5-turbo-0125", 16_385, 4_096, (0.50, 0.50, 1.50)),
    ModelCard("o1-preview", 128_000, 32_768, (15.00, 7.50, 60.00), sampling=False, schemas=False, vision=False),
    ModelCard("o1-mini", 128_000, 65_536, (1.10, 0.55, 4.40), sampling=False, schemas=False, vision=False),
    _o("o1", (15.00, 7.50, 60.00)),
    _o("o1-pro", (150.00, 150.00, 600.00)),
    _o("o3", (2.00, 0.50, 8.00)),
    _o("o3-pro", (20.00, 20.00, 80.00)),
    _o("o3-mini", (1.10, 0.55, 4.40), vision=False),
    _o("o4-mini", (1.10, 0.275, 4.40)),
    _o("codex-mini-latest", (1.50, 0.375, 6.00)),
    ModelCard(
        "gpt-5-chat-latest gpt-5.1-chat-latest", 128_000, 16_384, (1.25, 0.125, 10.00), sampling=False, vision=True
    ),
    ModelCard(
        "gpt-5.2-chat-latest gpt-5.3-chat-latest", 128_000, 16_384, (1.75, 0.175, 14.00), sampling=False, vision=True
    ),
    _gpt5("gpt-5 gpt-5-codex gpt-5.1 gpt-5.1-codex gpt-5.1-codex-max", (1.25, 0.125, 10.00)),
    _gpt5("gpt-5-mini gpt-5.1-mini gpt-5.1-codex-mini", (0.25, 0.025, 2.00)),
    _gpt5("gpt-5-nano", (0.05, 0.005, 0.40)),
    ModelCard("gpt-5-pro", 400_000, 272_000, (15.00, 15.00, 120.00), sampling=False, vision=True),
    _gpt5("gpt-5.2 gpt-5.2-codex gpt-5.3-codex", (1.75, 0.175, 14.00)),
    _gpt5("gpt-5.2-pro", (21.00, 21.00, 168.00)),
    _gpt5("gpt-5.4-mini", (0.75, 0.075, 4.50)),
    _gpt5("gpt-5.4-nano", (0.20, 0.02, 1.25)),
    _gpt6("gpt-5.4", (2.50, 0.25, 15.00)),
    _gpt6("gpt-5.5", (5.00, 0.50, 30.00)),
    _gpt6("gpt-5.4-pro gpt-5.5-pro", (30.00, 30.00, 180.00)),
    _gpt6("gpt-5.6 gpt-5.6-sol", (4.00, 0.40, 20.00)),
    _gpt6("gpt-5.6-terra", (2.00, 0.20, 12.00)),
    _gpt6("gpt-5.6-luna", (0.20, 0.02, 1.20)),
    _gpt6("gpt-6-astra", (10.00, 1.00, 50.00)),
    _gpt6("gpt-6-sol", (2.00, 0.20, 10.00)),
    _gpt6("gpt-6-luna", (0.10, 0.01, 0.50)),
    _gpt6("gpt-6.1-terra", (1.00, 0.05, 5.00)),
    _gpt6("gpt-6.1-sol gpt-6.2-sol", (2.00, 0.10, 10.00)),
    _gpt6("gpt-6.2-astra", (8.00, 0.40, 40.00)),
    ModelCard("o[0-9]* gpt-[5-9]* gpt-[0-9][0-9]* ft:o[0-9]* ft:gpt-[5-9]*", sampling=False, vision=True),
)
ANTHROPIC = (
    _claude("claude-fable-5-2 claude-mythos-5-2", (8.00, 0.20, 40.00)),
    _claude("claude-fable-5-1 claude-mythos-5-1", (10.00, 0.25, 50.00)),
    _claude("claude-fable-5 claude-mythos-5", (10.00, 1.00, 50.00)),
    _claude("claude-mythos-preview", None),
    _claude("claude-opus-5-5", (4.00, 0.20, 20.00)),
    _claude("claude-sonnet-5-5", (2.00, 0.10, 10.00)),
    _claude("claude-haiku-5-5", (0.10, 0.01, 0.50), longer=(100_000, 5.0, 5.0)),
    _claude("claude-opus-5 claude-opus-4-8 claude-opus-4-7", (5.00, 0.50, 25.00)),
    _claude("claude-sonnet-5", (2.00, 0.20, 10.00)),
    _claude("claude-opus-4-6", (5.00, 0.50, 25.00), sampling=True),
    _claude("claude-sonnet-4-6", (3.00, 0.30, 15.00), sampling=True),
    _older("claude-opus-4-5", 64_000, (5.00, 0.50, 25.00)),
    _older("claude-sonnet-4-5", 64_000, (3.00, 0.30, 15.00)),
    _older("claude-haiku-4-5", 64_000, (1.00, 0.10, 5.00)),
    _older("claude-opus-4 claude-opus-4-0 claude-opus-4-1", 32_000, (15.00, 1.50, 75.00), schemas=False),
    _older("claude-sonnet-4 claude-sonnet-4-0", 64_000, (3.00, 0.30, 15.00), schemas=False),
    _older("claude-3*", 8_192, None, schemas=False),
    _older("claude-*", 64_000, None, sampling=False),
)
GOOGLE = (
    _gemini("gemini-2.5-pro", (1.25, 0.125, 10.00), sampling=True, longer=(200_000, 2.0, 1.5)),
    _gemini("gemini-2.5-flash", (0.30, 0.03, 2.50), sampling=True),
    _gemini("gemini-2.5-flash-lite", (0.10, 0.01, 0.40), sampling=True),
    _gemini("gemini-3-flash-preview", (0.50, 0.05, 3.00)),
    _gemini("gemini-3.1-flash-lite gemini-3.1-flash-lite-preview", (0.25, 0.025, 1.50)),
    _gemini(
        "gemini-3.1-pro-preview gemini-3.1-pro-preview-customtools gemini-pro-latest",
        (2.00, 0.20, 12.00),
        longer=(200_000, 2.0, 1.5),
    ),
    _gemini("gemini-3.5-flash", (1.50, 0.15, 9.00)),
    _gemini("gemini-3.5-flash-lite gemini-flash-lite-latest", (0.30, 0.03, 2.50)),
    # The prices of 2027 and of December 2026; they are halved until then.
    _gemini("gemini-3.6-flash gemini-3.7-flash gemini-3.8-flash gemini-flash-latest", (1.50, 0.15, 7.50)),
    ModelCard("gemini-4-argon", 1_048_576, None, (4.00, 0.20, 20.00), sampling=False, vision=True),
    ModelCard("gemini-2*", vision=True),
    ModelCard("gemini-*", sampling=False, vision=True),
)
OTHERS = (
    ModelCard("gpt-oss-120b", 131_072, 65_536, (0.15, 0.15, 0.60), vision=False),
    ModelCard("gpt-oss-20b", 131_072, 65_536, (0.075, 0.075, 0.30), vision=False),
    ModelCard("gpt-oss*", vision=False),
    _grok("grok-4.7 grok-4.6", 500_000, (2.00, 0.50, 6.00)),
    _grok("grok-4.5", 500_000, (2.00, 0.30, 6.00)),
    _grok("grok-4.3 grok-4.20 grok-4.20-0309-reasoning grok-4.20-0309-non-reasoning", 1_000_000, (1.25, 0.20, 2.50)),
    _grok("grok-build-0.1", 256_000, (1.00, 0.20, 2.00)),
    # What DeepSeek takes on weekdays from 1 to 4 and from 6 to 10 h UTC; at other times it is half.
    ModelCard(
        "deepseek-flash deepseek-v4-flash deepseek-v4-flash-vision-exp",
        1_000_000,
        384_000,
        (0.30, 0.006, 1.20),
        vision=True,
    ),
    ModelCard("deepseek-v4-pro", 1_000_000, 384_000, (1.32, 0.044, 3.96), vision=False),
    ModelCard("deepseek-chat deepseek-reasoner deepseek-r1* deepseek-v3*", vision=False),
    ModelCard("kimi-k3.1-pro", 1_048_576, None, (2.00, 0.20, 10.00), sampling=False, vision=True),
    ModelCard("kimi-k3", 1_048_576, None, (3.00, 0.30, 15.00), sampling=False, vision=True),
    ModelCard("kimi-k2.7-code", 262_144, None, (0.95, 0.19, 4.00), sampling=False, vision=True),
    ModelCard("kimi-k2.7-code-highspeed", 262_144, None, (1.90, 0.38, 8.00), sampling=False, vision=True),
    ModelCard("kimi-k2.6", 262_144, None, (0.95, 0.16, 4.00), sampling=False, vision=True),
    ModelCard("kimi-k2.[0-9]*", sampling=False, vision=True),
    ModelCard("kimi-k2*", sampling=False, vision=False),
    ModelCard("kimi-*", sampling=False),
    ModelCard("mistral-small-latest mistral-small-2603", 262_144, None, (0.15, 0.015, 0.60), vision=True),
    ModelCard(
        "mistral-medium-latest mistral-medium-2604 mistral-medium-3.5", 262_144, None, (1.50, 0.15, 7.50), vision=True
    ),
    ModelCard("mistral-large-latest", 262_144, vision=True),
    ModelCard("mistral-large-2512", 262_144, None, (0.50, 0.05, 1.50), vision=True),
    ModelCard("mistral-large-4 mistral-large-4-0", 1_048_576, None, (0.70, 0.07, 2.10), vision=True),
    ModelCard("ministral-3b-latest ministral-3b-2512", 131_072, None, (0.10, 0.01, 0.10), vision=True),
    ModelCard("ministral-8b-latest ministral-8b-2512", 262_144, None, (0.15, 0.015, 0.15), vision=True),
    ModelCard("ministral-14b-latest ministral-14b-2512", 262_144, None, (0.20, 0.02, 0.20), vision=True),
    ModelCard("codestral-latest codestral-2508", None, None, (0.30, 0.03, 0.90), vision=False),
    ModelCard("qwen-plus", None, None, (0.40, 0.40, 1.20), longer=(256_000, 3.0, 3.0)),
    ModelCard("qwen3.8-max", 1_000_000, 131_072, (2.00, 0.25, 6.00), vision=True, input_tokens=991_808),
    ModelCard("qwen3.8-flash", 1_000_000, 131_072, (0.15, 0.016, 0.47), vision=True, input_tokens=991_808),
    ModelCard("qwen3.8-27b", 131_072, None, (0.80, 0.80, 4.00), vision=True),
    ModelCard("qwen3.7-max", 1_000_000, 65_536, (2.50, 0.50, 7.50), input_tokens=991_808),
    ModelCard("grok-4* mistral-small* mistral-medium* pixtral* llama4* llama-4* llava*", vision=True),
    ModelCard("qwen*vl* llama*vision*", vision=True),
    ModelCard("grok-3* grok-code* codestral* llama3* llama-3*", vision=False),
)
# The first one with a name that fits counts.
CARDS = (STAND_IN, *EMBEDDING, *OPENAI, *ANTHROPIC, *GOOGLE, *OTHERS)
