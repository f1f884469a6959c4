"""The programs that a service serves, each loaded and ready for sessions, or with the reason why it is not."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

from koi_lang.diagnostics import suggestion
from koi_lang.errors import KoiError, UsageError, error_of
from koi_lang.program import cache, declarations, loader
from koi_lang.program.files import DiskFiles, absolute
from koi_lang.redaction.redactor import Redactor
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.budget.limits import BudgetAccount
from koi_lang.runtime.journal.writer import Follow
from koi_lang.service.errors import ServiceError
from koi_lang.service.live.run_socket import HostedRunSocket
from koi_lang.sessions.message_targets import MessageTarget, targets
from koi_lang.sessions.model_selection import ModelSelection
from koi_lang.sessions.options import RunOptions
from koi_lang.sessions.prepared import Prepared, prepare_program
from koi_lang.settings.service import ADMIN

# What programs of the standard library are called by.
STD = "std/"
# What compiles a program into the cache; its errors are left to whoever loads it.
COMPILE = "import sys; from koi_lang.program.loader import load_compiled; load_compiled(sys.argv[1])"


@dataclass(slots=True)
class ServedProgram:
    """A program of the service.

    Attributes:
        name: of its file, without the ending.
        ready: the loaded program; None where it has errors.
        error: why it is not served, or why its last change is not.
        is_shared: whether its sessions work on the files of the project, and not each in a folder of its own.
        redact: takes the secrets of its runs out of a text.
        versions: all that were served by this process, by the hashes of their files: sessions stay with theirs.
    """

    name: str
    file: str
    options: RunOptions
    redact: Redactor
    ready: Prepared | None = None
    error: KoiError | None = None
    is_shared: bool = False
    versions: dict[str, Prepared] = field(default_factory=dict)
    _options: dict[str, RunOptions] = field(default_factory=dict, init=False)  # by the users who answer

    @property
    def path(self) -> str:
        """The path of its file."""
        return (self.file.startswith(STD) and DiskFiles().package(self.file)) or self.file

    def compile_apart(self) -> None:
        """Compile it into the cache in a process of its own, unless it is there; its errors are left to `load`."""
        if cache.find(absolute(self.path)) is None:
            words = [sys.executable, "-P", "-c", COMPILE, self.path]
            subprocess.run(words, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, check=False)

    def load(self) -> None:
        """Load it if it has changed; after a failure the earlier version stays. Raises KoiError."""
        path = self.path
        entry = loader.load_compiled(path)
        version = entry.version()
        if self.ready is not None and self.ready.version == version:
            return
        loader.unload_changed(entry)
        self.ready, self.error = self._prepare(path, entry), None
        self.versions[version] = self.ready

    def load_version(self, path: str) -> str:
        """Load a version from another file, for the sessions that are with it; gives its hash. Raises KoiError."""
        entry = loader.load_compiled(path)
        version = entry.version()
        if version not in self.versions:
            self.versions[version] = self._prepare(path, entry)
        return version

    def _prepare(self, path: str, entry: cache.CachedModule) -> Prepared:
        ready = replace(prepare_program(path, entry, self.options), make_live=HostedRunSocket.of_session)
        declarations.require_servers(ready.module, self.options.settings)
        return ready

    def try_load(self) -> bool:
        """The same; why it cannot be is kept as its error. Gives whether another version is served now."""
        before, error = self.ready, error_of(self.load)
        if error is not None and not isinstance(error, KoiError):
            raise error
        self.error = error
        return self.ready is not before

    def version_of(self, version: str) -> Prepared:
        """The version of a hash, while this process has it, else the latest. Raises ServiceError."""
        return self.versions.get(version) or self.require_ready()

    def require_ready(self) -> Prepared:
        """The loaded program. Raises ServiceError."""
        if self.ready is None:
            reason = "it has not been loaded" if self.error is None else self.error.message
            raise ServiceError("program_broken", f"`{self.name}` is not served: {reason}")
        return self.ready

    def agents(self) -> Sequence[type[Agent]]:
        """Its agents. Raises ServiceError."""
        return self.require_ready().agents

    def chat_targets(self) -> list[MessageTarget]:
        """The handlers that messages of people may be for."""
        try:
            return targets(self.agents())
        except UsageError:
            return []

    async def models(self) -> list[dict[str, Any]]:
        """The models of the providers that are connected."""
        ready = self.require_ready()
        choice = ModelSelection(ready.wanted, is_stood_in=ready.has_stand_in)
        return await choice.available(refresh=False)

    def prepare_session(
        self,
        note: Callable[[str], None],
        run: str,
        files: Path,
        follow: Follow,
        payer: BudgetAccount,
        version: str = "",
        owner: str = ADMIN,
    ) -> Prepared:
        """The program for a session of it. Raises ServiceError.

        Args:
            version: hash of the files that a session was with before; empty for a new one.
            owner: the user who answers in it; what they allow for later runs counts for them alone.
        """
        own, ready = None if self.is_shared else files, self.version_of(version)
        if owner != ADMIN and owner not in self._options:
            self._options[owner] = replace(self.options, user=owner)
        options = self._options.get(owner, ready.options)
        return replace(ready, options=options, note=note, run_id=run, files=own, followers=[follow], payer=payer)


class Programs:
    """All programs of the service, by name.

    Args:
        options: of the runs of all of them.
        shared: names of those whose sessions work on the files of the project, as those of `std` do.
    """

    def __init__(self, files: Sequence[str], options: RunOptions, shared: Sequence[str] = ()) -> None:
        self.options, self._reloading = options, asyncio.Lock()
        redact = options.redact
        self._programs = {Path(file).stem: ServedProgram(Path(file).stem, file, options, redact) for file in files}
        for program in self:
            program.is_shared = program.name in shared or program.file.startswith(STD)
        if len(self._programs) < len(files):
            raise UsageError("two programs have one name", help="Rename one of the files.")
        self.reload()

    def __iter__(self) -> Iterator[ServedProgram]:
        return iter(self._programs.values())

    def reload(self) -> list[ServedProgram]:
        """Load those whose files have changed; gives them. One with errors is served as it was, if it was."""
        return [program for program in self if program.try_load()]

    async def reload_apart(self) -> list[ServedProgram]:
        """Load those whose files have changed without holding up the event loop; gives them.

        Python's `compile` lets no other thread go on, for half a second with 8,000 lines.
        """
        async with self._reloading:
            for program in self:
                await asyncio.to_thread(program.compile_apart)
            return await asyncio.to_thread(self.reload)

    def find(self, name: str = "") -> ServedProgram:
        """The program of a name; without one the only one. Raises ServiceError."""
        if not name:
            if len(self._programs) == 1:
                return next(iter(self._programs.values()))
            known = ", ".join(f"`{each}`" for each in self._programs)
            raise ServiceError("unknown_program", "several programs are served", help=f"Name one: {known}.")
        if name not in self._programs:
            help = suggestion(name, list(self._programs), "program")
            raise ServiceError("unknown_program", f"there is no program `{name}`", help=help)
        return self._programs[name]
