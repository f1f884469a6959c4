"""The providers that are known, as data, and finding one by its name."""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches
from typing import TypeAlias

from koi_lang.diagnostics import SLIP_IN_FOUR
from koi_lang.errors import UnknownModelError
from koi_lang.llm.connection import Provider
from koi_lang.llm.json_schemas import BOUNDS
from koi_lang.llm.local_servers import LOCAL

KeyLookup: TypeAlias = Callable[[str], str | None]

# In the order in which `auto` looks for one that is connected, but for `local`, which goes first.
PROVIDERS = (
    Provider(
        "openai",
        ("OPENAI_API_KEY",),
        "gpt-5.4-mini",
        json_schema=True,
        bounds=("minimum", "maximum", "minItems", "maxItems"),
        prefixes=("gpt-", "o1", "o3", "o4", "chatgpt-"),
        responses=True,
        cache_key=True,
    ),
    Provider(
        "anthropic",
        ("ANTHROPIC_API_KEY",),
        "claude-sonnet-5-5",
        style="anthropic",
        json_mode=False,
        json_schema=True,
        prefixes=("claude-", "sonnet", "opus", "haiku"),
        seed="",
    ),
    Provider(
        "gemini",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        "gemini-flash-latest",
        "https://generativelanguage.googleapis.com/v1beta/openai/",
        json_schema=True,
        prefixes=("gemini-",),
        seed="",
        thoughts="extra_content",
    ),
    Provider(
        "groq",
        ("GROQ_API_KEY",),
        "openai/gpt-oss-120b",
        "https://api.groq.com/openai/v1",
        json_schema=True,
        seeing="qwen/qwen3.8-27b",
        effort_form="groq",
    ),
    Provider(
        "deepseek",
        ("DEEPSEEK_API_KEY",),
        "deepseek-flash",
        "https://api.deepseek.com",
        prefixes=("deepseek-",),
        effort_form="switch",
        seed="",
        thoughts="reasoning_content",
    ),
    Provider(
        "moonshot",
        ("MOONSHOT_API_KEY",),
        "kimi-k3.1-pro",
        "https://api.moonshot.ai/v1",
        prefixes=("kimi-",),
        effort_form="switch",
        seed="",
        thoughts="reasoning_content",
    ),
    Provider("xai", ("XAI_API_KEY",), "grok-4.3", "https://api.x.ai/v1", json_schema=True, prefixes=("grok-",)),
    Provider(
        "qwen",
        ("DASHSCOPE_API_KEY", "QWEN_API_KEY"),
        "qwen-plus",
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        prefixes=("qwen",),
        seeing="qwen3-vl-plus",
        effort_form="enable_thinking",
    ),
    Provider(
        "together",
        ("TOGETHER_API_KEY",),
        "openai/gpt-oss-120b",
        "https://api.together.xyz/v1",
        json_schema=True,
        effort_form="together",
    ),
    Provider(
        "openrouter",
        ("OPENROUTER_API_KEY",),
        "openrouter/auto",
        "https://openrouter.ai/api/v1",
        json_schema=True,
        effort_form="openrouter",
        thoughts="reasoning_details",
    ),
    Provider(
        "mistral",
        ("MISTRAL_API_KEY",),
        "mistral-small-latest",
        "https://api.mistral.ai/v1",
        json_schema=True,
        stream_usage=False,  # counts tokens of streams unasked and rejects the option
        prefixes=("mistral-", "ministral-", "codestral-"),
        seed="random_seed",
        cache_key=True,
        user_after_results=False,
    ),
    Provider(
        "bedrock",
        ("AWS_BEARER_TOKEN_BEDROCK",),
        "global.anthropic.claude-sonnet-4-5-20250929-v1:0",
        style="bedrock",
        json_mode=False,
        needs_key=False,
        seed="",
    ),
    Provider(
        "ollama",
        (),
        "llama3.2",
        "http://127.0.0.1:11434/v1",
        json_schema=True,
        bounds=BOUNDS,
        seeing="llama3.2-vision",
        transport="text",
    ),
    # Whatever a person runs that speaks the interface of OpenAI: llama.cpp, vLLM, LM Studio, TGI.
    Provider(LOCAL, ("LOCAL_API_KEY",), "", json_schema=True, bounds=BOUNDS, needs_key=False, transport="text"),
)
STAND_INS = ("rehearsal", "scripted")
# Programs that serve models at an address that the person knows.
SERVERS = ("llama.cpp", "llama-cpp", "llamacpp", "lmstudio", "lm-studio", "localai", "tgi", "vllm")
# Makers of models whose names look like a mistyped provider: `mistralai/…` is what others call models of Mistral.
MAKERS = ("deepseek-ai", "mistralai", "moonshotai", "x-ai")
# How tags begin that Ollama puts behind names: sizes such as `7b`, `8x7b`, `0.6b`, `567m`, or `latest`.
TAG = re.compile(r"(?:latest|(?:\d+x)?\d+(?:\.\d+)?[bm])\b", re.IGNORECASE)


def provider_named(name: str) -> Provider:
    """The row of a provider. Raises ProviderError with the nearest name."""
    for provider in PROVIDERS:
        if provider.name == name.lower():
            return provider
    names = [*(provider.name for provider in PROVIDERS), *STAND_INS]
    if name.lower() in SERVERS:
        help = "A server of your own is connected by its address, as in `koi connect http://127.0.0.1:8080`."
        raise UnknownModelError(f"`{name}` is no provider, but a program that serves models", help=help)
    near = get_close_matches(name.lower(), names, n=1)
    help = f"Did you mean `{near[0]}`?" if near else f"Known are {', '.join(f'`{known}`' for known in names)}."
    raise UnknownModelError(f"there is no provider `{name}`", help=help)


def suggest_provider(name: str) -> str | None:
    """The provider meant by `name/model`; None where the name may be the maker of a model."""
    if is_known(name) or name in MAKERS:
        return None
    near = get_close_matches(name, [provider.name for provider in PROVIDERS], n=1, cutoff=SLIP_IN_FOUR)
    return near[0] if near else None


def split_model(name: str) -> tuple[str, str]:
    """The two parts of `provider/model` or `provider:model`; without a provider the first is empty.

    A colon may also stand before a tag of a model, as in `mistral:7b` or `qwen:latest`.
    """
    provider, mark, model = name.partition("/")
    before, colon, behind = provider.partition(":")
    if not colon or TAG.match(behind):
        return provider, model
    maker = before.lower()
    # A model such as `qwen2:instruct` is called after its maker, which is no mistake.
    is_model = maker.startswith(tuple(row.name for row in PROVIDERS))
    if is_known(maker) or (not mark and not is_model and suggest_provider(maker)):
        return before, f"{behind}{mark}{model}"
    return provider, model


def is_known(name: str) -> bool:
    """Whether there is a provider, or a stand-in, of this name."""
    return name in STAND_INS or any(provider.name == name for provider in PROVIDERS)


def makers_of(model: str) -> list[Provider]:
    """The providers whose models have names that begin like this one."""
    return [provider for provider in PROVIDERS if model.startswith(provider.prefixes)]


def is_connected(provider: Provider, key: KeyLookup) -> bool:
    """Whether requests can reach a provider: it has a key, or an address that a person has set.

    A key for a server of one's own says nothing of where that server is.
    """
    is_reached_by_key = provider.name != LOCAL and bool(key_of(provider, key))
    return is_reached_by_key or bool(key(f"{provider.name.upper()}_BASE_URL"))


def key_of(provider: Provider, key: KeyLookup) -> str:
    """The first key that is set for a provider; empty without one."""
    return next((value for value in map(key, provider.keys) if value), "").strip()
