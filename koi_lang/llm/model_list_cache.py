"""Lists of models kept for a day, so that a mistyped name is noticed without asking anybody."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from threading import Thread
from typing import Any

from koi_lang.errors import RequestError
from koi_lang.llm.connection import ProviderConnection
from koi_lang.llm.model_listing import ModelInfo, address_of, models_of

DAY_S = 86_400.0
LOOK_S = 2.0


@dataclass(frozen=True, slots=True)
class CachedModelList:
    """The models of a provider as they were some time ago, in seconds since 1970."""

    asked: float
    models: tuple[ModelInfo, ...]

    def age_s(self) -> float:
        """How old the list is."""
        return max(0.0, time.time() - self.asked)

    @property
    def names(self) -> list[str]:
        """The names of the models."""
        return [model.name for model in self.models]


@dataclass(frozen=True, slots=True)
class ModelListCache:
    """The lists in a folder; each belongs to a provider at one address."""

    folder: Path

    def find(self, connection: ProviderConnection) -> CachedModelList | None:
        """The list that was kept last, however old."""
        try:
            return _read(json.loads(self._place(connection).read_text("utf-8")))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def keep(self, connection: ProviderConnection, models: Sequence[ModelInfo]) -> CachedModelList:
        """Keep a list; a folder that cannot be written to is no error."""
        known = CachedModelList(time.time(), tuple(models))
        place = self._place(connection)
        temporary = place.with_suffix(f".{os.getpid()}")
        with suppress(OSError):
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            temporary.write_text(json.dumps(asdict(known)), "utf-8")
            os.replace(temporary, place)
        return known

    async def current(
        self, connection: ProviderConnection, *, refresh: bool = False, **limits: float
    ) -> CachedModelList | None:
        """A list that is younger than a day, asked for if need be; None where there is none. Raises RequestError."""
        known = None if refresh else self.find(connection)
        if known is not None and known.age_s() < DAY_S:
            return known
        models = await models_of(connection, **limits)
        return None if models is None else self.keep(connection, models)

    def look(
        self, connection: ProviderConnection, limit_s: float = LOOK_S, *, fresh: bool = False
    ) -> CachedModelList | None:
        """The list of a server of one's own as it is now, else, unless that is too old, as it was kept.

        The look runs in a thread of its own, since whoever connects a model is no coroutine.
        """
        found = list[list[ModelInfo] | None]()

        def ask() -> None:
            with suppress(RequestError):
                found.append(asyncio.run(models_of(connection, limit_s=limit_s)))

        thread = Thread(target=ask, daemon=True, name="look at a server of models")
        thread.start()
        thread.join(limit_s)
        return self.keep(connection, found[0]) if found and found[0] else None if fresh else self.find(connection)

    def _place(self, connection: ProviderConnection) -> Path:
        mark = sha256(str(address_of(connection)).encode()).hexdigest()[:12]
        return self.folder / f"{connection.provider.name}-{mark}.json"


def _read(document: Any) -> CachedModelList:
    models = (ModelInfo(**{**each, "abilities": tuple(each["abilities"])}) for each in document["models"])
    return CachedModelList(float(document["asked"]), tuple(models))
