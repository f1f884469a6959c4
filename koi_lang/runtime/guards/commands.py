"""Commands of the shell: which rules cover which, and where they may be carried out."""

from __future__ import annotations

import glob
import json
import re
from collections.abc import Iterator, Set
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from koi_lang.errors import AgentError, PermissionDeniedError
from koi_lang.runtime.guards.access_rules import ANY, EVERYTHING, AccessRule, WantedAccess, paths_in, rules_in, words_in
from koi_lang.runtime.guards.working_files import is_closed
from koi_lang.system.open_folders import resolve_links

# The permission of a role whose agents may reach other machines.
WEB_ACCESS = "web_access"
# The rule that allows every command.
ALL_COMMANDS = "shell"
# What begins a rule with a pattern.
PATTERN = "shell:"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a command is carried out.

    Attributes:
        folder: with all links resolved; it need not exist.
        name: from the folder of the run, or absolute where it lies outside of that; empty where the action names none.
        is_inside: whether it is the folder of the run or below.
        root: the folder of the run.
    """

    folder: Path
    name: str
    is_inside: bool
    root: Path

    def parts_of(self, file: Path) -> tuple[str, ...]:
        """The parts of a path from the folder of the run; of all of it where it lies outside of that."""
        return (file.relative_to(self.root) if file.is_relative_to(self.root) else file).parts


def place_of(cwd: str | None, root: Path) -> Place:
    """The folder that a `cwd` stands for, as it is now; relative ones begin at the folder of the run.

    Raises:
        AgentError: it is no path, or its links go round in a circle.
    """
    try:
        base = root.resolve()
        folder = base if cwd is None else resolve_links(base.joinpath(Path(cwd).expanduser()))
    except (OSError, RuntimeError, ValueError) as error:
        raise AgentError(f"`cwd` is no folder: {error}") from error
    is_inside = folder.is_relative_to(base)
    name = str(folder.relative_to(base) if is_inside else folder)
    return Place(folder, "" if cwd is None else name, is_inside, base)


@dataclass(frozen=True, slots=True)
class CommandPermission:
    """Leave to carry out a command in a folder.

    Attributes:
        usual: the command as people write it in rules that allow it, where Koi itself has found its program; else
            empty. Rules that deny read programs by their names in any case.
    """

    command: str
    place: Place
    usual: str = ""

    @property
    def access(self) -> WantedAccess:
        """Its form for rules such as `run:pytest *`."""
        return WantedAccess("run", self.command, self._named_paths)

    def _named_paths(self) -> Iterator[str]:
        """The folder of the command, and the files of the project that it names, with the folders above them."""
        for file in (self.place.folder, *(file for _, file in named_files(self.command, self.place))):
            if file.is_relative_to(self.place.root):
                yield file.relative_to(self.place.root).as_posix()

    @property
    def rule(self) -> str:
        """The rule for this command in this folder alone; no part of it is a pattern."""
        return f"shell={json.dumps([self.place.name, self.command])}"

    @property
    def lasting_rule(self) -> str:
        """Nothing more than the command itself."""
        return self.rule

    @property
    def lasting_words(self) -> str:
        """The command, and the folder where that is another one."""
        return f"`{self.command}` in `{self.place.name}`" if self.place.name else f"`{self.command}`"

    def is_covered(self, rules: Set[str]) -> bool:
        """Whether rules such as `shell`, `shell:git status` or `shell:ls *` cover the command.

        A pattern covers simple commands in the folder of the run or below it only; what joins or redirects commands
        must be allowed to the letter.
        """
        if ALL_COMMANDS in rules:
            return True
        known = rules_in(rules)
        if any(rule.kind in (ANY, "run") and rule.pattern == EVERYTHING for rule in known):
            return True
        if not self.place.is_inside:
            return False
        shell = [AccessRule("run", pattern) for pattern in command_patterns(rules)]
        spellings = [self.access, *([WantedAccess("run", self.usual)] if self.usual else [])]
        return any(rule.covers(access) for rule in (*known, *shell) for access in spellings)


def command_patterns(rules: Set[str]) -> list[str]:
    """The patterns of commands that rules allow without asking the person."""
    return sorted(rule.removeprefix(PATTERN) for rule in rules if rule.startswith(PATTERN))


# ---------------------------------------------------------------- files that commands name

# What programs take before the name of a file, such as `@` of `curl -d @file`.
BEFORE_NAMES = "@-+#!^%"
MAX_MATCHES = 10_000
# What a shell puts in the place of this is the folder of the command.
HERE = re.compile(r"PWD(?=/)")


def require_open_arguments(command: str, place: Place) -> None:
    """Raise PermissionDeniedError where a command of a model names a file that is closed to agents, or runs beside one.

    What a command does beside that is for the person, and the sandbox, to judge: a shell has more ways to write a
    name than can be listed.
    """
    if why := is_closed((*place.parts_of(place.folder), "any")):
        raise _refusal(f"`{place.name}`, in which the command is to run,", why)
    for word in paths_in(command):
        if why := _closed_word(word, place):
            raise _refusal(f"`{word}` in the command", why)
    for word, file in named_files(command, place):
        if (why := is_closed(place.parts_of(file))) and _exists(file):
            raise _refusal(f"`{word}` in the command", why)


def named_files(command: str, place: Place) -> Iterator[tuple[str, Path]]:
    """The words of a command with where they would lead: patterns are filled in, links followed."""
    for word in words_in(command):
        bare = HERE.sub(".", word)
        for path in dict.fromkeys((bare, bare.lstrip(BEFORE_NAMES), *_matches(bare, place))):
            with suppress(OSError, ValueError, RuntimeError):  # too long, no path, links in a circle
                yield path, place.folder.joinpath(path).expanduser().resolve()


def _refusal(what: str, why: str) -> PermissionDeniedError:
    return PermissionDeniedError(
        f"{what} is closed to agents: {why}", help="Leave it to the person, who can run the command."
    )


def _closed_word(word: str, place: Place) -> str:
    path = word.lstrip(BEFORE_NAMES)
    parts = [part for part in path.split("/") if part not in ("", ".", "..")]
    why = is_closed(parts)
    if not why or len(parts) > 1 or "." in path:
        return why
    # A bare word such as `credentials` is the name of a file only where there is one.
    return why if any(_exists(folder / path) for folder in (place.folder, place.root)) else ""


def _exists(file: Path) -> bool:
    try:
        return file.exists()
    except OSError:  # the name is too long for one
        return False


def _matches(word: str, place: Place) -> Iterator[str]:
    """The expansions of a shell pattern within the project."""
    if not glob.has_magic(word):
        return
    if word.startswith("/"):
        root = f"{place.root}/"
        found = glob.iglob(word.removeprefix(root), root_dir=root) if word.startswith(root) else iter(())
        yield from (root + path for path in islice(found, MAX_MATCHES))
    else:
        yield from islice(glob.iglob(word, root_dir=place.folder), MAX_MATCHES)
