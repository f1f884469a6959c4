"""Streams of a corpus, one folder each: the response, the request, facts about both, and the expected reading.

A folder holds `stream.txt`, the body of a response as text; `about.json`, an object with the fields of `StreamAbout`;
`expected.json`, what is to be read; and, where it is known, `request.json`, the body of the request.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from koi_lang.errors import CorpusError, reason

STREAM = "stream.txt"
ABOUT = "about.json"
REQUEST = "request.json"
EXPECTED = "expected.json"
# The interfaces of which streams are kept: of OpenAI for chats, of Anthropic, and the newer one of OpenAI.
WIRES = ("chat", "messages", "responses")
EVENTS = "text/event-stream"
# Of one file, in bytes.
MAX_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class StreamAbout:
    """Facts about a stream.

    Attributes:
        wire: the format that it is in, one of `WIRES`.
        source: `recorded`, or `written from the documentation: PAGE`, or `written without the page at hand: PAGE`.
        variant: what is special about it.
        date: of the recording, or on which the source was read, `YYYY-MM-DD`.
        status: of the response.
        ending: how it ended: `complete`, `cut` when the connection broke, `silent` when nothing more came.
        koi: the version that recorded it.
    """

    provider: str
    wire: str
    model: str
    source: str
    variant: str = ""
    date: str = ""
    status: int = 200
    content_type: str = EVENTS
    ending: str = "complete"
    koi: str = ""

    def as_data(self) -> dict[str, Any]:
        """The JSON form, without defaults."""
        usual = {each.name: each.default for each in fields(self)}
        return {name: value for name, value in asdict(self).items() if value != usual[name]}


@dataclass(frozen=True, slots=True)
class CorpusStream:
    """A stream that was kept.

    Attributes:
        body: what was sent, as JSON data; None where that is not known.
    """

    about: StreamAbout
    text: str
    body: Any = None


def read_entry(folder: Path) -> CorpusStream:
    """The stream in a folder. Raises CorpusError."""
    about = _read_about(_read_json(folder / ABOUT))
    body = _read_json(folder / REQUEST) if (folder / REQUEST).exists() else None
    return CorpusStream(about, _read_text(folder / STREAM), body)


def read_expected(folder: Path) -> Mapping[str, Any]:
    """The expected reading of the stream in a folder. Raises CorpusError."""
    expected = _read_json(folder / EXPECTED)
    if not isinstance(expected, dict):
        raise CorpusError(f"`{EXPECTED}` holds no object")
    return expected


def write_entry(folder: Path, stream: CorpusStream, expected: Mapping[str, Any] | None = None) -> None:
    """Write a stream into an existing folder; its description comes last. Raises OSError."""
    _write(folder / STREAM, stream.text)
    if stream.body is not None:
        _write(folder / REQUEST, _json_text(stream.body))
    if expected is not None:
        _write(folder / EXPECTED, _json_text(expected))
    _write(folder / ABOUT, _json_text(stream.about.as_data()))


def _read_about(data: Any) -> StreamAbout:
    known = {each.name: type(each.default) for each in fields(StreamAbout)}
    given = {name: data[name] for name in known if name in data} if isinstance(data, dict) else {}
    if not {"provider", "wire", "model", "source"} <= given.keys():
        raise CorpusError(f"`{ABOUT}` does not say `provider`, `wire`, `model` and `source`")
    for name, value in given.items():
        if type(value) is not (int if name == "status" else str):
            raise CorpusError(f"`{name}` in `{ABOUT}` is a {type(value).__name__}")
    about = StreamAbout(**given)
    if about.wire not in WIRES:
        raise CorpusError(f"`wire` in `{ABOUT}` is none of {', '.join(WIRES)}")
    return about


def _read_json(path: Path) -> Any:
    try:
        return json.loads(_read_text(path))
    except (ValueError, RecursionError) as error:
        raise CorpusError(f"`{path.name}` is no JSON") from error


def _read_text(path: Path) -> str:
    """The content of a file, line breaks as they are."""
    try:
        if not path.is_file():
            raise CorpusError(f"there is no file `{path.name}`")
        if path.stat().st_size > MAX_BYTES:
            raise CorpusError(f"`{path.name}` is larger than {MAX_BYTES >> 20} MiB")
        return path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise CorpusError(f"`{path.name}` is no text in UTF-8") from error
    except OSError as error:
        raise CorpusError(f"`{path.name}` cannot be read: {reason(error)}") from error


def _write(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(text.encode("utf-8", "replace"))


def _json_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"
