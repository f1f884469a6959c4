"""The types of hooks: plain records for the functions of extensions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from koi_lang.llm.messages import Request

TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class Allow:
    """Go on. A hook that returns None allows, too."""


@dataclass(frozen=True, slots=True)
class Deny:
    """Do not do it; the reason is for the model and the person."""

    reason: str


@dataclass(frozen=True, slots=True)
class Ask:
    """Let the person decide; the reason tells why they are asked. Nobody to ask means no."""

    reason: str


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Do this instead: all fields of the action, or another request.

    A hook must leave alone what it has rewritten before: it may be shown that again.
    """

    to: Any


@dataclass(frozen=True, slots=True)
class Replace:
    """Before: do nothing, this is the result. After: this is the result. For a model it is the text of its answer."""

    result: Any


Decision: TypeAlias = Allow | Deny | Ask | Rewrite | Replace
DECISIONS = (Allow, Deny, Ask, Rewrite, Replace)


@dataclass(frozen=True, slots=True)
class ActionCall:
    """An action that is about to be carried out.

    Attributes:
        agent: on whose behalf.
        role: name of its role.
        intent: name of the action; `member::event` for a delegation, however the model wrote it.
        fields: under their proper names; of a delegation `data`.
        by_model: whether a model asks for it; otherwise code does.
    """

    agent: str
    role: str
    intent: str
    fields: Mapping[str, Any]
    by_model: bool


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A request that is about to be sent to a model.

    Attributes:
        agent: on whose behalf.
        use: what the model is for: `default`, `small`, `judge`, `embedding`; that of the last answers with vectors, so
            a `Replace` leaves the choice to words.
        model: its name.
    """

    agent: str
    use: str
    model: str
    request: Request


Kind = Literal["before_action", "after_action", "before_model", "after_model"]


@dataclass(frozen=True, slots=True)
class Hook:
    """A function around actions, or around requests to models.

    Attributes:
        name: as messages call it, such as `koi-guard.only_listed`.
        function: is given the call, and after it also the result.
        timeout_s: most time an async function may take; a plain one is not interrupted.
    """

    name: str
    kind: Kind
    function: Callable[..., Any]
    timeout_s: float = TIMEOUT_S
