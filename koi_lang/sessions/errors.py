"""Commands that are not carried out, each kind with a code that programs can tell apart."""

from __future__ import annotations

from typing import Literal

from koi_lang.errors import EXIT_INTERRUPTED, KoiError

Code = Literal[
    "admins_only",
    "agent_busy",
    "bad_image",
    "compaction_failed",
    "extension_command_not_handled",
    "failed",
    "invalid_request",
    "line_too_long",
    "model_unavailable",
    "no_journal",
    "nothing_to_continue",
    "parse_error",
    "session_not_found",
    "session_not_trusted",
    "session_over",
    "unknown_agent",
    "unknown_command",
    "unknown_handler",
    "unknown_request",
]


class RunAbortedError(KoiError):
    """The person has ended the run."""

    exit_code = EXIT_INTERRUPTED

    def __init__(self) -> None:
        super().__init__("the run was aborted")


class RefusalError(KoiError):
    """A request that is not carried out; nothing of it has been.

    Attributes:
        code: why, in a word for programs.
    """

    def __init__(self, code: str, message: str, *, help: str | None = None) -> None:
        super().__init__(message, help=help)
        self.code = code


class SessionError(RefusalError):
    """A command to a session that is not carried out."""

    def __init__(self, code: Code, message: str, *, help: str | None = None) -> None:
        super().__init__(code, message, help=help)
