"""Result types of handlers, and the check of results."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TypeVar

from koi_lang.errors import AgentError
from koi_lang.js.inspect_value import inspect as as_text
from koi_lang.runtime.schema import Schema, declarations_of, objects_of, problems, type_text

T = TypeVar("T")
# Of several things that are wrong with a result, so many are told.
MAX_REPORTED = 5


class ResultTypeError(AgentError, code="E0506"):
    """A result does not fit the result type of its handler.

    Attributes:
        crosses: whether it has left the handler; within, no code may catch it.
    """

    crosses = False

    def is_final(self) -> bool:
        """Whether the current code belongs to the handler that gives it."""
        return not self.crosses


def _json_words(value: object) -> str:
    """A value as JSON, or as programs show it where JSON cannot hold it."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else as_text(value)


@dataclass(frozen=True, eq=False)
class ResultType:
    """The declared result type of a handler.

    Attributes:
        handler: `Agent.event`.
        schema: JSON Schema, declared types under `$defs`.
    """

    handler: str
    schema: Schema

    def problems(self, value: object) -> list[str]:
        """The faults of a value, a clause each, at most 5; empty for a valid one."""
        return list(islice(problems(value, self.schema, root="the result", words=_json_words), MAX_REPORTED))

    def check(self, value: T) -> T:
        """A value that fits. Raises ResultTypeError for another one."""
        wrong = self.problems(value)
        if wrong:
            message = f"`{self.handler}` cannot give what it returns: {'; '.join(wrong)}"
            raise ResultTypeError(message, help=f"Its result type is {self.text}.")
        return value

    @cached_property
    def shapes(self) -> tuple[frozenset[str], ...]:
        """The fields of every object that it allows."""
        return tuple(objects_of(self.schema))

    @cached_property
    def lines(self) -> str:
        """The type, and a line for each declared type in it, with its description."""
        return "\n".join([type_text(self.schema), *declarations_of([self.schema], described=True)])

    @cached_property
    def text(self) -> str:
        """The type as programs write it, with the declared types in it."""
        return " where ".join(filter(None, (type_text(self.schema), "; ".join(declarations_of([self.schema])))))
