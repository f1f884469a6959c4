"""Refusals of a service."""

from __future__ import annotations

from typing import Literal, TypeAlias

from koi_lang.sessions.errors import RefusalError

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


class ServiceError(RefusalError):
    """A request to a service that is not carried out."""

    def __init__(self, code: ServiceErrorCode, message: str, *, help: str | None = None) -> None:
        super().__init__(code, message, help=help)
