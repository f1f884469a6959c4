"""The module that a compiled `.koi` file becomes."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType


class KoiModule(ModuleType):
    """A loaded `.koi` file.

    Attributes:
        files: those that its program was compiled from, each with the hash of its content.
    """

    __slots__ = ("files",)

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.files: Mapping[str, str] = {}
