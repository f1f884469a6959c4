"""Permission to read or change a file, and to open a page: the rules, and the question to the person."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Literal

from koi_lang.runtime.guards.access_rules import WantedAccess
from koi_lang.runtime.guards.permissions import Permission
from koi_lang.runtime.guards.policy import Access, Policy
from koi_lang.runtime.host import ApprovalRequest


def file_permission(kind: Literal["read", "write"], path: str) -> Permission:
    """Leave to read or change a file; for always that is its folder and below, at the top of the project the file only.

    Args:
        path: from the folder of the project, with links resolved.
    """
    folder, *_ = folders = [str(each) for each in PurePosixPath(path).parents]
    has_folder = folder != "."
    does = "reading" if kind == "read" else "changes"
    return Permission(
        f"{kind}={path}",
        f"{does} below `{folder}`" if has_folder else f"{does} of `{path}`",
        WantedAccess(kind, path),
        wider=tuple(f"{kind}={each}/" for each in folders),
        has_wider=has_folder,
    )


def page_permission(host: str) -> Permission:
    """Leave to open pages of a host."""
    return Permission(f"web={host}", f"pages of `{host}`", WantedAccess("web", host))


def may_read(policy: Policy, path: str) -> bool:
    """Whether rules leave a file to be seen without a question, by its path from the project."""
    return policy.is_open(Access(permission=file_permission("read", path), is_open=True))


def access_to(request: ApprovalRequest, permission: Permission, *, is_open: bool = False) -> Access:
    """A file or a page, as the policy decides about it.

    Args:
        is_open: whether it is open to everybody whom no rule stops, as all is to the code of an author.
    """
    return Access(request=request, permission=permission, is_open=is_open)
