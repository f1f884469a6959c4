"""Errors as values."""

from __future__ import annotations

import traceback
from typing import Any

import pytest

from koi_lang.errors import KoiError, SendTimeoutError
from koi_lang.js.call_helpers import call, get, invoke, new, put
from koi_lang.js.errors import ErrorValue, Thrown, TypeErrorValue, caught, thrown
from koi_lang.js.globals import GLOBALS
from koi_lang.js.operators import instance_of, text
from koi_lang.js.undefined import undefined


def raised(error: BaseException) -> BaseException:
    """An exception after it has been raised, so that it has a traceback."""
    try:
        raise error
    except BaseException as same:
        return same


@pytest.mark.parametrize("name", ["Error", "TypeError", "RangeError", "SyntaxError", "ReferenceError", "URIError"])
def test_errors_are_made_with_new_and_without(name: str) -> None:
    """Both ways give an error with its name and message, which is an `Error` too."""
    errors = [new(GLOBALS[name], "bad"), call(GLOBALS[name], "bad")]

    assert [[name, "bad", f"{name}: bad", True, True]] * 2 == [
        [get(e, "name"), get(e, "message"), text(e), instance_of(e, GLOBALS[name]), instance_of(e, GLOBALS["Error"])]
        for e in errors
    ]


def test_an_error_may_have_a_cause() -> None:
    """The cause is a member, and Python's chain shows it."""
    cause = ErrorValue("inner")
    error = new(GLOBALS["Error"], "outer", {"cause": cause})

    assert (cause, cause, undefined) == (get(error, "cause"), error.__cause__, get(cause, "cause"))


def test_name_and_message_can_be_changed() -> None:
    """An error prints with what the program made of it."""
    error = new(GLOBALS["Error"], "bad")
    put(error, "name", "Mine")
    put(error, "message", "worse")

    assert [str(error), invoke(error, "toString")] == ["Mine: worse", "Mine: worse"]


def test_an_error_without_a_message_prints_its_name() -> None:
    """There is no colon without a message."""
    assert str(new(GLOBALS["TypeError"])) == "TypeError"


def test_the_stack_names_the_error_and_where_it_was_raised() -> None:
    """The first line is the error, the others are calls; a program may store its own."""
    error = raised(ErrorValue("bad"))
    lines = get(error, "stack").split("\n")
    put(error, "stack", "mine")

    assert (lines[0], lines[1].startswith("    at raised ("), get(error, "stack")) == ("Error: bad", True, "mine")


def test_a_thrown_error_is_itself() -> None:
    """Errors are exceptions; they are caught as the value that was thrown."""
    error = TypeErrorValue("bad")

    assert (error, error) == (thrown(error), caught(raised(thrown(error))))


@pytest.mark.parametrize("value", ["text", 5, None, undefined, {"code": 1}])
def test_any_value_can_be_thrown(value: Any) -> None:
    """What is no error is carried by an exception and caught as it was."""
    exception = thrown(value)

    assert isinstance(exception, Thrown)
    assert value is caught(raised(exception))


def test_python_exceptions_are_caught_as_errors() -> None:
    """Name and message are those of the exception, which is the cause."""
    exception = raised(ValueError("bad number"))
    error = caught(exception)

    assert ["ValueError", "bad number", exception, True] == [
        get(error, "name"), get(error, "message"), get(error, "cause"), instance_of(error, GLOBALS["Error"]),
    ]  # fmt: skip


def test_throwing_a_python_exception_again_is_that_exception() -> None:
    """Its class, and with it the exit code, and its traceback survive a `catch` that throws again."""
    exception = raised(SendTimeoutError("too slow"))
    again = thrown(caught(exception))

    assert (exception, "raised") == (again, traceback.extract_tb(again.__traceback__)[0].name)


def test_errors_of_koi_itself_are_plain_errors() -> None:
    """Their message is kept and their name is `Error`."""
    assert text(caught(KoiError("no such agent"))) == "Error: no such agent"


def test_endless_recursion_is_a_range_error() -> None:
    """Python's RecursionError is told in JavaScript's words."""
    assert text(caught(RecursionError("deep"))) == "RangeError: Maximum call stack size exceeded"


def test_what_ends_the_program_is_not_caught() -> None:
    """Cancellation and interrupts pass through every `catch`."""
    with pytest.raises(KeyboardInterrupt):
        caught(KeyboardInterrupt())
