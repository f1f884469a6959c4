"""Options of an `llm` block that stand in the bodies of requests: what they may be, and what a model takes of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from koi_lang.efforts import EFFORTS, effort_help
from koi_lang.errors import SettingsError
from koi_lang.llm.connection import INTERFACES, TRANSPORTS, ProviderConnection
from koi_lang.llm.models import card_of
from koi_lang.llm.reserved_fields import RESERVED, reserved_help
from koi_lang.llm.thinking import available_effort


def read_body_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options `effort`, `top_p`, `seed`, `extra_body`, `transport`, `interface` as fields of a connection.

    Raises:
        SettingsError: one of them is of another kind, or `extra_body` would replace what requests say themselves.
    """
    effort = options.get("effort")
    if effort is not None and effort not in EFFORTS:
        raise SettingsError(f"`effort` of an `llm` block cannot be {effort!r}", help=effort_help(effort))
    return {
        "effort": effort or "",
        "top_p": _top_p(options.get("top_p")),
        "seed": _seed(options.get("seed")),
        "extra_body": _extra_body(options.get("extra_body")),
        "transport": _word(options, "transport", TRANSPORTS),
        "interface": _word(options, "interface", INTERFACES),
    }


def untaken_options(connection: ProviderConnection) -> Iterator[str]:
    """What of the options cannot be had of a model, a sentence each."""
    card, name, provider = card_of(connection.model), connection.model, connection.provider
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
        listed = " or ".join(f'`{name}: "{each}"`' for each in words)
        raise SettingsError(f"`{name}` of an `llm` block cannot be {given!r}", help=f"Write {listed}.")
    return given


def _top_p(given: Any) -> float | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 < given <= 1:
        help = "Give a number above 0 and up to 1, such as `top_p: 0.9`."
        raise SettingsError(f"`top_p` of an `llm` block cannot be {given!r}", help=help)
    return float(given)


def _seed(given: Any) -> int | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, (int, float)) or given % 1 != 0:
        raise SettingsError(f"`seed` of an `llm` block cannot be {given!r}", help="Give a whole number: `seed: 7`.")
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
        raise SettingsError("`extra_body` of an `llm` block is no object that JSON can hold", help=help)
    for name in fields:
        if name.lower() in RESERVED:
            raise SettingsError(f"`extra_body` of an `llm` block may not have `{name}`", help=reserved_help(name))
    return fields
