"""Answers kept on disk: a model turned into one that gives the same answer to the same request without asking again."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from dataclasses import asdict, replace
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

from koi_lang.errors import SettingsError
from koi_lang.llm.connection import Connection
from koi_lang.llm.layers import Layer, opened
from koi_lang.llm.messages import Adapter, Delta, Finished, Request, TextDelta, Usage, stream_text

FORM = 1  # of keys and entries; a new number forgets all that was kept
MOST_BYTES = 256 * 2**20
WHOLE = frozenset({"stop", "end_turn", "stop_sequence"})
PRIVATE = 0o700


def cached(model: Adapter, folder: Path, connection: Connection) -> Adapter:
    """A model that keeps whole answers in a folder of this user and gives them again to equal requests.

    Equal are requests that agree in provider, address, model, texts, temperature, limit and form of the answer.

    Args:
        folder: made when the first request comes; nobody else may read it.
        connection: how `model` is reached, for what requests leave open.
    """
    return _Cached(model, folder, connection)


class _Cached(Layer):
    def __init__(self, inner: Adapter, folder: Path, connection: Connection) -> None:
        super().__init__(inner)
        self._folder, self._connection = folder, connection
        self._store: Any = None

    async def __call__(self, request: Request) -> AsyncIterator[Delta]:
        store, key = self._opened_store(), _key(self._connection.complete(request), self._connection)
        kept = _entry(store.get(key))
        if kept is not None:
            async for delta in _replayed(*kept):
                yield delta
            return
        pieces: list[str] = []
        async with opened(self.inner, request) as stream:
            async for delta in stream:
                if isinstance(delta, TextDelta):
                    pieces.append(delta.text)
                elif delta.stop_reason in WHOLE:
                    store.set(key, _packed("".join(pieces), delta.usage))
                yield delta

    async def aclose(self) -> None:
        """Close the store and the model inside."""
        store, self._store = self._store, None
        if store is not None:
            store.close()
        await super().aclose()

    def _opened_store(self) -> Any:
        """The store, opened once; it is read and written in place, since an entry takes a fraction of a millisecond."""
        if self._store is None:
            _make_private(self._folder)
            diskcache = import_module("diskcache")
            self._store = diskcache.Cache(str(self._folder), size_limit=MOST_BYTES)
        return self._store


def _make_private(folder: Path) -> None:
    """Make a folder that only this user enters: entries hold what was said, and are trusted when read."""
    folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
    found = folder.stat()
    if hasattr(os, "getuid") and found.st_uid != os.getuid():
        raise SettingsError(f"the folder for answers, `{folder}`, belongs to somebody else", help="Choose another one.")
    folder.chmod(PRIVATE)


def _key(request: Request, connection: Connection) -> str:
    about = {
        "form": FORM,
        "provider": connection.provider.name,
        "base_url": connection.base_url,
        "model": request.model,
        "system": request.system,
        "messages": [(turn.role, turn.text) for turn in request.messages],
        "temperature": request.temperature,
        "max_tokens": request.max_tokens,
        "json": request.json,
        "schema": request.schema,
    }
    return sha256(json.dumps(about, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()


def _packed(text: str, usage: Usage | None) -> str:
    return json.dumps({"text": text, "usage": usage and asdict(usage)})


def _entry(packed: Any) -> tuple[str, Usage | None] | None:
    """A kept answer; None where there is none, or something that is none."""
    try:
        loaded = json.loads(packed)
        usage = loaded["usage"]
        return str(loaded["text"]), Usage(**usage) if usage else None
    except (KeyError, TypeError, ValueError):
        return None


async def _replayed(text: str, usage: Usage | None) -> AsyncIterator[Delta]:
    async for delta in stream_text(text, usage=usage):
        yield replace(delta, replayed=True) if isinstance(delta, Finished) else delta
