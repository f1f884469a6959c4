"""The model of a session, and the models to choose from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from koi_lang.errors import KoiError
from koi_lang.llm.connect import connect
from koi_lang.sessions.continuation import Continuation
from koi_lang.settings.efforts import EFFORTS
from koi_lang.setup.availability import all_reached, list_connections, require_model
from koi_lang.setup.keys.lookup import Keys
from koi_lang.setup.preferences import Preferences, preferences


class ModelSelection:
    """The model that a session uses, and what there is to choose from.

    Args:
        is_stood_in: whether no model outside of this process is to be asked.

    Attributes:
        providers: those that extensions add.
    """

    def __init__(self, wanted: Preferences, *, is_stood_in: bool = False) -> None:
        self.wanted, self._is_stood_in = wanted, is_stood_in
        self.providers: Mapping[str, Any] = {}

    def name(self) -> str:
        """What was chosen; empty where the program or `koi.toml` decides."""
        return self.wanted.model

    def go_on_with(self, earlier: Continuation, note: Callable[[str], None]) -> None:
        """Use the model and the effort of an earlier session, unless others have been chosen now.

        Args:
            note: is told which model, a line.
        """
        if earlier.model and not self.name():
            try:
                self.wanted = preferences(earlier.model, self.wanted.keys, self.effort())
            except KoiError as error:
                note(f"`{earlier.model}` cannot be used any more: {error.message}")
            else:
                note(f"answers come from {self.name()}, as before")
        if earlier.effort in EFFORTS and not self.effort():
            self.change_effort(earlier.effort)

    async def change(self, model: str) -> None:
        """Use another model from now on. Raises KoiError when it cannot be used, or its provider does not have it."""
        wanted = preferences(model, self.wanted.keys, self.wanted.effort)
        if self._is_stood_in:
            connect(wanted.model_options(), wanted.keys)
        else:
            await require_model(wanted.model_options(), wanted.keys, providers=self.providers)
        self.wanted = wanted

    def effort(self) -> str:
        """How much models are asked to think; empty where the program or `koi.toml` decides."""
        return self.wanted.effort

    def change_effort(self, effort: str) -> None:
        """Have models think so much from now on; empty leaves it to the program and `koi.toml`."""
        self.wanted = replace(self.wanted, effort=effort)

    async def available(self, refresh: bool) -> list[dict[str, Any]]:
        """The models of all providers that are connected."""
        keys: Keys = self.wanted.keys
        found = await all_reached(list_connections(keys, self.wanted.usual), refresh=refresh)
        return [
            {"model": f"{each.provider}/{model.name}", "provider": each.provider, **asdict(model)}
            for each in found
            for model in (each.known.models if each.known else ())
            if model.answers
        ]
