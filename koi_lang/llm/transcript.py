"""The messages of a conversation that grows at its end: one list, of which each request sees a beginning.

A request that kept a copy of all messages would make a call of n turns take memory, and time, in the order of n².
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Generic, TypeVar, overload

from koi_lang.llm.messages import Message
from koi_lang.llm.token_weight import weight

T = TypeVar("T")


class Beginning(Sequence[T], Generic[T]):
    """A view of the first items of a list. Nothing is copied: the list may only grow at its end."""

    __slots__ = ("_items", "_length")

    def __init__(self, items: list[T], length: int | None = None) -> None:
        self._items, self._length = items, len(items) if length is None else length

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T]:
        return islice(self._items, self._length)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        if isinstance(index, slice):
            start, stop, step = index.indices(self._length)
            return tuple(self._items[start:stop]) if step == 1 else tuple(self._items[: self._length][index])
        return self._items[range(self._length)[index]]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Beginning) and self._items is other._items:
            return self._length == other._length
        return tuple(self) == tuple(other) if isinstance(other, (Beginning, tuple)) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


class MessageLog:
    """Messages in order, with how much the first of them are together; it only grows."""

    __slots__ = ("__weakref__", "images", "items", "weights")

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self.items: list[Message] = []
        self.weights, self.images = [0.0], [0]
        for message in messages:
            self.append(message)

    def append(self, message: Message) -> None:
        """Add a message."""
        self.items.append(message)
        self.weights.append(self.weights[-1] + weight(message.text))
        self.images.append(self.images[-1] + len(message.images))

    def beginning(self, count: int) -> MessageLog:
        """A log of the first messages, which others may add to; nothing is weighed anew."""
        log = MessageLog()
        log.items = self.items[:count]
        log.weights, log.images = self.weights[: count + 1], self.images[: count + 1]
        return log


class Messages(Beginning[Message]):
    """The messages of a conversation up to some point, as a request has them.

    Attributes:
        log: the same for all requests of a conversation that only grew between them.
        weight: of their texts, in tokens.
        images: how many they show.
    """

    __slots__ = ("images", "log", "weight")

    def __init__(self, log: MessageLog, length: int | None = None) -> None:
        super().__init__(log.items, length)
        self.log = log
        self.weight = log.weights[len(self)]
        self.images = log.images[len(self)]

    def then(self, message: Message) -> Messages:
        """These messages and another one, in the same log as long as nothing else follows them there."""
        log = self.log if len(self.log.items) == len(self) else self.log.beginning(len(self))
        log.append(message)
        return Messages(log)


class Transcript(Sequence[Message]):
    """The messages of a conversation. It grows at its end; a summary may replace its beginning.

    Args:
        messages: what it goes on from. `Messages` are not copied, and stay as they are.
    """

    __slots__ = ("_messages",)

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._messages = messages if isinstance(messages, Messages) else Messages(MessageLog(messages))

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[Message]:
        return iter(self._messages)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Message]: ...
    def __getitem__(self, index: Any) -> Any:
        return self._messages[index]

    def append(self, message: Message) -> None:
        """Add a message."""
        self._messages = self._messages.then(message)

    def extend(self, messages: Iterable[Message]) -> None:
        """Add some messages."""
        for message in messages:
            self.append(message)

    def replace_beginning(self, message: Message, count: int) -> None:
        """Put a message in place of the first ones; snapshots of earlier requests stay unchanged."""
        self._messages = Messages(MessageLog([message, *self._messages[count:]]))

    def snapshot(self) -> Messages:
        """The messages so far."""
        return self._messages
