"""A conversation that becomes too long to one whose older part is a record: on its own, or when somebody asks for it.

An answer is never separated from what came of its actions. That a conversation is shortened is told before it is, so
that a run which is interrupted in between and goes on later does it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from typing import TYPE_CHECKING

from koi_lang.errors import ContextOverflowError, ProviderError
from koi_lang.events import CompactionRequested, ConversationCompacted
from koi_lang.llm.messages import Message
from koi_lang.llm.token_weight import CHARACTERS_PER_TOKEN
from koi_lang.llm.usage import tokens_of
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.playbook.context_window import MIN_RECORD, Window, window_of
from koi_lang.runtime.playbook.conversation import (
    AlreadyCompactedError,
    Compacted,
    Conversation,
    NothingToCompactError,
    Reason,
)
from koi_lang.runtime.playbook.placeholders import DataMessage, PlaybookMessage
from koi_lang.runtime.playbook.summaries import ConversationSummary, SummaryTask, plain, summed_up
from koi_lang.runtime.replay.location import current_place, enter, leaf_path

if TYPE_CHECKING:
    from koi_lang.runtime.playbook.call import PlaybookCall
    from koi_lang.runtime.ports import AgentPort

__all__ = ["AlreadyCompactedError", "Compacted", "NothingToCompactError", "request_compaction"]

COMPACTION = "compaction"
FIELDS = frozenset(each.name for each in fields(Compacted))
GIVE_LESS = "Give the agent a model that reads more, or have its actions give shorter results."


async def request_compaction(subject: Agent | PlaybookCall, instructions: str = "") -> Compacted:
    """Shorten the conversation of a call before its next request, or the memory of an idle agent at once.

    Args:
        subject: a call, or an agent; of several calls of an agent the one that began last is meant.
        instructions: what the record should pay attention to.

    Raises:
        NothingToCompactError: there is nothing to shorten, or the call ends before.
        AlreadyCompactedError: it has been shortened, and nothing was said since.
    """
    agent = subject if isinstance(subject, Agent) else subject.agent
    open_ones = agent.conversations if isinstance(subject, Agent) else [subject.conversation]
    if open_ones and open_ones[-1] is not None:
        done: Compacted = await open_ones[-1].wish(instructions)
        return done
    memory = Conversation.of(agent, agent.run.spending, agent.memory)
    shortened = await _compact(memory, "manual", instructions)
    if shortened is None:
        raise memory.refusal()
    memory.settle()
    return shortened


@contextmanager
def open_for_wishes(conversation: Conversation) -> Iterator[None]:
    """Let `request_compaction` find a conversation; wishes that are left at the end come to nothing."""
    known = conversation.agent.conversations
    known.append(conversation)
    try:
        yield
    finally:
        known.remove(conversation)
        conversation.answer(NothingToCompactError("the playbook ended before its conversation was shortened"))


async def fit(conversation: Conversation, system: str, playbook: str) -> None:
    """Shorten a conversation before a request if it is too long, or if that is wished for.

    Raises:
        SettingsError: the options of the `llm` block make no sense.
        ProviderError: there is no model.
    """
    conversation.system, conversation.playbook = system, playbook
    window, wish = _window(conversation), _next_wish(conversation)
    if wish is not None:
        conversation.answer(await _compact(conversation, "manual", wish) or conversation.refusal())
    elif _recorded_compaction(conversation.agent) is not None or (
        window.is_exceeded(conversation.tokens, system) and conversation.agent.run.recorded.recall_request() is None
    ):
        await _compact(conversation, "threshold")


async def make_room(conversation: Conversation, error: ProviderError) -> bool:
    """Shorten a conversation that its model could not read, once; gives whether to send the request again."""
    if not isinstance(error, ContextOverflowError) or conversation.tried or not _window(conversation).enabled:
        return False
    conversation.tried = True
    return await _compact(conversation, "overflow") is not None


def explain_error(conversation: Conversation, error: ProviderError) -> ProviderError:
    """The error that ends a call; for an overlong conversation with the attempts to shorten it."""
    if not isinstance(error, ContextOverflowError) or not conversation.tried:
        return error
    explained = error.with_message(f"{error.message}, and it could not be shortened enough")
    explained.help = GIVE_LESS
    return explained


def cut_of(messages: Sequence[Message], sizes: Sequence[int], keep: int) -> int:
    """How many messages from the beginning go so that about `keep` tokens, and at least one message, stay.

    An answer and the message after it, which tells what came of its actions, go or stay together; so do a playbook and
    what its call was given.
    """
    first, total = len(messages), 0
    while first > 0 and total + sizes[first - 1] <= keep:
        first -= 1
        total += sizes[first]
    if first == 0:
        return 0
    starts = [n for n in range(1, len(messages)) if not _follows(messages, n)]
    return next((n for n in starts if n >= first), starts[-1] if starts else 0)


def _follows(messages: Sequence[Message], n: int) -> bool:
    """Whether a message belongs to the one before it."""
    if isinstance(messages[n], PlaybookMessage):
        return isinstance(messages[n - 1], DataMessage)
    return messages[n].role == "user" and messages[n - 1].role == "assistant"


def _window(conversation: Conversation) -> Window:
    agent = conversation.agent
    models = agent.run.models
    return window_of(models.options(agent), models.of(agent))


async def _compact(conversation: Conversation, reason: Reason, wish: str = "") -> Compacted | None:
    """Put a record in place of all but the newest messages; None where there is nothing new to shorten."""
    window, sizes = _window(conversation).beside(tokens_of((), conversation.system)), conversation.sizes()
    keep = window.keep if reason == "threshold" else min(window.keep, sum(sizes) // 4)
    agent, most = conversation.agent, window.record * CHARACTERS_PER_TOKEN
    earlier = _recorded_compaction(agent)
    cut = cut_of(conversation.messages, sizes, keep) if earlier is None else len(sizes) - earlier.kept
    gone = conversation.messages[:cut]
    if all(isinstance(message, ConversationSummary) for message in gone) or (
        reason == "manual" and conversation.is_fresh
    ):
        return None
    if earlier is None and reason != "overflow" and sum(sizes[:cut]) < MIN_RECORD:
        return None  # the record would take as much
    subject = SummaryTask(agent, conversation.spending, gone, conversation.playbook, wish, most)
    with enter(COMPACTION):
        record, fallback = _recall_summary(subject) or await summed_up(subject)
        record = record if earlier is None or earlier.fallback else earlier.summary
        standing = conversation.stand_in(record, cut)
        before, kept = conversation.tokens(), conversation.messages[cut:]
        after = tokens_of((standing, *kept), conversation.system)
        done = Compacted(reason, record, len(kept), before, after, fallback)
        data = {name: value for name, value in asdict(done).items() if value or name != "fallback"}
        agent.run.events.emit(ConversationCompacted(lasting=True, **data), agent.name)
        conversation.replace_beginning(standing, cut)
    return done


def _recorded_compaction(agent: AgentPort) -> Compacted | None:
    """The result of shortening a conversation here in an earlier part of the run; None where it was not shortened.

    It counts whatever is known of the window of the model by now, such as after the choice of another one.
    """
    place, recorded = current_place(), agent.run.recorded
    path = () if place is None else (*place.path, place.next_label(COMPACTION))
    entry, following = recorded.recall(ConversationCompacted.type, path).entry, recorded.recall_request()
    if entry is None or (following is not None and following.n < entry.n):
        return None
    data = {name: entry.data[name] for name in FIELDS if name in entry.data}
    return Compacted(**data) if data.keys() >= FIELDS - {"fallback"} else None


def _recall_summary(subject: SummaryTask) -> tuple[str, str] | None:
    """A record that was made without a model in an earlier part of the run; no model is asked for it now."""
    before = subject.agent.run.recorded.recall(ConversationCompacted.type).entry
    fallback = before.data.get("fallback") if before is not None else None
    return (plain(subject), str(fallback)) if fallback else None


def _next_wish(conversation: Conversation) -> str | None:
    """The wish for a summary before this request, now or in an earlier part of the run; None for none."""
    run, path = conversation.agent.run, leaf_path(CompactionRequested.type)
    before = run.recorded.recall(CompactionRequested.type, path).entry
    wish: str | None = None
    if before is not None:
        wish = str(before.data.get("instructions", ""))
    elif conversation.wishes and run.recorded.accepts_input():
        wish = "\n".join(wish.instructions for wish in conversation.wishes)
    if wish is not None:
        run.events.emit(CompactionRequested(wish), conversation.agent.name, path=path)
    return wish
