"""Errors between a program and a service, each with a code for programs and a sentence for people."""

from __future__ import annotations

from koi_lang.errors import EXIT_CODES, EXIT_FAILED, EXIT_USAGE, KoiError


class RemoteError(KoiError):
    """A service could not be asked, or has refused something.

    Attributes:
        code: why, in a word for programs, such as `unknown_run`.
        status: of HTTP; None where no answer came.
    """

    def __init__(self, message: str, *, code: str, help: str | None = None, status: int | None = None) -> None:
        super().__init__(message, help=help)
        self.code, self.status = code, status


class UnreachableError(RemoteError):
    """Nobody answers at an address, or the connection is not safe."""


class ForeignServerError(RemoteError):
    """Somebody answers at an address, and it is no service of Koi."""


class SignInError(RemoteError):
    """A service does not know the token, or does not let its user do that."""

    exit_code = EXIT_USAGE


class RefusedError(RemoteError):
    """A service has refused a request: it names something unknown, does not fit its type, or cannot be now."""

    @property
    def exit_code(self) -> int:  # type: ignore[override]
        """Wrong usage where the request can never be carried out as it is."""
        return EXIT_USAGE if self.status in (400, 404, 405, 413, 415, 422) else EXIT_FAILED


class BrokenServiceError(RemoteError):
    """A service has failed; it is not the fault of the request."""


class RemoteCallError(KoiError):
    """A call was carried out by a service, and has failed there.

    Attributes:
        run: the id of the run it belongs to.
        code: `failed`, `cancelled`, `timed_out`, or `session_failed`.
        report: the failure with its place in the program, where that is known; else empty.
        failure_code: the kind of failure, such as E0501 for a limit, and with it the exit code of a command.
    """

    def __init__(
        self,
        message: str,
        *,
        run: str,
        code: str,
        help: str | None = None,
        report: str = "",
        failure_code: str = "",
    ) -> None:
        super().__init__(message, help=help)
        self.run = run
        self.code = code
        self.report = report
        if failure_code in EXIT_CODES:
            self.failure_code = failure_code
            self.exit_code = EXIT_CODES[failure_code]
