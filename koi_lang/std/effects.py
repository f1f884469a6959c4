"""Effects of standard skills, by way of the calling run and under the person's rules.

Denials hold for the authors of programs, too. What no rule names is for the author to decide here; tools of models are
asked about instead.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from koi_lang.runtime.context import current, handling
from koi_lang.runtime.guards import file_access
from koi_lang.runtime.guards.file_access import file_permission, page_permission
from koi_lang.runtime.guards.permissions import Permission
from koi_lang.runtime.host import ApprovalRequest
from koi_lang.runtime.replay.calls import Effect
from koi_lang.settings import ProjectSettings, read_settings

if TYPE_CHECKING:
    from koi_lang.runtime.ports import AgentPort

DOES = {"read": "read", "write": "change"}


def folder() -> Path:
    """The folder of the files that the program works on."""
    run = current.get()
    return Path.cwd() if run is None else run.folder


def project_settings() -> ProjectSettings:
    """The settings of the run; outside of runs those of the current folder."""
    run = current.get()
    return read_settings() if run is None else run.settings


def agent() -> AgentPort | None:
    """Whose handler is running; None outside of agents."""
    found = handling.get()
    return None if found is None else found[0]


async def perform_effect(effect: Effect, work: Callable[[], Awaitable[Any]]) -> Any:
    """Perform an effect once: a resumed run gets its recorded result. Raises as the work does."""
    run = current.get()
    if run is not None:
        return await run.recorder.perform_as_step(effect, work)
    effect.require_execution()
    return await work()


# ---------------------------------------------------------------- rules of the person


def may_read(path: str) -> bool:
    """Whether rules leave a file to be listed, by its path from the project."""
    run = current.get()
    return run is None or file_access.may_read(run.policy, path)


async def require_file(kind: Literal["read", "write"], file: Path) -> None:
    """Raise PermissionDeniedError where a rule denies a file, or the person does when asked."""
    name = file.relative_to(folder().resolve()).as_posix()
    await _require(file_permission(kind, name), f"{DOES[kind]} `{name}`")


async def require_host(host: str, address: str) -> None:
    """The same for pages of a host."""
    await _require(page_permission(host), f"open `{address}`")


async def _require(permission: Permission, what: str) -> None:
    run, asking = current.get(), agent()
    if run is not None:
        request = ApprovalRequest(what, agent="" if asking is None else asking.name)
        await run.policy.require(file_access.access_to(request, permission, is_open=True))
