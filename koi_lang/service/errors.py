"""Refusals of a service."""

from __future__ import annotations

from typing import Literal, TypeAlias

from koi_lang.errors import KoiError

ServiceErrorCode: TypeAlias = Literal[
    "unknown_run",
    "unknown_program",
    "program_broken",
    "program_changed",
    "not_hosted",
    "not_allowed_here",
    "limit_reached",
    "overloaded",
]


class ServiceError(KoiError):
    """A request that is not carried out.

    Attributes:
        code: why, in a word for programs.
    """

    def __init__(self, code: ServiceErrorCode, message: str, *, help: str | None = None) -> None:
        super().__init__(message, help=help)
        self.code = code
