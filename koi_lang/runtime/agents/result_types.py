"""Result types of handlers, and the check of results."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, TypeVar

from koi_lang.errors import AgentError
from koi_lang.js.inspect_value import inspect as as_text
from koi_lang.runtime.mcp import validation
from koi_lang.runtime.playbook.tool_schemas import simplify_schema
from koi_lang.runtime.schema import Schema, declarations_of, objects_of, problems, settle_integers, type_text

T = TypeVar("T")
EXAMPLE = 'Write such as `returns: { type: "object", properties: { name: { type: "string" } }, required: ["name"] }`.'
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

    def check(self, value: T, *, crosses: bool = False) -> T:
        """A value that fits. Raises ResultTypeError for another one.

        Args:
            crosses: whether it has left the handler.
        """
        wrong = self.problems(value)
        if wrong:
            message = f"`{self.handler}` cannot give what it returns: {'; '.join(wrong)}"
            error = ResultTypeError(message, help=f"Its result type is {self.text}.")
            error.crosses = crosses
            raise error
        return self.settle(value)

    def settle(self, value: T) -> T:
        """A value that fits, with integers wherever whole numbers are declared."""
        return settle_integers(value, self.schema) if self._has_integers else value

    @cached_property
    def _has_integers(self) -> bool:
        return '"integer"' in json.dumps(self.schema)

    @cached_property
    def shapes(self) -> tuple[frozenset[str], ...]:
        """The fields of every object that it allows."""
        return tuple(objects_of(self.schema))

    @cached_property
    def text(self) -> str:
        """The type as programs write it, with the declared types in it."""
        return " where ".join(filter(None, (type_text(self.schema), "; ".join(declarations_of([self.schema])))))


@dataclass(frozen=True, eq=False)
class SchemaResult(ResultType):
    """The result type of one call: a JSON Schema that is a value of the program.

    Models are told a simplified form of it; results are checked against all of it.
    """

    _checks: Any = None

    @classmethod
    def of(cls, handler: str, schema: Any) -> SchemaResult:
        """The type of a schema. Raises AgentError for what is no schema."""
        if not isinstance(schema, dict):
            raise AgentError(f"the type of a result is a JSON Schema, not {as_text(schema)}", help=EXAMPLE)
        try:
            checks = validation.Checks(schema, has_formats=True)
            validation.require_checked(schema)
            next(checks.problems({}), None)  # a reference that leads nowhere is found by following it
        except ValueError as error:
            message = f"the type of the result of `{handler}` is no JSON Schema: {error}"
            raise AgentError(message, help=EXAMPLE) from error
        whole = {"type": "object", "properties": {"result": schema}, "$defs": schema.get("$defs", {})}
        simple = simplify_schema(whole, has_null=True) or {}
        return cls(handler, simple.get("properties", {}).get("result", {}), checks)

    def problems(self, value: object) -> list[str]:
        """The faults of a value, a clause each, at most 5; empty for a valid one."""
        return list(islice(self._checks.problems(value), MAX_REPORTED))
