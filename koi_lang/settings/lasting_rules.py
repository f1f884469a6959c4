"""Rules that people keep for a project in the configuration of the person, where no agent can write."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from koi_lang import settings

FOLDER = "rules"
GIVEN, KEPT = "given", "kept"


@dataclass(frozen=True, slots=True)
class LastingRules:
    """The rules that one person keeps for one project.

    Attributes:
        project: its folder, with links resolved.
        file: None where the configuration lies in the project, so that nothing is kept.
        user: of a service, whose rules they are; empty for the person whose configuration it is.
    """

    project: Path
    file: Path | None
    user: str = ""

    @classmethod
    def of(cls, folder: Path, user: str = "") -> LastingRules:
        """Those of a folder."""
        project, own = folder.resolve(), settings.config_folder().resolve()
        if own.is_relative_to(project):
            return cls(project, None, user)
        whose = b"\0" + user.encode() if user else b""
        name = hashlib.sha256(os.fsencode(project) + whose).hexdigest()[:32]
        return cls(project, own / FOLDER / f"{name}.json", user)

    @classmethod
    def find_all(cls) -> list[LastingRules]:
        """Those of all projects and people for which any are kept, by project and user."""
        kept: list[LastingRules] = []
        for file in (settings.config_folder().resolve() / FOLDER).glob("*.json"):
            with suppress(OSError, ValueError, TypeError, KeyError):
                content = json.loads(file.read_text("utf-8"))
                rules = cls.of(Path(content["project"]), content.get("user", ""))
                if rules.file == file and rules.rules():
                    kept.append(rules)
        return sorted(kept, key=lambda rules: (rules.project, rules.user))

    def rules(self) -> Sequence[str]:
        """What is allowed in every run."""
        return self._read().get(KEPT, [])

    def note_given(self, rule: str) -> bool:
        """Note that a rule was given for a run; gives whether that is not the first time, and it can be kept."""
        known = self._read()
        if rule in known.get(GIVEN, []):
            return rule not in known.get(KEPT, [])
        self._add(GIVEN, rule)
        return False

    def keep(self, rule: str) -> None:
        """Have a rule count in every run."""
        self._add(KEPT, rule)

    def remove(self, rule: str) -> None:
        """Have a rule count no longer; it is offered again as if it had never been given. Raises OSError."""
        known = self._read()
        self._write({name: [each for each in rules if each != rule] for name, rules in known.items()})

    def _read(self) -> Mapping[str, list[str]]:
        """What is kept; nothing where the file is broken, so that the person is asked again."""
        if self.file is None:
            return {}
        try:
            found = json.loads(self.file.read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        is_own = isinstance(found, dict) and (found.get("project"), found.get("user", "")) == (
            str(self.project),
            self.user,
        )
        if not is_own:
            return {}
        lists = {name: found.get(name) for name in (GIVEN, KEPT)}
        return {
            name: [each for each in of if isinstance(each, str)] for name, of in lists.items() if isinstance(of, list)
        }

    def _add(self, name: str, rule: str) -> None:
        if self.file is None:
            return
        known = dict(self._read())
        known[name] = list(dict.fromkeys((*known.get(name, []), rule)))
        with suppress(OSError):  # where nothing can be written the person is asked again
            self._write(known)

    def _write(self, lists: Mapping[str, Sequence[str]]) -> None:
        if self.file is None:
            return
        owner = {"project": str(self.project), **({"user": self.user} if self.user else {})}
        self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = self.file.with_name(f"{self.file.name}.{secrets.token_hex(4)}")
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
            opened.write(json.dumps({**owner, **lists}, indent=2, ensure_ascii=True))
        os.replace(beside, self.file)
