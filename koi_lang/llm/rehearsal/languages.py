"""The words of natural languages in playbooks, and those that the rehearsal says, from `languages.toml`."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any


@cache
def read_languages() -> dict[str, Any]:
    """The whole file; its comments describe the tables."""
    return tomllib.loads(Path(__file__).with_name("languages.toml").read_text("utf-8"))


def get_phrase(name: str, language: str) -> Any:
    """A phrase of the rehearsal in a language."""
    return read_languages()["phrases"][name][language]


@cache
def merge(name: str, table: str = "anywhere") -> dict[str, Any]:
    """The words of all languages with their meanings."""
    return {word: meant for words in read_languages()[table][name].values() for word, meant in words.items()}


@cache
def compile_words(text: str) -> re.Pattern[str]:
    """A compiled pattern, which letters fit in either case; `{name}` in it is one of the words of any language."""
    return re.compile(fill_words(text), re.IGNORECASE)


@cache
def compile_needs(name: str, table: str = "needs") -> re.Pattern[str]:
    """The words of all languages by which a playbook needs something: `groups` of actions, or an action."""
    words = "|".join(read_languages()[table][name].values())
    return re.compile(rf"\b(?:{words})\b", re.IGNORECASE)


def fill_words(text: str) -> str:
    """A pattern with the words of any language in place of each `{name}` that stands for some."""
    for name, words in read_languages()["anywhere"].items():
        if f"{{{name}}}" in text:
            text = text.replace(f"{{{name}}}", f"(?:{'|'.join(words.values())})")
    return text


@cache
def list_verbs(name: str) -> tuple[str, ...]:
    """The verbs of all languages that `{name}` stands for."""
    return tuple(verb for verbs in read_languages()["words"][name].values() for verb in verbs.split())
