"""Commands of the shell: which rules cover which, and where they may be carried out."""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path

from koi_lang.errors import AgentError

# The rule that allows every command.
ALL_COMMANDS = "shell"
# What begins a rule with a pattern.
PATTERN = "shell:"
# Anything that lets a command be more than it looks like; such commands match no pattern.
COMPOUND = re.compile(r"[;&|<>`$\n\r\\(){}]")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a command is carried out.

    Attributes:
        folder: with all links resolved; it need not exist.
        name: from the folder of the run, or absolute where it lies outside of that; empty where the action names none.
        is_inside: whether it is the folder of the run or below.
    """

    folder: Path
    name: str
    is_inside: bool


def place_of(cwd: str | None, root: Path) -> Place:
    """The folder that a `cwd` stands for, as it is now; relative ones begin at the folder of the run.

    Raises:
        AgentError: it is no path, or its links go round in a circle.
    """
    try:
        base = root.resolve()
        folder = base if cwd is None else base.joinpath(Path(cwd).expanduser()).resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise AgentError(f"`cwd` is no folder: {error}") from error
    is_inside = folder.is_relative_to(base)
    name = str(folder.relative_to(base) if is_inside else folder)
    return Place(folder, "" if cwd is None else name, is_inside)


@dataclass(frozen=True, slots=True)
class CommandPermission:
    """Leave to carry out a command in a folder."""

    command: str
    place: Place

    @property
    def rule(self) -> str:
        """The rule for this command in this folder and nothing else: it is no pattern, whatever stands in it."""
        return f"shell={json.dumps([self.place.name, self.command])}"

    def is_covered(self, rules: Set[str]) -> bool:
        """Whether rules such as `shell`, `shell:git status` or `shell:ls *` cover the command.

        A pattern covers simple commands in the folder of the run or below it only; what joins or redirects commands
        must be allowed to the letter.
        """
        if ALL_COMMANDS in rules:
            return True
        if not self.place.is_inside:
            return False
        patterns = command_patterns(rules)
        if self.command in patterns:
            return True
        is_simple = not COMPOUND.search(self.command)
        return is_simple and any(fnmatch.fnmatchcase(self.command, pattern) for pattern in patterns)


def command_patterns(rules: Set[str]) -> list[str]:
    """The patterns of commands that rules allow without asking the person."""
    return sorted(rule.removeprefix(PATTERN) for rule in rules if rule.startswith(PATTERN))
