"""The messages of a conversation with the calls of tools in it, each beside its result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from koi_lang.llm.messages import Message, merge_turns
from koi_lang.llm.tools import ToolCall, ToolResult

IMAGES = "Images in these results:"


@dataclass(frozen=True, slots=True)
class Exchange:
    """An answer that called tools, and the results.

    Attributes:
        calls: with the ids by which results name them; they are ours, whatever the model called its calls.
        results: one for each call.
        rest: what the person says beside them; None where that is nothing.
        thoughts: the blocks of what the model thought before; None where that is not known.
        text: what the model said beside its calls.
    """

    calls: tuple[tuple[str, ToolCall], ...]
    results: tuple[tuple[str, ToolResult], ...]
    rest: Message | None
    thoughts: tuple[str, ...] | None
    text: str


def exchanges(messages: Sequence[Message], model: str) -> Iterator[Message | Exchange]:
    """The messages in order, neighbours of one role joined; incomplete exchanges become text.

    Args:
        model: to which they are told; what others thought is left out.
    """
    plain: list[Message] = []
    number = 0
    while number < len(messages):
        answer, reply = messages[number], messages[number + 1] if number + 1 < len(messages) else None
        if reply is None or not answer.calls or len(reply.results) < len(answer.calls):
            plain.append(_without_calls(answer))
            number += 1
            continue
        yield from merge_turns(plain)
        plain, after = [], number + 2
        while after < len(messages) and messages[after].role == "user":
            after += 1
        yield _exchange(answer, reply, messages[number + 2 : after], number, model)
        number = after
    yield from merge_turns(plain)


def with_images_apart(exchange: Exchange) -> Message | None:
    """The message of the person beside the results of an exchange, with the images of text results."""
    images = tuple(image for _, result in exchange.results for image in result.images)
    shown = (Message("user", IMAGES, images),) if images else ()
    merged = merge_turns((*shown, *(() if exchange.rest is None else (exchange.rest,))))
    return merged[0] if merged else None


def _without_calls(message: Message) -> Message:
    """A message as text, in the words for models that call tools."""
    if not message.results:
        return message
    return Message(message.role, "\n".join(result.text for result in message.results), message.images)


def _exchange(answer: Message, reply: Message, more: Sequence[Message], number: int, model: str) -> Exchange:
    ids = [f"c{number:05}{place:03}" for place in range(len(answer.calls))]  # Mistral takes nine letters and digits
    beside = reply.results[len(ids) :]
    rest = merge_turns((*(Message("user", result.text) for result in beside), *more))
    return Exchange(
        tuple(zip(ids, answer.calls, strict=True)),
        tuple((id, _as_shown(result, reply)) for id, result in zip(ids, reply.results, strict=False)),
        rest[0] if rest else None,
        own_thoughts(answer, model),
        answer.thoughts.text if answer.thoughts is not None else "",
    )


def _as_shown(result: ToolResult, reply: Message) -> ToolResult:
    """A result with as many of its images as the model is shown."""
    return replace(result, images=tuple(image for image in result.images if image in reply.images))


def own_thoughts(answer: Message, model: str) -> tuple[str, ...] | None:
    """The thoughts before a model's own answer, a block each; None for unknown ones, or another model's."""
    thoughts = answer.thoughts
    return thoughts.blocks if thoughts is not None and thoughts.model == model else None
