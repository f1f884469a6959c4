"""Open calls of a server, with the caller that the server may ask something meanwhile."""

from __future__ import annotations

from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from koi_lang.runtime.replay.location import Path, current_path

if TYPE_CHECKING:
    from koi_lang.runtime.budget.limits import BudgetAccount
    from koi_lang.runtime.ports import AgentPort


@dataclass(frozen=True, slots=True, eq=False)
class Caller:
    """On whose behalf a server is asked for something.

    Attributes:
        spending: what a model that the server asks is paid from; None for that of the run.
    """

    agent: AgentPort
    spending: BudgetAccount | None = None
    context: Context = field(default_factory=copy_context)
    path: Path = field(default_factory=current_path)
