"""What sentences of playbooks ask for, from `words.toml`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from koi_lang.lazy import lazy_module

if TYPE_CHECKING:
    import tomllib

    from koi_lang.llm.rehearsal import languages
else:
    tomllib = lazy_module("tomllib")
    languages = lazy_module("koi_lang.llm.rehearsal.languages")

# What stands for quotes, code in backticks, objects and placeholders, so that no word in them counts: noncharacters.
QUOTE = "\ufdd4"
CODE = "\ufdd5"
DATA = "\ufdd6"
HOLE = "\ufdd7"


@dataclass(frozen=True, slots=True)
class Capability:
    """What some clauses ask for.

    Attributes:
        permission: what a role is advised to have.
        means: permissions each of which is enough.
        patterns: how such clauses begin.
        words: parts of the names of functions and tools that may do it as well.
        is_own: whether nobody else can do it.
    """

    permission: str
    means: tuple[str, ...]
    patterns: tuple[str, ...]
    words: tuple[str, ...] = ()
    is_own: bool = False


@cache
def read_capabilities() -> tuple[Capability, ...]:
    """All capabilities of the file."""
    return tuple(
        Capability(
            permission=each["permission"],
            means=tuple(each["means"]),
            patterns=tuple(each["patterns"]),
            words=tuple(each["words"]),
            is_own=each.get("is_own", False),
        )
        for each in read_words()["capabilities"]
    )


@cache
def read_words() -> dict[str, Any]:
    """The whole file; its comments say what stands where."""
    return tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))


@cache
def pattern(text: str) -> re.Pattern[str]:
    """A pattern in which `{name}` is a word of the file, or of the rehearsal, and a blank any white space."""
    words = _words()
    filled = re.sub(r"\{([a-z_]+)\}", lambda found: words.get(found[1], found[0]), text)
    return re.compile(languages.fill_words(filled).replace(" ", r"\s+"), re.IGNORECASE)


@cache
def _words() -> dict[str, str]:
    """What a name in braces stands for, beside the words that the rehearsal knows in every sentence."""
    form = "|".join(languages.read_languages()["words"]["form"].values())
    answers, prints = ("|".join(languages.list_verbs(name)) for name in ("answer", "print"))
    words: dict[str, str] = read_words()["words"]
    return words | {
        "quote": f"{QUOTE}+",
        "code": f"{CODE}+",
        "data": f"{DATA}+",
        "form": f"(?:{form})",
        "answer": answers,
        "print": prints,
    }
