"""Values for the arguments of prompts and the holes of addresses, while a person types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp import types

from koi_lang.mcp_server.documents import ExposedDocument

# The most that the protocol allows.
MAX_VALUES = 100
MAX_KEPT = 1000


class GivenArguments:
    """The arguments of a client in its session, the newest last."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str], dict[str, None]] = {}

    def keep(self, of: str, arguments: Mapping[str, Any]) -> None:
        """Remember the arguments of a prompt or document."""
        for name, value in arguments.items():
            values = self._values.setdefault((of, name), {})
            values.pop(str(value), None)
            values[str(value)] = None
            if len(values) > MAX_KEPT:
                del values[next(iter(values))]

    def of(self, of: str, name: str) -> list[str]:
        """The values that an argument had, the newest first."""
        return list(reversed(self._values.get((of, name), {})))


def completion(
    made: ExposedDocument | None, of: str, argument: types.CompletionArgument, given: GivenArguments
) -> types.CompleteResult:
    """The values with a typed beginning: those of the type, else earlier ones.

    Args:
        of: the name of the prompt or the address.
    """
    field = made.fields.get(argument.name) if made is not None else None
    known = _allowed_texts(field) or given.of(of, argument.name)
    fitting = [value for value in known if value.lower().startswith(argument.value.lower())]
    found = types.Completion(values=fitting[:MAX_VALUES], total=len(fitting), has_more=len(fitting) > MAX_VALUES)
    return types.CompleteResult(completion=found)


def _allowed_texts(field: Any) -> list[str]:
    """The texts that the type of a field allows; none where any will do."""
    options = field.get("anyOf", [field]) if isinstance(field, dict) else []
    values = [value for option in options for value in option.get("enum", [option.get("const")])]
    return [value for value in values if isinstance(value, str)]
