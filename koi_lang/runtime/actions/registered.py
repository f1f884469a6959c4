"""Built-in actions, and the table of all of them."""

from __future__ import annotations

import inspect
import keyword
import typing
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from koi_lang.diagnostics import SLIP_IN_FIVE, nearest
from koi_lang.errors import KoiError
from koi_lang.runtime.schema import (
    Schema,
    action_form,
    of_annotation,
    problems,
    signature_text,
    with_definitions_at_root,
)
from koi_lang.system.interpolation import USUAL_CODE

if TYPE_CHECKING:
    from koi_lang.runtime.ports import AgentPort, BlockPort, CallPort, RunPort

ActionFunction = Callable[..., Awaitable[Any]]
# The kinds of tools that editors know, as the Agent Client Protocol names them.
ToolKind: TypeAlias = Literal["read", "search", "edit", "execute", "fetch", "think", "other"]
# Of the result of an action, in characters of its JSON.
MAX_SHOWN = 6000
# What an action may say of itself, whichever it is.
ALWAYS = frozenset({"condition", "desc", "description", "title", "data"})


class ActionError(KoiError):
    """An action cannot be carried out as asked; the message is for the model."""


class FormError(ActionError):
    """An action, or a result, is not written as it has to be; the help says how it is."""


@dataclass(frozen=True, slots=True)
class ActionContext:
    """The access of an action to its run and agent.

    Attributes:
        execution: the call of a playbook that it is part of; None where code calls the action.
        block: the actions nested in a field of it, by their list and the name of the field; None as before.
    """

    run: RunPort
    agent: AgentPort
    execution: CallPort | None = None
    block: Callable[[Sequence[Any], str], BlockPort] | None = None


@dataclass(frozen=True, slots=True)
class ActionKind:
    """A built-in action.

    Attributes:
        needs: the permission its agent's role must have; None needs nothing.
        description: first line of its docstring.
        schema: JSON Schema of its fields.
        aliases: other names of fields, from older programs and from models.
        safe: whether carrying it out twice does no harm.
        inside: whether it works within the program only (state, other actions, agents, models), so that a run that
            goes on later carries it out again; what came of all others is taken from the journal.
        renew: what is to be done in this process where the outcome is known from another one.
        asked: the types of fields that models are asked for, where more is taken.
        shown: most characters of its result, as JSON, that a model is told at once.
        tool: its kind for editors.
        only_looks: whether it changes nothing but shown text, its nested actions apart.
        code: names of its fields, at any depth, whose texts are code of another language, such as that of a file; usual
            names where nobody says which ones are. Those in `COMMANDS` are commands.
        is_occasional: whether only runs with outputs, skills in files or plans offer it, or none of them.
    """

    name: str
    needs: str | None
    description: str
    schema: Schema
    function: ActionFunction
    aliases: Mapping[str, str] = field(default_factory=dict)
    safe: bool = False
    inside: bool = False
    renew: ActionFunction | None = None
    asked: Mapping[str, Schema] = field(default_factory=dict)
    shown: int = MAX_SHOWN
    tool: ToolKind = "other"
    only_looks: bool = False
    code: Collection[str] = USUAL_CODE
    is_occasional: bool = False

    @property
    def asked_schema(self) -> dict[str, Any]:
        """The schema of the fields that models are asked for."""
        return with_definitions_at_root({**self.schema, "properties": {**self.schema["properties"], **self.asked}})

    @property
    def lasting(self) -> bool:
        """Whether carrying it out twice may do harm outside of this process."""
        return not self.safe and not self.inside

    @property
    def signature(self) -> str:
        """The action as it stands in prompts: `print(message: any)`."""
        return f"{self.name}({signature_text(self.schema)})"

    def as_data(self) -> dict[str, Any]:
        """The JSON form."""
        described = {"name": self.name, "needs": self.needs, "description": self.description, "safe": self.safe}
        return {**described, "parameters": dict(self.schema)}


def action(
    needs: str | None = None, *, name: str = "", aliases: Mapping[str, str] | None = None, **about: Any
) -> Callable[[ActionFunction], ActionFunction]:
    """Enter a function into the table; its parameters after the context are the fields of the action.

    Args:
        about: the other fields of ActionKind, from `safe` on.
    """

    def enter(function: ActionFunction) -> ActionFunction:
        kind = kind_of(function, needs, name=name, aliases=aliases, **about)
        _ACTIONS[kind.name] = kind
        return function

    return enter


def kind_of(
    function: ActionFunction,
    needs: str | None,
    *,
    name: str = "",
    aliases: Mapping[str, str] | None = None,
    **about: Any,
) -> ActionKind:
    """A function as an action: name, first docstring line and annotations become its description.

    Args:
        about: other fields of the action; of those with code the aliases are added.
    """
    description = (inspect.getdoc(function) or "").partition("\n")[0]
    known, aliases = name or function.__name__, aliases or {}
    if "code" in about:
        about["code"] = {*about["code"], *(alias for alias, meant in aliases.items() if meant in about["code"])}
    return ActionKind(known, needs, description, _schema(function), function, aliases, **about)


_ACTIONS: dict[str, ActionKind] = {}


def _schema(function: ActionFunction) -> dict[str, Any]:
    names = {**function.__globals__, "AgentPort": Any, "RunPort": Any, "ActionContext": Any}
    hints = typing.get_type_hints(function, names)
    parameters = list(inspect.signature(function).parameters.values())[1:]
    return {
        "type": "object",
        "properties": {_field(each.name): of_annotation(hints.get(each.name, Any)) for each in parameters},
        "required": [_field(each.name) for each in parameters if each.default is each.empty],
    }


def _field(parameter: str) -> str:
    """The field for a parameter; where it is a word of Python, the parameter ends in `_`."""
    return parameter[:-1] if parameter.endswith("_") and keyword.iskeyword(parameter[:-1]) else parameter


def find_builtin(name: str) -> ActionKind | None:
    """A built-in action by name."""
    return _ACTIONS.get(name)


def builtin_actions() -> Sequence[ActionKind]:
    """Every action entered so far."""
    return list(_ACTIONS.values())


def check(kind: ActionKind, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields an action takes, under their proper names; unknown ones are left out.

    Raises:
        FormError: says what is wrong with every field at once, and which unknown ones are misspelt.
    """
    taken = known_fields(kind, fields)
    wrong = [*problems(taken, kind.schema), *_misspelt(kind, fields)]
    if wrong:
        asked = kind.asked_schema
        asked["required"] = [each for each in asked["properties"] if each in asked.get("required", ()) or each in taken]
        help = f"Write {action_form(kind.name, asked)}."
        raise FormError(f"`{kind.name}` cannot be carried out: {'; '.join(wrong)}", help=help)
    return taken


def says_failure(result: Any) -> bool:
    """Whether the result of an action that was carried out says that it failed, as a command with exit code 1 does."""
    return isinstance(result, Mapping) and result.get("success") is False


def known_fields(kind: ActionKind, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Those of some fields that an action knows, under their proper names."""
    renamed = {kind.aliases[name]: value for name, value in fields.items() if name in kind.aliases}
    return {**renamed, **{name: value for name, value in fields.items() if name in kind.schema["properties"]}}


def _misspelt(kind: ActionKind, fields: Mapping[str, Any]) -> Iterator[str]:
    """A clause for each field that is almost one of an action; a model may add others that mean nothing."""
    known = [*kind.schema["properties"], *kind.aliases]
    for name in fields:
        meant = None if name in known or name in ALWAYS else nearest(name, known, alike=SLIP_IN_FIVE)
        if meant is not None:
            yield f"there is no `{name}` (did you mean `{meant}`?)"
