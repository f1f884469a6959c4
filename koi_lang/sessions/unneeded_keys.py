"""Programs whose models are looked at and not asked, so that nobody needs their keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from koi_lang import settings
from koi_lang.llm.model_choice import written_choice
from koi_lang.llm.providers import PROVIDERS, key_of
from koi_lang.runtime.agents.agent import Agent
from koi_lang.sessions.prepared import Prepared
from koi_lang.setup.keys.lookup import Keys

# Stands for a key; too short to be taken for a secret that is to be kept out of texts.
NO_KEY = "none"


def without_missing_keys(ready: Prepared, agents: Sequence[type[Agent]]) -> Prepared:
    """The same for runs that ask no model; each provider that is named for some agents has a key in it."""
    named = {name for agent in agents for name in _providers(ready, agent)}
    rows = [row for row in PROVIDERS if row.name in named and row.keys]
    lacking = {row.keys[0]: NO_KEY for row in rows if not key_of(row, ready.wanted.keys)}
    unasked = replace(ready, asks_models=False)
    if not lacking:
        return unasked
    known = settings.variables_in(ready.options.keys) if ready.options.keys else {}
    keys = Keys(ready.wanted.keys.settings, given={**known, **lacking}, found=ready.options.found)
    return replace(unasked, wanted=replace(ready.wanted, keys=keys))


def _providers(ready: Prepared, agent: type[Agent]) -> Iterator[str]:
    """The providers that are named for an agent, for any purpose; where none is, the keys that there are decide."""
    blocks = [*agent.about.llm.values(), *ready.wanted.blocks.values()] or [dict]
    for block in blocks:
        yield written_choice(ready.wanted.options(block())[0])[0]
