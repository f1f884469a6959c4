"""The globals `process`, `performance` and `crypto`: what a program may know of its machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from koi_lang.js.clock import steady_ms
from koi_lang.js.method_tables import MethodTable, namespace
from koi_lang.js.undefined import Value
from koi_lang.runtime import late
from koi_lang.runtime.replay.calls import random_bytes, seen


class Process:
    """The program that runs; everything can be read only."""

    __slots__ = ()
    __koi_members__: ClassVar[dict[str, str]] = {
        "env": "env", "argv": "argv", "platform": "platform", "cwd": "cwd", "pid": "pid",
    }  # fmt: skip

    def __repr__(self) -> str:
        return "Object [process] {}"

    @property
    def env(self) -> Mapping[str, str]:
        """The variables of the environment."""
        return MappingProxyType(late.environment())

    @property
    def argv(self) -> list[Value]:
        """The interpreter, the program and its arguments."""
        return [sys.executable, *sys.argv]

    @property
    def platform(self) -> str:
        """`linux`, `darwin` or `win32`."""
        return sys.platform

    @property
    def pid(self) -> int:
        """The number of the process."""
        return os.getpid()

    def cwd(self) -> str:
        """The folder the program was started in."""
        return os.getcwd()


PERFORMANCE = MethodTable()
CRYPTO = MethodTable()


@PERFORMANCE.named("now")
def now_ms() -> float:
    """Milliseconds since some moment, as the run saw them when it is carried out again."""
    return float(seen("clock", steady_ms))


@CRYPTO.named("randomUUID")
def _random_uuid() -> str:
    return str(late.UUID(bytes=random_bytes(16), version=4))


PROCESS = Process()
CLOCK = namespace(PERFORMANCE)
RANDOMNESS = namespace(CRYPTO)
