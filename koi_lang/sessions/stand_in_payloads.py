"""The type that a handler declares to a payload of texts that say what would stand there."""

from __future__ import annotations

from typing import Any

from koi_lang.runtime.schema import Schema, resolve_part, type_text

# Objects within objects; types may contain themselves.
DEEPEST = 4


def stand_in(schema: Schema, name: str = "args") -> Any:
    """A value of the shape of a type, with `⟨name: type⟩` in place of all that is no object and no list.

    It does not fit the type where that is a number or a choice.
    """
    return _stand_in(schema, schema, name, DEEPEST)


def _stand_in(root: Schema, part: Schema, name: str, levels: int) -> Any:
    found = resolve_part(root, part)
    if levels and "properties" in found:
        return {each: _stand_in(root, inner, each, levels - 1) for each, inner in found["properties"].items()}
    if levels and found.get("type") == "array" and "items" in found:
        return [_stand_in(root, found["items"], name, levels - 1)]
    return f"⟨{name}: {type_text(part)}⟩"
