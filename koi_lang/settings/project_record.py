"""The person's decisions about one project: a JSON file in their configuration, where no agent can write."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class ProjectRecord:
    """The file of one person about one project.

    Attributes:
        project: its folder, with links resolved.
        file: None where the configuration lies in the project, so that nothing is kept.
        user: of a service, whose file it is; empty for the person whose configuration it is.
    """

    project: Path
    file: Path | None
    user: str = ""

    @classmethod
    def of(cls, folder: Path, place: Path, user: str = "") -> ProjectRecord:
        """The file about a folder, in a folder of the configuration such as `~/.config/koi/rules`."""
        project, own = folder.resolve(), place.parent.resolve()
        if own.is_relative_to(project):
            return cls(project, None, user)
        return cls(project, own / place.name / _file_name(project, user), user)

    def of_user(self, user: str) -> ProjectRecord:
        """The file of a user of a service about the same project."""
        file = None if self.file is None else self.file.with_name(_file_name(self.project, user))
        return ProjectRecord(self.project, file, user)

    @classmethod
    def find_all(cls, place: Path) -> list[ProjectRecord]:
        """All files of a folder of the configuration, by project and user."""
        records: list[ProjectRecord] = []
        for file in (place.parent.resolve() / place.name).glob("*.json"):
            with suppress(OSError, ValueError, TypeError, KeyError):
                content = json.loads(file.read_text("utf-8"))
                record = cls.of(Path(content["project"]), place, content.get("user", ""))
                records += [record] if record.file == file else []
        return sorted(records, key=lambda record: (record.project, record.user))

    def read(self) -> Mapping[str, Any]:
        """The stored decisions; empty where the file is broken, so that the person is asked again."""
        if self.file is None:
            return {}
        try:
            content = json.loads(self.file.read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        is_own = isinstance(content, dict) and (content.get("project"), content.get("user", "")) == (
            str(self.project),
            self.user,
        )
        return content if is_own else {}

    def write(self, content: Mapping[str, Any]) -> None:
        """Replace the stored decisions. Raises OSError."""
        if self.file is None:
            return
        owner = {"project": str(self.project), **({"user": self.user} if self.user else {})}
        for folder in (self.file.parent.parent, self.file.parent):  # `parents` would leave the upper one open to others
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = self.file.with_name(f"{self.file.name}.{secrets.token_hex(4)}")
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
            opened.write(json.dumps({**owner, **content}, indent=2, ensure_ascii=True))
        os.replace(beside, self.file)


def _file_name(project: Path, user: str) -> str:
    whose = b"\0" + user.encode() if user else b""
    return f"{hashlib.sha256(os.fsencode(project) + whose).hexdigest()[:32]}.json"
