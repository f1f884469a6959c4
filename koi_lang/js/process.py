"""The globals `process`, `performance` and `crypto`: what a program may know of its machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from koi_lang.js.clock import steady_ms
from koi_lang.js.environment import current_environment
from koi_lang.js.method_tables import MethodTable, namespace
from koi_lang.js.undefined import Value
from koi_lang.lazy import lazy_module

if TYPE_CHECKING:
    import uuid

    from koi_lang import settings
else:
    uuid = lazy_module("uuid")
    settings = lazy_module("koi_lang.settings")


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
        return MappingProxyType(settings.environment())

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


@PERFORMANCE.add_as("now")
def now_ms() -> float:
    """Milliseconds since some moment, as the run saw them when it is carried out again."""
    return float(current_environment().observe("clock", steady_ms))


@CRYPTO.add_as("randomUUID")
def _random_uuid() -> str:
    return str(uuid.UUID(bytes=current_environment().random_bytes(16), version=4))


PROCESS = Process()
CLOCK = namespace(PERFORMANCE)
RANDOMNESS = namespace(CRYPTO)
