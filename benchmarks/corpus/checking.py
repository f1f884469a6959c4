"""A corpus held against the readers: which streams are read otherwise than they are to be."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.corpus.replaying import read_again
from koi_lang.errors import CorpusError
from koi_lang.llm.recorded_stream import ABOUT, read_entry, read_expected

# Characters of a value that are shown.
MAX_CHARS = 80


@dataclass(frozen=True, slots=True)
class StreamCheck:
    """The result of one stream.

    Attributes:
        name: the path of its folder from the corpus.
        problems: what is read otherwise, a sentence each; none where all is as expected.
    """

    name: str
    problems: tuple[str, ...]


def entry_folders(corpus: Path) -> list[Path]:
    """The folders of a corpus that hold a stream, at any depth."""
    return sorted(path.parent for path in corpus.rglob(ABOUT))


async def check_entry(corpus: Path, folder: Path) -> StreamCheck:
    """The result of the stream in a folder of a corpus."""
    name = folder.relative_to(corpus).as_posix()
    try:
        stream, expected = read_entry(folder), read_expected(folder)
    except CorpusError as error:
        return StreamCheck(name, (error.message,))
    return StreamCheck(name, tuple(_differences(expected, await read_again(stream))))


def _differences(expected: Mapping[str, Any], read: Mapping[str, Any]) -> Iterator[str]:
    for name in dict.fromkeys((*expected, *read)):
        if expected.get(name) != read.get(name):
            wanted, found = expected.get(name), read.get(name)
            at = _first_difference(wanted, found)
            yield f"`{name}` is {_excerpt(found, at)} instead of {_excerpt(wanted, at)}"


def _first_difference(one: Any, other: Any) -> int:
    """The position of the first difference of two texts; 0 for other values."""
    if not (isinstance(one, str) and isinstance(other, str)):
        return 0
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))


def _excerpt(value: Any, at: int) -> str:
    """A value as JSON; of a long text the part around a position."""
    if value is None:
        return "absent"
    if not isinstance(value, str) or len(value) <= MAX_CHARS:
        return json.dumps(value, ensure_ascii=False)[: 4 * MAX_CHARS]
    start = max(0, at - MAX_CHARS // 2)
    return f"{json.dumps(value[start : start + MAX_CHARS], ensure_ascii=False)} (from character {start + 1})"
