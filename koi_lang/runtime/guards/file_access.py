"""Permission to read or change a file, and to open a page: the rules, and the question to the person."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from koi_lang.runtime.guards.access_rules import WantedAccess, rules_in
from koi_lang.runtime.guards.policy import Access, Policy
from koi_lang.runtime.host import ApprovalRequest


@dataclass(frozen=True, slots=True)
class FilePermission:
    """Leave to read or change a file.

    Attributes:
        path: from the folder of the project, with links resolved.
    """

    kind: Literal["read", "write"]
    path: str

    @property
    def access(self) -> WantedAccess:
        """Its form for rules such as `write:src/**`."""
        return WantedAccess(self.kind, self.path)

    @property
    def rule(self) -> str:
        """The rule for this file alone; no part of its name is a pattern."""
        return f"{self.kind}={self.path}"

    @property
    def lasting_rule(self) -> str:
        """The rule for its folder and below; at the top of the project for the file only."""
        folder = str(PurePosixPath(self.path).parent)
        return self.rule if folder == "." else f"{self.kind}={folder}/"

    @property
    def lasting_words(self) -> str:
        """As in "changes below `src`"."""
        does = "reading" if self.kind == "read" else "changes"
        folder = str(PurePosixPath(self.path).parent)
        return f"{does} of `{self.path}`" if folder == "." else f"{does} below `{folder}`"

    def is_covered(self, rules: Set[str]) -> bool:
        """Whether a rule allows it, or one for a folder around it."""
        folders = (f"{self.kind}={folder}/" for folder in PurePosixPath(self.path).parents)
        return any(folder in rules for folder in folders) or any(rule.covers(self.access) for rule in rules_in(rules))


@dataclass(frozen=True, slots=True)
class PagePermission:
    """Leave to open pages of a host."""

    host: str

    @property
    def access(self) -> WantedAccess:
        """Its form for rules such as `web:docs.python.org`."""
        return WantedAccess("web", self.host)

    @property
    def rule(self) -> str:
        """The rule for this host and nothing else."""
        return f"web={self.host}"

    @property
    def lasting_rule(self) -> str:
        """Nothing more than the host itself."""
        return self.rule

    @property
    def lasting_words(self) -> str:
        """As in "pages of `docs.python.org`"."""
        return f"pages of `{self.host}`"

    def is_covered(self, rules: Set[str]) -> bool:
        """Whether a pattern of hosts covers it."""
        return any(rule.covers(self.access) for rule in rules_in(rules))


def may_read(policy: Policy, path: str) -> bool:
    """Whether rules leave a file to be seen without a question, by its path from the project."""
    return policy.is_open(Access(permission=FilePermission("read", path), is_open=True))


def access_to(
    request: ApprovalRequest, permission: FilePermission | PagePermission, *, is_open: bool = False
) -> Access:
    """A file or a page, as the policy decides about it.

    Args:
        is_open: whether it is open to everybody whom no rule stops, as all is to the code of an author.
    """
    help = f'`--allow "{permission.access.rule}"` allows it beforehand.'
    return Access(request=request, permission=permission, is_open=is_open, help=help)
