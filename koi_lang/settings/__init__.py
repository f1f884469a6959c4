"""Environment variables and configuration files: only this package reads them."""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from koi_lang.errors import SettingsError, reason
from koi_lang.lazy import lazy_module
from koi_lang.system.file_locks import try_lock
from koi_lang.system.open_folders import FOLDER, SERVICE_KEY

if TYPE_CHECKING:
    import tomllib

    import platformdirs
    from dotenv import parser as dotenv_parser

    from koi_lang.settings import folder_trust
    from koi_lang.settings.folder_trust import FolderTrust
else:
    platformdirs, dotenv_parser = lazy_module("platformdirs"), lazy_module("dotenv.parser")
    folder_trust, tomllib = lazy_module("koi_lang.settings.folder_trust"), lazy_module("tomllib")


T = TypeVar("T")
PROJECT_FILES = ("koi.toml", ".mcp.json", ".koi-config.json", ".env")
# What no confined command may make at the top of a project: settings that later runs would obey, and a repository.
TOP_NAMES = (*PROJECT_FILES, ".git")
MAX_FILE_BYTES = 1_000_000
# Has the settings of every folder count, as `--trust-folder` has those of one.
TRUST_VARIABLE = "KOI_TRUST_FOLDER"


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """The settings files of a project, as they were when they were read.

    Attributes:
        folder: the folder of the project, which has its instructions, skills and rubrics; the settings files are never
            read again from there.
        files: content by name, or the error that kept a file from being read; a missing file has no entry. The
            key of a service is one of them.
        is_trusted: whether the person has agreed to what the files widen; else only the rest of them counts.
        servers: MCP servers that the person names beside the files, by name, each with its options.
        may_describe_servers: whether `koi.toml` may describe MCP servers; only then what checks their options has to be
            loaded.
    """

    folder: Path
    files: Mapping[str, bytes | OSError] = field(default_factory=dict, repr=False)
    is_trusted: bool = False
    servers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    may_describe_servers: bool = field(init=False)
    # A record that replaces this one begins without results.
    _results: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        content = self.files.get("koi.toml")
        object.__setattr__(self, "may_describe_servers", isinstance(content, bytes) and b"mcp" in content)

    def once(self, read: Callable[[ProjectSettings], T]) -> T:
        """The result of a function of these settings, which is called for it once. Raises as that does."""
        if read not in self._results:
            self._results[read] = read(self)
        result: T = self._results[read]
        return result

    @property
    def has_project_file(self) -> bool:
        """Whether there is a `koi.toml`; only then its schema, `settings.project`, has to be loaded."""
        return "koi.toml" in self.files

    def parse(self, name: str, parse: Callable[[str], Any], help: str) -> Any:
        """The parsed content of a settings file, as far as it is trusted; an empty object without the file.

        Raises:
            SettingsError: the file cannot be read.
        """
        content = self.files.get(name)
        try:
            if isinstance(content, OSError):
                raise content.with_traceback(None)
            if content is None:
                return {}
            parsed = parse(StringIO(content.decode("utf-8-sig"), newline=None).read())
            return parsed if self.is_trusted else folder_trust.narrow(name, parsed)
        except RecursionError as error:
            raise SettingsError(f"`{name}` cannot be read: it nests too deeply", help=help) from error
        except (OSError, ValueError) as error:
            raise SettingsError(f"`{name}` cannot be read: {error}", help=help) from error


def read_settings(folder: Path | None = None) -> ProjectSettings:
    """Read the settings files of a folder, by default the current one, once for each prepared run.

    What is wrong with a file is reported where something of it is needed.
    """
    folder = Path.cwd() if folder is None else folder
    files: dict[str, bytes | OSError] = {}
    for name in (*PROJECT_FILES, SERVICE_KEY):
        try:
            files[name] = _read_file(folder / name)
        except FileNotFoundError:
            continue
        except OSError as error:
            files[name] = error
    settings = ProjectSettings(folder, files)
    if files:
        with suppress(SettingsError):  # of files that nest too deeply, which is reported where they are read
            is_trusted = variable(TRUST_VARIABLE) == "1" or trust_in_folder(settings).is_trusted
            return replace(settings, is_trusted=is_trusted)
    return settings


def trust_in_folder(settings: ProjectSettings) -> FolderTrust:
    """The widenings in the settings files of a folder, and the person's decision about them. Raises SettingsError."""
    whole = replace(settings, is_trusted=True)
    parsers: Mapping[str, Callable[[str], Any]]
    parsers = {
        SERVICE_KEY: str,
        "koi.toml": tomllib.loads,
        ".mcp.json": json.loads,
        ".koi-config.json": json.loads,
        ".env": _variables,
    }
    documents: dict[str, Any] = {}
    for name, parse in parsers.items():
        with suppress(SettingsError):  # reported where something of the file is needed
            documents[name] = whole.parse(name, parse, "")
    try:
        return folder_trust.find_trust(settings.folder, documents, config_folder())
    except RecursionError as error:
        help = "Write it with fewer levels."
        raise SettingsError(f"the settings of `{settings.folder}` nest too deeply", help=help) from error


def _read_file(path: Path) -> bytes:
    """The content of a file that may come from a stranger: no pipe is waited for, and no device is read.

    Where a stand-in of the sandbox is in its place, stand-ins that no command needs are removed.
    """
    about = path.stat()
    if stat.S_ISDIR(about.st_mode):
        # A command in the sandbox is kept from making the file by an empty folder, as long as it goes on.
        if not is_empty_folder(path):
            raise IsADirectoryError("it is a folder")
        with suppress(OSError):
            opened = os.open(path.parent, FOLDER)
            try:
                remove_stand_ins(opened)
            finally:
                os.close(opened)
        raise FileNotFoundError
    if not stat.S_ISREG(about.st_mode):
        raise OSError("it is no regular file")
    if about.st_size > MAX_FILE_BYTES:
        raise OSError(f"it has more than {MAX_FILE_BYTES:,} bytes")
    return path.read_bytes()


def is_stand_in(folder: Path, name: str) -> bool:
    """Whether an entry of a project only keeps confined commands from making one of `TOP_NAMES`."""
    return name in TOP_NAMES and is_empty_folder(folder / name)


def remove_stand_ins(project: int) -> None:
    """Remove the stand-ins at the top of an open project, unless a command needs them.

    Each process with a command in the sandbox keeps the folder locked. What a killed one has left goes when settings
    are read again.
    """
    for name in TOP_NAMES if try_lock(project) else ():
        with suppress(OSError):
            os.rmdir(name, dir_fd=project)


def is_empty_folder(path: Path) -> bool:
    """Whether a path is a folder that holds nothing. Raises OSError where it cannot be listed."""
    return path.is_dir() and not any(path.iterdir())


def environment() -> Mapping[str, str]:
    """The environment of the process as a read-only view."""
    return dict(os.environ)


def variable(name: str) -> str | None:
    """One environment variable; None when it is unset or empty."""
    return os.environ.get(name) or None


def set_variables(variables: Mapping[str, str]) -> None:
    """Set environment variables for this process and its children."""
    os.environ.update(variables)


def cache_folder() -> Path:
    """Where compiled programs are kept: KOI_CACHE_DIR, else the user's cache folder."""
    return _folder_of_person("CACHE")


def config_folder() -> Path:
    """The folder for personal files, such as keys: KOI_CONFIG_DIR, else the user's configuration."""
    return _folder_of_person("CONFIG")


def _folder_of_person(kind: Literal["CACHE", "CONFIG"]) -> Path:
    """The folder that a variable names, else one such as `~/.config/koi`; macOS and Windows have others for new files.

    Elsewhere the library, which takes a while to load, says the same and is not asked.
    """
    if chosen := variable(f"KOI_{kind}_DIR"):
        return Path(chosen)
    if base := variable(f"XDG_{kind}_HOME"):
        return Path(base) / "koi"
    folder = Path.home() / f".{kind.lower()}" / "koi"
    if sys.platform not in ("darwin", "win32") or folder.is_dir():
        return folder
    of_system = platformdirs.user_cache_dir if kind == "CACHE" else platformdirs.user_config_dir
    return Path(of_system("koi", appauthor=False))


def dotenv(settings: ProjectSettings) -> dict[str, str]:
    """The variables of `.env`: `NAME=value` lines, quotes, comments, `export`; others are left out."""
    if isinstance(settings.files.get(".env"), IsADirectoryError):  # a virtual environment may be called so
        return {}
    found: dict[str, str] = settings.parse(".env", _variables, "It holds lines like `NAME=value`, in UTF-8.")
    return found


def variables_in(path: str) -> dict[str, str]:
    """The variables of a file like `.env`. Raises SettingsError when it cannot be read."""
    try:
        return _variables(Path(path).read_text("utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        why = reason(error) if isinstance(error, OSError) else str(error)
        help = "It holds lines like `OPENAI_API_KEY=…`."
        raise SettingsError(f"`{path}` cannot be read: {why}", help=help) from error


def _variables(text: str) -> dict[str, str]:
    """Variables by name. `${X}` in a value stays as it is: nothing of the environment is put anywhere unasked."""
    lines = dotenv_parser.parse_stream(StringIO(text))
    return {line.key: line.value for line in lines if line.key is not None and line.value is not None}


def koi_config(settings: ProjectSettings) -> Mapping[str, Any]:
    """The content of `.koi-config.json`, empty without the file.

    Raises:
        SettingsError: the file is not a JSON object.
    """
    loaded = settings.parse(".koi-config.json", json.loads, "It holds one JSON object.")
    if not isinstance(loaded, dict):
        raise SettingsError("`.koi-config.json` holds no JSON object", help='Write `{ "registry": { … } }`.')
    return loaded


FILLED = re.compile(r"\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}")


def fill_variables(text: str, settings: ProjectSettings) -> str:
    """A text with `${NAME}` and `${NAME:-default}` replaced by variables of the environment, else of `.env`.

    Raises:
        SettingsError: a variable is not set and has no default.
    """

    def value_of(found: re.Match[str]) -> str:
        value = variable(found[1]) or dotenv(settings).get(found[1]) or found[2]
        if value is None:
            raise SettingsError(f"the variable `{found[1]}` is not set", help=f"Set it, or write ${{{found[1]}:-…}}.")
        return value

    return FILLED.sub(value_of, text)
