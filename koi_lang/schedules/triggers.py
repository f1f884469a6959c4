"""The words of an event, as `file docs/**/*.md` and `hook /github`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from koi_lang.diagnostics import nearest
from koi_lang.errors import AgentError
from koi_lang.schedules.job import ScheduleError
from koi_lang.system.globs import compile_glob, path_inside

KINDS = ("file", "hook")
SHAPES = 'write "file docs/**/*.md" for files that change, or "hook /github" for a message over HTTP.'
HOOK_PATH = re.compile(r"(?:/[A-Za-z0-9_][A-Za-z0-9_.\-]*)+")
MAX_PATH_CHARS = 200


@dataclass(frozen=True, slots=True)
class FileTrigger:
    """Files that are added, changed or removed; the pattern is relative to the folder that is served."""

    pattern: str


@dataclass(frozen=True, slots=True)
class HookTrigger:
    """A message that comes over HTTP; the path begins with a slash."""

    path: str


def parse_trigger(words: str) -> FileTrigger | HookTrigger:
    """Read the words of an event. Raises ScheduleError."""
    kind, _, rest = words.strip().partition(" ")
    rest = rest.strip()
    match kind.lower():
        case "file":
            return FileTrigger(_check_pattern(rest))
        case "hook":
            return HookTrigger(_check_path(rest))
    near = nearest(kind, KINDS)
    message = f"`{kind}` is no event" if kind else "the event is empty"
    raise ScheduleError(message, SHAPES, kind, near)


def _check_pattern(pattern: str) -> str:
    parts = pattern.split("/")
    if not pattern:
        raise ScheduleError("`file` says no files", 'write which, as in "file docs/**/*.md".')
    if pattern.startswith(("/", "~")) or ".." in parts or "\\" in pattern:
        help = "write it relative to the folder, with `/` and without `..`, as in `docs/**/*.md`."
        odd = "`\\`" if "\\" in pattern else "`..`"
        why = f"has {odd} in it" if path_inside(pattern) else "leads out of the folder"
        raise ScheduleError(f"`{pattern}` {why}", help)
    if any("**" in part and part != "**" for part in parts):
        raise ScheduleError(f"`{pattern}` is no pattern of files", "`**` stands alone between slashes.")
    try:
        compile_glob(pattern)
    except AgentError as error:
        raise ScheduleError(error.message, "write one such as `docs/**/*.md`.") from error
    return "/".join(part for part in parts if part not in ("", "."))


def _check_path(path: str) -> str:
    if not path:
        raise ScheduleError("`hook` says no path", 'write the path that it is sent to, as in "hook /github".')
    if not HOOK_PATH.fullmatch(path) or len(path) > MAX_PATH_CHARS:
        near = "/" + re.sub(r"[^A-Za-z0-9_.\-/]+", "-", path).strip("/.-")
        meant = near if HOOK_PATH.fullmatch(near) else None
        raise ScheduleError(f"`{path}` is no path of a hook", "write letters and digits, as in `/github`.", path, meant)
    return path
