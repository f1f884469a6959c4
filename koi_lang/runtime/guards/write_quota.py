"""How much one answer of a model may have written, to the journal and to files, and the refusal beyond that.

References make long texts from few words, and every one of them stands in several entries: as what an action was given,
as what was shown or changed, and as what it gave. So an answer of a few hundred characters filled disks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import chain
from json.encoder import encode_basestring
from typing import Any

from koi_lang.errors import AgentError
from koi_lang.events import EventData
from koi_lang.runtime.guards.size import MAX_BYTES

# In bytes: the largest value can be given to an action, be shown or kept by it, and be its result.
MAX_ANSWER_BYTES = 3 * MAX_BYTES + 4_000_000
MEGABYTE = 1_000_000
# Of an item without its text: commas, quotes and the like.
ITEM = 4
# Whether shorter texts hold what takes more room as JSON is not looked at closely.
SHORT = 200


class QuotaReachedError(AgentError, code="E0501"):
    """One answer of a model would have too much written."""


@dataclass(slots=True)
class WriteQuota:
    """The amount of text that one answer may produce.

    Attributes:
        most: in bytes.
        written: so far, also by actions that are still under way.
    """

    most: int
    written: int = 0

    def require(self, data: Any, what: str) -> None:
        """Raise QuotaReachedError where there is no room for some data.

        Args:
            what: says what it is, as in "what `print` is given".
        """
        self.require_bytes(json_size(data, self.most), what)

    def require_bytes(self, size: int, what: str) -> None:
        """The same for so many bytes."""
        if self.written + size > self.most:
            message = f"one answer may have {_megabytes(self.most)} written, and has had {_megabytes(self.written)}"
            help = "Pass on parts, such as `${id.output.items[0]}`, or go on in your next answer."
            raise QuotaReachedError(f"{what} ({_megabytes(size)}) is too much: {message}", help=help)


_quota: ContextVar[WriteQuota | None] = ContextVar("koi_write_quota", default=None)


@contextmanager
def write_quota() -> Iterator[None]:
    """A context with its own quota for texts, except for answers within it."""
    with _counting(WriteQuota(MAX_ANSWER_BYTES)):
        yield


@contextmanager
def no_quota() -> Iterator[None]:
    """A context in which nothing counts: the handlers of delegates are code, or give answers of their own."""
    with _counting(None):
        yield


@contextmanager
def _counting(quota: WriteQuota | None) -> Iterator[None]:
    token = _quota.set(quota)
    try:
        yield
    finally:
        _quota.reset(token)


def count_written(data: Any) -> None:
    """Count some data, or the record of an event, that is about to be written, by an event or to a file."""
    quota = _quota.get()
    if quota is not None:
        quota.written += json_size(data.as_data() if isinstance(data, EventData) else data, quota.most)


def require_quota(data: Any, what: str) -> None:
    """Raise QuotaReachedError where the answer that is carried out may not have some data written, too."""
    quota = _quota.get()
    if quota is not None:
        quota.require(data, what)


def count_bytes(size: int, what: str) -> None:
    """Count bytes that are about to be written to files. Raises QuotaReachedError where there is no room for them."""
    quota = _quota.get()
    if quota is not None:
        quota.require_bytes(size, what)
        quota.written += size


def json_size(value: Any, most: int) -> int:
    """About how many bytes a value takes as JSON, in UTF-8; one that holds itself is not counted within itself.

    Args:
        most: beyond this nothing more is counted.
    """
    size = 0
    waiting = [value]
    around = set[int]()
    while waiting and size <= most:
        each = waiting.pop()
        size += ITEM
        if isinstance(each, _Left):
            around.discard(each.container)
        elif isinstance(each, str):
            is_plain = each.isascii() and each.isprintable() and len(each) < SHORT
            written = each if is_plain else encode_basestring(each)
            size += len(written) if written.isascii() else len(written.encode("utf-8", "surrogatepass"))
        elif isinstance(each, (list, tuple, dict)) and id(each) not in around:
            around.add(id(each))
            waiting.append(_Left(id(each)))
            waiting += chain(each, each.values()) if isinstance(each, dict) else each
    return size


@dataclass(frozen=True, slots=True)
class _Left:
    """The end of a list or object, after all that it holds."""

    container: int


def _megabytes(size: int) -> str:
    return f"{size / MEGABYTE:.1f} MB"
