"""How far the person trusts agents, by topic: `[trust] deploy = "never"` in `koi.toml`.

A topic is a kind of rule, the name of an action or of a tool of an MCP server, or a word of commands. Commands are read
widely, as by rules that deny: letter case does not count, nor where in a command the word stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, cast

from koi_lang.runtime.guards.access_rules import AROUND_WORDS, EVERYTHING, KINDS, Kind, WantedAccess

Level = Literal["never", "ask", "act"]
PARTS = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class Trust:
    """The trust levels of the person by topic.

    Attributes:
        levels: topics with their levels, in the order of the file.
    """

    levels: tuple[tuple[str, Level], ...] = ()

    def level_of(self, name: str) -> Level | None:
        """The level of an action or a tool by name; None where nothing is said of it."""
        return next((level for topic, level in self.levels if topic == name), None)

    def forbids(self, access: WantedAccess) -> str:
        """The line by which something is never done; empty where none says so."""
        return next((line_of(topic, level) for topic, level in self._about(access) if level == "never"), "")

    def asks(self, access: WantedAccess) -> str:
        """The settings line that asks the person in spite of rules; empty for none."""
        return next((line_of(topic, level) for topic, level in self._about(access) if level == "ask"), "")

    def restricts(self, kind: Kind) -> bool:
        """Whether anything of a kind may be forbidden or asked about."""
        return any(level != "act" and (topic == kind or kind == "run") for topic, level in self.levels)

    def rules(self) -> list[str]:
        """The rules by which topics are allowed; those of words for simple commands that begin with them."""
        free = [topic for topic, level in self.levels if level == "act"]
        kinds = [f"{topic}:{EVERYTHING}" for topic in free if topic in KINDS]
        words = [rule for topic in free if topic not in KINDS for rule in (f"run:{topic}", f"run:{topic} *")]
        return [*kinds, *words]

    def _about(self, access: WantedAccess) -> Iterator[tuple[str, Level]]:
        words = _words_of(access.subject) if access.kind == "run" else frozenset()
        for topic, level in self.levels:
            if topic == access.kind or topic.casefold() in words:
                yield topic, level


NO_TRUST = Trust()


def trust_of(given: Mapping[str, str]) -> Trust:
    """The trust levels of a checked table of `koi.toml`."""
    return Trust(tuple((topic, cast(Level, level)) for topic, level in given.items()))


def line_of(topic: str, level: Level) -> str:
    """The settings line of the person, for messages."""
    return f'[trust] {topic} = "{level}"'


def _words_of(command: str) -> frozenset[str]:
    """The words of a command, the names in its paths, and the parts of both."""
    text = command.casefold()
    plain = re.sub(r"""['"\\]""", "", text)  # a shell joins what is quoted
    found = {word for each in (text, plain) for word in (*AROUND_WORDS.split(each), *PARTS.split(each))}
    names = {name for word in found for name in (*word.split("/"), word.rpartition("/")[2].partition(".")[0])}
    return frozenset(found | names)
