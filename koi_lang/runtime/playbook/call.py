"""A call of a playbook handler: what it is about, and what has come of it so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from koi_lang.interpolation import Rendered
from koi_lang.js.undefined import undefined
from koi_lang.llm.messages import ActionResult, Request
from koi_lang.llm.tools import ToolOffer
from koi_lang.runtime.budget.limits import BudgetAccount
from koi_lang.runtime.playbook.loop_guard import Failures, RepetitionGuard
from koi_lang.runtime.playbook.placeholders import NamedPlaybook
from koi_lang.runtime.playbook.references import ActionScope
from koi_lang.runtime.playbook.turn import Turn

if TYPE_CHECKING:
    from koi_lang.runtime.playbook.conversation import Conversation
    from koi_lang.runtime.ports import AgentPort, CallPort


@dataclass(slots=True)
class PlaybookCall:
    """One call of a playbook handler.

    Attributes:
        parent: the call that delegated this one.
        playbook: as rendered last.
        instructions: the same with names in place of values.
        tools: what MCP servers offer it.
        offer: what its model was offered as tools last; None where that was nothing.
        conversation: what its model is told; None before it is told anything.
        turns: how many answers its model has begun.
        results: what was carried out, in order of completion.
        ended: whether `return` was carried out; `value` is its result.
        repeated: how many actions were carried out in loops and branches since the last one that the model asked for.
    """

    agent: AgentPort
    event: str
    args: Any
    names: ActionScope
    spending: BudgetAccount
    circles: RepetitionGuard
    failures: Failures
    parent: CallPort | None = None
    playbook: Rendered = field(default_factory=Rendered)
    instructions: NamedPlaybook = field(default_factory=NamedPlaybook)
    tools: Mapping[str, Any] = field(default_factory=dict)
    offer: ToolOffer | None = None
    conversation: Conversation | None = None
    turns: int = 0
    results: list[ActionResult] = field(default_factory=list)
    ended: bool = False
    value: Any = undefined
    repeated: int = 0

    def begin_turn(self, request: Request) -> Turn:
        """The next turn, of which nothing has arrived yet."""
        self.turns += 1
        return Turn(self.turns, request)

    def note(self, intent: str, fields: Mapping[str, Any], value: Any, *, ok: bool = True) -> None:
        """Keep what came of an action; where it failed, the value is what the model is told of that."""
        self.results.append(ActionResult(intent, dict(fields), ok, value))
