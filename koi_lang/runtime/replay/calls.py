"""Effects of code outside of its program, by way of its run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from koi_lang.js.environment import require_execution


@dataclass(frozen=True, slots=True)
class Effect:
    """Something whose outcome comes from outside of the program.

    Attributes:
        name: what it is, such as `shell` or `fetch`.
        given: what it is given, JSON values.
        agent: on whose behalf.
        safe: whether doing it twice does no harm.
        goes_out: whether it leaves the program nevertheless, so that it is not done where that is only inspected.
        reads_files: whether it only looks up what files tell agents.
        slow: whether its beginning is told in any case, to whoever watches the run.
        lasting: whether the disk is waited for before it begins.
        unseen: what else it is given, which is not written down.
        told: what is told of its outcome, where that is not the outcome itself.
        call: where it is a call of Python, what that has of the program; such a call may change what it is given.
    """

    name: str
    given: Mapping[str, Any] = field(default_factory=dict)
    agent: str = ""
    safe: bool = False
    goes_out: bool = False
    reads_files: bool = False
    slow: bool = False
    lasting: bool = True
    unseen: Any = None
    told: Callable[[Any], Any] | None = None
    call: PythonCall | None = None

    def require_execution(self) -> None:
        """Raise KoiError where the program is only inspected, and this would be done outside of it."""
        if self.goes_out or not self.safe:
            require_execution(f"`{self.name}`")

    def as_told(self, outcome: Any) -> Any:
        """The outcome in the form for the journal."""
        return outcome if self.told is None else self.told(outcome)

    def event_fields(self) -> dict[str, Any]:
        """The fields of its start event."""
        careful = {} if self.safe else {"unsafe": True, "lasting": self.lasting}
        return {"intent": self.name, "fields": dict(self.given), **careful}


class PythonCall(Protocol):
    """A call of Python from a program."""

    @property
    def objects(self) -> Sequence[Any]:
        """Its receiver and arguments whose state may change."""

    def changes(self) -> dict[str, Any]:
        """The fields by which a journal keeps how lists and objects were changed that the call was given."""

    def restore(self, data: Mapping[str, Any]) -> Sequence[Any]:
        """Change them as some fields say, where the call is not made; gives those that lack it nevertheless."""


async def never() -> None:
    """Wait until the code around is ended."""
    await asyncio.get_running_loop().create_future()
