"""Work that may raise anything, since it is of a program or a library, to how it ended: a value, or an error.

Whoever uses these decides what becomes of an error. Being cancelled is no error and goes on its way.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from koi_lang.errors import KoiError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """How some work ended.

    Attributes:
        value: what it gave; None where it failed.
        error: what it failed with; None where it did not.
    """

    value: T | None = None
    error: Exception | None = None

    def result(self) -> T:
        """The value. Raises the error, if that is how it ended."""
        if self.error is not None:
            raise self.error
        return cast(T, self.value)


async def capture(work: Awaitable[T]) -> Outcome[T]:
    """Wait for some work, whatever comes of it."""
    try:
        return Outcome(await work)
    except Exception as error:
        return Outcome(error=error)


def error_of(function: Callable[..., Any], *arguments: Any) -> Exception | None:
    """Call a function for its effect; gives what it fails with."""
    try:
        function(*arguments)
    except Exception as error:
        return error
    return None


@contextmanager
def raised_as(make: Callable[[Exception], KoiError]) -> Iterator[None]:
    """A context whose errors are raised as what `make` makes of them, which may also raise them on."""
    try:
        yield
    except Exception as error:
        raise make(error) from error
