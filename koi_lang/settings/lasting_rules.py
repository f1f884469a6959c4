"""Rules that the person keeps for a project in their own configuration, where no agent can write."""

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
    """The rules of one project.

    Attributes:
        project: its folder, with links resolved.
        file: None where the configuration lies in the project, so that nothing is kept.
    """

    project: Path
    file: Path | None

    @classmethod
    def of(cls, folder: Path) -> LastingRules:
        """Those of a folder."""
        project, own = folder.resolve(), settings.config_folder().resolve()
        if own.is_relative_to(project):
            return cls(project, None)
        name = hashlib.sha256(os.fsencode(project)).hexdigest()[:32]
        return cls(project, own / FOLDER / f"{name}.json")

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

    def _read(self) -> Mapping[str, list[str]]:
        """What is kept; nothing where the file is broken, so that the person is asked again."""
        if self.file is None:
            return {}
        try:
            found = json.loads(self.file.read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        if not isinstance(found, dict) or found.get("project") != str(self.project):
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
        text = json.dumps({"project": str(self.project), **known}, indent=2, ensure_ascii=True)
        with suppress(OSError):  # where nothing can be written the person is asked again
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            beside = self.file.with_name(f"{self.file.name}.{secrets.token_hex(4)}")
            with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
                opened.write(text)
            os.replace(beside, self.file)
