"""What a playbook says to return to the keys that its result may have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

from koi_lang.interpolation import Rendered

Shapes: TypeAlias = tuple[frozenset[str], ...]

# As a rehearsal understands them. Between verb and object stands at most what says that it is one.
VERBS = "return|respond|answer|reply|output|finish|end|devuelve|retorna|regresa|responde|termina|finaliza"
OBJECT = re.compile(rf"\b(?:{VERBS})\b[^.{{}}]{{0,80}}(?<!\$)\{{(?!\{{)", re.IGNORECASE)
# Texts, what stands for something (`<what you say>`), names and numbers, marks.
TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*+"|(?<=[\s:,{\[(])\'(?:[^\'\\\n]|\\.)*+\'|<[^<>{}\n]*+>|[\w$-]++|[{}\[\](),:]')
# Of one object no more is looked at.
LONGEST = 20_000


def shapes_of(playbook: Rendered) -> Shapes:
    """The keys of every object that a playbook says to return; what came in from outside names none."""
    text = "".join(part if isinstance(part, str) else "0" for part in playbook.parts)
    found = (frozenset(_keys(text, match.end())) for match in OBJECT.finditer(text))
    return tuple(dict.fromkeys(filter(None, found)))


def _keys(text: str, start: int) -> Iterator[str]:
    """The keys of an object whose bracket ends at `start`, written as in JSON or as in code."""
    depth, is_key = 1, True
    for token in TOKEN.finditer(text, start, start + LONGEST):
        mark = token[0]
        if mark in "{[(":
            depth += 1
        elif mark in "}])":
            depth -= 1
            if not depth:
                return
        elif depth == 1 and mark in ",:":
            is_key = mark == ","
        elif depth == 1 and is_key:
            yield mark.strip("\"'")
            is_key = False
