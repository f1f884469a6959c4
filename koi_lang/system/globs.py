"""Patterns of paths such as `src/**/*.{ts,tsx}` to functions that say whether a path fits.

They are those of git, with `{a,b}` beside: for the tools that look for files, for rules, and for `when "file …"`. What
is no path, such as a command or the name of a tool, has patterns of its own (`koi_lang.grants.matches`).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable

from koi_lang.errors import AgentError
from koi_lang.system.wildmatch import SPECIAL, PatternFaultError, as_bytes_text, regex_of

MAX_PATTERN_CHARS = 500
# So many patterns one with braces may stand for.
MAX_ALTERNATIVES = 64
BRACES = re.compile(r"(?<!\\)\{([^{}]*,[^{}]*)\}")
EXAMPLE = "Write one such as `src/**/*.py`."


def glob_matcher(pattern: str) -> Callable[[str], bool]:
    """Says of paths whether a pattern fits them as a whole: `*` stays in a folder, `**` does not, `{a,b}` is either.

    Raises:
        AgentError: it is no pattern.
    """
    return compile_glob(require_pattern(pattern))


def compile_glob(pattern: str) -> Callable[[str], bool]:
    """The same for a pattern that may also lead out of the project. Raises AgentError."""
    expressions = [_regex(each, pattern) for each in expand_braces(pattern)]
    matches = re.compile("|".join(f"(?:{each})" for each in expressions), re.DOTALL).fullmatch
    return lambda path: matches(as_bytes_text(path)) is not None


def file_matcher(pattern: str) -> Callable[[str], bool]:
    """The same for filters: without a `/` a pattern is about names in any folder, and `!` before it excludes.

    Raises:
        AgentError: it is no pattern.
    """
    if isinstance(pattern, str) and pattern.startswith("!"):
        excludes = file_matcher(pattern[1:])
        return lambda path: not excludes(path)
    fits = glob_matcher(pattern)
    return (lambda path: fits(path[path.rfind("/") + 1 :])) if "/" not in pattern else fits


def has_wildcards(pattern: str) -> bool:
    """Whether a pattern may fit more than one path."""
    return SPECIAL.search(pattern) is not None or BRACES.search(pattern) is not None


def require_pattern(pattern: object) -> str:
    """A pattern without `./` before it. Raises AgentError for an invalid one, or one outside of the project."""
    if not isinstance(pattern, str) or not pattern.strip():
        raise AgentError(f"{pattern!r} is no pattern of paths", help=EXAMPLE)
    if len(pattern) > MAX_PATTERN_CHARS:
        raise AgentError(f"the pattern `{pattern[:40]}…` is longer than {MAX_PATTERN_CHARS} characters", help=EXAMPLE)
    if pattern.startswith(("/", "~")) or ".." in re.split(r"[/\\]", pattern):
        inside = path_inside(pattern)
        message = f"`{pattern}` {'has `..` in it' if inside else 'lies outside of the project'}"
        raise AgentError(message, help=f"Write `{inside}`." if inside else EXAMPLE)
    return pattern.removeprefix("./")


def path_inside(path: str) -> str:
    """A path from a folder without `..`; empty where it leads out of the folder."""
    plain = posixpath.normpath(path.replace("\\", "/"))
    return "" if plain.startswith(("/", "~")) or plain.split("/")[0] == ".." else plain


def expand_braces(pattern: str) -> list[str]:
    """The patterns that one with braces stands for. Raises AgentError where they are too many."""
    waiting, found = [pattern], list[str]()
    while waiting:
        each = waiting.pop()
        braces = BRACES.search(each)
        if braces is None:
            found.append(each)
        else:
            waiting += [each[: braces.start()] + inner + each[braces.end() :] for inner in braces[1].split(",")]
        if len(waiting) + len(found) > MAX_ALTERNATIVES:
            help = "Write fewer `{…}` into it."
            raise AgentError(f"`{pattern}` stands for more than {MAX_ALTERNATIVES} patterns", help=help)
    return found


def _regex(part: str, pattern: str) -> str:
    try:
        return regex_of(as_bytes_text(part), is_path=True)
    except (PatternFaultError, UnicodeEncodeError) as error:
        raise AgentError(
            f"the pattern `{pattern}` fits nothing: a `[` or `\\` in it has no end", help=EXAMPLE
        ) from error
