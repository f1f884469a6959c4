"""The options of an `llm` block turned into a model with its layers around it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from koi_lang.errors import MissingKeyError, ProviderError, SettingsError, UnknownModelError
from koi_lang.lazy import lazy_module
from koi_lang.llm.anthropic import Anthropic
from koi_lang.llm.bedrock import Bedrock
from koi_lang.llm.cards import CARDS
from koi_lang.llm.connection import INTERFACES, TRANSPORTS, Provider, ProviderConnection, Secret
from koi_lang.llm.fallback import fallback
from koi_lang.llm.layers import OnEvent, ignore_event
from koi_lang.llm.local_servers import (
    ADDRESS_VARIABLE,
    LOCAL,
    has_host,
    only_address,
    origin,
    read_address,
    unclear_model,
)
from koi_lang.llm.messages import Adapter
from koi_lang.llm.model_choice import ModelChoice, choose, exchange_model, written_choice
from koi_lang.llm.model_list_cache import ModelListCache
from koi_lang.llm.model_name_check import nearest_models, with_name_check
from koi_lang.llm.models import card_of
from koi_lang.llm.openai import OpenAI
from koi_lang.llm.openai_responses import OpenAIResponses
from koi_lang.llm.providers import PROVIDERS, STAND_INS, KeyLookup, key_of, makers_of, provider_named, split_model
from koi_lang.llm.request_trial import Refused
from koi_lang.llm.reserved_fields import RESERVED, reserved_help
from koi_lang.llm.retry import Sleep, retry
from koi_lang.llm.scripted import ScriptedModel, read_answers
from koi_lang.llm.sdk_model import SdkModel
from koi_lang.llm.thinking import available_effort
from koi_lang.settings.efforts import EFFORTS, effort_help

if TYPE_CHECKING:
    from koi_lang.llm import answer_cache, rehearsal
    from koi_lang.llm.stream_recording import StreamStore
else:
    answer_cache = lazy_module("koi_lang.llm.answer_cache")
    rehearsal = lazy_module("koi_lang.llm.rehearsal")


__all__ = ["PROVIDERS", "STAND_INS", "ModelEnvironment", "connect", "connection_to", "provider_named"]

Note: TypeAlias = Callable[[str], None]
Make: TypeAlias = Callable[[Mapping[str, Any], KeyLookup], Adapter]
# Options by which a model of a `fallback` says itself where it is.
OWN = frozenset({"provider", "base_url"})
INHERITED = ("temperature", "max_tokens", "cache", "effort", "top_p", "seed", "transport")


@dataclass(frozen=True, slots=True)
class ModelEnvironment:
    """The environment of the layers around a model.

    Attributes:
        on_event: told when a request is repeated or another model steps in.
        sleep: waits between attempts.
        cache_folder: where answers are kept for blocks that say `cache: true`; None keeps none.
        ollama: the address `auto` looks at for a running Ollama, as in OLLAMA_HOST; None does not look.
        lists: what providers say about their models; a name that is not among them is not asked. None knows nothing.
        ask_for_lists: whether a list that is not there yet is asked for.
        providers: those that extensions add, by name: a row, or a function that makes a model of the options of an
            `llm` block and what finds keys.
        note: is told what of the options a model does not take, a sentence each.
        refused: what models were found not to take of requests; those that share it find it out once.
        nearby: the addresses of servers of models on this machine, for `local` where none is connected.
        streams: keeps what providers send, for a corpus; None keeps nothing.
    """

    on_event: OnEvent = ignore_event
    sleep: Sleep = asyncio.sleep
    cache_folder: Path | None = None
    ollama: str | None = None
    lists: ModelListCache | None = None
    ask_for_lists: bool = False
    providers: Mapping[str, Provider | Make] = field(default_factory=dict)
    note: Note = lambda line: None
    refused: Refused = field(default_factory=dict)
    nearby: Callable[[], Sequence[str]] = tuple
    streams: StreamStore | None = None


NOTHING_AROUND = ModelEnvironment()


def connect(
    options: Mapping[str, Any],
    key: KeyLookup,
    *,
    on_note: Note | None = None,
    around: ModelEnvironment | None = None,
) -> Adapter:
    """The model that an `llm` block asks for; the caller closes it.

    Args:
        options: `provider`, `model`, `temperature`, `max_tokens`, `effort`, `top_p`, `seed`, `extra_body`, `base_url`,
            `transport`, `interface`, `cache`; for `scripted` also `answers`, a list or the path of a file. Absent and
            `auto` mean: choose. `model` may be `provider/model`. `fallback` lists models to ask when this one cannot
            answer: names as for `model`, or objects with such options.
        key: the value of a key by the name of its environment variable, None when it is not known.
        on_note: told by the rehearsal model which sentences would need a real one.
        around: what the model shares with others; by default nothing, also not what it was found not to take.

    Raises:
        MissingKeyError: a provider is named whose key is not known.
        ProviderError: the provider does not exist.
        SettingsError: `fallback` is not a list of models, or an option is of another kind.
    """
    around = around or ModelEnvironment()
    models = [_model(each, key, on_note, around) for each in (options, *alternatives(options))]
    return fallback(models, around.on_event) if len(models) > 1 else models[0]


def alternatives(options: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The options of each model in `fallback`, completed by those of the first model.

    Raises:
        SettingsError: it is not a list of models.
    """
    listed = options.get("fallback") or []
    inherited = {name: options[name] for name in INHERITED if name in options}
    if isinstance(listed, list) and all(isinstance(each, (str, Mapping)) for each in listed):
        first = {name: options[name] for name in ("provider", "model", "base_url") if options.get(name)}
        others: list[Mapping[str, Any]] = [{"model": each} if isinstance(each, str) else each for each in listed]
        return [{**inherited, **(each if OWN & each.keys() else exchange_model(first, each))} for each in others]
    raise SettingsError(
        "`fallback` is not a list of models", help='Give one such as `["anthropic/sonnet", "ollama/llama3.2"]`.'
    )


def _model(options: Mapping[str, Any], key: KeyLookup, on_note: Note | None, around: ModelEnvironment) -> Adapter:
    name, model_name = extension_choice(options, around)
    row = around.providers.get(name)
    if row is not None and not isinstance(row, Provider):
        made = _make_model(name, row, {**options, "model": model_name}, key)
        return retry(made, sleep=around.sleep, on_event=around.on_event)
    choice = ModelChoice(name, model_name) if row is not None else choose(options, key, ollama=around.ollama)
    if choice.provider == LOCAL and not (choice.base_url or options.get("base_url") or key(ADDRESS_VARIABLE)):
        choice = replace(choice, base_url=only_address(around.nearby()))
    if choice.provider == "rehearsal":
        if around.ask_for_lists:
            _require_stand_in(options)
        return rehearsal.Rehearsal(on_note)
    if choice.provider == "scripted":
        answers = options.get("answers")
        return ScriptedModel(read_answers(Path(answers)) if isinstance(answers, str) else answers or [])
    connection = describe_server(connection_to(choice, options, key, row), around)
    adapter = _adapter(connection)
    adapter.note = around.note
    adapter.refused = around.refused
    adapter.streams = around.streams
    for line in untaken_options(adapter.connection):
        around.note(line)
    model = retry(adapter, sleep=around.sleep, on_event=around.on_event)
    if options.get("cache") and around.cache_folder is not None:
        model = answer_cache.with_answer_cache(model, around.cache_folder, adapter.connection, around.on_event)
    if around.lists is None:
        return model
    return with_name_check(model, adapter.connection, around.lists, ask=around.ask_for_lists)


def _require_stand_in(options: Mapping[str, Any]) -> None:
    """Raise ProviderError when a person named a model that nothing here can reach; they did not mean a rehearsal."""
    provider, name = written_choice(options)
    if provider != "auto" or not name:
        return
    if makers := makers_of(name):
        raise _missing_key(makers[0])
    known = [each for card in CARDS for each in card.names.split() if not set("*[") & set(each)]
    near = nearest_models(name, known)
    meant = f"Did you mean {' or '.join(f'`{each}`' for each in near)}? " if near else ""
    help = f"{meant}Write `provider/model`, such as `openai/gpt-5.4-mini`; `koi connect` stores a key."
    raise UnknownModelError(f"no provider that is set up has a model `{name}`", help=help)


def extension_choice(options: Mapping[str, Any], around: ModelEnvironment) -> tuple[str, str]:
    """The provider of an extension that `provider`, or `model: "provider/model"`, names, and the model; else empty."""
    provider, model = str(options.get("provider") or "auto").lower(), str(options.get("model") or "")
    maker, rest = split_model(model)
    if provider == "auto" and maker.lower() in around.providers:
        provider, model = maker.lower(), rest
    return (provider, "" if model == "auto" else model) if provider in around.providers else ("", "")


def _make_model(name: str, make: Make, options: Mapping[str, Any], key: KeyLookup) -> Adapter:
    model = make(options, key)
    if not callable(model) or not all(hasattr(model, part) for part in ("provider", "model", "aclose")):
        message = f"the provider `{name}` of an extension made {model!r}, which is no model"
        raise ProviderError(message, help="A model is called with a request, and has `provider`, `model` and `aclose`.")
    return model


def connection_to(
    choice: ModelChoice, options: Mapping[str, Any], key: KeyLookup, row: Provider | None = None
) -> ProviderConnection:
    """How the chosen provider is reached; `NAME_BASE_URL` counts where the options name no address.

    The key of servers of a person's own goes to the server at `LOCAL_BASE_URL`, and to no other: any other address may
    come with a folder.

    Args:
        row: the provider, where it stands in no table.

    Raises:
        MissingKeyError: the provider needs a key that is not known, or an address.
    """
    provider = row or provider_named(choice.provider)
    own = read_options(options)
    usual = key(f"{provider.name.upper()}_BASE_URL")
    base_url = options.get("base_url") or choice.base_url or usual
    value, model = key_of(provider, key), choice.model
    if provider.name == LOCAL and base_url:
        base_url, usual_name = read_address(str(base_url))
        model = model or usual_name
        value = value if usual and origin(usual) == origin(base_url) else ""
    if provider.keys and provider.needs_key and not value and not base_url:
        raise _missing_key(provider)
    if provider.name == LOCAL and not base_url:
        raise MissingKeyError(
            "no server of your own is connected",
            help="Connect one with `koi connect http://127.0.0.1:8080/v1`, or name it: `-m http://127.0.0.1:8080/v1`.",
        )
    # A server of one's own without a model is asked which one it has.
    usual_model = "" if provider.name == "openai" and base_url and not value else provider.model
    return ProviderConnection(
        provider,
        Secret(value),
        model or usual_model,
        str(base_url) if base_url else None,
        **own,
    )


def describe_server(connection: ProviderConnection, around: ModelEnvironment) -> ProviderConnection:
    """A connection to a local server with the server's data on the model; its only one, if none is named.

    Raises:
        ProviderError: no model is named, and the server does not answer, or has several.
    """
    if not connection.is_own_server or around.lists is None:
        return connection if connection.model else replace(connection, model=connection.provider.model)
    known = around.lists.look(connection)
    models = known.models if known is not None else ()
    answering = [model for model in models if model.answers]
    wanted = connection.model
    model = next((each for each in models if wanted in (each.name, each.id)), None)
    if not wanted:
        if len(answering) != 1:
            raise unclear_model(str(connection.base_url), [each.name for each in answering])
        model = answering[0]
    if model is None:
        return connection
    if connection.transport == "tools" and model.has_tools is False:
        around.note(f"`{model.name}` is told of its actions in text, since the template of its server has no tools")
    return replace(
        connection,
        model=model.name,
        id=model.id,
        context_tokens=model.context_tokens,
        has_tools=model.has_tools,
        parameters=model.parameters,
    )


def _missing_key(provider: Provider) -> MissingKeyError:
    name = provider.keys[0]
    return MissingKeyError(
        f"the provider `{provider.name}` needs a key, and `{name}` is not set",
        help=f"Store one with `koi connect {provider.name}`, or set it with `export {name}=…`.",
    )


def _adapter(connection: ProviderConnection) -> SdkModel:
    if connection.provider.style == "anthropic":
        return Anthropic(connection)
    if connection.provider.style == "bedrock":
        return Bedrock(connection)
    if connection.interface_of(card_of(connection.model)) == "responses":
        return OpenAIResponses(connection)
    return OpenAI(connection)


def read_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that say how a model is asked, as fields of a connection; `base_url` and `cache` are checked alone.

    Raises:
        SettingsError: one of them is of another kind, or `extra_body` would replace what requests say themselves.
    """
    effort, address = options.get("effort"), options.get("base_url")
    if effort is not None and effort not in EFFORTS:
        raise SettingsError(f"`effort` cannot be {effort!r}", help=effort_help(effort))
    if address and not (isinstance(address, str) and has_host(address)):
        raise SettingsError(f"`base_url` cannot be {address!r}", help="Give one such as `http://127.0.0.1:8080/v1`.")
    if not isinstance(options.get("cache") or False, bool):
        raise SettingsError(f"`cache` cannot be {options['cache']!r}", help="Give `true` or `false`, without quotes.")
    return {
        "temperature": _temperature(options.get("temperature")),
        "max_tokens": _max_tokens(options.get("max_tokens")),
        "effort": effort or "",
        "top_p": _top_p(options.get("top_p")),
        "seed": _seed(options.get("seed")),
        "extra_body": _extra_body(options.get("extra_body")),
        "transport": _word(options, "transport", TRANSPORTS),
        "interface": _word(options, "interface", INTERFACES),
    }


def untaken_options(connection: ProviderConnection) -> Iterator[str]:
    """The options that a model does not support, a sentence each."""
    card = card_of(connection.model)
    name = connection.model
    provider = connection.provider
    level = available_effort(connection.effort, provider, card)
    if connection.effort and not level:
        yield f"`{name}` cannot be told how much to think, so `effort` is left out"
    elif level != connection.effort:
        yield f"`{name}` has no effort `{connection.effort}`, so it is asked for `{level}`"
    thinks = provider.style != "openai" and level not in ("", "none")
    for option in ("temperature", "top_p"):
        if getattr(connection, option) is not None and (thinks or not card.sampling):
            yield f"`{name}` takes no `{option}`{' while it thinks' * card.sampling}, so it is left out"
    is_chat = connection.interface_of(card) == "chat"
    if connection.seed is not None and not (provider.seed and is_chat):
        yield f"{f'`{provider.name}`' if is_chat else 'the Responses interface'} takes no `seed`, so it is left out"
    if connection.interface is not None and provider.style != "openai":
        yield f"`{provider.name}` has one interface alone, so `interface` is left out"


def _word(options: Mapping[str, Any], name: str, words: Sequence[str]) -> str | None:
    """An option that is one of some words; None where it is not given."""
    given = options.get(name)
    if given is not None and given not in words:
        listed = " or ".join(f'`"{each}"`' for each in words)
        raise SettingsError(f"`{name}` cannot be {given!r}", help=f"Give {listed}.")
    return given


def _temperature(given: Any) -> float | None:
    if given is not None and (isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 <= given < inf):
        raise SettingsError(f"`temperature` cannot be {given!r}", help="Give a number from 0, such as 0.2.")
    return given


def _max_tokens(given: Any) -> int | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, (int, float)) or given < 1 or given % 1 != 0:
        raise SettingsError(f"`max_tokens` cannot be {given!r}", help="Give a whole number of tokens, such as 4000.")
    return int(given)


def _top_p(given: Any) -> float | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 < given <= 1:
        help = "Give a number above 0 and up to 1, such as 0.9."
        raise SettingsError(f"`top_p` cannot be {given!r}", help=help)
    return float(given)


def _seed(given: Any) -> int | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, (int, float)) or given % 1 != 0:
        raise SettingsError(f"`seed` cannot be {given!r}", help="Give a whole number, such as 7.")
    return int(given)


def _extra_body(given: Any) -> Mapping[str, Any]:
    """The fields of `extra_body`; no message shows their values, which may be secrets."""
    if given is None:
        return {}
    try:
        fields = json.loads(json.dumps(given, allow_nan=False)) if isinstance(given, Mapping) else None
    except (TypeError, ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        help = 'Give an object of fields, such as `extra_body: { service_tier: "flex" }`.'
        raise SettingsError("`extra_body` is no object that JSON can hold", help=help)
    for name in fields:
        if name.lower() in RESERVED:
            raise SettingsError(f"`extra_body` may not have `{name}`", help=reserved_help(name))
    return fields
