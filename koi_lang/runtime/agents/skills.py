"""Skills: named groups of functions that agents and Python can call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from koi_lang.diagnostics import suggestion
from koi_lang.errors import AgentError, KoiError, PermissionDeniedError, raised_as
from koi_lang.js.errors import catch_value
from koi_lang.runtime.schema import Schema, of_function, of_result, problems, signature_text

Function = Callable[..., Any]


class Skill:
    """A declared skill.

    Attributes:
        name: as declared.
        affordance: what it is good for.
        functions: its exported functions by name, as Python calls them.
    """

    def __init__(self, name: str, affordance: str, functions: Mapping[str, Function]) -> None:
        self.name = name
        self.affordance = affordance
        self.functions = dict(functions)

    def __repr__(self) -> str:
        return f"[Skill: {self.name}]"

    def __getitem__(self, name: str) -> Function:
        return self.functions[name]

    def permission(self, name: str) -> str | None:
        """The permission that the role of an agent must have for its model to call a function; None needs none."""
        permission: str | None = getattr(self.functions[name], "__koi_needs__", None)
        return permission

    def restrict(self, allows: Callable[[str | None], bool]) -> Skill:
        """The skill with only those functions whose permission is allowed; itself where those are all."""
        functions = {name: function for name, function in self.functions.items() if allows(self.permission(name))}
        return self if len(functions) == len(self.functions) else Skill(self.name, self.affordance, functions)

    def choose(self, arguments: Sequence[Any]) -> tuple[Function, Sequence[Any]]:
        """The function that `callSkill` arguments name, else the first one, and the remaining arguments."""
        if not self.functions:
            raise AgentError(f"the skill `{self.name}` exports no function")
        if arguments and isinstance(arguments[0], str) and (len(arguments) > 1 or arguments[0] in self.functions):
            return self.function(arguments[0]), arguments[1:]
        return next(iter(self.functions.values())), arguments

    def first(self) -> str:
        """The name of the first exported function. Raises AgentError when there is none."""
        self.choose(())
        return next(iter(self.functions))

    async def invoke(self, name: str, input: Any) -> Any:
        """Call a function with an object of its parameters, or with one value.

        Raises:
            AgentError: it fails, or what it is given is not what it declares.
            LimitReachedError: a limit ends what called it.
        """
        function = self.function(name)
        schema = of_function(function)
        given = by_parameter(input, schema)
        if schema["properties"].keys() <= given.keys():  # what is left over is no misspelt parameter
            given = {name: given[name] for name in schema["properties"]}
        wrong = [*_unknown_parameters(given, schema), *problems(given, schema)]
        if wrong:
            message = f"`{self.name}.{name}` cannot be called: {'; '.join(wrong)}"
            raise AgentError(message, help=f"It takes ({signature_text(schema)}).")
        bound = _bound(function, given)
        with raised_as(lambda error: self._failure(name, error)):
            result = await function(*bound.args, **bound.kwargs)
        wrong = [*islice(problems(result, of_result(function), root="its result"), 1)]
        if wrong:
            raise AgentError(f"Skill {self.name}.{name} failed: {wrong[0]}, by the type that it declares")
        return result

    def _failure(self, name: str, error: Exception) -> KoiError:
        """The error for the failure of a function. Raises errors that no caller may catch."""
        catch_value(error)
        help = error.help if isinstance(error, KoiError) else None
        # What was refused stays a refusal, so that a model does not try it again.
        kind = PermissionDeniedError if isinstance(error, PermissionDeniedError) else AgentError
        return kind(f"Skill {self.name}.{name} failed: {error}", help=help)

    def function(self, name: str) -> Function:
        """An exported function. Raises AgentError."""
        if name not in self.functions:
            help = suggestion(name, list(self.functions), "function") if self.functions else None
            raise AgentError(f"the skill `{self.name}` has no function `{name}`", help=help)
        return self.functions[name]


def by_parameter(input: Any, schema: Schema) -> dict[str, Any]:
    """The arguments of a model by parameter: an object of them, or the value of the first."""
    known = schema["properties"]
    if not isinstance(input, dict):
        return {next(iter(known), "input"): input}
    first = next(iter(known.items()), None)
    if first is None or input.keys() & known.keys() or not (input or schema["required"]):
        return input
    return input if any(problems(input, first[1])) else {first[0]: input}


def _unknown_parameters(given: Mapping[str, Any], schema: Schema) -> Iterator[str]:
    """A clause for each parameter that a function does not have."""
    for name in given:
        if name not in schema["properties"]:
            yield f"there is no parameter `{name}`"


def _bound(function: Function, given: Mapping[str, Any]) -> inspect.BoundArguments:
    """Parameters as a call takes them; the list of a rest parameter becomes the rest."""
    signature = inspect.signature(function)
    rest = [p.name for p in signature.parameters.values() if p.kind is p.VAR_POSITIONAL and p.name in given]
    bound = signature.bind(**{name: value for name, value in given.items() if name not in rest})
    bound.apply_defaults()
    bound.arguments.update((name, tuple(given[name])) for name in rest)
    return bound


def skill(name: str) -> Callable[[Callable[[], Mapping[str, Function]]], Skill]:
    """Turn the function that holds a skill's variables into the skill; the docstring is its affordance."""

    def declare(body: Callable[[], Mapping[str, Function]]) -> Skill:
        functions = body()
        affordance = body.__doc__ or ""
        for function in functions.values():
            function.__doc__ = function.__doc__ or affordance or None
            function.__module__ = body.__module__
        return Skill(name, affordance, functions)

    return declare
