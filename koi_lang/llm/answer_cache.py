"""Answers kept on disk: a model turned into one that gives the same answer to the same request without asking again."""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from sqlite3 import Error
from typing import Any

import diskcache  # type: ignore[import-untyped]
from diskcache import Disk
from diskcache.core import MODE_RAW, MODE_TEXT, UNKNOWN  # type: ignore[import-untyped]

from koi_lang.errors import SettingsError
from koi_lang.events import AnswerCacheFailed
from koi_lang.llm.connection import ProviderConnection
from koi_lang.llm.layers import Layer, OnEvent, ignore_event, open_stream
from koi_lang.llm.messages import Adapter, Delta, Request, StreamEnd, TextDelta, Usage, stream_text

FORM = 1  # of keys and entries; a new number forgets all that was kept
MAX_BYTES = 256 * 2**20
WHOLE = frozenset({"stop", "end_turn", "stop_sequence"})
PRIVATE = 0o700
# What of a connection changes answers and stands in a key where it is said at all.
BODY_OPTIONS = ("effort", "top_p", "seed", "extra_body")
MAX_LOCK_S = 1
OWN_FILE = re.compile(r"[0-9a-f]{2}[/\\][0-9a-f]{2}[/\\][0-9a-f]{28}\.val")


def with_answer_cache(
    model: Adapter, folder: Path, connection: ProviderConnection, on_event: OnEvent = ignore_event
) -> Adapter:
    """A model that keeps whole answers in a folder of this user and gives them again to equal requests.

    Equal are requests that agree in provider, address, model, texts, images, form of the answer, and in options such as
    the temperature.

    Args:
        folder: made when the first request comes; nobody else may read it.
        connection: how `model` is reached, for what requests leave open.
        on_event: told `answer_cache_failed` when the folder cannot be read or written; the model is asked then.
    """
    return _Cached(model, AnswerStore(folder, on_event), connection)


class _Cached(Layer):
    def __init__(self, inner: Adapter, store: AnswerStore, connection: ProviderConnection) -> None:
        super().__init__(inner)
        self._store, self._connection = store, connection

    async def __call__(self, request: Request) -> AsyncIterator[Delta]:
        key = _key(self._connection.complete(request), self._connection)
        kept = _entry(self._store.get(key))
        if kept is not None:
            async for delta in _replay_answer(*kept):
                yield delta
            return
        pieces: list[str] = []
        async with open_stream(self.inner, request) as stream:
            async for delta in stream:
                if isinstance(delta, TextDelta):
                    pieces.append(delta.text)
                elif isinstance(delta, StreamEnd) and delta.stop_reason in WHOLE:
                    self._store.put(key, _pack_answer("".join(pieces), delta.usage))
                yield delta

    async def aclose(self) -> None:
        """Close the store and the model inside."""
        self._store.close()
        await super().aclose()


class AnswerStore:
    """Texts by key in a folder, opened by the first use; a broken one holds nothing.

    It is read and written in place: an entry takes a fraction of a millisecond.
    """

    def __init__(self, folder: Path, on_event: OnEvent) -> None:
        self._folder, self._on_event = folder, on_event
        self._cache: Any = None

    def get(self, key: str) -> Any:
        """The text of a key; None where there is none."""
        return self._with_cache(lambda cache: cache.get(key))

    def put(self, key: str, text: str) -> None:
        """Keep a text."""
        self._with_cache(lambda cache: cache.set(key, text))

    def close(self) -> None:
        """Give the files free; the next use opens them again."""
        cache, self._cache = self._cache, None
        if cache is not None:
            cache.close()

    def _with_cache(self, use: Callable[[Any], Any]) -> Any:
        """The result of using the cache; None, and an event, when it cannot be used."""
        try:
            if self._cache is None:
                _make_private(self._folder)
                self._cache = diskcache.Cache(
                    str(self._folder), timeout=MAX_LOCK_S, disk=TextDisk, size_limit=MAX_BYTES
                )
            return use(self._cache)
        except (Error, OSError, diskcache.Timeout) as error:
            self._on_event(AnswerCacheFailed(str(self._folder), str(error)))
            return None


def _make_private(folder: Path) -> None:
    """Make a folder that only this user can enter: entries hold conversations."""
    folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
    found = folder.stat()
    if hasattr(os, "getuid") and found.st_uid != os.getuid():
        raise SettingsError(f"the folder for answers, `{folder}`, belongs to somebody else", help="Choose another one.")
    folder.chmod(PRIVATE)


def _key(request: Request, connection: ProviderConnection) -> str:
    about = {
        "form": FORM,
        "provider": connection.provider.name,
        "base_url": connection.base_url,
        "model": request.model,
        "system": request.system,
        "messages": [(turn.role, turn.text, *(image.digest for image in turn.images)) for turn in request.messages],
        "temperature": request.temperature,
        "max_tokens": request.max_tokens,
        "json": request.json,
        "schema": request.schema,
        **{name: value for name in BODY_OPTIONS if (value := getattr(connection, name)) not in ("", None, {})},
    }
    return sha256(json.dumps(about, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()


def _pack_answer(text: str, usage: Usage | None) -> str:
    return json.dumps({"text": text, "usage": usage and asdict(usage)})


def _entry(packed: Any) -> tuple[str, Usage | None] | None:
    """A kept answer; None where there is none, or something that is none."""
    try:
        loaded = json.loads(packed)
        usage = loaded["usage"]
        return str(loaded["text"]), Usage(**usage) if usage else None
    except (KeyError, TypeError, ValueError):
        return None


async def _replay_answer(text: str, usage: Usage | None) -> AsyncIterator[Delta]:
    async for delta in stream_text(text, usage=usage):
        yield replace(delta, replayed=True) if isinstance(delta, StreamEnd) else delta


class TextDisk(Disk):  # type: ignore[misc]
    """Stores texts; other values on disk count as absent.

    `diskcache` unpickles what its files say is a pickle, which runs whatever somebody has put there.
    """

    def put(self, key: Any) -> Any:
        """The key in the table. Raises TypeError for a value that is no text."""
        return super().put(_required_text(key))

    def get(self, key: Any, raw: Any) -> Any:
        """A key from the table. Raises OSError for a value that is no text."""
        return _found_text(super().get(key, True))

    def store(self, value: Any, read: bool, key: Any = UNKNOWN) -> Any:
        """Store a value in the table, or in a file if it is long. Raises TypeError for a value that is no text."""
        return super().store(_required_text(value), False, key)

    def fetch(self, mode: Any, filename: Any, value: Any, read: bool) -> Any:
        """The value of a row. Raises OSError for a foreign value or place: the cache takes it for absent."""
        if mode not in (MODE_RAW, MODE_TEXT) or (mode == MODE_TEXT and not _is_own_file(filename)):
            raise OSError("an entry of the cache is no text")
        try:
            return _found_text(super().fetch(mode, filename, value, False))
        except UnicodeDecodeError as error:
            raise OSError("an entry of the cache is no text") from error

    def remove(self, file_path: Any) -> None:
        """Delete the file of a row; a name that is none of ours stays."""
        if _is_own_file(file_path):
            super().remove(file_path)


def _is_own_file(name: Any) -> bool:
    return isinstance(name, str) and OWN_FILE.fullmatch(name) is not None


def _required_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"the cache holds texts, no {type(value).__name__}")
    return value


def _found_text(value: Any) -> str:
    if not isinstance(value, str):
        raise OSError("an entry of the cache is no text")
    return value
