"""Imports of the SDKs of providers, begun before the first request needs one: each takes up to a second."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib import import_module
from threading import Thread
from typing import Any

from koi_lang.errors import ProviderError
from koi_lang.llm.model_choice import choose
from koi_lang.llm.providers import STAND_INS, KeyLookup, provider_named

# What the SDKs load for their first request; where a release has it elsewhere, that request does load it. A part of a
# package stands here only where the SDKs have loaded the package: one thread that begins with a package while another
# begins with a part of it gets it half done.
CONNECTIONS = ("h11", "httpcore2", "anyio._backends._asyncio")
SDKS: Mapping[str, str] = {"openai": "openai", "anthropic": "anthropic", "bedrock": "anthropic"}


def sdk_of(options: Mapping[str, Any], key: KeyLookup) -> str | None:
    """The package through which the model of an `llm` block is asked.

    None where no request is sent, where that shows only when it is tried, and where nothing can be asked.
    """
    try:
        provider = choose(options, key).provider
        return None if provider in STAND_INS else SDKS[provider_named(provider).style]
    except ProviderError:  # told by whoever asks that model
        return None


def begin_imports(blocks: Iterable[Mapping[str, Any]], key: KeyLookup) -> None:
    """Import the SDKs that some `llm` blocks need in a thread, unless they are there."""
    wanted = {sdk_of(options, key) for options in blocks} - {None}
    if names := sorted(str(name) for name in wanted if name not in sys.modules):
        Thread(target=_import_all, args=(names,), daemon=True, name=f"import {', '.join(names)}").start()


def _import_all(names: Iterable[str]) -> None:
    for name in names:
        import_module(name)
    for name in CONNECTIONS:
        with suppress(ImportError):
            import_module(name)
