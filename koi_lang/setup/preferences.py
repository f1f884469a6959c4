"""What `-m`, `koi.toml` and an `llm` block say about a model, turned into the options of the one to be used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from koi_lang import settings
from koi_lang.errors import KoiError, SettingsError
from koi_lang.lazy import lazy_module
from koi_lang.llm.local_servers import is_address
from koi_lang.llm.model_choice import written_choice
from koi_lang.setup.keys.lookup import Keys

if TYPE_CHECKING:
    from koi_lang.llm import embeddings
    from koi_lang.settings import project
    from koi_lang.setup import availability
else:
    embeddings = lazy_module("koi_lang.llm.embeddings")
    availability = lazy_module("koi_lang.setup.availability")
    project = lazy_module("koi_lang.settings.project")

# What stays of a block when another model is used.
KEPT = ("temperature", "max_tokens", "cache", "effort", "top_p", "seed")
OPEN = (None, "", "auto")
NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Preferences:
    """What the person wants beside what the program says.

    Attributes:
        keys: where models find their keys.
        model: from the command line, `provider/model`; empty when nothing was said. Counts for all blocks.
        usual: the options for each role (`default`, `small`, `judge`, `embedding`) from `koi.toml`; they count where
            an agent names no model for a role.
        effort: how much models are to think, from the command line; empty when nothing was said. Counts for all blocks.
    """

    keys: Keys
    model: str = ""
    usual: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    effort: str = ""

    def options(self, llm: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        """The options that count for a block, and whether the person named their model."""
        chosen, is_named = self._options(llm)
        return {**chosen, **({"effort": self.effort} if self.effort else {})}, is_named

    def model_options(self, llm: Mapping[str, Any] = NO_OPTIONS) -> dict[str, Any]:
        """The model of the command line, at the address that a block or `koi.toml` has for its provider.

        Another model of the same provider stays at that address: what is meant for a server of one's own does not go to
        a company instead.

        Raises:
            SettingsError: there are several such addresses, and none belongs to this model.
        """
        if is_address(self.model):
            return {"model": self.model}
        provider, name = written_choice({"model": self.model})
        addresses = _addresses_in(llm, self.usual)
        if (provider, name) in addresses:
            return {"model": self.model, "base_url": addresses[provider, name]}
        fitting = {address for (maker, _), address in addresses.items() if maker == provider}
        if len(fitting) > 1:
            told = f"`koi.toml` has several addresses for `{provider}`, and none of them for `{self.model}`"
            help = f"Choose one of its models: {', '.join(f'`-m {maker}/{each}`' for maker, each in addresses)}."
            raise SettingsError(told, help=help)
        return {"model": self.model, **({"base_url": fitting.pop()} if fitting else {})}

    def _options(self, llm: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        if self.model:
            return {**{name: llm[name] for name in KEPT if name in llm}, **self.model_options(llm)}, True
        usual = self.usual.get("default")
        if usual and llm.get("provider") in OPEN and llm.get("model") in OPEN and not llm.get("base_url"):
            return {**usual, **{name: value for name, value in llm.items() if value not in OPEN}}, True
        return dict(llm), llm in self.usual.values()

    def blocks(self) -> dict[str, Callable[[], Mapping[str, Any]]]:
        """The roles of `koi.toml` as agents declare theirs."""
        return {role: partial(dict, options) for role, options in self.usual.items()}


def _addresses_in(llm: Mapping[str, Any], usual: Mapping[str, Mapping[str, Any]]) -> dict[tuple[str, str], str]:
    """The `base_url` of each model, by provider and name, of a block and of the roles that answer."""
    blocks = (llm, *(options for role, options in usual.items() if role != "embedding"))
    return {written_choice(each): each["base_url"] for each in blocks if each.get("base_url")}


def name_of(options: Mapping[str, Any]) -> str:
    """How a person calls the model that some options name: `provider/model`, as far as they say."""
    return "/".join(str(options[part]) for part in ("provider", "model") if part in options)


def preferences(folder: Path, model: str | None, keys: Keys, effort: str = "") -> Preferences:
    """What the person wants in a folder. Raises KoiError when a provider in it does not exist, or not for its role."""
    usual = project.models(folder) if settings.has_project_file(folder) else {}
    if not usual and not model:
        return Preferences(keys, effort=effort)
    for role, options in usual.items():
        try:
            availability.require_provider(options)
            if role == "embedding":
                embeddings.require_embeddings(options)
        except KoiError as error:
            message = f"`{role}` in `[models]` of `koi.toml`: {error.message}"
            raise SettingsError(message, help=error.help) from error
    if model:
        availability.require_provider({"model": model})
        providers = [maker for maker, name in _addresses_in(NO_OPTIONS, usual) if name == model and maker != "auto"]
        model = f"{providers[0]}/{model}" if providers else availability.with_provider(model, keys)
    return Preferences(keys, model or "", usual, effort)
