"""Additions of extensions to one run: actions, hooks, providers of models, and a journaled state."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from koi_lang.errors import ExtensionError
from koi_lang.events import ExtensionStateChanged
from koi_lang.js.tagged_json import is_plain

if TYPE_CHECKING:
    from koi_lang.runtime.actions.registered import ActionKind
    from koi_lang.runtime.events import Events
    from koi_lang.runtime.hooks.types import Hook
    from koi_lang.runtime.replay.recorded_run import RecordedRun


class ExtensionState(MutableMapping[str, Any]):
    """The state of an extension during a run: JSON values by name, restored when the run goes on.

    A value is changed by setting it; a list or object that was taken out is a copy. What is set before the run has
    begun is where the state starts.

    Args:
        extension: whose state it is.
    """

    def __init__(self, extension: str) -> None:
        self.extension = extension
        self._values: dict[str, Any] = {}
        self._events: Events | None = None
        self._changes = 0

    def begin(self, events: Events, recorded: RecordedRun) -> None:
        """Report changes as events from now on; on resume, restore the last values first."""
        self._events = events
        for entry in recorded.entries_of(ExtensionStateChanged.type):
            if entry.data.get("extension") == self.extension:
                self._values, self._changes = dict(entry.data["state"]), entry.data["change"]

    def __getitem__(self, name: str) -> Any:
        return _copy(self._values[name])

    def __setitem__(self, name: str, value: Any) -> None:
        if not isinstance(name, str) or not is_plain(value):
            message = f"the extension `{self.extension}` keeps `{name}: {value!r}`, which is no JSON value"
            raise ExtensionError(message, help="Keep texts, numbers, true, false, null, lists and objects of these.")
        self._values[name] = _copy(value)
        self._tell()

    def __delitem__(self, name: str) -> None:
        del self._values[name]
        self._tell()

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._values))

    def __len__(self) -> int:
        return len(self._values)

    def _tell(self) -> None:
        if self._events is None:
            return
        self._changes += 1
        # Changes are counted for the whole run: a hook whose decision is known is not called again, so that to count
        # them where they happen would give a new change the path of an old one.
        path = (f"extension {self.extension}", f"state#{self._changes}")
        self._events.emit(ExtensionStateChanged(self.extension, self._changes, _copy(self._values)), path=path)


def _copy(value: Any) -> Any:
    return json.loads(json.dumps(value))


@dataclass(frozen=True, slots=True)
class Additions:
    """The additions of extensions to a run.

    Attributes:
        actions: by name.
        providers: rows for the table of providers, or functions that make a model, by name.
        states: of all extensions.
    """

    actions: Mapping[str, ActionKind] = field(default_factory=dict)
    hooks: Sequence[Hook] = ()
    providers: Mapping[str, Any] = field(default_factory=dict)
    states: Sequence[ExtensionState] = ()


NOTHING_ADDED = Additions()
