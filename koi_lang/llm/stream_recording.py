"""Recording of provider streams: bodies without headers, addresses and secrets."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import httpx2

from koi_lang.errors import CorpusError, reason
from koi_lang.llm.connection import ProviderConnection
from koi_lang.llm.recorded_stream import EVENTS, STREAM, CorpusStream, StreamAbout, write_entry
from koi_lang.version import __version__

Redact: TypeAlias = Callable[[str], str]
# Of one body, and of all bodies of a run, in bytes; longer ones are not kept.
MAX_BYTES, MAX_RUN_BYTES = 8 << 20, 256 << 20
MAX_STREAMS = 1000
# By which events tell the texts apart that grow at the same time.
NUMBERS = ("index", "output_index", "summary_index", "content_index")
# What ends a line of events, unlike other line breaks, which may stand in their texts.
LINE_END = re.compile(r"\r\n|\r|\n")
MEDIA_TYPE = re.compile(r"[a-z]+/[a-z0-9.+-]+")


class StreamStore:
    """The folder of a run in which streams are kept, a folder each, by their numbers.

    Args:
        redact: takes secrets out of a text.
        note: is told why nothing is kept, a line each.
    """

    def __init__(self, folder: Path, redact: Redact, note: Callable[[str], None]) -> None:
        self._folder = folder
        self._redact = redact
        self._note = note

    def hooks(self, connection: ProviderConnection, wire: str) -> dict[str, Any]:
        """Arguments for an HTTP client of a connection, with which the bodies of its responses are kept."""
        make_stream = partial(_stream_of, connection, wire)

        async def ask_for_plain_text(request: httpx2.Request) -> None:
            request.headers["accept-encoding"] = "identity"

        async def follow(response: httpx2.Response) -> None:
            if "content-encoding" not in response.headers and not response.is_redirect:
                response.stream = _FollowedStream(response.stream, partial(self._keep, partial(make_stream, response)))

        return {"event_hooks": {"request": [ask_for_plain_text], "response": [follow]}}

    async def _keep(self, make_stream: Callable[[bytes, str], CorpusStream], body: bytes, ending: str) -> None:
        try:
            await asyncio.to_thread(lambda: self._write(make_stream(body, ending)))
        except OSError as error:
            self._note(f"a stream is not kept: {reason(error)}")
        except CorpusError as error:
            self._note(f"a stream is not kept: {error.message}")

    def _write(self, stream: CorpusStream) -> None:
        clean = without_secrets(stream, self._redact)
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        known = list(self._folder.glob(f"*/{STREAM}"))
        size = sum(path.lstat().st_size for path in known)
        if self._folder.is_symlink() or len(known) >= MAX_STREAMS or size + len(clean.text) > MAX_RUN_BYTES:
            raise CorpusError("there are as many of this run as there may be")
        write_entry(self._new_folder(len(known) + 1), clean)

    def _new_folder(self, number: int) -> Path:
        """A folder that was not there, by the next number that is free."""
        while True:
            try:
                folder = self._folder / f"{number:04}"
                folder.mkdir(mode=0o700)
            except FileExistsError:
                number += 1
            else:
                return folder


def without_secrets(stream: CorpusStream, redact: Redact) -> CorpusStream:
    """A stream with its secrets replaced.

    Raises:
        CorpusError: one cannot be replaced: it is spread over several events, or is escaped otherwise than usual.
    """
    text = "\n".join(_redact_line(line, redact) for line in stream.text.split("\n"))
    if redact(text) != text or any(redact(said) != said for said in _texts_in(text)):
        raise CorpusError("a secret is spread over several of its lines, or is written in characters that stand for it")
    written = redact(json.dumps(stream.body, ensure_ascii=False))
    about = replace(stream.about, model=redact(stream.about.model))
    return CorpusStream(about, text, json.loads(written))


def _redact_line(line: str, redact: Redact) -> str:
    """A line of a body; the JSON of an event stays JSON."""
    name, colon, value = line.partition(":")
    if name != "data" or not colon:
        return redact(line)
    blank = value[: len(value) - len(value.lstrip())]
    return f"{name}:{blank}{redact(value[len(blank) :])}"


def _texts_in(text: str) -> Iterator[str]:
    """Every text that the values of a body hold, and those that its events say piece by piece, each as a whole."""
    grown: dict[tuple[Any, ...], list[str]] = {}
    for document in (text, *_events_in(text)):
        with suppress(ValueError, RecursionError):
            for place, piece in _pieces_in(json.loads(document), ()):
                grown.setdefault(place, []).append(piece)
    for pieces in grown.values():
        yield from dict.fromkeys(pieces)
        yield "".join(pieces)


def _events_in(text: str) -> Iterator[str]:
    """The data of each event, whose lines belong together."""
    data: list[str] = []
    for line in (*LINE_END.split(text), ""):
        if line.startswith("data:"):
            data.append(line.removeprefix("data:"))
        elif not line and data:
            yield "\n".join(data)
            data = []


def _pieces_in(value: Any, place: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], str]]:
    """The texts of an event, which may go on in the next one, with their places; names of fields among them."""
    if isinstance(value, dict):
        inner = (*place, *(value[name] for name in NUMBERS if isinstance(value.get(name), int)))
        for name, item in value.items():
            yield (*inner, "", name), name
            yield from _pieces_in(item, (*inner, name))
    elif isinstance(value, list):
        for item in value:
            yield from _pieces_in(item, place)
    elif isinstance(value, str):
        yield place, value


def _stream_of(
    connection: ProviderConnection, wire: str, response: httpx2.Response, body: bytes, ending: str
) -> CorpusStream:
    """The received stream without private parts of the connection. Raises CorpusError where it is too long."""
    if len(body) > MAX_BYTES:
        raise CorpusError(f"it is larger than {MAX_BYTES >> 20} MiB")
    kind = MEDIA_TYPE.match(response.headers.get("content-type", "").lower())
    about = StreamAbout(
        connection.provider.name,
        wire,
        connection.model,
        "recorded",
        date=datetime.now(UTC).date().isoformat(),
        status=response.status_code,
        content_type=kind[0] if kind else EVENTS,
        ending=ending,
        koi=__version__,
    )
    text = connection.hide_in(body.decode("utf-8", "replace"))
    return CorpusStream(about, text, _read_request(response.request.content, connection))


def _read_request(body: bytes, connection: ProviderConnection) -> Any:
    """The data of a request without additions of `extra_body`; None for no data, or too much."""
    try:
        data = json.loads(connection.hide_in(body.decode("utf-8", "replace"))) if len(body) <= MAX_BYTES else None
    except (ValueError, RecursionError):
        return None
    own = connection.extra_body
    return {name: value for name, value in data.items() if name not in own} if isinstance(data, dict) else None


class _FollowedStream(httpx2.AsyncByteStream):
    """A body that goes on to its reader, and is kept as far as it was read."""

    def __init__(self, stream: Any, keep: Callable[[bytes, str], Awaitable[None]]) -> None:
        self._stream = stream
        self._keep: Callable[[bytes, str], Awaitable[None]] | None = keep
        self._body, self._ending = bytearray(), "complete"
        self.elapsed: Any = None  # clients ask for it

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._stream:
                if len(self._body) <= MAX_BYTES:
                    self._body += piece
                yield piece
        except httpx2.TimeoutException:
            self._ending = "silent"
            raise
        except httpx2.TransportError:
            self._ending = "cut"
            raise

    async def aclose(self) -> None:
        await self._stream.aclose()
        self.elapsed = getattr(self._stream, "elapsed", None)
        keep, self._keep = self._keep, None
        if keep is not None:
            await keep(bytes(self._body), self._ending)
