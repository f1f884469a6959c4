"""The environment of values in a run: their view of the world is recorded, and repeated on resume."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from koi_lang.events import TimerFired
from koi_lang.js.console_state import ConsoleState
from koi_lang.js.environment import Firing, ForeignCall, OutputPort
from koi_lang.js.tagged_json import MAX_DEPTH, NotEncodableError, decode, encode, is_value_type
from koi_lang.js.undefined import Value
from koi_lang.runtime.events import Events
from koi_lang.runtime.replay.calls import Effect, never
from koi_lang.runtime.replay.location import Path, branch, leaf_path
from koi_lang.runtime.replay.module_state import ModuleState, replace_content, state_key
from koi_lang.runtime.replay.ordering import FIRED
from koi_lang.runtime.replay.recorded_run import RecordedRun

if TYPE_CHECKING:
    from koi_lang.runtime.replay.ports import Recorder

T = TypeVar("T")
STATELESS = (FunctionType, BuiltinFunctionType, MethodType, ModuleType, type)


class InteropCall:
    """A call of Python from a program."""

    def __init__(self, call: ForeignCall) -> None:
        function, args = call.function, call.args
        owner = None if isinstance(function, type) else getattr(function, "__self__", None)
        self._args = {**{str(n): value for n, value in enumerate(args)}, **call.named}
        self._before = {name: _to_comparable(value) for name, value in self._args.items()}
        self._count = len(args)
        self._state = ModuleState(function)
        self._objects = list({id(found): found for found in _objects_in([owner, *self._args.values()])}.values())

    @property
    def objects(self) -> list[Value]:
        """The stateful objects it works on: Python objects, and the globals of their modules."""
        return [*self._objects, *filter(None, [self._state.key])]

    @property
    def comparable_arguments(self) -> dict[str, Any]:
        """The arguments in a form comparable with the recorded ones."""
        shown = list(self._before.items())
        named = dict(shown[self._count :])
        return {"args": [value for _, value in shown[: self._count]], **({"named": named} if named else {})}

    def changes(self) -> dict[str, Any]:
        """The changes of its objects, by position or name; `opaque` for changes that cannot be repeated."""
        after = {name: _to_comparable(value) for name, value in self._args.items()}
        changed = {name: value for name, value in after.items() if value != self._before[name]}
        if any(not hasattr(self._args[name], "clear") or isinstance(changed[name], str) for name in changed):
            return {"opaque": True}
        return {**({"changed": changed} if changed else {}), **self._state.changes()}

    def restore(self, data: Mapping[str, Any]) -> list[Value]:
        """Give them the content that they had then; gives the objects that lack the call nevertheless."""
        for name, content in data.get("changed", {}).items():
            replace_content(self._args.get(name), decode(content))
        return self._objects if self._state.restore(data) else self.objects


def _to_comparable(value: Value) -> Value:
    """An argument in a form comparable with the recorded one."""
    try:
        return encode(value)
    except NotEncodableError:
        return f"<{type(value).__name__}>"


def _objects_in(values: Iterable[Value], depth: int = 0) -> Iterator[Value]:
    """The Python objects in some values that may have a state of their own; a value may hold itself."""
    for value in values:
        kind = type(value)
        if kind in (list, tuple, set, frozenset, dict):
            inside = value.values() if kind is dict else value
            yield from _objects_in(inside, depth + 1) if depth < MAX_DEPTH else ()
        elif not (is_value_type(kind) or isinstance(value, STATELESS) or kind.__module__.startswith("koi_lang.")):
            yield value


class RunEnvironment:
    """The world as values of one run see it.

    Args:
        output: the host of the run.
        recorder: its way to the outside.
        events: what is told of it.
        recorded: what is known of it beforehand.
    """

    def __init__(self, output: OutputPort, recorder: Recorder, events: Events, recorded: RecordedRun) -> None:
        self.print, self.log = output.print, output.log
        self.console = ConsoleState()
        self.observe, self.random_bytes = recorder.observe, recorder.random_bytes
        self.fork_context = branch
        self._recorder = recorder
        self._events = events
        self._recorded = recorded

    async def perform(
        self, name: str, given: Mapping[str, Any], work: Callable[[], Awaitable[T]], *, safe: bool, unseen: Any = None
    ) -> T:
        """Do something to the world once. Raises as the work does, or did."""
        effect = Effect(name, given, safe=safe, goes_out=True, unseen=unseen)
        result: T = await self._recorder.perform_as_step(effect, work)
        return result

    def call_python(self, call: ForeignCall) -> Any:
        """Make a call once, where calls are kept. Raises as it does, or did."""
        if not self._recorder.is_kept:
            return call.make()
        interop = InteropCall(call)
        effect = Effect(call.name, interop.comparable_arguments, safe=call.safe, lasting=False, call=interop)
        perform = self._recorder.perform_as_step if call.must_wait else self._recorder.perform_as_step_nowait
        return perform(effect, call.make)

    def read_python(self, owner: Any, name: str, value: Any) -> Any:
        """The value of an attribute after the missed calls have been made."""
        key = state_key(owner) if isinstance(owner, ModuleType) else owner
        if key is None or not self._recorder.is_kept:
            return value
        shown = owner.__name__.rpartition("/")[2].removesuffix(".py") if key is not owner else type(owner).__name__
        return self._recorder.look_at(key, f"{shown}.{name}", lambda: getattr(owner, name))

    def next_firing(self) -> Firing:
        """The next time that a timer fires, by the place that is counted for it."""
        return RecordedFiring(leaf_path(TimerFired.type), self._recorder, self._events, self._recorded)


@dataclass(frozen=True, slots=True)
class RecordedFiring:
    """A time that a timer of a run fires; times that were recorded keep their order among all that is recorded."""

    path: Path
    recorder: Recorder
    events: Events
    recorded: RecordedRun

    def skips_clock(self) -> bool:
        """Whether it has fired before, or never will."""
        known = self.recorded.recall(TimerFired.type, self.path)
        return known.entry is not None or known.must_not_begin

    def turn(self) -> Awaitable[None]:
        """Its slot in the order of timed events, behind everything that is ready."""
        if self.recorded.recall(TimerFired.type, self.path).must_not_begin:
            return never()
        return self.recorder.slots.take_slot(FIRED, self.path)

    def record(self) -> None:
        """Tell that it fires, where that is kept."""
        if self.recorder.is_kept:
            self.events.emit(TimerFired(), path=self.path)
