"""Commands of the shell: the person's leave for one, where it runs, and the files that it names."""

from __future__ import annotations

import glob
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from koi_lang.errors import AgentError, PermissionDeniedError
from koi_lang.runtime.guards.access_rules import AROUND_WORDS, WantedAccess, option_values, read_path, words_in
from koi_lang.runtime.guards.file_names import is_closed
from koi_lang.runtime.guards.permissions import Permission
from koi_lang.runtime.guards.policy import Access
from koi_lang.runtime.guards.shell_reader import glob_word
from koi_lang.runtime.guards.started_commands import read_commands
from koi_lang.runtime.host import ApprovalRequest, clip_text
from koi_lang.system.open_folders import resolve_links

if TYPE_CHECKING:
    from koi_lang.runtime.command_sandbox import Sandbox
    from koi_lang.runtime.ports import RunPort

# Of what a command is for, in the question about it.
MAX_DESCRIBED = 300
# The permission of a role whose agents may reach other machines.
WEB_ACCESS = "web_access"


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


def command_permission(command: str, place: Place, usual: str = "") -> Permission:
    """Leave to carry out a command in a folder.

    Args:
        usual: the command as people write it in rules that allow it, where Koi itself has found its program; else
            empty. Rules that deny read programs by their names in any case.
    """

    def named_paths() -> Iterator[str]:
        """The folder of the command, and the files of the project that it names, with the folders above them."""
        for file in (place.folder, *(file for _, file in named_files(command, place))):
            if file.is_relative_to(place.root):
                yield file.relative_to(place.root).as_posix()

    is_outside = not place.is_inside
    return Permission(
        f"shell={json.dumps([place.name, command])}",
        f"`{command}` in `{place.name}`" if place.name else f"`{command}`",
        WantedAccess("run", command, named_paths, is_outside),
        WantedAccess("run", usual, is_outside=is_outside) if usual else None,
    )


@dataclass(frozen=True, slots=True)
class Command:
    """A command to run.

    Attributes:
        text: the command as the person is asked for it; a shell carries it out, unless there are words.
        why: what it is for, for the person.
        agent: on whose behalf; empty for the program as a whole.
        words: a program with its arguments, which is started without a shell.
        usual: the command as people write it in rules that allow it; empty where that is the text.
        variables: of its environment, beside those of this process.
        changeable: folders outside of the project that it has to write to.
        network: whether its agent may reach other machines; once it is permitted, whether it does from the sandbox.
        sandbox: what confines it; None where nothing does.
    """

    text: str
    place: Place
    why: str
    agent: str = ""
    words: Sequence[str] = ()
    usual: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    changeable: Sequence[str] = ()
    network: bool = False
    sandbox: Sandbox | None = None


async def permit_command(run: RunPort, command: Command) -> Command:
    """A command that a rule or the person allows, in the sandbox of the run.

    Raises:
        PermissionDeniedError: neither allows it, or there has to be a sandbox and is none.
        SettingsError: the settings for it are broken.
    """
    sandbox = await run.sandboxes.find()
    network = command.network and run.permissions.is_open("web")
    tools = "" if sandbox is None else sandbox.name_tools()
    confined = "" if sandbox is None else f" in the sandbox, {'with' if network else 'without'} network"
    confined += f", {tools}" if tools else ""
    permission = command_permission(command.text, command.place, command.usual)
    subject = permission.lasting_words
    request = ApprovalRequest(f"run {subject}{confined}", clip_text(command.why, MAX_DESCRIBED), command.agent)
    await run.policy.require(Access(subject, request, permission, done="run"))
    return replace(command, sandbox=sandbox, network=network)


# ---------------------------------------------------------------- files that commands name

# What programs take before the name of a file, such as `@` of `curl -d @file`.
BEFORE_NAMES = "@-+#!^%"
MAX_MATCHES = 10_000
# Paths that are made of two words.
MAX_JOINED = 2000
# What a shell puts in the place of this is the folder of the command.
HERE = re.compile(r"\$\{?PWD\}?(?=\"?/)")


def require_open_arguments(command: str, place: Place) -> None:
    """Raise PermissionDeniedError where a command of a model names a file that is closed to agents, or runs beside one.

    What a command does beside that is for the person, and the sandbox, to judge: a shell has more ways to write a
    name than can be listed.
    """
    if why := is_closed((*place.parts_of(place.folder), "any")):
        raise _refusal(f"`{place.name}`, in which the command is to run,", why)
    for word in (each for written in words_in(command) for each in read_path(written.removeprefix("./").strip("/"))):
        path = word.lstrip(BEFORE_NAMES)
        parts = [part for part in path.split("/") if part not in ("", ".", "..")]
        # A bare word such as `credentials` is the name of a file only where there is one.
        is_path = len(parts) > 1 or "." in path
        if (why := is_closed(parts)) and (is_path or any(_exists(each / path) for each in (place.folder, place.root))):
            raise _refusal(f"`{word}` in the command", why)
    for word, file in named_files(command, place):
        if (why := is_closed(place.parts_of(file))) and _exists(file):
            raise _refusal(f"`{word}` in the command", why)


def named_files(command: str, place: Place) -> Iterator[tuple[str, Path]]:
    """The words of a command with where they would lead: what a shell fills in is filled in, links are followed.

    A word may also stand for a file in a folder that another word names, as in `cd data; rm x` and `cp x data`.
    """
    text = HERE.sub(".", command)
    words = read_commands(text).patterns if glob.has_magic(text) else ()
    patterns = (part for word in words for part in AROUND_WORDS.split(word))
    paths: dict[str, None] = {}
    for word in (*words_in(text), *(path for pattern in dict.fromkeys(patterns) for path in _matches(pattern, place))):
        paths |= {word: None, word.lstrip(BEFORE_NAMES): None}
        if word.startswith("-"):
            paths |= {each: None for each in option_values(word) if _exists(place.folder / each.partition("/")[0])}
    folders = [*paths]
    names = folders[:MAX_JOINED]
    for path in folders[:MAX_JOINED]:
        names += option_values(path) if path.startswith("-") else ()
    for folder in folders:
        if folder.strip("./") and len(paths) < MAX_JOINED and os.path.isdir(place.folder / folder):
            for name in names:
                paths |= {f"{folder}/{name}": None, f"{folder}/{name.rpartition('/')[2]}": None}
    for path in paths:
        with suppress(OSError, ValueError, RuntimeError):  # too long, no path, links in a circle
            yield path, place.folder.joinpath(path).expanduser().resolve()


def _refusal(what: str, why: str) -> PermissionDeniedError:
    return PermissionDeniedError(
        f"{what} is closed to agents: {why}", help="Leave it to the person, who can run the command."
    )


def _exists(file: Path) -> bool:
    try:
        return file.exists()
    except OSError:  # the name is too long for one
        return False


def _matches(word: str, place: Place) -> Iterator[str]:
    """The expansions of a shell pattern within the project."""
    if not glob.has_magic(word):
        return
    pattern, root = glob_word(word), f"{place.root}/"
    if not word.startswith("/"):
        yield from islice(glob.iglob(pattern, root_dir=place.folder), MAX_MATCHES)
    elif word.startswith(root):
        found = glob.iglob(pattern.removeprefix(root), root_dir=root)
        yield from (root + path for path in islice(found, MAX_MATCHES))
