"""How work ends that may raise anything."""

from __future__ import annotations

import asyncio

import pytest

from koi_lang.errors import KoiError, Outcome, capture, error_of, raised_as


async def gives(value: object) -> object:
    """The value, or what it is raised."""
    if isinstance(value, BaseException):
        raise value
    return value


def test_an_end_is_a_value_or_an_error() -> None:
    """Errors of all kinds become values, which can be raised again."""
    error = ValueError("no")
    failed = asyncio.run(capture(gives(error)))

    assert (Outcome(3), Outcome(error=error)) == (asyncio.run(capture(gives(3))), failed)
    with pytest.raises(ValueError, match="no"):
        failed.result()


def test_being_cancelled_is_no_end() -> None:
    """Who is cancelled goes on being cancelled."""
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(capture(gives(asyncio.CancelledError())))


def test_the_failure_of_a_call() -> None:
    """A call gives the error it fails with, and else nothing; the end of the process is no failure."""
    assert (None, ZeroDivisionError) == (error_of(divmod, 1, 1), type(error_of(divmod, 1, 0)))

    with pytest.raises(SystemExit):
        error_of(exit)


def test_errors_are_raised_as_ours() -> None:
    """The error of ours is caused by the other one."""
    with pytest.raises(KoiError, match="ours: theirs") as raised, raised_as(lambda error: KoiError(f"ours: {error}")):
        raise LookupError("theirs")

    assert LookupError is type(raised.value.__cause__)
