"""Narrowing: the roles that bound a call, and all that is called from it, beside the roles of its agents."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from koi_lang.errors import AgentError, PermissionDeniedError
from koi_lang.js.inspect_value import inspect
from koi_lang.js.undefined import undefined
from koi_lang.runtime.agents.declarations import Role
from koi_lang.runtime.context import current

# The roles that the current code is bound by; tasks and timers that it starts have them from it.
_bounds: ContextVar[tuple[Role, ...]] = ContextVar("koi_bounds", default=())


def narrow(role: Role) -> Role:
    """A role as far as the current call is not narrowed."""
    bounds = _all_bounds()
    return replace(role, bounds=bounds) if bounds else role


def _all_bounds() -> tuple[Role, ...]:
    """The roles that a call is narrowed to, and what plan mode narrows every call of the run to."""
    run = current.get()
    return _bounds.get() if run is None else (*run.planning.bounds, *_bounds.get())


def bounding_roles() -> list[str]:
    """The names of the roles that the current call is narrowed to, the outermost first."""
    return [role.name for role in _bounds.get()]


@contextmanager
def narrowed_to(*roles: Role) -> Iterator[None]:
    """Have what is called in the block do no more than all roles allow; nothing that bounds it already is lifted."""
    bounds = _bounds.get()
    token = _bounds.set(tuple(dict.fromkeys((*bounds, *roles))))
    try:
        yield
    finally:
        _bounds.reset(token)


def require_bounds(permission: str | None, what: str) -> None:
    """Refuse code what the roles that its call is narrowed to do not allow; the role of its agent does not bind code.

    Raises:
        PermissionDeniedError: names the first role that lacks the permission.
    """
    lacking = next((role for role in _all_bounds() if not role.allows(permission)), None)
    if lacking is not None:
        raise PermissionDeniedError(f"{what} needs the permission `{permission}`, {_lack_of_bound(lacking)}")


def require_function(permission: str, what: str) -> None:
    """The same for a function of a skill that says what it needs; in plan mode it has to say that it only reads."""
    run = current.get()
    if run is not None:
        run.planning.require_function(permission, what)
    require_bounds(permission, what)


def explain_lack(role: Role, permission: str | None) -> str:
    """A clause that says which role lacks a permission that a role, as the call narrows it, does not allow."""
    lacking = role.lacking(permission)
    return f"which the role `{role.name}` lacks" if lacking in (None, role) else _lack_of_bound(lacking)


def _lack_of_bound(role: Role) -> str:
    return f"which the role `{role.name}` lacks, to which this call is narrowed"


def roles_of_options(options: Any) -> tuple[Role, ...]:
    """The role in `{ as: Role }`, if there is one. Raises AgentError when the options are something else."""
    if options is undefined or options is None:
        return ()
    if not isinstance(options, dict):
        raise AgentError(f"the options of `handle` are an object, not {inspect(options)}", help=EXAMPLE)
    unknown = next((name for name in options if name != "as"), None)
    if unknown is not None:
        raise AgentError(f"`handle` has no option `{unknown}`", help=EXAMPLE)
    return (require_role(options["as"]),) if "as" in options else ()


def require_role(value: Any) -> Role:
    """A role that a call is to be narrowed to. Raises AgentError for what is none: no call goes on without a bound."""
    if not isinstance(value, Role):
        raise AgentError(f"a call is narrowed to a role, and {inspect(value)} is none", help=EXAMPLE)
    return value


EXAMPLE = 'Write `handle("event", payload, { as: Reader })`, with the name of a role.'
