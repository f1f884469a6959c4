"""Signals that an event loop hears of, where the system has them; Windows has neither stops nor changed sizes."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Any


def add_signal_handler(name: str, handler: Callable[..., Any], *args: Any) -> None:
    """Have the running loop call a function at a signal such as `SIGWINCH`."""
    if hasattr(signal, name):
        with suppress(NotImplementedError):
            asyncio.get_running_loop().add_signal_handler(getattr(signal, name), handler, *args)


def remove_signal_handler(name: str) -> None:
    """Have it call none any more."""
    if hasattr(signal, name):
        with suppress(NotImplementedError):
            asyncio.get_running_loop().remove_signal_handler(getattr(signal, name))
