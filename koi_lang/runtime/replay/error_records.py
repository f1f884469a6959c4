"""Errors as records of a journal, and back, so that a resumed program meets equal ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from koi_lang import errors
from koi_lang.errors import AgentError, KoiError, RequestError
from koi_lang.js.errors import MADE, AggregateErrorValue, ErrorValue, Thrown, caught, thrown
from koi_lang.js.inspect_value import console_text, inspect
from koi_lang.js.tagged_json import is_plain
from koi_lang.runtime.replay.location import leaf_path

T = TypeVar("T")
ORIGIN = "__koi_origin__"
# What classes were called when older journals were written.
FORMER_NAMES = {
    "AlreadyCompacted": "AlreadyCompactedError", "BadImage": "BadImageError", "CannotSee": "VisionUnsupportedError",
    "ContextOverflow": "ContextOverflowError", "CutOff": "CutOffError", "ExpectationFailed": "ExpectationError",
    "HookFailed": "HookError", "KeyringFailed": "KeyringError", "LimitReached": "LimitReachedError",
    "MissingKey": "MissingKeyError", "NobodyAllows": "NobodyAllowsError", "NobodyToAsk": "NobodyToAskError",
    "NothingToCompact": "NothingToCompactError", "PermissionDenied": "PermissionDeniedError",
    "QuotaReached": "QuotaReachedError", "Refused": "SessionError", "RequestFailed": "RequestError",
    "SendTimeout": "SendTimeoutError", "TookTooLong": "AttemptTimeoutError", "UnknownModel": "UnknownModelError",
    "Unscripted": "UnscriptedError",
}  # fmt: skip
# What of an error is not kept as its attribute: it is kept otherwise, or told by events of its own.
NOT_KEPT = ("help", "discarded", ORIGIN, MADE)


def as_koi_error(raised: BaseException) -> KoiError:
    """The error as a model or a person reads it, also for failures of the program's code."""
    if isinstance(raised, KoiError):
        return raised
    value = caught(raised)
    return AgentError(str(getattr(value, "message", None) or (value if isinstance(value, str) else inspect(value))))


def thrown_text(error: ErrorValue | Thrown) -> str:
    """The message of an error that code throws, special kinds with their name before it; any other value as printed."""
    if isinstance(error, Thrown):
        return console_text(error.value)
    return f"{error.message if error.name == 'Error' else error}".strip() or "no message"


def origin_of(raised: BaseException) -> list[str]:
    """The place where an error was first reported, shared by errors that pass it on or are raised for it.

    So it can be found out later which of the errors of a run led to its end.
    """
    known = next((getattr(error, ORIGIN) for error in _causes(raised) if hasattr(error, ORIGIN)), None)
    path = leaf_path("error") if known is None else known
    if known is None:
        setattr(raised, ORIGIN, path)
    return list(path)


def _causes(raised: BaseException) -> Iterator[BaseException]:
    """An error and its causes, each once: Python code may raise an error from itself."""
    seen: set[int] = set()
    error: BaseException | None = raised
    while error is not None and id(error) not in seen:
        yield error
        seen.add(id(error))
        error = error.__cause__


def data_of(raised: BaseException) -> dict[str, Any]:
    """The record of an error: `error`, its message, and its further fields."""
    error = as_koi_error(raised)
    data: dict[str, Any] = {"error": error.message, "origin": origin_of(raised)}
    if error.help:
        data["help"] = error.help
    if isinstance(raised, KoiError):
        return data | _class_data(raised)
    value = caught(raised)
    return data | (_value_data(value) if isinstance(value, ErrorValue) else {"thrown": value})


def _class_data(error: KoiError) -> dict[str, Any]:
    """The class of an error, and its attributes, unless they hold more than can be kept."""
    data: dict[str, Any] = {"class": type(error).__name__}
    if isinstance(error, RequestError):
        data |= {"status": error.status, "repeatable": error.repeatable}
    own = {name: value for name, value in vars(error).items() if name not in NOT_KEPT}
    return data | {"attributes": own} if _has_attributes(type(error)) and is_plain(own) else data


def _value_data(value: ErrorValue) -> dict[str, Any]:
    """The error as code sees it: its name, its kind, and its cause."""
    data: dict[str, Any] = {"name": str(value.name), "kind": value.kind}
    if isinstance(value.cause, ErrorValue):
        cause = value.cause
        data["cause"] = {"error": str(cause.message), "name": str(cause.name), "kind": cause.kind}
    return data


def from_data(data: Mapping[str, Any]) -> BaseException:
    """The error that some data was kept of."""
    message, help = str(data.get("error", "")), data.get("help")
    if "class" in data:
        return _koi_error(data, message, help)
    if "thrown" in data:
        return thrown(data["thrown"])
    return _error_value(data)


def _error_value(data: Mapping[str, Any]) -> ErrorValue:
    name = data.get("name", "Error")
    kinds = {kind.kind: kind for kind in _below(ErrorValue) if kind is not AggregateErrorValue}
    value = kinds.get(data.get("kind", name), ErrorValue)(str(data.get("error", "")))
    value.name = name
    if isinstance(data.get("cause"), dict):
        value.cause = _error_value(data["cause"])
    return value


def class_name(data: Mapping[str, Any]) -> str:
    """The name that the class of an error has now; empty where none was kept."""
    name = str(data.get("class", ""))
    return FORMER_NAMES.get(name, name)


def _koi_error(data: Mapping[str, Any], message: str, help: Any) -> KoiError:
    """An error of a class that is defined by now; of several with a name the newest."""
    kind = {kind.__name__: kind for kind in _below(KoiError)}.get(class_name(data), AgentError)
    if isinstance(data.get("attributes"), dict):
        error = kind.__new__(kind, message)
        vars(error).update({**data["attributes"], "help": help})
        return error
    if _has_attributes(kind) and kind.__module__ != errors.__name__:
        kind = AgentError  # what makes it up is not known
    error = kind(message, help=help)
    if isinstance(error, RequestError):
        error.status, error.repeatable = data.get("status"), bool(data.get("repeatable"))
    return error


def _has_attributes(kind: type[KoiError]) -> bool:
    return kind.__init__ is not KoiError.__init__


def _below(kind: type[T]) -> Iterator[type[T]]:
    """All classes that are derived from one."""
    for derived in kind.__subclasses__():
        yield derived
        yield from _below(derived)
