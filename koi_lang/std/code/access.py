"""The agent that works on a project, and its permissions: rules of the person first, then the person."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from koi_lang.errors import AgentError, KoiError
from koi_lang.runtime.context import current
from koi_lang.runtime.guards.file_access import access_to, file_permission, may_read, page_permission
from koi_lang.runtime.guards.working_files import working_path
from koi_lang.runtime.host import ApprovalRequest
from koi_lang.std import effects
from koi_lang.std.code.project_files import MayRead

if TYPE_CHECKING:
    from koi_lang.runtime.ports import RunPort

# The actions after which an agent knows what a file holds.
SEEING = frozenset({"read_file", "write_file", "edit_file", "patch_file"})


@dataclass(frozen=True, slots=True)
class Workplace:
    """A project, and the agent that works on it.

    Attributes:
        root: the folder of the project.
        run: None where Python works on it without a program; then nothing is asked.
        agent: its name; empty outside of agents.
    """

    root: Path
    run: RunPort | None
    agent: str = ""

    @classmethod
    def current(cls) -> Workplace:
        """Where the code stands that is running."""
        asking = effects.agent()
        return cls(effects.folder(), current.get(), "" if asking is None else asking.name)

    def name_of(self, file: Path) -> str:
        """The path of a file from the project, with `/` between its parts."""
        return file.relative_to(self.root.resolve()).as_posix()

    def may_read(self, path: str) -> bool:
        """Whether rules leave a file to be seen without a question."""
        return self.run is None or may_read(self.run.policy, path)

    async def require_reading(self, path: str) -> MayRead:
        """Ask for leave to read a file; gives what may be read, so that no link leads elsewhere when it is opened.

        Raises:
            AgentError: it is no path.
            PermissionDeniedError: it is closed to agents, a rule denies it, or has the person asked, who says no.
        """
        name = self.name_of(working_path(self.root, path))
        if self.run is None or self.may_read(name):
            return self.may_read
        request = ApprovalRequest(f"read `{name}`", agent=self.agent)
        await self.run.policy.require(access_to(request, file_permission("read", name)))
        return lambda other: other == name or self.may_read(other)

    def version_of(self, name: str) -> tuple[int, int] | None:
        """When a file was changed last, in nanoseconds, and its size; None where there is none."""
        try:
            about = os.stat(self.root / name)
        except OSError:
            return None
        return about.st_mtime_ns, about.st_size

    def note_seen(self, path: str) -> None:
        """Note which version of a file the agent is about to read."""
        name = self.name_of(working_path(self.root, path))
        version = self.version_of(name)
        if self.run is not None and version is not None:
            self.run.changes.seen[name, self.agent] = version

    def note_written(self, name: str) -> None:
        """Note that the agent has written a file."""
        version = self.version_of(name)
        if self.run is not None and version is not None:
            self.run.changes.seen[name, self.agent] = version
            self.run.changes.writers[name] = self.agent, version

    def seen_before_s(self, name: str) -> float:
        """When the agent read or wrote a file last before the run was resumed; infinite where it never did."""
        if self.run is None:
            return inf
        places = set()
        for entry in self.run.recorded.entries_of("begun"):
            fields = entry.data.get("fields")
            if entry.agent != self.agent or str(entry.data.get("intent")).removeprefix("code.") not in SEEING:
                continue
            path = fields.get("path") or fields.get("file_path") if isinstance(fields, dict) else None
            with suppress(KoiError):
                if self.name_of(working_path(self.root, str(path))) == name:
                    places.add(entry.path)
        done = self.run.recorded.entries_of("done") if places else ()
        return max((entry.ts for entry in done if entry.path in places), default=inf)

    def require_seen(self, name: str) -> None:
        """Raise AgentError where somebody has changed a file since the agent has read it, with who and when."""
        version = self.version_of(name)
        if self.run is None or version is None:
            return
        seen = self.run.changes.seen.get((name, self.agent))
        if version == seen or (seen is None and version[0] / 1e9 <= self.seen_before_s(name)):
            return
        writer, written = self.run.changes.writers.get(name, ("", None))
        who = f"`{writer}`" if writer and written == version else "a command or somebody else"
        when = datetime.fromtimestamp(version[0] / 1e9).astimezone().strftime("%H:%M:%S")
        message = f"`{name}` was changed by {who} at {when}, after you had read it"
        raise AgentError(message, help="Read it again, and write what is to stand there now.")

    async def require_writing(self, path: str, what: str, preview: str) -> None:
        """Raise PermissionDeniedError unless a rule or the person allows to change a file.

        Args:
            what: says how, as a clause that follows on "wants to".
            preview: the change as a unified diff.
        """
        if self.run is not None:
            request = ApprovalRequest(what, agent=self.agent, preview=preview)
            await self.run.policy.require(access_to(request, file_permission("write", path)))

    async def require_page(self, host: str, url: str) -> None:
        """Raise PermissionDeniedError unless a rule or the person allows to open a page of a host."""
        if self.run is not None:
            request = ApprovalRequest(f"open `{url}`", agent=self.agent)
            await self.run.policy.require(access_to(request, page_permission(host)))


def whole_number(value: Any, name: str, *, least: int = 0) -> int:
    """A number of lines or the like, which programs may write as `3.0`. Raises AgentError."""
    is_whole = not isinstance(value, bool) and isinstance(value, int | float) and value == value // 1
    if not is_whole or value < least:
        raise AgentError(f"`{name}` is {value!r}", help=f"Give a whole number from {least} on.")
    return int(min(value, 10**9))


def failure(error: str, hint: str | None = None, **more: Any) -> dict[str, Any]:
    """The result of a tool that has found something else than it needs.

    Args:
        hint: one thing to do about it.
    """
    return {"success": False, "error": error} | ({"hint": hint} if hint else {}) | more
