"""The keys of a result, read from the sentences of a playbook."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeAlias

from koi_lang.system.interpolation import Rendered

Shapes: TypeAlias = tuple[frozenset[str], ...]

# As a rehearsal understands them. Between verb and object stands at most what says that it is one.
VERBS = "return|respond|answer|reply|output|finish|end|devuelve|retorna|regresa|responde|termina|finaliza"
OBJECT = re.compile(rf"\b(?:{VERBS})\b[^.{{}}]{{0,80}}(?<!\$)\{{(?!\{{)", re.IGNORECASE)
# Texts, what stands for something (`<what you say>`), names and numbers, marks.
TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*+"|(?<=[\s:,{\[(])\'(?:[^\'\\\n]|\\.)*+\'|<[^<>{}\n]*+>|[\w$-]++|[{}\[\](),:]')
# What stands for a value, with nothing behind it that says more.
NAMED = r"(?:<\s*(?:(?:an?|the|one)\s+)?(?:{words})\s*>|{name})(?=[ \t]*(?:[,}}\n]|$))"
KINDS = {
    "string": r"[\"']|" + NAMED.format(words="text|string|sentence|paragraph|word", name="string"),
    "number": r"-?[0-9]+(?:\.[0-9]+)?(?![\w$-])|" + NAMED.format(words="number", name="number"),
    "integer": NAMED.format(words="integer|whole number", name="integer"),
    "boolean": r"(?:true|false)(?![\w$-])|" + NAMED.format(words=r"boolean|true(?: or |\|)false", name="boolean"),
}
KIND = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in KINDS.items()))
# Stands for what comes in from outside.
HOLE = "value"
# Of one object no more is looked at.
MAX_CHARS = 20_000


def shapes_of(playbook: Rendered) -> Shapes:
    """The keys of every object that a playbook says to return; outside text names none."""
    return tuple(dict.fromkeys(frozenset(found) for found in _results(playbook)))


def result_schema(playbook: Rendered) -> dict[str, Any]:
    """The schema of the one object that a playbook says to return; empty (anything) otherwise.

    A value that is written out tells its type, as does the name of a type (`<text>`, `number`); what else stands for a
    value may be anything, and so may one that is written in several ways.
    """
    found = list(_results(playbook))
    if len(set(map(frozenset, found))) != 1:
        return {}
    kinds = {key: {each[key] for each in found} for key in found[0]}
    fields = {key: {"type": kind} if len(of) == 1 and (kind := min(of)) else {} for key, of in kinds.items()}
    return {"type": "object", "properties": fields, "required": list(fields)}


def _results(playbook: Rendered) -> Iterator[dict[str, str]]:
    """The fields of every object that a playbook says to return, each with its type, empty where that is not told."""
    text = "".join(part if isinstance(part, str) else HOLE for part in playbook.parts)
    found = (dict(_fields(text, match.end())) for match in OBJECT.finditer(text))
    return filter(None, found)


def _type_at(text: str, start: int) -> str:
    """The type of the value that begins there; empty where that does not tell it."""
    found = KIND.match(text, start)
    return (found and found.lastgroup) or ""


def _fields(text: str, start: int) -> Iterator[tuple[str, str]]:
    """Keys and types of values of an object whose bracket ends at `start`, written as in JSON or as in code."""
    depth = 1
    key = ""
    has_value = True
    for token in TOKEN.finditer(text, start, start + MAX_CHARS):
        mark = token[0]
        if key and not has_value and mark != ":":
            has_value = True
            yield key, _type_at(text, token.start())
        if mark in "{[(":
            depth += 1
        elif mark in "}])":
            depth -= 1
            if not depth:
                return
        elif depth == 1 and mark == ",":
            key, has_value = "", True
        elif depth == 1 and not key and mark != ":":
            key, has_value = mark.strip("\"'"), False
