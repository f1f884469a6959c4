"""Long texts: their threshold, their references in a journal, and their places in a value."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from koi_lang.runtime.model_calls.images import medium

# What is more is kept in a file: bytes in UTF-8, and lines.
MAX_BYTES, MAX_LINES = 50_000, 2000
# A line of more characters counts, and is read, as several.
MAX_ROW_CHARS = 2000
WIDE = re.compile(rf"[^\n]{{{MAX_ROW_CHARS + 1},}}")
# What of each end stands in a journal, in characters.
END = 1000
# Levels of a value that are looked through.
MAX_DEPTH = 100


@dataclass(frozen=True, slots=True)
class KeptOutput:
    """A long text that is kept, as a journal tells of it.

    Attributes:
        number: of its file among those of the run.
        run: whose file it is.
        size: of the file in bytes.
        rows: its lines, as `count_rows` counts them.
        digest: of the file.
        begin: what it begins with, in short.
        lacks_secret: whether a secret was taken out of the file.
    """

    number: int
    run: str
    size: int
    rows: int
    digest: str
    begin: str
    end: str
    lacks_secret: bool = False

    def as_data(self) -> dict[str, Any]:
        """The JSON form."""
        about = {"id": self.number, "run": self.run, "bytes": self.size, "lines": self.rows, "digest": self.digest}
        lacks = {"redacted": True} if self.lacks_secret else {}
        return {**about, "begin": self.begin, "end": self.end, **lacks}

    @staticmethod
    def of(data: Any) -> KeptOutput:
        """The reference in a journal. Raises ValueError and TypeError for an invalid one."""
        if not isinstance(data, Mapping):
            raise ValueError("no output was told of")
        number, size, rows = (int(data.get(name, "")) for name in ("id", "bytes", "lines"))
        run, digest, begin, end = (str(data.get(name, "")) for name in ("run", "digest", "begin", "end"))
        return KeptOutput(number, run, size, rows, digest, begin, end, bool(data.get("redacted")))


@dataclass(frozen=True, slots=True)
class LongText:
    """Stands for a long text in a value that is told.

    Attributes:
        text: the text itself; None where it was read from a journal.
    """

    kept: KeptOutput
    text: str | None = None

    def as_content(self) -> dict[str, Any]:
        """Its reference in a journal."""
        return self.kept.as_data()

    @staticmethod
    def of_content(content: Any) -> LongText:
        """The same from a journal. Raises as `KeptOutput.of` does."""
        return LongText(KeptOutput.of(content))


def is_long(text: str) -> bool:
    """Whether a text is too long to be told as a whole."""
    if len(text) > MAX_BYTES:
        return True
    if len(text) * 4 > MAX_BYTES and len(data_of(text)) > MAX_BYTES:
        return True
    return len(text) > MAX_LINES and text.count("\n") > MAX_LINES


def data_of(text: str) -> bytes:
    """A text as a file holds it."""
    return text.encode("utf-8", "surrogatepass")


def text_of(data: bytes) -> str:
    """The text that a file holds."""
    return data.decode("utf-8", "surrogatepass")


def digest_of(data: bytes) -> str:
    """The digest of a text."""
    return blake2b(data, digest_size=16).hexdigest()


def count_rows(text: str) -> int:
    """The lines of a text; one of more than MAX_ROW_CHARS characters counts as several."""
    wide = sum((len(found[0]) - 1) // MAX_ROW_CHARS for found in WIDE.finditer(text))
    return text.count("\n") + (not text.endswith("\n")) + wide


# ---------------------------------------------------------------- in values


def long_texts_in(value: Any, depth: int = 0) -> Iterator[str]:
    """The long texts in a value; the data of images and the like is none."""
    if isinstance(value, str):
        if is_long(value):
            yield value
    elif isinstance(value, (dict, list)) and depth < MAX_DEPTH and medium(value) is None:
        for item in value.values() if isinstance(value, dict) else value:
            yield from long_texts_in(item, depth + 1)


def replace_texts(value: Any, replace: Callable[[Any], Any], depth: int = 0) -> Any:
    """A value with its long texts, or references to them, replaced; the same object where nothing changes.

    Args:
        replace: gives what is to stand there, or what it is given.
    """
    if isinstance(value, LongText) or (isinstance(value, str) and is_long(value)):
        return replace(value)
    if not isinstance(value, (dict, list)) or depth >= MAX_DEPTH or medium(value) is not None:
        return value
    if isinstance(value, dict):
        fields = {key: replace_texts(item, replace, depth + 1) for key, item in value.items()}
        return value if all(fields[key] is value[key] for key in value) else fields
    items = [replace_texts(item, replace, depth + 1) for item in value]
    return value if all(new is old for new, old in zip(items, value, strict=True)) else items


def references_in(value: Any, told: Any, depth: int = 0) -> Iterator[tuple[str, KeptOutput]]:
    """The long texts of a value, each with its reference in the journaled form of the value."""
    if isinstance(told, LongText):
        if isinstance(value, str):
            yield value, told.kept
    elif depth < MAX_DEPTH and isinstance(value, dict) and isinstance(told, dict):
        for key, item in value.items():
            yield from references_in(item, told.get(key), depth + 1)
    elif depth < MAX_DEPTH and isinstance(value, list) and isinstance(told, list):
        for item, told_item in zip(value, told, strict=False):
            yield from references_in(item, told_item, depth + 1)


def references(value: Any, depth: int = 0) -> Iterator[LongText]:
    """The references to long texts in a value."""
    if isinstance(value, LongText):
        yield value
    elif isinstance(value, (dict, list)) and depth < MAX_DEPTH:
        for item in value.values() if isinstance(value, dict) else value:
            yield from references(item, depth + 1)
