"""The keyring of the system, asked with a limit of time: it may be locked, missing, or wait for a window to be closed.

Everything else of koi goes through these functions; the package behind them is imported with the first call.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

from koi_lang.errors import KoiError, error_of
from koi_lang.lazy import lazy_module

if TYPE_CHECKING:
    import keyring
else:
    keyring = lazy_module("keyring")

SERVICE = "koi-lang"
LIMIT_S = 20.0
UNUSABLE = ("keyring.backends.fail", "keyring.backends.null")

T = TypeVar("T")


class KeyringError(KoiError):
    """The keyring of the system cannot be used."""


def backend(limit_s: float = LIMIT_S) -> str | None:
    """The kind of the keyring, such as `SecretService Keyring`; None where there is none."""
    found = _ask_keyring(lambda: keyring.get_keyring(), limit_s)
    return None if type(found).__module__ in UNUSABLE else str(found.name)


def read(name: str, limit_s: float = LIMIT_S) -> str | None:
    """The value under a name. Raises KeyringError."""
    return _ask_keyring(lambda: keyring.get_password(SERVICE, name), limit_s)


def write(name: str, value: str) -> None:
    """Keep a value, and see that it is there. Raises KeyringError."""
    if backend() is None:
        raise KeyringError("this system has no keyring")
    _ask_keyring(lambda: keyring.set_password(SERVICE, name, value), LIMIT_S)
    if read(name) != value:
        raise KeyringError("the keyring does not keep what it is given")


def delete(name: str) -> bool:
    """Remove a value, and see that it is gone; says whether it was there. Raises KeyringError."""
    if backend() is None or read(name) is None:
        return False
    _ask_keyring(lambda: keyring.delete_password(SERVICE, name), LIMIT_S)
    if read(name) is not None:
        raise KeyringError("the keyring does not remove what it keeps")
    return True


def _ask_keyring(ask: Callable[[], T], limit_s: float) -> T:
    """The answer of the keyring. Raises KeyringError when it fails, or is silent within the limit."""
    answers, failures = list[T](), list[Exception]()

    def look() -> None:
        error = error_of(lambda: answers.append(ask()))
        if error is not None:
            failures.append(error)

    thread = Thread(target=look, daemon=True, name="ask the keyring")
    thread.start()
    thread.join(limit_s)
    if answers:
        return answers[0]
    if not failures:
        raise KeyringError(f"the keyring did not answer within {limit_s:g} s")
    raise KeyringError(f"the keyring cannot be used: {_reason(failures[0])}")


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    with suppress(IndexError):
        return lines[0].rstrip(".")
    return type(error).__name__
