"""The person's rules for the standard library in programs: denials hold for their authors, too.

What no rule names is for the author to decide here; tools of models are asked about instead.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from koi_lang.runtime.context import current
from koi_lang.runtime.guards import file_access
from koi_lang.runtime.guards.file_access import FilePermission, PagePermission
from koi_lang.runtime.host import ApprovalRequest
from koi_lang.std.effects import agent, folder

DOES = {"read": "read", "write": "change"}


def may_read(path: str) -> bool:
    """Whether rules leave a file to be listed, by its path from the project."""
    run = current.get()
    return run is None or file_access.may_read(run.policy, path)


async def require_file(kind: Literal["read", "write"], file: Path) -> None:
    """Raise PermissionDeniedError where a rule denies a file, or the person does when asked."""
    name = file.relative_to(folder().resolve()).as_posix()
    await _require(FilePermission(kind, name), f"{DOES[kind]} `{name}`")


async def require_host(host: str, address: str) -> None:
    """The same for pages of a host."""
    await _require(PagePermission(host), f"open `{address}`")


async def _require(permission: FilePermission | PagePermission, what: str) -> None:
    run, asking = current.get(), agent()
    if run is not None:
        request = ApprovalRequest(what, agent="" if asking is None else asking.name)
        await run.policy.require(file_access.access_to(request, permission, is_open=True))
