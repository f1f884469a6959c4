"""The conversation of one call with its model, message by message, and its size in tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from koi_lang.errors import AgentError
from koi_lang.llm.messages import Message
from koi_lang.llm.transcript import MessageLog, Messages, Transcript
from koi_lang.llm.usage import tokens_of
from koi_lang.runtime.budget.limits import BudgetAccount
from koi_lang.runtime.playbook.placeholders import ToldValues
from koi_lang.runtime.playbook.summaries import ConversationSummary

if TYPE_CHECKING:
    from koi_lang.runtime.ports import AgentPort

Reason = Literal["threshold", "overflow", "manual"]


class NothingToCompactError(AgentError):
    """A conversation is too short to be shortened.

    Attributes:
        code: the same in one word, for programs.
    """

    code = "nothing_to_compact"


class AlreadyCompactedError(NothingToCompactError):
    """A conversation has been shortened, and nothing was said since."""

    code = "already_compacted"


@dataclass(frozen=True, slots=True)
class Compacted:
    """The result of shortening a conversation.

    Attributes:
        summary: the record that stands for what is gone.
        kept: how many messages stay as they are.
        tokens_before: about what the next request would have taken, the system text included.
        fallback: why the record was made without a model; empty when a model made it.
    """

    reason: Reason
    summary: str
    kept: int
    tokens_before: int
    tokens_after: int
    fallback: str = ""


@dataclass(frozen=True, slots=True)
class CompactionRequest:
    """A request to shorten a conversation, with a place for its result."""

    instructions: str
    outcome: asyncio.Future[Compacted]


class Memory(Messages):
    """The messages that an agent remembers. It does not change: another one follows it.

    Attributes:
        told: which values they tell.
    """

    __slots__ = ("told",)

    def __init__(self, messages: Messages, told: ToldValues) -> None:
        super().__init__(messages.log, len(messages))
        self.told = told

    @staticmethod
    def of(messages: Iterable[Message]) -> Memory:
        """A memory of some messages."""
        known = Messages(MessageLog(messages))
        return Memory(known, ToldValues(known))

    def followed_by(self, messages: Messages) -> Memory:
        """The memory after a conversation that has only added messages to these."""
        return Memory(messages, ToldValues(messages[len(self) :], self.told))


@dataclass(slots=True, eq=False)
class Conversation:
    """The messages of one call; make it with `of`.

    Attributes:
        messages: others may add to them.
        memory: what the agent remembered when the call began.
        told: which values the messages tell.
        opening: the first message of the call; None where it has not begun.
        system: the system text of the request that comes next.
        playbook: what the agent works on; empty between calls.
        tried: whether it was shortened because its model could not read it, and has not been answered since.
        wishes: that it be shortened before the next request.
    """

    agent: AgentPort
    spending: BudgetAccount
    messages: Transcript
    memory: Memory
    told: ToldValues
    opening: Message | None = None
    system: str = ""
    playbook: str = ""
    tried: bool = False
    wishes: list[CompactionRequest] = field(default_factory=list)
    _counted: int = 0
    _covered: int = 0
    _has_only_grown: bool = True

    @staticmethod
    def of(agent: AgentPort, spending: BudgetAccount, remembered: Sequence[Message]) -> Conversation:
        """A conversation that continues from the memory of an agent and does not change it."""
        memory = remembered if isinstance(remembered, Memory) else Memory.of(remembered)
        return Conversation(agent, spending, Transcript(memory), memory, ToldValues(before=memory.told))

    def begin(self, opening: Message) -> Transcript:
        """Add the first message of a call; gives all of them."""
        self.opening = opening
        self.messages.append(self.opening)
        return self.messages

    def note(self, counted: int) -> None:
        """Note how many tokens the messages so far took, as the provider counted; 0 when it did not."""
        self.tried = False
        if counted:
            self._counted, self._covered = counted, len(self.messages)

    def sizes(self) -> list[int]:
        """About how many tokens each message takes."""
        return [tokens_of((message,)) for message in self.messages]

    def tokens(self) -> int:
        """About how many tokens the next request takes.

        That is what the provider counted last, and an estimate of what has followed. The count is believed down to
        half of an estimate: a server that silently drops what it cannot read counts only the rest.
        """
        estimated = tokens_of(self.messages.snapshot(), self.system)
        if not self._counted:
            return estimated
        return max(self._counted + tokens_of(self.messages[self._covered :]), estimated // 2)

    def stand_in(self, record: str, cut: int) -> ConversationSummary:
        """The message for a record of the first messages, with the opening of the call if that is among them."""
        is_there = self.opening is None or any(message is self.opening for message in self.messages[cut:])
        return ConversationSummary.of(record, None if is_there else self.opening, len(self.messages) - cut)

    @property
    def is_fresh(self) -> bool:
        """Whether nothing was said since it was shortened."""
        first = self.messages[0] if self.messages else None
        return isinstance(first, ConversationSummary) and first.kept == len(self.messages) - 1

    def replace_beginning(self, standing: ConversationSummary, cut: int) -> None:
        """Put a message in place of the first ones."""
        self.messages.replace_beginning(standing, cut)
        self.told = ToldValues(self.messages)
        self._counted = self._covered = 0
        self._has_only_grown = False

    def settle(self) -> None:
        """Add the messages to the memory of the agent, beside those added since the call began."""
        if self._has_only_grown and self.agent.memory is self.memory:
            self.agent.memory = self.memory.followed_by(self.messages.snapshot())
        else:
            self.agent.memory = Memory.of(self._merge_memory())

    def _merge_memory(self) -> list[Message]:
        """The memory of the agent: this conversation, and those that have ended meanwhile."""
        known, stays = set(map(id, self.memory)), set(map(id, self.messages))
        new = [message for message in self.messages if id(message) not in known]
        records = [
            ConversationSummary.of(message.record, kept=message.kept)
            for message in new
            if isinstance(message, ConversationSummary)
        ]
        gone = known - stays
        others = [message for message in self.agent.memory if id(message) not in gone]
        said = [message for message in new if not isinstance(message, ConversationSummary)]
        return [*records, *others, *said]

    # ------------------------------------------------------------ wishes

    def wish(self, instructions: str) -> asyncio.Future[Compacted]:
        """Have it shortened before the next request."""
        wish = CompactionRequest(instructions, asyncio.get_running_loop().create_future())
        self.wishes.append(wish)
        return wish.outcome

    def answer(self, outcome: Compacted | NothingToCompactError) -> None:
        """Send the outcome to the requester of a summary."""
        wishes, self.wishes = self.wishes, []
        for wish in wishes:
            if wish.outcome.done():
                continue
            if isinstance(outcome, Compacted):
                wish.outcome.set_result(outcome)
            else:
                wish.outcome.set_exception(outcome)

    def refusal(self) -> NothingToCompactError:
        """Why it cannot be shortened."""
        if self.messages and isinstance(self.messages[0], ConversationSummary):
            return AlreadyCompactedError(
                "the conversation has been shortened already, and hardly anything was said since"
            )
        return NothingToCompactError("the conversation is too short to be shortened")
