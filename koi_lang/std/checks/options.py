"""Options of checks: how long one may take, and which files it is for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from koi_lang.errors import AgentError
from koi_lang.js.undefined import undefined
from koi_lang.runtime.guards.paths import project_path

USUAL_TIMEOUT_S = 300.0
LONGEST_TIMEOUT_S = 3600.0
MOST_FILES = 500


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """What a check was asked for.

    Attributes:
        timeout_s: for each tool.
        files: paths from the folder of the project, all of which are there; empty for the whole of it.
    """

    timeout_s: float = USUAL_TIMEOUT_S
    files: tuple[str, ...] = ()

    def as_data(self) -> dict[str, Any]:
        """The JSON form."""
        return {"timeout": self.timeout_s, **({"files": list(self.files)} if self.files else {})}


def check_options(given: Any) -> CheckOptions:
    """Options as a program gives them. Raises AgentError."""
    if not isinstance(given, dict):
        if given is not None and given is not undefined:
            raise AgentError(f"{given!r} are no options", help="Write them such as `{ timeout: 60 }`.")
        given = {}
    options = {name: value for name, value in given.items() if value is not undefined}
    unknown = [name for name in options if name not in ("timeout", "files")]
    if unknown:
        raise AgentError(f"there is no option `{unknown[0]}`", help="The options are `timeout` and `files`.")
    return CheckOptions(_timeout_s(options.get("timeout", USUAL_TIMEOUT_S)), _files(options.get("files", [])))


def require_files(folder: Path, files: tuple[str, ...]) -> None:
    """Raise PermissionDeniedError for files outside of the project and hidden ones, AgentError for missing ones."""
    for file in files:
        if not project_path(folder, file).exists():
            raise AgentError(f"there is no file `{file}`", help="Name files from the folder of the program.")


def _timeout_s(given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given <= LONGEST_TIMEOUT_S:
        help = f"Write seconds, at most {LONGEST_TIMEOUT_S:g}: `{{ timeout: 60 }}`."
        raise AgentError(f"`timeout` must be a number of seconds, not {given!r}", help=help)
    return float(given)


def _files(given: Any) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(file, str) for file in given):
        raise AgentError("`files` must be a list of paths", help='Write it such as `{ files: ["src/a.py"] }`.')
    if len(given) > MOST_FILES:
        raise AgentError(f"{len(given):,} files are too many: at most {MOST_FILES}", help="Name their folders.")
    # What looks like an option is none.
    return tuple(f"./{file}" if file.startswith("-") else file for file in given)
