"""The sandbox of a run's commands: its choice, and the visible files."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from koi_lang import settings
from koi_lang.errors import KoiError, PermissionDeniedError, reason
from koi_lang.runtime.guards import closed_files, repositories
from koi_lang.runtime.guards.file_names import is_secret
from koi_lang.runtime.guards.paths import own_folders, running_programs
from koi_lang.runtime.guards.permissions import NO_RESTRICTIONS, Restrictions
from koi_lang.runtime.guards.repositories import RepositoryWatch
from koi_lang.settings import project
from koi_lang.system.bubblewrap import CommandBounds, Confinement, find_bubblewrap, find_fault

# Folders that hold what belongs to people, what is short-lived, and the sockets of servers.
SOCKETS = "/run"
EMPTY = ("/home", "/root", "/tmp", "/var/tmp", SOCKETS)
# Is there on every system, for a trial.
SOME_FILE = "/etc/passwd"
# Folders that hold programs within the folder of what was installed.
BINARIES = frozenset({"bin", "sbin", "shims", "condabin"})
# What stands in the folder of an environment or an installation.
PYTHON_LIBRARY = "lib/python3*"
INSTALLED = ("pyvenv.cfg", "conda-meta", "lib/node_modules", PYTHON_LIBRARY)
# Programs of one folder that need another one of the home folder.
COMPANIONS = {".cargo": ".rustup", ".asdf": ".tool-versions"}
# Folders of many things, of which no more than their programs are shown.
SHARED = (".", ".local", ".config", ".cache", ".local/share", ".local/state")
# Where people usually have the patterns of what git is to ignore everywhere.
IGNORED_EVERYWHERE = (".config/git/ignore", ".gitignore_global", ".gitignore")
MAX_LINKS = 500
MAX_NAMED_TOOLS = 3
# What programs need of them: where names of machines are looked up, and the programs of NixOS.
NAMES, SYSTEM_PROGRAMS = "/etc/resolv.conf", "/run/current-system"


class SandboxError(ValueError):
    """A command cannot be started in the sandbox, as a clause."""


@dataclass(frozen=True, slots=True)
class PreparedSandbox:
    """What a command is confined to, and the watch over repositories that the caller ends when it has ended."""

    confinement: Confinement
    repositories: RepositoryWatch


@dataclass(frozen=True, slots=True)
class Sandbox:
    """The confinement of commands.

    Attributes:
        program: bubblewrap.
        project: the folder that they may change, with its links resolved.
        home: the folder of the person, likewise.
        shown: the parts of it that they see, as settings name them.
        note: receives a line for the person about what a command has left.
        service: the folder of the service, which holds what belongs to others; None where there is none.
        bounds: what each command may take of the machine; None where nobody else has to share it.
        tools: folders of installed programs that commands see, too, since they are on PATH or of a Python in use.
        tool_secrets: files and folders in these that look like keys, which they do not see.
        restrictions: rules; commands cannot do what those for files deny.
    """

    program: str
    project: Path
    home: Path
    shown: Sequence[str] = ()
    note: Callable[[str], None] = lambda line: None
    service: Path | None = None
    bounds: CommandBounds | None = None
    tools: Sequence[Path] = ()
    tool_secrets: Sequence[Path] = ()
    restrictions: Restrictions = NO_RESTRICTIONS

    def prepare(
        self, words: Sequence[str], work: Path, *, changeable: Sequence[str] = (), network: bool = False
    ) -> PreparedSandbox:
        """Look up what a command may see and change now. Takes time for big projects.

        The caller ends the watch of its repositories.

        Args:
            work: the folder that it begins in.
            changeable: folders beside the project that it may change.

        Raises:
            SandboxError: it could not begin there.
        """
        self._require_visible(work, "it begins in")
        if os.path.isabs(words[0]):
            self._require_visible(Path(words[0]).resolve(), "its program is")
        try:
            denies = self.restrictions.denies_file if self.restrictions.denies_files() else None
            closed = closed_files.find_closed_files(self.project, running_programs(), denies)
            watch = closed.watch_repositories(self.project)
        except KoiError as error:
            raise SandboxError(f"{error.message}, which is more than a sandbox can hide") from error
        except OSError as error:
            raise SandboxError(f"the repositories of the project cannot be protected: {reason(error)}") from error
        own = {each for each in own_folders() if self.project in each.parents}
        ignored = [path for path in (self.home / each for each in IGNORED_EVERYWHERE) if not self.hides(path.resolve())]
        store = settings.cache_folder() / "stand-ins"
        git = closed_files.view_of_git(closed, self.project, store, ignored)
        confinement = Confinement(
            project=str(self.project),
            work=str(work),
            empty=list(self._empty()),
            shown=list(self._visible_parts(network=network)),
            changeable=[*sorted({*closed.held, *closed_files.folders_around(own, self.project)}), *changeable],
            fixed=closed.fixed,
            hidden_folders=[
                *(each for each in closed.folders if not self.hides(Path(each))),
                *sorted(map(str, own)),
                *(str(path) for path in self.tool_secrets if path.is_dir()),
            ],
            hidden_files=[
                *(
                    file
                    for file in closed.files
                    if not (self.hides(Path(file)) or any(map(Path(file).is_relative_to, own)))
                ),
                *(str(path) for path in self.tool_secrets if path.is_file()),
            ],
            stand_ins=git.stand_ins,
            variables=git.variables,
            network=network,
            bounds=self.bounds,
        )
        return PreparedSandbox(confinement, watch)

    async def prepare_aside(
        self, words: Sequence[str], work: Path, *, changeable: Sequence[str] = (), network: bool = False
    ) -> PreparedSandbox:
        """`prepare` in a thread, once the watches of killed processes are ended.

        A cancelled caller leaves nothing to clean up.
        """
        for line in await asyncio.to_thread(repositories.end_killed, self.project):
            self.note(f"after a command that was interrupted: {line}")
        prepare = partial(self.prepare, words, work, changeable=changeable, network=network)
        preparing = asyncio.get_running_loop().run_in_executor(None, prepare)
        try:
            return await asyncio.shield(preparing)
        except asyncio.CancelledError:
            with suppress(ValueError):
                await asyncio.to_thread((await preparing).repositories.end)
            raise

    async def find_fault(self) -> str | None:
        """The reason why it does not work here, as a clause; tries every option of a real command."""
        empty = list(self._empty())
        confinement = Confinement(
            project=str(self.project),
            work="/",
            empty=empty,
            shown=list(self._visible_parts(network=False)),
            fixed=(SOME_FILE,),
            hidden_folders=empty[:1],
            hidden_files=(SOME_FILE,),
            bounds=self.bounds,
        )
        return await find_fault(self.program, confinement)

    def hides(self, path: Path) -> bool:
        """Whether a path lies where commands see nothing; its links are resolved."""
        shown = [self.project, *self._parts_of_home(), *self.tools, Path(SYSTEM_PROGRAMS)]
        return self._is_within_empty(path) and not any(path.is_relative_to(each) for each in shown)

    def name_tools(self) -> str:
        """The folders of installed programs that commands see, as a clause; empty where it is none."""
        names = [
            f"~/{each.relative_to(self.home)}" if each.is_relative_to(self.home) else str(each) for each in self.tools
        ]
        more = f" and {len(names) - MAX_NAMED_TOOLS} more" if len(names) > MAX_NAMED_TOOLS else ""
        return f"with programs from {', '.join(names[:MAX_NAMED_TOOLS])}{more}" if names else ""

    def _empty(self) -> Iterator[str]:
        """The folders that look empty, outer ones first."""
        folders = {str(Path(each).resolve()): None for each in EMPTY if os.path.isdir(each)}
        for each in (self.home, self.service):
            if each is not None and each.is_dir() and each != Path("/"):
                folders[str(each)] = None
        yield from sorted(folders)

    def _visible_parts(self, *, network: bool) -> Iterator[str]:
        yield from (str(path) for path in (*self.tools, *self._parts_of_home()))
        yield SYSTEM_PROGRAMS
        resolver = Path(NAMES).resolve()
        if network and self._is_within_empty(resolver):
            yield str(resolver)

    def _parts_of_home(self) -> list[Path]:
        return [self.home / each.removeprefix("~/") for each in self.shown]

    def _is_within_empty(self, path: Path) -> bool:
        return any(path.is_relative_to(folder) for folder in self._empty())

    def _require_visible(self, path: Path, what: str) -> None:
        if not self.hides(path):
            return
        if path.is_relative_to(self.home):
            part = path.relative_to(self.home).parts[:1] or ("",)
            message = f'`[shell] home = ["~/{part[0]}"]` in `koi.toml` shows it' if part[0] else "it is the home folder"
            raise SandboxError(f"{what} `{path}`, which is hidden from it; {message}")
        raise SandboxError(f"{what} `{path}`, which is hidden from it in the sandbox")


@dataclass(frozen=True, slots=True)
class SandboxState:
    """Whether commands are confined.

    Attributes:
        sandbox: what confines them; None where nothing does.
        why: why nothing does, as a clause; empty where something does.
        is_meant: whether the settings say that nothing is to.
        is_missing: whether there is no bubblewrap.
    """

    sandbox: Sandbox | None
    why: str = ""
    is_meant: bool = False
    is_missing: bool = False


async def find_sandbox(
    folder: Path,
    project_settings: settings.ProjectSettings,
    note: Callable[[str], None] = lambda line: None,
    service: Path | None = None,
    is_bounded: bool = False,
) -> SandboxState:
    """Decide whether commands in a folder are confined, by settings and by the abilities of the machine.

    Args:
        note: receives a line for the person about what a command has left.
        service: the folder of the service in which the folder belongs to one of many sessions.
        is_bounded: whether others share the machine, so that each command may take so much of it alone.

    Raises:
        SettingsError: the settings are broken.
        PermissionDeniedError: the settings ask for a sandbox, and there is none.
    """
    shell = project.shell_settings(project_settings)
    if shell.sandbox == "none":
        return SandboxState(None, '`[shell] sandbox = "none"` in `koi.toml` says so', is_meant=True)
    state, fault = _sandbox_of(folder, shell.home, service, CommandBounds() if is_bounded else None), None
    if state.sandbox is not None:
        sandbox = replace(state.sandbox, note=note)
        fault = await sandbox.find_fault()
        if fault is not None and sandbox.bounds is not None:
            sandbox = replace(sandbox, bounds=replace(sandbox.bounds, folder_bytes=None))
            fault = await sandbox.find_fault()
        state = SandboxState(sandbox)
    if fault is not None:
        state = SandboxState(None, f"bubblewrap does not work here ({fault})")
    if state.sandbox is None and shell.sandbox == "bwrap":
        help = 'Mend that, or write `sandbox = "auto"` for commands that run all the same.'
        raise PermissionDeniedError(f"`koi.toml` has commands run in a sandbox only, and {state.why}", help=help)
    return state


def _sandbox_of(folder: Path, shown: Sequence[str], service: Path | None, bounds: CommandBounds | None) -> SandboxState:
    """The sandbox of a project, which may not work."""
    here, home = folder.resolve(), Path.home().resolve()
    folders = settings.environment().get("PATH", "").split(os.pathsep)
    program = find_bubblewrap(folders, here)
    if program is None:
        return SandboxState(None, "bubblewrap is not installed", is_missing=True)
    if home.is_relative_to(here):
        return SandboxState(None, f"the project, `{here}`, holds the home folder")
    around = None if service is None else service.resolve()
    sandbox = Sandbox(program, here, home, tuple(shown), service=around, bounds=bounds)
    return SandboxState(with_tools(sandbox, folders))


def with_tools(sandbox: Sandbox, folders: Sequence[str]) -> Sandbox:
    """A sandbox that shows the installed programs which its commands would find on PATH, and the Python of the project.

    Nothing of a name that keys have is shown, and of a folder of many things no more than its programs.

    Args:
        folders: of PATH.
    """
    tools: dict[Path, None] = {}
    for folder in map(Path, folders):
        if folder.is_absolute() and folder.is_dir() and (sandbox.hides(folder) or sandbox.hides(folder.resolve())):
            needed = (folder, folder.resolve(), *_targets_of_links(folder))
            tools |= dict.fromkeys(root for each in needed for root in _roots_of_tools(each, sandbox))
    for environment in (".venv", "venv"):
        python = (sandbox.project / environment / "bin/python").resolve()
        if sandbox.hides(python) and any(python.parent.parent.glob(PYTHON_LIBRARY)):
            tools |= dict.fromkeys(_roots_of_tools(python.parent, sandbox))
    ordered = [each for each in tools if not any(outer in tools for outer in each.parents)]
    parts = (path for each in ordered for pattern in ("*", "*/*") for path in each.glob(pattern))
    secrets = [path for path in parts if is_secret((path.name,)) and not path.is_symlink()]
    return replace(sandbox, tools=ordered, tool_secrets=secrets)


def _targets_of_links(folder: Path) -> set[Path]:
    """Where the links in a folder lead: folders with programs, and single ones elsewhere."""
    with suppress(OSError), os.scandir(folder) as entries:
        links = [entry.path for entry, _ in zip(entries, range(MAX_LINKS), strict=False) if entry.is_symlink()]
        targets = {Path(os.path.realpath(link)) for link in links}
        return {each.parent if each.parent.name in BINARIES else each for each in targets}
    return set()


def _roots_of_tools(folder: Path, sandbox: Sandbox) -> Iterator[Path]:
    """The visible folders for a hidden program or a folder of programs: the whole installation, where it is one."""
    bases = (sandbox.home, sandbox.service, Path(SOCKETS))
    base = next((each for each in bases if each is not None and folder != each and folder.is_relative_to(each)), None)
    if base is None or not sandbox.hides(folder):
        return
    inner, around = folder.relative_to(base), folder.parent.relative_to(base)
    if is_secret(inner.parts) or str(inner) in SHARED:
        return
    own = (sandbox.project, sandbox.home, sandbox.service)
    holds_others = any(each is not None and each.is_relative_to(folder.parent) for each in own)
    is_installed = any(any(folder.parent.glob(pattern)) for pattern in INSTALLED) or (
        base == sandbox.home and any(part.startswith(".") for part in around.parts)
    )
    is_root = folder.name in BINARIES and str(around) not in SHARED and not holds_others
    yield folder.parent if is_root and is_installed else folder
    companion = base / COMPANIONS.get(inner.parts[0], "")
    if companion != base and companion.exists():
        yield companion


class CommandSandboxes:
    """The sandbox of one run, looked for when its first command is to run.

    Args:
        restrictions: rules of the run.
        note_once: is told that there is none, under a name for it.
        note: as of `find_sandbox`, like `service` and `is_bounded`.
    """

    def __init__(
        self,
        folder: Path,
        project_settings: settings.ProjectSettings,
        restrictions: Restrictions,
        note_once: Callable[[str, str], None],
        note: Callable[[str], None],
        service: Path | None,
        *,
        is_bounded: bool,
    ) -> None:
        self._folder = folder
        self._is_bounded = is_bounded
        self._settings, self._restrictions = project_settings, restrictions
        self._service = service
        self._note_once, self._note = note_once, note
        self._looking = asyncio.Lock()
        self._found: SandboxState | None = None

    async def find(self) -> Sandbox | None:
        """The sandbox of the commands of the run; None for none. Raises as `find_sandbox`."""
        async with self._looking:
            if self._found is None:
                self._found = state = await find_sandbox(
                    self._folder, self._settings, self._note, self._service, self._is_bounded
                )
                if state.sandbox is not None:
                    self._found = replace(state, sandbox=replace(state.sandbox, restrictions=self._restrictions))
                elif not state.is_meant:
                    line = f"commands run without a sandbox: {state.why}; `koi doctor` says more"
                    self._note_once("no-sandbox", line)
        return self._found.sandbox
