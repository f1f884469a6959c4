"""The model of an `llm` block, chosen from its provider and model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

from koi_lang.diagnostics import suggestion
from koi_lang.errors import SettingsError, UnknownModelError
from koi_lang.llm.local_servers import LOCAL, is_address, read_address
from koi_lang.llm.ollama import MAX_PROBE_S, models_at, origin_of
from koi_lang.llm.providers import (
    PROVIDERS,
    STAND_INS,
    KeyLookup,
    is_connected,
    is_known,
    makers_of,
    provider_named,
    split_model,
    suggest_provider,
)
from koi_lang.settings.project import ROLES
from koi_lang.system.loopback import is_loopback_url

Options: TypeAlias = Mapping[str, Any]
Roles: TypeAlias = Mapping[str, Options]
NO_ROLES: Roles = MappingProxyType({})
# What stays of a block when a model of another provider is used.
KEPT = ("temperature", "max_tokens", "cache", "effort", "top_p", "seed")
# Providers that servers of a person's own are reached as.
SERVERS = ("openai", "ollama", LOCAL)


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A provider or stand-in by its name; model and address are empty where its own defaults hold."""

    provider: str
    model: str = ""
    base_url: str = ""


def choose(
    options: Mapping[str, Any], key: KeyLookup, *, ollama: str | None = None, limit_s: float = MAX_PROBE_S
) -> ModelChoice:
    """The provider and model meant by `provider` and `model`, each of which may be absent or `auto`.

    A named provider is taken as it is; then counts `provider/model` or the address of a server, the maker of the named
    model, the server at `base_url`, the first provider that is connected, an Ollama that runs, and at last the
    rehearsal.

    Args:
        ollama: the address to look at for a running Ollama; None does not look.
        limit_s: how long that may take.

    Raises:
        ProviderError: `provider/model` mistypes a provider.
    """
    provider, model = written_choice(options)
    if provider == "ollama" and ollama:
        return ModelChoice(provider, model, _base_url(ollama))
    if provider == LOCAL and is_address(str(options.get("model"))):
        return ModelChoice(provider, model, read_address(str(options["model"]))[0])
    if _is_named_like_a_provider(options, provider, key):
        return ModelChoice(LOCAL, str(options["model"]))
    if provider != "auto":
        return ModelChoice(provider, model)
    connected = [each for each in PROVIDERS if is_connected(each, key)]
    makers = makers_of(model)
    if connected:
        own = [each for each in connected if each.name == LOCAL]  # what a person has set up counts before companies
        return ModelChoice((makers or own or connected)[0].name, model)
    return _running_ollama(ollama, model, limit_s) if ollama else ModelChoice("rehearsal")


def written_choice(options: Mapping[str, Any]) -> tuple[str, str]:
    """Provider and model as they are written; the provider is `auto` where it is to be chosen.

    At a `base_url` it is a server of the person's own, unless a provider or a model of one is named.

    Raises:
        ProviderError: `provider/model` mistypes a provider.
        UsageError: the address of a server is none.
    """
    provider = str(options.get("provider") or "auto").lower()
    model = str(options.get("model") or "")
    model = "" if model == "auto" else model
    if is_address(model):
        return LOCAL, read_address(model)[1]
    maker, rest = split_model(model)
    if provider != "auto":
        return provider, model
    if rest and (meant := suggest_provider(maker.lower())):
        raise UnknownModelError(f"there is no provider `{maker}`", help=f"Did you mean `{meant}/{rest}`?")
    if not is_known(maker.lower()):
        is_of_server = bool(options.get("base_url")) and not makers_of(model)
        return LOCAL if is_of_server else provider, model
    return maker.lower(), "" if rest == "auto" else rest


def place_model(model: str, llm: Options, usual: Roles = NO_ROLES) -> dict[str, Any]:
    """The options of a model that a person names, at the address that a block or `koi.toml` has for its provider.

    Raises:
        SettingsError: there are several such addresses, and none belongs to this model.
    """
    if is_address(model):
        return {"model": model}
    provider, name = _maker_and_name({"model": model})
    addresses = addresses_in(llm, usual)
    if (provider, name) in addresses:
        return {"model": model, "base_url": addresses[provider, name]}
    fitting = {address for (maker, _), address in addresses.items() if maker == provider}
    if len(fitting) > 1:
        message = f"`koi.toml` has several addresses for `{provider}`, and none of them for `{model}`"
        help = f"Choose one of its models: {', '.join(f'`-m {maker}/{each}`' for maker, each in addresses)}."
        raise SettingsError(message, help=help)
    return {"model": model, **({"base_url": fitting.pop()} if fitting else {})}


def addresses_in(llm: Options, usual: Roles) -> dict[tuple[str, str], str]:
    """The `base_url` of each model, by provider and name, of a block and of the roles that answer."""
    blocks = (llm, *(options for role, options in usual.items() if role != "embedding"))
    return {_maker_and_name(each): each["base_url"] for each in blocks if each.get("base_url")}


def exchange_model(block: Options, named: Options, usual: Roles = NO_ROLES) -> dict[str, Any]:
    """A block with other options, such as those of one call.

    A bare name is a model of the provider, at the address, of the block. A model of another provider takes neither
    address nor key of the block along: it is placed as one that a person names.

    Raises:
        KoiError: as `place_model` and `written_choice` raise it.
    """
    model = str(named.get("model") or "")
    if not model:
        return {**block, **named}
    (first, _), (meant, name) = written_choice(block), written_choice({"model": model})
    if meant == "auto" and first != "auto":
        return {**block, **({} if "/" in model else {"provider": first}), **named}
    if meant == first != "auto" and not is_address(model):
        return {**block, **named, "provider": first, "model": name}
    if not block.get("base_url") or _maker_and_name(block)[0] == _maker_and_name({"model": model})[0]:
        return {**block, **({"provider": "auto"} if "provider" in block else {}), **named}
    return {**{name: block[name] for name in KEPT if name in block}, **place_model(model, block, usual), **named}


def _maker_and_name(options: Options) -> tuple[str, str]:
    """The provider of some options, or of the maker of their model where none is written, and the model."""
    provider, model = written_choice(options)
    makers = makers_of(model) if provider == "auto" else []
    return (makers[0].name if makers else provider), model


def is_role(name: Any) -> bool:
    """Whether a name is a role of models."""
    return name in ROLES


def require_role(name: str, agent: str) -> None:
    """Raise SettingsError where the block of an agent names a role that there is not."""
    if not is_role(name):
        help = suggestion(name, ROLES, "role of models")
        raise SettingsError(f"`llm` of `{agent}` names no role `{name}`", help=help)


def _is_named_like_a_provider(options: Mapping[str, Any], provider: str, key: KeyLookup) -> bool:
    """Whether a name such as `qwen`, `Qwen/Qwen3-8B` or `mistral-7b` is that of a model at a `base_url`.

    It is, unless the provider that is called so, or makes models that are called so, is connected.
    """
    written, address = str(options.get("model") or ""), str(options.get("base_url") or "")
    if not address or str(options.get("provider") or "auto") != "auto" or provider in SERVERS:
        return False
    if provider == "auto":
        return not any(is_connected(each, key) for each in makers_of(written))
    if provider in STAND_INS or written.startswith((f"{provider}/", f"{provider}:")):
        return False
    return is_loopback_url(address) or not is_connected(provider_named(provider), key)


def _running_ollama(address: str, model: str, limit_s: float) -> ModelChoice:
    wanted = model or provider_named("ollama").model
    installed = models_at(address, limit_s=limit_s)
    fitting = [name for name in installed if name == wanted or name.partition(":")[0] == wanted]
    if not fitting and model:  # somebody else's model, or one that is not there
        return ModelChoice("rehearsal")
    names = fitting or installed
    return ModelChoice("ollama", names[0], _base_url(address)) if names else ModelChoice("rehearsal")


def _base_url(address: str) -> str:
    return f"{origin_of(address)}/v1"
