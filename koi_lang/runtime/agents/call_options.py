"""Options of a call: the roles that bound it, the type of its result, and the model that it uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from koi_lang.diagnostics import suggestion
from koi_lang.errors import AgentError
from koi_lang.js.inspect_value import inspect
from koi_lang.js.undefined import undefined
from koi_lang.runtime.agents.declarations import Role
from koi_lang.runtime.agents.result_types import ResultType, SchemaResult
from koi_lang.runtime.narrowing import EXAMPLE, RoleSource, narrowed_to, require_role

NAMES = ("as", "returns", "model", "effort")


@dataclass(frozen=True, slots=True)
class CallOptions:
    """What `handle("event", payload, options)` says of one call.

    Attributes:
        roles: they bound the call and all that is called from it.
        result: the type of its result, in place of the declared one; None for that.
        model: settings of its model, which count before those of the agent.
    """

    roles: tuple[Role, ...] = ()
    result: ResultType | None = None
    model: Mapping[str, str] = field(default_factory=dict)


NO_OPTIONS = CallOptions()
# The options of the innermost call of a handler.
call_options: ContextVar[CallOptions] = ContextVar("koi_call_options", default=NO_OPTIONS)


@contextmanager
def called_with(options: CallOptions, *more: RoleSource) -> Iterator[None]:
    """A context in which a handler is called with options; calls from within have their own.

    Args:
        more: further roles that bound the call.
    """
    token = call_options.set(options)
    try:
        with narrowed_to(*options.roles, *more):
            yield
    finally:
        call_options.reset(token)


def call_options_of(options: Any, handler: str) -> CallOptions:
    """The options that code has written. Raises AgentError for what is no option of a call."""
    if options is undefined or options is None:
        return NO_OPTIONS
    if not isinstance(options, dict):
        raise AgentError(f"the options of `handle` are an object, not {inspect(options)}", help=EXAMPLE)
    for name in options:
        if name not in NAMES:
            raise AgentError(f"`handle` has no option `{name}`", help=suggestion(name, NAMES, "option"))
    roles = (require_role(options["as"]),) if "as" in options else ()
    result = SchemaResult.of(handler, options["returns"]) if "returns" in options else None
    model = {name: options[name] for name in ("model", "effort") if name in options}
    for name, value in model.items():
        if not isinstance(value, str) or not value:
            raise AgentError(f"the option `{name}` of `handle` is a text, not {inspect(value)}")
    return CallOptions(roles, result, model)
