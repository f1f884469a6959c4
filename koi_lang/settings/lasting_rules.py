"""Rules that the person keeps for a project in their own configuration, where no agent can write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from koi_lang import settings
from koi_lang.settings.project_record import ProjectRecord

FOLDER = "rules"
GIVEN, KEPT = "given", "kept"


@dataclass(frozen=True, slots=True)
class LastingRules:
    """The rules that one person keeps for one project."""

    record: ProjectRecord

    @classmethod
    def of(cls, folder: Path, user: str = "") -> LastingRules:
        """Those of a folder."""
        return cls(ProjectRecord.of(folder, settings.config_folder() / FOLDER, user))

    @classmethod
    def find_all(cls) -> list[LastingRules]:
        """Those of all projects and people for which any are kept, by project and user."""
        found = map(cls, ProjectRecord.find_all(settings.config_folder() / FOLDER))
        return [rules for rules in found if rules.rules()]

    @property
    def project(self) -> Path:
        """The folder of the project, with links resolved."""
        return self.record.project

    @property
    def user(self) -> str:
        """The user of a service whose rules they are; empty for the person whose configuration it is."""
        return self.record.user

    def rules(self) -> Sequence[str]:
        """The lasting permissions for every run."""
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
        self.record.write({name: [each for each in rules if each != rule] for name, rules in known.items()})

    def _read(self) -> Mapping[str, list[str]]:
        content = self.record.read()
        lists = {name: content.get(name) for name in (GIVEN, KEPT)}
        return {
            name: [each for each in of if isinstance(each, str)] for name, of in lists.items() if isinstance(of, list)
        }

    def _add(self, name: str, rule: str) -> None:
        known = dict(self._read())
        known[name] = list(dict.fromkeys((*known.get(name, []), rule)))
        with suppress(OSError):  # where nothing can be written the person is asked again
            self.record.write(known)
