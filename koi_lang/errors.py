"""The tree of errors that Koi raises, each with the exit code a command ends with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_BEST_EFFORT = 3
EXIT_LIMIT = 4
EXIT_BLOCKED = 5
EXIT_SOURCE = 65
# Of `sysexits.h`, where it has one for the kind of failure; 124 is that of `timeout`.
EXIT_NO_FILE = 66
EXIT_NO_SERVER = 68
EXIT_NO_PROVIDER = 69
EXIT_PLAYBOOK = 70
EXIT_NO_ANSWER = 75
EXIT_INVALID = 76
EXIT_NO_PERMISSION = 77
EXIT_TIMED_OUT = 124
EXIT_INTERRUPTED = 130

# What a process ends with for each code of a failure; `koi check --explain CODE` has a page of each.
EXIT_CODES = {
    "E0500": EXIT_FAILED,
    "E0501": EXIT_LIMIT,
    "E0502": EXIT_NO_PERMISSION,
    "E0503": EXIT_NO_PROVIDER,
    "E0504": EXIT_NO_ANSWER,
    "E0505": EXIT_PLAYBOOK,
    "E0506": EXIT_INVALID,
    "E0507": EXIT_NO_SERVER,
    "E0508": EXIT_NO_FILE,
    "E0509": EXIT_USAGE,
    "E0510": EXIT_TIMED_OUT,
    "E0511": EXIT_NO_PERMISSION,
}

# What Python raises where a file is missing or cannot be read.
UNREADABLE = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)


class KoiError(Exception):
    """Anything that went wrong and can be told to a person in one sentence.

    Attributes:
        exit_code: what the process ends with when nobody handles the error.
        failure_code: its kind, one of `EXIT_CODES`.
        help: one thing to do about it, a whole sentence; None when there is nothing to advise.
    """

    exit_code = EXIT_FAILED
    failure_code = "E0500"

    def __init_subclass__(cls, code: str = "", **settings: Any) -> None:
        super().__init_subclass__(**settings)
        if code:
            cls.failure_code, cls.exit_code = code, EXIT_CODES[code]

    def __init__(self, message: str, *, help: str | None = None) -> None:
        super().__init__(message)
        self.help = help

    @property
    def message(self) -> str:
        """What went wrong, lower case, without a full stop."""
        return str(self.args[0])

    def is_final(self) -> bool:
        """Whether it ends what the current code belongs to, so that no code of a program may catch it there."""
        return False


def innermost(error: BaseException) -> BaseException:
    """The first error of a group, at any depth."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def failure_code(error: BaseException) -> str:
    """The code of the kind of failure that an error is, such as E0501 for a limit."""
    error = innermost(error)
    if isinstance(error, KoiError):
        return error.failure_code
    return "E0508" if isinstance(error, UNREADABLE) else "E0500"


def exit_code(error: BaseException) -> int:
    """What a process ends with for an error."""
    error = innermost(error)
    return error.exit_code if isinstance(error, KoiError) else EXIT_CODES[failure_code(error)]


def reason(error: OSError) -> str:
    """Why the system refused something, lower case."""
    return (error.strerror or str(error)).lower()


def root_reason(error: BaseException) -> str:
    """Why a server was not reached, on one line; in words for the two reasons that people meet most."""
    while before := error.__cause__ or error.__context__:
        error = before
    error = innermost(error)
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens there"
    if type(error).__name__ == "gaierror":  # its module would have to be imported for the class
        return "no such name is known here"
    return " ".join(str(error).split()) or type(error).__name__


class UsageError(KoiError):
    """A command was called with words it does not understand."""

    exit_code = EXIT_USAGE


class SettingsError(UsageError):
    """A configuration file or environment variable holds something unusable."""


class AgentError(KoiError):
    """An agent, team, skill or handler was asked for something it cannot do."""


class ProgramError(KoiError):
    """Code of a program has failed, and nothing in it has caught that; `__cause__` is what was raised."""


class CallCancelledError(KoiError):
    """Somebody has ended a call that came from outside of a program."""


class SendTimeoutError(AgentError, code="E0510"):
    """A `send … timeout` ended before its handler answered."""


class McpServerError(AgentError, code="E0507"):
    """An MCP server cannot be reached, or a call of it has failed."""


class UnreadableFileError(AgentError, code="E0508"):
    """A file that a program names does not exist, or cannot be read."""


class PermissionDeniedError(AgentError, code="E0502"):
    """The role of an agent does not allow what was asked."""


class GuardError(AgentError, code="E0511"):
    """A guard of an agent did not let something in or out."""


class ExpectationError(KoiError):
    """An `expect` of a test does not hold.

    Attributes:
        details: further lines, such as the values of both sides.
    """

    def __init__(self, message: str, *, help: str | None = None, details: tuple[str, ...] = ()) -> None:
        super().__init__(message, help=help)
        self.details = details


class UnscriptedError(KoiError):
    """A test asked for an answer of a model or person that it does not give."""


class PatternError(KoiError):
    """A regular expression that a query, a schema or a model gave cannot be used, or takes too long."""


class ExpressionError(KoiError):
    """A text is no expression, or one that cannot be computed.

    Attributes:
        is_readable: whether it is an expression.
    """

    is_readable = True


class UnreadableExpressionError(ExpressionError):
    """A text is no expression."""

    is_readable = False


class RegistryError(KoiError):
    """The registry could not be read or written."""


class JournalError(KoiError):
    """The journal of a run could not be found, read or written."""


class UntrustedJournalError(JournalError):
    """A journal that this machine has not signed is to be gone on with, and nobody has agreed to that."""


class ProgramChangedError(JournalError):
    """A recorded session does not fit its program, which has changed since.

    Attributes:
        entry: the last entry up to which it fits; 0 where nothing of it does.
    """

    def __init__(self, message: str, *, entry: int, help: str | None = None) -> None:
        super().__init__(message, help=help)
        self.entry = entry


class ExtensionError(KoiError):
    """An extension cannot be loaded, or adds what it may not."""


class PlaybookError(KoiError, code="E0505"):
    """A playbook could not be completed."""


class CorpusError(KoiError):
    """A stream of a corpus cannot be read, or streams cannot be kept."""


class ProviderError(KoiError, code="E0503"):
    """A model provider failed, refused, or cannot be reached."""


class MissingKeyError(ProviderError, code="E0509"):
    """A provider was named whose key is not known."""


class UnknownModelError(ProviderError, code="E0509"):
    """A model or a provider is named that does not exist."""


class BestEffortError(KoiError):
    """Work has ended that was not accepted: it is the best that came of it."""

    exit_code = EXIT_BEST_EFFORT


class BlockedError(KoiError):
    """A deliberation has blocked a task, and nothing of it was done."""

    exit_code = EXIT_BLOCKED


class OverLimitError(KoiError, code="E0501"):
    """Work has ended because a limit was reached, with something to show for it."""


class PlanShownError(KoiError):
    """A plan was proposed where nobody can decide about it: it was shown, and the run ends with it."""

    exit_code = EXIT_OK

    def is_final(self) -> bool:
        """Nothing goes on without the person."""
        return True


# What a status of HTTP says about trying again, and about who asks.
REPEATABLE = frozenset({408, 409, 425, 429})
REFUSED = frozenset({401, 403})


class RequestError(ProviderError):
    """A request to a provider came to nothing.

    Attributes:
        status: the HTTP status; None when no answer arrived or the answer broke off.
        retry_after_s: how long the provider asks to wait, None when it does not say.
        repeatable: whether the same request may succeed later.
        discarded: what it took all the same, as `koi_lang.llm` keeps it; None where that is not known, or nothing.
        attempts: how many attempts at the answer there were, this one included; 0 where nobody counted.
    """

    discarded: Any = None
    attempts: int = 0

    def __init__(self, message: str, *, help: str | None = None, status: int | None = None) -> None:
        super().__init__(message, help=help)
        self.status = status
        self.retry_after_s: float | None = None
        self.repeatable = status is None or status >= 500 or status in REPEATABLE

    def with_message(self, message: str) -> RequestError:
        """The same failure in other words."""
        failure = type(self)(message, help=self.help, status=self.status)
        failure.retry_after_s, failure.repeatable = self.retry_after_s, self.repeatable
        failure.discarded = self.discarded
        if self.attempts:
            failure.attempts = self.attempts
        return failure


class AnswerTooLongError(RequestError):
    """An answer had reached its limit of tokens before it said anything; the same request fails again."""

    def __init__(self, message: str, *, help: str | None = None, status: int | None = None) -> None:
        super().__init__(message, help=help, status=status)
        self.repeatable = False


class AnswerRefusedError(RequestError):
    """A model has declined to answer; it would decline the same request again."""

    def __init__(self, message: str, *, help: str | None = None, status: int | None = None) -> None:
        super().__init__(message, help=help, status=status)
        self.repeatable = False


class ContextOverflowError(RequestError):
    """A conversation is longer than what its model can read; the same request fails again."""

    def __init__(self, message: str, *, help: str | None = None, status: int | None = None) -> None:
        super().__init__(message, help=help, status=status)
        self.repeatable = False


# What packages are called whose modules have another name.
PACKAGES = {
    "bs4": "beautifulsoup4", "cv2": "opencv-python", "dateutil": "python-dateutil", "docx": "python-docx",
    "dotenv": "python-dotenv", "PIL": "Pillow", "sklearn": "scikit-learn", "yaml": "PyYAML",
}  # fmt: skip


def installing(module: str) -> str:
    """What to do about a Python module that is not installed."""
    top = module.partition(".")[0]
    return f"install it: `pip install {PACKAGES.get(top, top)}`."


# Whoever captures an error decides what becomes of it. Being cancelled is no error and goes on its way.
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """How some work ended.

    Attributes:
        value: what it gave; None where it failed.
        error: what it failed with; None where it did not.
    """

    value: T | None = None
    error: Exception | None = None

    def result(self) -> T:
        """The value. Raises the error, if that is how it ended."""
        if self.error is not None:
            raise self.error
        return cast(T, self.value)


async def capture(work: Awaitable[T]) -> Outcome[T]:
    """Wait for some work, whatever comes of it."""
    try:
        return Outcome(await work)
    except Exception as error:
        return Outcome(error=error)


def error_of(function: Callable[..., Any], *arguments: Any) -> Exception | None:
    """Call a function for its effect; gives what it fails with."""
    try:
        function(*arguments)
    except Exception as error:
        return error
    return None


@contextmanager
def undone_by(undo: Callable[..., object], *arguments: Any, **keywords: Any) -> Iterator[None]:
    """A context that calls a function where its block is left by an exception, which goes on; an OSError does not."""
    try:
        yield
    except BaseException:
        with suppress(OSError):
            undo(*arguments, **keywords)
        raise


@contextmanager
def raised_as(make: Callable[[Exception], KoiError]) -> Iterator[None]:
    """A context whose errors are raised as what `make` makes of them, which may also raise them on."""
    try:
        yield
    except Exception as error:
        raise make(error) from error
