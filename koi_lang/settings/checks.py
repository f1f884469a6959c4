"""Checks of `koi.toml`, and tables of TOML as records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from math import inf
from typing import Any, TypeAlias, TypeVar, cast

from koi_lang.diagnostics import SLIP_IN_FIVE, nearest
from koi_lang.errors import SettingsError

# What is wrong with the value of a field, as the end of a sentence, and one thing to do; None where nothing is.
Problem: TypeAlias = tuple[str, str | None] | None
Check: TypeAlias = Callable[[Any, str], Problem]
SectionT = TypeVar("SectionT")


def check_texts(example: str) -> Mapping[str, Any]:
    """The check of a list of texts."""

    def check(value: Any, name: str) -> Problem:
        is_list = isinstance(value, list) and all(isinstance(text, str) for text in value)
        return None if is_list else ("is no list of texts", f'Write `{name} = ["{example}"]`.')

    return {"check": check}


def check_above_zero(kind: str, *types: type) -> Mapping[str, Any]:
    """The check of a number above 0."""

    def check(value: Any, name: str) -> Problem:
        if type(value) in types and 0 < value < inf:
            return None
        help = f"Write it without quotes and unit, as in `{name} = 60`." if isinstance(value, str) else None
        return f"must be a {kind} above 0, not {value!r}", help

    return {"check": check, "kind": kind}


def check_one_of(*words: str) -> Mapping[str, Any]:
    """The check of one of some words."""
    listed = ", ".join(f'`"{word}"`' for word in words)

    def check(value: Any, name: str) -> Problem:
        if value in words:
            return None
        near = nearest(value, words) if isinstance(value, str) else None
        return f"is {value!r}, not one of {listed}", f'Did you mean `{name} = "{near}"`?' if near else None

    return {"check": check}


def check_some_of(*words: str) -> Mapping[str, Any]:
    """The check of a list of some words."""
    listed = ", ".join(f'`"{word}"`' for word in words)

    def check(value: Any, name: str) -> Problem:
        is_list = isinstance(value, list) and all(each in words for each in value)
        return None if is_list else (f"is {value!r}, no list of {listed}", f'Write `{name} = ["{words[0]}"]`.')

    return {"check": check}


def check_switch(value: Any, name: str) -> Problem:
    """The fault of a value that is no switch."""
    return None if isinstance(value, bool) else (f"must be true or false, not {value!r}", f"Write `{name} = false`.")


COUNT, AMOUNT = check_above_zero("whole number", int), check_above_zero("number", int, float)


def read_table(kind: type[SectionT], given: Any, name: str) -> SectionT:
    """A table of TOML as the record it is meant to be. Raises SettingsError."""
    if not isinstance(given, dict):
        raise SettingsError(f"`{name}` in `koi.toml` is no table", help=f"Write `[{name}]` on a line of its own.")
    checks: Mapping[str, Check] = {each.name: each.metadata["check"] for each in fields(cast(Any, kind))}
    for key, value in given.items():
        if key not in checks:
            raise SettingsError(f"`[{name}]` in `koi.toml` has no `{key}`", help=suggest_key(key, checks))
        if problem := checks[key](value, key):
            raise SettingsError(f"`{key}` in `[{name}]` of `koi.toml` {problem[0]}", help=problem[1])
    return kind(**given)


LEVELS = ("never", "ask", "act")
KINDS = ("read", "write", "run", "web")
TOPIC_HELP = "A topic is a kind of rule, an action, a tool of an MCP server, or a word of a command."


NEAR_HELP = (
    'A command of that name is `"run:{0}"` in `[permissions]`, a tool `"{0}"` in `deny` or `ask` of `[mcp.NAME]`.'
)


def check_topics(given: Any) -> None:
    """Raise SettingsError where `[trust]` is no table of topics with levels, or a topic is nearly a kind of rule."""
    if not isinstance(given, dict):
        raise SettingsError("`trust` in `koi.toml` is no table", help="Write `[trust]` on a line of its own.")
    for topic, level in given.items():
        if problem := check_one_of(*LEVELS)["check"](level, topic):
            raise SettingsError(f"`{topic}` in `[trust]` of `koi.toml` {problem[0]}", help=problem[1])
        # Letter case does not count for what is forbidden or asked about; names of tools have other signs than kinds.
        is_kind = topic in KINDS or (level != "act" and topic.casefold() in KINDS)
        near = None if is_kind or not topic.isalpha() else nearest(topic, KINDS, alike=SLIP_IN_FIVE)
        if near is not None:
            help = f"Did you mean `{near}`? {NEAR_HELP.format(topic)}"
            raise SettingsError(f"`[trust]` in `koi.toml` has no `{topic}`", help=help)
        if "*" in topic:
            help = 'Write a rule such as `deny = ["write:**"]` in `[permissions]`.'
            raise SettingsError(
                f"`{topic}` in `[trust]` of `koi.toml` has a wildcard, which topics do not know", help=help
            )
        if len(topic.split()) != 1:
            raise SettingsError(f"`{topic}` in `[trust]` of `koi.toml` is not one word", help=TOPIC_HELP)


def suggest_key(name: str, known: Iterable[str]) -> str:
    """One thing to do about a key that is not among those that are known."""
    near = nearest(name, known)
    listed = ", ".join(f"`{each}`" for each in known)
    return f"Did you mean `{near}`? It may hold {listed}." if near else f"It may hold {listed}."
