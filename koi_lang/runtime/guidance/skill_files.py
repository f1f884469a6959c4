"""The `SKILL.md` of a folder, parsed into a skill: its purpose, its requirements, and its text."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from koi_lang import settings
from koi_lang.errors import AgentError, KoiError, PermissionDeniedError, reason
from koi_lang.front_matter import read_front_matter
from koi_lang.runtime.guards.paths import project_path
from koi_lang.runtime.guidance.material import plain_text, read_whole
from koi_lang.runtime.guidance.skill_places import FILE, SkillFolder

NAME = re.compile(r"[a-z0-9]+(?:[-_][a-z0-9]+)*")
PROGRAM = re.compile(r"[\w.+-]{1,64}")
VARIABLE = re.compile(r"[A-Za-z_]\w{0,127}")
MAX_NAME_CHARS = 64
MAX_DESCRIPTION_CHARS = 1024
MAX_BYTES = 100_000
MAX_BYTES_BESIDE = 1_000_000
# Of what one `read_skill` gives, in characters.
MAX_PART = 16_000
SYSTEMS = {"linux": ("linux",), "darwin": ("darwin", "macos"), "win32": ("windows", "win32")}
RUBRIC = "evaluator"
IGNORED = {"allowed-tools": "`allowed-tools` counts for nothing here: what an agent may do stands in its role"}


@dataclass(frozen=True, slots=True)
class SkillText:
    """The content of a skill's file.

    Attributes:
        obstacles: why it cannot be used here, a clause each; none where it can.
        notes: what of it counts for nothing.
        body: what stands behind the front matter.
    """

    description: str
    obstacles: tuple[str, ...]
    notes: tuple[str, ...]
    body: str


def read_skill_text(place: SkillFolder) -> SkillText:
    """The content of a skill's file. Raises AgentError for an invalid one, with the file and the line."""
    try:
        if len(place.name) > MAX_NAME_CHARS or not NAME.fullmatch(place.name):
            help = "Its folder has small letters, digits and hyphens, such as `code-review`."
            raise AgentError("has no name of a skill", help=help)
        folder = place.resolve()
        text = read_whole(folder / FILE, folder, MAX_BYTES, "Move parts of it into files beside it.")
        return parse_skill(text, place.name)
    except KoiError as error:
        raise AgentError(f"`{place.path}/{FILE}` {error.message}", help=error.help) from error
    except OSError as error:
        raise AgentError(f"`{place.path}/{FILE}` cannot be read: {reason(error)}") from error


def parse_skill(text: str, name: str) -> SkillText:
    """The skill that a text describes; messages go on behind the name of the file. Raises AgentError."""
    front, body = read_front_matter(text)
    if front.get("kind") == RUBRIC:
        raise AgentError("is a rubric, no skill", help="Put it into `.agents/evaluators`.")
    if front.get("name", name) != name:
        called = plain_text(str(front["name"]))[:MAX_NAME_CHARS]
        raise AgentError(f"is called `{called}` in its front matter", help=f"Write `name: {name}`, as its folder.")
    description = front.get("description")
    if not isinstance(description, str) or not description.strip():
        raise AgentError("has no `description`", help="Say in one sentence what the skill is for.")
    line = " ".join(plain_text(description).split())
    notes = tuple(note for field, note in IGNORED.items() if field in front)
    line = line if len(line) <= MAX_DESCRIPTION_CHARS else f"{line[: MAX_DESCRIPTION_CHARS - 1]}…"
    return SkillText(line, tuple(_obstacles(front)), notes, body)


# ---------------------------------------------------------------- what it needs here


def _obstacles(front: Mapping[str, Any]) -> Iterator[str]:
    """Why a skill cannot be used on this system, a clause each. Raises AgentError."""
    if front.get("disable-model-invocation") is True:
        yield "its author keeps it from models (`disable-model-invocation`)"
    systems = _words_in(front, "os")
    names = SYSTEMS.get(sys.platform, (sys.platform,))
    if systems and not any(system.lower() in names for system in systems):
        yield f"it is for {', '.join(systems)}, and this is {names[-1]}"
    for program in _words_in(front, "requires_bins", PROGRAM):
        if shutil.which(program) is None:
            yield f"it needs the program `{program}`, which is not installed"
    for variable in _words_in(front, "requires_env", VARIABLE):
        if settings.variable(variable) is None:
            yield f"it needs the variable `{variable}`, which is not set"


def _words_in(front: Mapping[str, Any], field: str, form: re.Pattern[str] = PROGRAM) -> Sequence[str]:
    """A list of words at the top of the front matter or in its `metadata`. Raises AgentError."""
    metadata = front.get("metadata")
    given = front.get(field, metadata.get(field) if isinstance(metadata, dict) else None)
    words = [given] if isinstance(given, str) else [] if given is None else given
    if not isinstance(words, list) or not all(isinstance(word, str) and form.fullmatch(word) for word in words):
        raise AgentError(f"has no list of names in `{field}`", help=f"Write `{field}: [name]`.")
    return words


# ---------------------------------------------------------------- what is read of it


def read_part(place: SkillFolder, file: str, offset: int) -> dict[str, Any]:
    """The text of a skill, or of a file beside it, from a line on.

    Args:
        file: a path below the folder; empty for the skill itself.
        offset: the number of its first line, from 1.

    Raises:
        AgentError: it cannot be read.
        PermissionDeniedError: the path leads out of the folder, or to something hidden.
    """
    if not file or file == FILE:
        return _part(read_skill_text(place).body, offset)
    shown = f"`{plain_text(file)}` of the skill `{place.name}`"
    try:
        folder = place.resolve()
        return _part(read_whole(_path_beside(place, folder, file), folder, MAX_BYTES_BESIDE, "Split it."), offset)
    except PermissionDeniedError:
        raise
    except AgentError as error:
        raise AgentError(f"{shown} {error.message}", help=error.help) from error
    except OSError as error:
        raise AgentError(f"{shown} cannot be read: {reason(error)}") from error


def _path_beside(place: SkillFolder, folder: Path, file: str) -> Path:
    """A file below the folder of a skill. Raises PermissionDeniedError for a missing or hidden one."""
    refusal = PermissionDeniedError(
        f"`{plain_text(file)}` is no file of the skill `{place.name}`",
        help="Name a file below its folder, without `..`.",
    )
    try:
        found = project_path(folder, file)
    except KoiError as error:
        raise refusal from error
    if found == folder:
        raise refusal
    return found


def _part(text: str, offset: int) -> dict[str, Any]:
    """As many lines as one answer holds, and where the others begin."""
    lines = text.split("\n")[offset - 1 :]
    size, count = 0, 0
    for line in lines:
        size += len(line) + 1
        if size > MAX_PART and count:
            break
        count += 1
    part = "\n".join(lines[:count])
    clipped = part if len(part) <= MAX_PART else f"{part[:MAX_PART]}… ({len(part) - MAX_PART:,} more characters)"
    more = {"next": offset + count, "left": len(lines) - count} if count < len(lines) else {}
    return {"text": clipped, **more}
