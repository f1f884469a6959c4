"""The tree of errors that Koi raises, each with the exit code a command ends with."""

from __future__ import annotations

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_SOURCE = 65


class KoiError(Exception):
    """Anything that went wrong and can be told to a person in one sentence.

    Attributes:
        exit_code: what the process ends with when nobody handles the error.
        help: one thing to do about it, a whole sentence; None when there is nothing to advise.
    """

    exit_code = EXIT_FAILED

    def __init__(self, message: str, *, help: str | None = None) -> None:
        super().__init__(message)
        self.help = help

    @property
    def message(self) -> str:
        """What went wrong, lower case, without a full stop."""
        return str(self.args[0])


class UsageError(KoiError):
    """A command was called with words it does not understand."""

    exit_code = EXIT_USAGE


class SettingsError(UsageError):
    """A configuration file or environment variable holds something unusable."""


class AgentError(KoiError):
    """An agent, team, skill or handler was asked for something it cannot do."""


class SendTimeout(AgentError):
    """A `send … timeout` ended before its handler answered."""


class PermissionDenied(AgentError):
    """The role of an agent does not allow what was asked."""


class RegistryError(KoiError):
    """The registry could not be read or written."""


class JournalError(KoiError):
    """The journal of a run could not be found, read or written."""


class PlaybookError(KoiError):
    """A playbook could not be completed."""


class ProviderError(KoiError):
    """A model provider failed, refused, or cannot be reached."""


class MissingKey(ProviderError):
    """A provider was named whose key is not known."""

    exit_code = EXIT_USAGE
