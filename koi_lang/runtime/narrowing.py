"""Narrowing: the roles that bound a call, and all that is called from it, beside the roles of its agents."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from koi_lang.errors import AgentError
from koi_lang.js.inspect_value import inspect
from koi_lang.runtime.agents.declarations import Role
from koi_lang.runtime.context import current
from koi_lang.runtime.guards.permissions import Permissions
from koi_lang.runtime.guards.policy import Access, Policy, function_access
from koi_lang.runtime.plan_mode import PLANNING

# A role, or what gives one for the moment, such as the phase of an agent.
RoleSource = Role | Callable[[], Role | None]
# The roles that the current code is bound by; tasks and timers that it starts have them from it.
_bounds: ContextVar[tuple[RoleSource, ...]] = ContextVar("koi_bounds", default=())


def bounds() -> tuple[Role, ...]:
    """The roles that a call is narrowed to, and the restrictions of plan mode for every call of the run."""
    run = current.get()
    own = _current_roles() if _bounds.get() else ()
    return (PLANNING, *own) if run is not None and run.planning.is_on else own


def _current_roles() -> tuple[Role, ...]:
    roles = (bound if isinstance(bound, Role) else bound() for bound in _bounds.get())
    return tuple(role for role in roles if role is not None)


def bounding_roles() -> list[str]:
    """The names of the roles that the current call is narrowed to, the outermost first."""
    return [role.name for role in _current_roles()]


@contextmanager
def narrowed_to(*roles: RoleSource) -> Iterator[None]:
    """Narrow the calls of the block to the rights that all roles share; existing bounds stay."""
    token = _bounds.set(tuple(dict.fromkeys((*_bounds.get(), *roles))))
    try:
        yield
    finally:
        _bounds.reset(token)


def require_bounds(permission: str | None, what: str) -> None:
    """Refuse code that exceeds the roles its call is narrowed to; the role of its agent does not bind code.

    Raises:
        PermissionDeniedError: names the first role that lacks the permission.
    """
    _policy().check(Access(what, needs=permission, bounds=bounds(), is_open=True))


def require_function(permission: str, what: str) -> None:
    """The same for a function of a skill that says what it needs; in plan mode it has to say that it only reads."""
    _policy().check(function_access(what, permission, bounds=bounds()))


def _policy() -> Policy:
    """That of the current run; outside of runs one without any rule."""
    run = current.get()
    return Policy(None, Permissions()) if run is None else run.policy


def require_role(value: Any) -> Role:
    """A role to narrow a call to. Raises AgentError for any other value: no call goes on without a bound."""
    if not isinstance(value, Role):
        raise AgentError(f"a call is narrowed to a role, and {inspect(value)} is none", help=EXAMPLE)
    return value


EXAMPLE = 'Write `handle("event", payload, { as: Reader })`, with the name of a role.'
