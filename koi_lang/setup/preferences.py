"""The model options that result from `-m`, `koi.toml` and an `llm` block."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from koi_lang.errors import KoiError, SettingsError
from koi_lang.lazy import lazy_module
from koi_lang.setup.keys.lookup import Keys

if TYPE_CHECKING:
    from koi_lang.llm import model_choice
    from koi_lang.settings import project
    from koi_lang.setup import availability
else:
    model_choice = lazy_module("koi_lang.llm.model_choice")
    availability = lazy_module("koi_lang.setup.availability")
    project = lazy_module("koi_lang.settings.project")

OPEN = (None, "", "auto")
NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Preferences:
    """The preferences of the person over the program.

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
        return model_choice.place_model(self.model, llm, self.usual)

    def _options(self, llm: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        if self.model:
            return {**{name: llm[name] for name in model_choice.KEPT if name in llm}, **self.model_options(llm)}, True
        usual = self.usual.get("default")
        if usual and llm.get("provider") in OPEN and llm.get("model") in OPEN and not llm.get("base_url"):
            return {**usual, **{name: value for name, value in llm.items() if value not in OPEN}}, True
        return dict(llm), llm in self.usual.values()

    @cached_property
    def blocks(self) -> Mapping[str, Callable[[], Mapping[str, Any]]]:
        """The roles of `koi.toml` as agents declare theirs."""
        return {role: partial(dict, options) for role, options in self.usual.items()}


def name_of(options: Mapping[str, Any]) -> str:
    """How a person calls the model that some options name: `provider/model`, or else the address of its server."""
    named = "/".join(str(options[part]) for part in ("provider", "model") if part in options)
    return named or str(options.get("base_url", ""))


def preferences(model: str | None, keys: Keys, effort: str = "") -> Preferences:
    """The preferences of the person in a project. Raises KoiError for an unknown provider, or one without the role."""
    usual = project.models(keys.settings) if keys.settings.has_project_file else {}
    if not usual and not model:
        return Preferences(keys, effort=effort)
    for role, options in usual.items():
        try:
            availability.require_role(role, options)
        except KoiError as error:
            message = f"`{role}` in `[models]` of `koi.toml`: {error.message}"
            raise SettingsError(message, help=error.help) from error
    if model:
        availability.require_provider({"model": model})
        model = availability.with_provider(model, keys, usual)
    return Preferences(keys, model or "", usual, effort)
