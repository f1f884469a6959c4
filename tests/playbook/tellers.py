"""Models with a window, a program that outgrows it, and what comes of the two."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from koi_lang.errors import ContextOverflowError, ProviderError
from koi_lang.events import Event
from koi_lang.llm.messages import Adapter, Delta, Message, Request, Usage, stream_text
from koi_lang.llm.usage import tokens_of
from koi_lang.runtime.journal.entries import entry_in, entry_of, line_of
from koi_lang.runtime.journal.history import History, lasting_entries
from koi_lang.runtime.playbook.summaries import ConversationSummary
from tests.playbook.playing import Played, Player, act

LONG = 1_000_000
NEEDLES = {n: f"NEEDLE {n} opens door {n * 7919 % 10007}" for n in range(3, 1000, 61)}


class Teller:
    """A model that answers with what a function says to a request, and counts its tokens as estimates do.

    Args:
        answer: gives a text, or a value that becomes JSON; may raise ProviderError.
        window: most tokens it reads.
        counts: whether it tells what it counts.
        usage: what it tells instead of that.
    """

    def __init__(
        self,
        answer: Callable[[Request], Any],
        *,
        window: int = LONG,
        counts: bool = True,
        usage: Usage | None = None,
        name: str = "teller",
    ) -> None:
        self.provider = self.model = name
        self._answer, self._window, self._counts, self._usage = answer, window, counts, usage
        self.requests: list[Request] = []

    async def __call__(self, request: Request) -> AsyncIterator[Delta]:
        """Stream the answer. Raises ProviderError."""
        self.requests.append(request)
        tokens = tokens_of(request.messages, request.system)
        if tokens > self._window:
            raise ContextOverflowError(f"the conversation is too long for `{self.model}`", status=400)
        said = self._answer(request)
        text = said if isinstance(said, str) else json.dumps(said)
        usage = Usage(tokens, len(text) // 4) if self._counts and self._usage is None else self._usage
        async for delta in stream_text(text, size=4000, usage=usage):
            yield delta

    async def aclose(self) -> None:
        """Nothing is held."""


def told(request: Request) -> str:
    """All that a model is told in a conversation."""
    return "\n".join(message.text for message in request.messages)


def in_turn(*answers: Any) -> Callable[[Request], Any]:
    """Says one thing after the other; an exception is raised."""
    left = iter(answers)

    def say(request: Request) -> Any:
        answer = next(left, None)
        if answer is None:
            raise ProviderError("no more answers")
        if isinstance(answer, Exception):
            raise answer
        return answer

    return say


def copier(word: str) -> Callable[[Request], str]:
    """A summary that copies the lines with a word from all that is given, each once, as far as it may be long."""

    def copy(request: Request) -> str:
        most = int(request.system.partition("at most ")[2].partition(" ")[0])
        lines = [line for line in told(request).splitlines() if word in line]
        return "\n".join(dict.fromkeys(lines))[:most] or "nothing of note"

    return copy


def by_name(**models: Adapter) -> Callable[[Mapping[str, Any]], Adapter]:
    """The model that an `llm` block names."""
    return lambda block: models[str(block["model"])]


def past_of(events: Sequence[Event]) -> History:
    """What a run knows that goes on after these events of an earlier part of it."""
    lines = [line_of(entry_of(event, n), str) for n, event in enumerate(events, 1)]
    return History(lasting_entries(entry for line in lines if (entry := entry_in(line))), "resume")


# ---------------------------------------------------------------- long programs


def program(options: str = "context_tokens: 16000", more: str = "") -> str:
    """An agent with a small model and a skill that tells long facts, one of them short."""
    return (
        "role Worker { can execute }\n"
        "skill Facts {\n"
        f"  const needles = {json.dumps({str(n): text for n, text in NEEDLES.items()})}\n"
        '  export async function tell(n: number) { return needles[String(n)] || `${n} ${"straw ".repeat(100)}` }\n'
        '  export async function much(n: number) { return "much ".repeat(n) }\n'
        "}\n"
        "agent Main : Worker {\n"
        f'  llm default = {{ model: "main", {options} }}\n'
        '  llm small = { model: "small" }\n'
        "  uses skill Facts\n"
        '  on go(args) { playbook "Collect the needles." budget { turns: 3000 } }\n'
        '  on twice() { return await Promise.all([this.handle("go", { n: 1 }), this.handle("go", { n: 2 })]) }\n'
        f"{more}}}\n"
    )


def tell(n: int) -> Any:
    """Ask for a fact."""
    return act("call_skill", skill="Facts", function="tell", input={"n": n})


def much(n: int) -> Any:
    """Ask for a result of five characters times n, of which a model is told at most 6000."""
    return act("call_skill", skill="Facts", function="much", input={"n": n})


def plenty(count: int) -> list[Any]:
    """So many different actions with long results, some 1,300 tokens a turn."""
    return [much(1000 + n) for n in range(count)]


def compacted(played: Played) -> list[dict[str, Any]]:
    """What events tell about conversations that were shortened."""
    return [event.fields for event in played.events if event.type == "compacted"]


def tokens_before_summary(played: Played) -> int:
    """What the answers before the first summary took."""
    known = [event.fields for event in played.events if event.type == "model_answered"]
    before = known[: [data["model"] for data in known].index("small")]
    return sum(data["tokens"]["input"] + data["tokens"]["output"] for data in before)


def records(request: Request) -> list[str]:
    """The records in a conversation."""
    return [message.record for message in request.messages if isinstance(message, ConversationSummary)]


def orphans(messages: Sequence[Message]) -> list[int]:
    """Where a message that tells results does not follow an answer."""
    results = [n for n, message in enumerate(messages) if message.text.startswith(("✅", "❌"))]
    return [n for n in results if n == 0 or messages[n - 1].role != "assistant"]


def outgrow(play: Player, main: Teller, small: Adapter | None = None, options: str = "", **more: Any) -> Played:
    """What the program above does with these models; its window has 8,000 tokens unless something else is said."""
    small = small or Teller(copier("much"), name="small")
    return play(program(options or "context_tokens: 8000"), main, connect=by_name(main=main, small=small), **more)
