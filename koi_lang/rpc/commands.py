"""Commands: their definition, their table, and their parsing from messages."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from koi_lang.diagnostics import suggestion
from koi_lang.runtime.schema import Schema, of_annotation, problems, signature_text
from koi_lang.sessions.errors import SessionError
from koi_lang.sessions.session import Session

CommandFunction = Callable[..., Awaitable[Any]]
# Fields that every message may have.
ENVELOPE = ("type", "id")


@dataclass(frozen=True, slots=True)
class RpcCommand:
    """A command.

    Attributes:
        description: first line of its docstring.
        schema: JSON Schema of its fields.
        idle: whether it is refused while a call is under way.
        holds: whether what it causes is told behind its response.
        aside: whether it takes time and may ask the client, so that others are carried out meanwhile.
        waits: whether it is carried out behind those that take time.
    """

    name: str
    description: str
    schema: Schema
    function: CommandFunction
    idle: bool = False
    holds: bool = True
    aside: bool = False
    waits: bool = False

    def as_data(self) -> dict[str, Any]:
        """The JSON form."""
        takes = signature_text(self.schema)
        return {"name": self.name, "takes": takes, "description": self.description, "idle": self.idle}


_COMMANDS: dict[str, RpcCommand] = {}


def command(name: str = "", **how: bool) -> Callable[[CommandFunction], CommandFunction]:
    """Enter a function into the table; its parameters after the session are the fields of the command.

    Args:
        how: `idle`, `holds`, `aside` and `waits` of the command; one that needs an idle session waits, too.
    """

    def enter(function: CommandFunction) -> CommandFunction:
        known = name or function.__name__
        description = (inspect.getdoc(function) or "").partition("\n")[0]
        waits = how.get("idle", False)
        _COMMANDS[known] = RpcCommand(known, description, _schema(function), function, **{"waits": waits, **how})
        return function

    return enter


def _schema(function: CommandFunction) -> dict[str, Any]:
    hints = typing.get_type_hints(function)
    parameters = list(inspect.signature(function).parameters.values())[1:]
    return {
        "type": "object",
        "properties": {_field(parameter.name): of_annotation(hints[parameter.name]) for parameter in parameters},
        "required": [_field(parameter.name) for parameter in parameters if parameter.default is parameter.empty],
    }


def _field(parameter: str) -> str:
    """The name of a field; words of Python stand with a `_` behind them."""
    return parameter.removesuffix("_")


def all_commands() -> Sequence[RpcCommand]:
    """All commands."""
    return list(_COMMANDS.values())


def command_of_function(function: CommandFunction) -> RpcCommand:
    """The command that a function carries out."""
    return next(each for each in _COMMANDS.values() if each.function is function)


def waits(message: Mapping[str, Any]) -> bool:
    """Whether the command that a message names is carried out behind those that take time."""
    found = _COMMANDS.get(str(message.get("type")))
    return found is not None and found.waits


def is_aside(message: Mapping[str, Any]) -> bool:
    """Whether the command that a message names takes time, so that others are carried out meanwhile."""
    found = _COMMANDS.get(str(message.get("type")))
    return found is not None and found.aside


def command_of(message: Mapping[str, Any]) -> RpcCommand:
    """The command that a message names. Raises SessionError."""
    name, id = message.get("type"), message.get("id")
    if not isinstance(name, str) or not name:
        raise SessionError(
            "invalid_request", "the message names no command", help='Its `type` must be one: "get_state".'
        )
    if isinstance(id, bool) or not isinstance(id, str | int | float | None):
        raise SessionError("invalid_request", "`id` must be a text or a number")
    found = _COMMANDS.get(name)
    if found is None:
        help = suggestion(name, list(_COMMANDS), "command")
        raise SessionError("unknown_command", f"there is no command `{name}`", help=help)
    return found


async def carry_out(command: RpcCommand, session: Session, message: Mapping[str, Any]) -> Any:
    """Run the command of a message and return its data. Raises SessionError before any effect."""
    fields = {name: value for name, value in message.items() if name not in ENVELOPE}
    parameters = {_field(name): name for name in list(inspect.signature(command.function).parameters)[1:]}
    _check(command, fields)
    if command.idle:
        session.require_idle()
    return await command.function(session, **{parameters[name]: value for name, value in fields.items()})


def message_for(function: CommandFunction, *args: Any, **fields: Any) -> dict[str, Any]:
    """The message of the command that is a function, with the arguments behind its session."""
    given = list(inspect.signature(function).bind(None, *args, **fields).arguments.items())[1:]
    return {"type": command_of_function(function).name, **{_field(name): value for name, value in given}}


def _check(command: RpcCommand, fields: Mapping[str, Any]) -> None:
    """Raise SessionError when a field is not known, missing or wrong: a misspelt one would be left out silently."""
    properties = command.schema["properties"]
    unknown = next((name for name in fields if name not in properties), None)
    if unknown is not None:
        help = suggestion(unknown, list(properties), "field") if properties else "It takes none."
        raise SessionError("invalid_request", f"`{command.name}` takes no field `{unknown}`", help=help)
    wrong = list(problems(dict(fields), command.schema))
    if wrong:
        takes = signature_text(command.schema)
        raise SessionError("invalid_request", f"`{command.name}`: {'; '.join(wrong)}", help=f"It takes ({takes}).")
