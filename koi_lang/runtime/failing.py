"""Errors to what a journal keeps of them, and back, so that a program that runs again meets the same ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from koi_lang import errors
from koi_lang.errors import AgentError, KoiError, RequestFailed
from koi_lang.runtime.paths import passing
from koi_lang.runtime.values.failures import ErrorValue, caught, thrown
from koi_lang.runtime.values.inspection import inspect

ORIGIN = "__koi_origin__"


def told(raised: BaseException) -> KoiError:
    """What went wrong as a model or a person reads it, also where the code of a program failed."""
    if isinstance(raised, KoiError):
        return raised
    value = caught(raised)
    return AgentError(str(getattr(value, "message", None) or (value if isinstance(value, str) else inspect(value))))


def origin_of(raised: BaseException) -> list[str]:
    """Where an error was first told, as a path of its own; whoever passes it on, or raises one for it, tells the same.

    So it can be found out later which of the errors of a run led to its end.
    """
    known = next((getattr(error, ORIGIN) for error in _causes(raised) if hasattr(error, ORIGIN)), None)
    path = passing("error") if known is None else known
    if known is None:
        setattr(raised, ORIGIN, path)
    return list(path)


def _causes(raised: BaseException) -> Iterator[BaseException]:
    """An error and what it was raised for, each once: Python code may raise an error from itself."""
    seen: set[int] = set()
    error: BaseException | None = raised
    while error is not None and id(error) not in seen:
        yield error
        seen.add(id(error))
        error = error.__cause__


def data_of(raised: BaseException) -> dict[str, Any]:
    """What is kept of an error: `error`, its message, and what else makes it up."""
    error = told(raised)
    data: dict[str, Any] = {"error": error.message, "origin": origin_of(raised)}
    if error.help:
        data["help"] = error.help
    if isinstance(raised, RequestFailed):
        return {**data, "class": type(raised).__name__, "status": raised.status, "repeatable": raised.repeatable}
    if isinstance(raised, KoiError):
        return {**data, "class": type(raised).__name__}
    value = caught(raised)
    return {**data, "name": str(value.name)} if isinstance(value, ErrorValue) else {**data, "thrown": value}


def from_data(data: Mapping[str, Any]) -> BaseException:
    """The error that some data was kept of."""
    message, help = str(data.get("error", "")), data.get("help")
    if "class" in data:
        return _koi_error(data, message, help)
    if "thrown" in data:
        return thrown(data["thrown"])
    value = ErrorValue(message)
    value.name = data.get("name", "Error")
    return value


def _koi_error(data: Mapping[str, Any], message: str, help: Any) -> KoiError:
    found = getattr(errors, str(data["class"]), AgentError)
    kind = found if isinstance(found, type) and issubclass(found, KoiError) else AgentError
    error = kind(message, help=help)
    if isinstance(error, RequestFailed):
        error.status, error.repeatable = data.get("status"), bool(data.get("repeatable"))
    return error
