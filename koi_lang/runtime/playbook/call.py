"""A call of a playbook handler: its subject, and its state so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from koi_lang.js.undefined import undefined
from koi_lang.llm.messages import ActionResult, Request
from koi_lang.llm.models import card_of
from koi_lang.runtime.actions.client_tools import ContextEntry, client_offer
from koi_lang.runtime.actions.lookup import reads_outputs
from koi_lang.runtime.actions.registered import FormError
from koi_lang.runtime.agents.call_options import CallOptions, call_options
from koi_lang.runtime.agents.result_types import ResultType
from koi_lang.runtime.budget.limits import BudgetAccount, LimitReachedError
from koi_lang.runtime.playbook.delegation import reachable
from koi_lang.runtime.playbook.loop_guard import Failures, RepetitionGuard
from koi_lang.runtime.playbook.placeholders import NamedPlaybook
from koi_lang.runtime.playbook.prompting import (
    EVERYTHING,
    NEEDS_RESULT,
    Means,
    Section,
    means_of,
    section_of_result,
)
from koi_lang.runtime.playbook.references import ActionScope
from koi_lang.runtime.playbook.result_keys import Shapes, result_schema, shapes_of
from koi_lang.runtime.playbook.tool_offer import Offer, offer_of
from koi_lang.runtime.playbook.turn import Turn
from koi_lang.runtime.replay.digest_forms import FIRST_WITH_NULL
from koi_lang.runtime.schema import Schema, action_form
from koi_lang.system.interpolation import Rendered

if TYPE_CHECKING:
    from koi_lang.runtime.playbook.conversation import Conversation
    from koi_lang.runtime.ports import AgentPort, CallPort

# Results that do not fit their type end a call.
MAX_MISFITS = 3
ADVICE = "Say in the playbook what each field holds, or use another model with `-m`."


@dataclass(slots=True)
class PlaybookCall:
    """One call of a playbook handler.

    Attributes:
        parent: the call that delegated this one.
        playbook: as rendered last.
        instructions: the same with names in place of values; set by `instruct`.
        means: how much its model is told beside single actions.
        tools: what MCP servers offer it.
        guidance: what the files of the project tell it.
        page: what the client tells of its page, as data; for the playbook that a call of the client begins.
        options: those of the call, such as the type of its result.
        conversation: what its model is told; None before it is told anything.
        turns: how many answers its model has begun.
        results: what was carried out, in order of completion.
        ended: whether `return` was carried out; `value` is its result.
        repeated: how many actions were carried out in loops and branches since the last one that the model asked for.
        misfits: how many results were not of the declared type.
        unanswered: how many questions nobody could answer.
        is_direct: whether its model was last asked for the result alone.
        wrong_answers: how many answers to that were not of the declared type.
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
    means: Means = EVERYTHING
    tools: Mapping[str, Any] = field(default_factory=dict)
    guidance: Mapping[str, Any] = field(default_factory=dict)
    page: Sequence[ContextEntry] = ()
    options: CallOptions = field(default_factory=call_options.get)
    conversation: Conversation | None = None
    turns: int = 0
    results: list[ActionResult] = field(default_factory=list)
    ended: bool = False
    value: Any = undefined
    repeated: int = 0
    misfits: int = 0
    unanswered: int = 0
    is_direct: bool = False
    wrong_answers: int = 0
    _offer: Offer | None = None
    _plan: str = ""
    _result_section: tuple[Schema, Means, list[Section]] | None = None

    def offered_tools(self) -> Offer:
        """The tools of its agent, computed again when members, servers or the plan have changed."""
        run = self.agent.run
        has_outputs = reads_outputs(self.agent, is_plain=self.means.is_plain)
        plan = run.planning.section()
        offer = self._offer
        means = self.means
        is_known = offer is not None and (offer.of, offer.has_outputs, offer.means) == (self.tools, has_outputs, means)
        if self._offer is None or not is_known or self._plan != plan:
            self._plan = plan
            self._offer = offer_of(
                self.agent,
                is_delegate=self.parent is not None,
                tools=self.tools,
                result=self.result_schema,
                means=means,
                has_outputs=has_outputs,
            )
        return self._offer

    @property
    def material(self) -> Mapping[str, Any]:
        """All outside texts that its model gets before the playbook."""
        return {"tools": self.tools, "guidance": self.guidance} if self.guidance else self.tools

    @property
    def is_held_back(self) -> bool:
        """Whether nobody sees its texts while they are written: a guard looks at them first, or it is one."""
        about = self.agent.about
        kinds = ("output", "action")
        return self.event in about.guards or any(about.guards_of(self.event, kind, is_own=False) for kind in kinds)

    @property
    def result_type(self) -> ResultType | None:
        """The type of its result: that of the call's options, or the declared one."""
        if self.options.result is not None:
            return self.options.result
        handler = self.agent.about.find(self.event)
        return None if handler is None else handler.result

    @property
    def result_schema(self) -> Schema:
        """The schema of its result: the declared type, or the one that the playbook describes; empty if unknown."""
        return result_schema(self.playbook) if self.result_type is None else self.result_type.schema

    @property
    def told_result(self) -> Schema:
        """The schema of the result that its model is told; a text where only the words of a playbook ask for one."""
        is_text = self.means.is_plain and NEEDS_RESULT.search(self.playbook.text) is not None
        return self.result_schema or ({"type": "string"} if is_text else {})

    def result_section(self) -> list[Section]:
        """What its model is told of the result, made once for all requests."""
        result = self.told_result
        known = self._result_section
        if known is None or known[0] != result or known[1] != self.means:
            known = self._result_section = (result, self.means, section_of_result(result, self.means))
        return known[2]

    def instruct(self, instructions: NamedPlaybook) -> None:
        """Take the playbook as rendered now, and decide how much its model is told beside single actions."""
        agent, self.instructions = self.agent, instructions
        card = card_of(agent.run.models.of(agent).model)
        is_known = (card.context_tokens, card.output_tokens, card.prices_usd) != (None, None, None) or not card.sampling
        members = [member.key for member in reachable(agent)]
        has_others = any((agent.offered_skills, agent.about.mcps(), agent.state, members, client_offer.get().actions))
        self.means = means_of(instructions.text, is_known=is_known, has_others=has_others, members=members)

    @property
    def result_shapes(self) -> Shapes:
        """The keys of every object that it may return."""
        declared = () if self.result_type is None else self.result_type.shapes
        return (*declared, *shapes_of(self.playbook))

    def take_result(self, data: Any) -> Any:
        """The result that a `return` gives: an empty object where it gives none and the type allows one.

        Args:
            data: `undefined` where it gives none.

        Raises:
            FormError: a result is not of the declared type; for the model.
            LimitReachedError: it is the third one.
        """
        given = None if data is undefined else data
        type = self.result_type
        wrong = [] if type is None else type.problems(given)
        if not wrong:
            is_earlier = self.names.form < FIRST_WITH_NULL
            may_be_empty = is_earlier or (data is undefined and (type is None or not type.problems({})))
            result = {} if given is None and may_be_empty else given
            return result if type is None else type.settle(result)
        self.misfits += 1
        if self.misfits == MAX_MISFITS:
            message = f"gave up after {MAX_MISFITS} results that are not of its type; the last: {wrong[0]}"
            raise LimitReachedError("result", f"`{self.agent.name}.{self.event}`", message, ADVICE)
        form = action_form("return", {"properties": {"data": self.result_schema}, "required": ["data"]})
        raise FormError("; ".join(wrong), help=f"Write {form}.")

    def begin_turn(self, request: Request) -> Turn:
        """The next turn, of which nothing has arrived yet."""
        self.turns += 1
        return Turn(self.turns, request)

    def note(self, intent: str, fields: Mapping[str, Any], value: Any, *, ok: bool = True) -> None:
        """Store the outcome of an action; for a failed one, the value is the message to the model."""
        self.results.append(ActionResult(intent, dict(fields), ok, value))
