"""The options of an `llm` block turned into a model with its layers around it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from koi_lang.errors import MissingKey, SettingsError
from koi_lang.llm.accounting import Ledger, accounted
from koi_lang.llm.catalogue import PROVIDERS, STAND_INS, KeyLookup, key_of, provider_named
from koi_lang.llm.choice import Choice, choose
from koi_lang.llm.connection import Connection, Provider, Secret
from koi_lang.llm.fallback import fallback
from koi_lang.llm.layers import OnEvent, tell_nobody
from koi_lang.llm.messages import Adapter
from koi_lang.llm.retry import Sleep, retry
from koi_lang.llm.streaming import SdkModel

__all__ = ["PROVIDERS", "STAND_INS", "Surroundings", "connect", "provider_named"]

Note: TypeAlias = Callable[[str], None]
INHERITED = ("temperature", "max_tokens", "cache")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the layers around a model work with.

    Attributes:
        ledger: where every answer is entered; None keeps no account.
        on_event: told when a request is repeated or another model steps in.
        sleep: waits between attempts.
        cache_folder: where answers are kept for blocks that say `cache: true`; None keeps none.
        ollama: the address `auto` looks at for a running Ollama, as in OLLAMA_HOST; None does not look.
    """

    ledger: Ledger | None = None
    on_event: OnEvent = tell_nobody
    sleep: Sleep = asyncio.sleep
    cache_folder: Path | None = None
    ollama: str | None = None


NOTHING_AROUND = Surroundings()


def connect(
    options: Mapping[str, Any],
    key: KeyLookup,
    *,
    on_note: Note | None = None,
    around: Surroundings = NOTHING_AROUND,
) -> Adapter:
    """The model that an `llm` block asks for; the caller closes it.

    Args:
        options: `provider`, `model`, `temperature`, `max_tokens`, `base_url`, `cache`; for `scripted` also `answers`,
            a list or the path of a file. Absent and `auto` mean: choose. `model` may be `provider/model`. `fallback`
            lists models to ask when this one cannot answer: names as for `model`, or objects with such options.
        key: the value of a key by the name of its environment variable, None when it is not known.
        on_note: told by the rehearsal model which sentences would need a real one.

    Raises:
        MissingKey: a provider is named whose key is not known.
        ProviderError: the provider does not exist.
        SettingsError: `fallback` is not a list of models.
    """
    models = [_model(each, key, on_note, around) for each in (options, *_alternatives(options))]
    model = fallback(models, around.on_event) if len(models) > 1 else models[0]
    return accounted(model, around.ledger) if around.ledger is not None else model


def _alternatives(options: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The options of each model in `fallback`, with what they leave open taken from the first model."""
    listed = options.get("fallback") or []
    inherited = {name: options[name] for name in INHERITED if name in options}
    if isinstance(listed, list) and all(isinstance(each, (str, Mapping)) for each in listed):
        return [inherited | ({"model": each} if isinstance(each, str) else dict(each)) for each in listed]
    raise SettingsError(
        "`fallback` of an `llm` block is not a list of models",
        help='Write for example `fallback: ["anthropic/sonnet", "ollama/llama3.2"]`.',
    )


def _model(options: Mapping[str, Any], key: KeyLookup, on_note: Note | None, around: Surroundings) -> Adapter:
    choice = choose(options, key, ollama=around.ollama)
    if choice.provider == "rehearsal":
        return _rehearsal(on_note)
    if choice.provider == "scripted":
        return _scripted(options.get("answers"))
    connection = _connection(choice, options, key)
    adapter = _adapter(connection)
    model = retry(adapter, sleep=around.sleep, on_event=around.on_event)
    if not options.get("cache") or around.cache_folder is None:
        return model
    from koi_lang.llm.answer_cache import cached

    return cached(model, around.cache_folder, adapter.connection, around.on_event)


def _connection(choice: Choice, options: Mapping[str, Any], key: KeyLookup) -> Connection:
    provider = provider_named(choice.provider)
    base_url = options.get("base_url") or choice.base_url
    value = key_of(provider, key)
    if provider.keys and provider.needs_key and not value and not base_url:
        raise _missing_key(provider)
    return Connection(
        provider,
        Secret(value),
        choice.model or provider.model,
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


def _adapter(connection: Connection) -> SdkModel:
    if connection.provider.style == "anthropic":
        from koi_lang.llm.anthropic import Anthropic

        return Anthropic(connection)
    if connection.provider.style == "bedrock":
        from koi_lang.llm.bedrock import Bedrock

        return Bedrock(connection)
    from koi_lang.llm.openai import OpenAI

    return OpenAI(connection)


def _rehearsal(on_note: Note | None) -> Adapter:
    from koi_lang.llm.rehearsal import Rehearsal

    return Rehearsal(on_note)


def _scripted(answers: Any) -> Adapter:
    from koi_lang.llm.scripted import Scripted, read_answers

    return Scripted(read_answers(Path(answers)) if isinstance(answers, str) else answers or [])
