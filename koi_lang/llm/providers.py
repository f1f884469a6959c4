"""The providers that are known, and the options of an `llm` block turned into a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeAlias

from koi_lang.errors import MissingKey, ProviderError
from koi_lang.llm.connection import Connection, Provider, Secret
from koi_lang.llm.messages import Adapter

KeyLookup: TypeAlias = Callable[[str], str | None]
Note: TypeAlias = Callable[[str], None]

# In the order in which `auto` looks for a key.
PROVIDERS = (
    Provider("openai", ("OPENAI_API_KEY",), "gpt-5.4-mini", prefixes=("gpt-", "o1", "o3", "o4", "chatgpt-")),
    Provider(
        "anthropic",
        ("ANTHROPIC_API_KEY",),
        "claude-sonnet-5-5",
        style="anthropic",
        json_mode=False,
        prefixes=("claude-", "sonnet", "opus", "haiku"),
    ),
    Provider(
        "gemini",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        "gemini-flash-latest",
        "https://generativelanguage.googleapis.com/v1beta/openai/",
        prefixes=("gemini-",),
    ),
    Provider("groq", ("GROQ_API_KEY",), "openai/gpt-oss-120b", "https://api.groq.com/openai/v1"),
    Provider("deepseek", ("DEEPSEEK_API_KEY",), "deepseek-flash", "https://api.deepseek.com", prefixes=("deepseek-",)),
    Provider("moonshot", ("MOONSHOT_API_KEY",), "kimi-k2.6", "https://api.moonshot.ai/v1", prefixes=("kimi-",)),
    Provider("xai", ("XAI_API_KEY",), "grok-4.3", "https://api.x.ai/v1", prefixes=("grok-",)),
    Provider(
        "qwen",
        ("DASHSCOPE_API_KEY", "QWEN_API_KEY"),
        "qwen-plus",
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        prefixes=("qwen",),
    ),
    Provider("together", ("TOGETHER_API_KEY",), "openai/gpt-oss-120b", "https://api.together.xyz/v1"),
    Provider("openrouter", ("OPENROUTER_API_KEY",), "openrouter/auto", "https://openrouter.ai/api/v1"),
    Provider(
        "mistral",
        ("MISTRAL_API_KEY",),
        "mistral-small-latest",
        "https://api.mistral.ai/v1",
        stream_usage=False,  # counts tokens of streams unasked and rejects the option
        prefixes=("mistral-", "ministral-", "codestral-"),
    ),
    Provider("ollama", (), "llama3.2", "http://127.0.0.1:11434/v1"),
)
STAND_INS = ("rehearsal", "scripted")


def connect(options: Mapping[str, Any], key: KeyLookup, *, on_note: Note | None = None) -> Adapter:
    """The model that an `llm` block asks for; the caller closes it.

    Args:
        options: `provider`, `model`, `temperature`, `max_tokens`, `base_url`; for `scripted` also `answers`, a
            list or the path of a file. Absent and `auto` mean: choose.
        key: the value of a key by the name of its environment variable, None when it is not known.
        on_note: told by the rehearsal model which sentences would need a real one.

    Raises:
        MissingKey: a provider is named whose key is not known.
        ProviderError: the provider does not exist.
    """
    name = str(options.get("provider") or "auto").lower()
    if name == "auto":
        name = _choose(_model_of(options), key)
    if name == "rehearsal":
        return _rehearsal(on_note)
    if name == "scripted":
        return _scripted(options.get("answers"))
    return _adapter(_connection(provider_named(name), options, key))


def provider_named(name: str) -> Provider:
    """The row of a provider. Raises ProviderError with the nearest name."""
    for provider in PROVIDERS:
        if provider.name == name.lower():
            return provider
    names = [*(provider.name for provider in PROVIDERS), *STAND_INS]
    near = get_close_matches(name.lower(), names, n=1)
    help = f"Did you mean `{near[0]}`?" if near else f"Known are {', '.join(f'`{known}`' for known in names)}."
    raise ProviderError(f"there is no provider `{name}`", help=help)


def _choose(model: str, key: KeyLookup) -> str:
    """The provider the model's name belongs to, else the first with a key, else the rehearsal."""
    with_key = [provider for provider in PROVIDERS if _key_of(provider, key)]
    if not with_key:
        return "rehearsal"
    makers = [provider for provider in PROVIDERS if model and model.startswith(provider.prefixes)]
    return makers[0].name if makers else with_key[0].name


def _connection(provider: Provider, options: Mapping[str, Any], key: KeyLookup) -> Connection:
    base_url = options.get("base_url")
    value = _key_of(provider, key)
    if provider.keys and not value and not base_url:
        raise _missing_key(provider)
    return Connection(
        provider,
        Secret(value),
        _model_of(options) or provider.model,
        str(base_url) if base_url else None,
        options.get("temperature"),
        options.get("max_tokens"),
    )


def _missing_key(provider: Provider) -> MissingKey:
    name = provider.keys[0]
    return MissingKey(
        f"the provider `{provider.name}` needs a key, and `{name}` is not set",
        help=f"Set it with `export {name}=…`, or write the line `{name}=…` into `.env`.",
    )


def _model_of(options: Mapping[str, Any]) -> str:
    model = str(options.get("model") or "")
    return "" if model == "auto" else model


def _key_of(provider: Provider, key: KeyLookup) -> str:
    return next((value for value in map(key, provider.keys) if value), "").strip()


def _adapter(connection: Connection) -> Adapter:
    if connection.provider.style == "anthropic":
        from koi_lang.llm.anthropic import Anthropic

        return Anthropic(connection)
    from koi_lang.llm.openai import OpenAI

    return OpenAI(connection)


def _rehearsal(on_note: Note | None) -> Adapter:
    from koi_lang.llm.rehearsal import Rehearsal

    return Rehearsal(on_note)


def _scripted(answers: Any) -> Adapter:
    from koi_lang.llm.scripted import Scripted, read_answers

    return Scripted(read_answers(Path(answers)) if isinstance(answers, str) else answers or [])
