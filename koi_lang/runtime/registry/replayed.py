"""The registry of a run: recorded reads and writes, so that a resumed run repeats neither."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import deepcopy
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, ClassVar

from koi_lang.errors import RegistryError
from koi_lang.js.undefined import undefined
from koi_lang.runtime.guards.write_quota import count_written
from koi_lang.runtime.registry.registry import Registry
from koi_lang.runtime.registry.store import IdempotencyKey
from koi_lang.runtime.replay.calls import Effect
from koi_lang.runtime.replay.location import current_place, leaf_path

if TYPE_CHECKING:
    from koi_lang.runtime.replay.ports import Recorder

# How many changes whose outcome stands in the journal, too, the registry may still know.
MAX_OVER = 16


class KeptRegistry:
    """A registry with the methods of `Registry`, which are documented there."""

    __koi_members__: ClassVar[Mapping[str, str]] = {**Registry.__koi_members__, "change": "change"}
    __koi_kind__: ClassVar[str] = "the registry"

    def __init__(self, registry: Registry, recorder: Recorder, run: str) -> None:
        self._registry = registry
        self._recorder = recorder
        self._run = run
        self._over: list[IdempotencyKey] = []
        # Is told the keys that are set, with their values, also where that was done in an earlier part of the run.
        self.follow: Callable[[str, Any], None] = lambda key, value: None

    async def get(self, key: str) -> Any:
        """The value of a key."""
        return await self._once("get", key)

    async def set(self, key: str, value: object) -> None:
        """Keep a JSON value under a key."""
        await self._change("set", key, value)
        self.follow(key, value)

    async def change(self, key: str, update: Callable[[Any], Any]) -> Any:
        """Replace the value of a key by a function of it, atomically across processes.

        Args:
            update: takes the value, None where there is none; is called again where somebody else was faster, and
                changes nothing by giving `undefined`.

        Returns:
            The value that the key has then.
        """
        while True:
            before = await self.get(key)
            after = update(deepcopy(before))
            after = await after if isawaitable(after) else after
            if after is undefined:
                return before
            if await self.swap(key, before, after):
                return after

    async def swap(self, key: str, before: object, after: object) -> bool:
        """Keep a JSON value under a key that still has another one, None for no value; says whether it had."""
        has_changed = bool(await self._change("swap", key, before, after))
        if has_changed:
            self.follow(key, after)
        return has_changed

    async def delete(self, key: str) -> bool:
        """Forget a key; says whether it was there."""
        return bool(await self._change("delete", key))

    async def has(self, key: str) -> bool:
        """Whether a key is set."""
        return bool(await self._once("has", key))

    async def keys(self, prefix: str = "") -> list[str]:
        """The keys that start with a prefix."""
        return list(await self._once("keys", prefix))

    async def search(self, query: object) -> list[dict[str, Any]]:
        """The entries whose values match a query."""
        return list(await self._once("search", query))

    async def clear(self) -> int:
        """Forget every entry; says how many there were."""
        return int(await self._change("clear"))

    async def stats(self) -> dict[str, Any]:
        """`backend`, `count`, `file` and `size`."""
        return dict(await self._once("stats"))

    def close(self) -> None:
        """Release the store's files."""
        self._forget()
        self._registry.close()

    def forget_all(self) -> None:
        """Let the registry forget all changes of the run, which has ended; where that fails they do no harm."""
        self._over = []
        if self._recorder.is_kept and self._registry.is_durable:
            with suppress(RegistryError):
                self._registry.forget_run(self._run)

    async def renew(self, name: str, *args: Any) -> None:
        """Make a change whose outcome is known again where it was lost with another process: in memory."""
        if not self._registry.is_durable:
            await getattr(self._registry, name)(*args)

    async def _once(self, name: str, *args: Any) -> Any:
        # Reading again does no harm.
        effect = Effect(f"registry.{name}", {"args": list(args)}, safe=True)
        return await self._recorder.perform_as_step(effect, lambda: getattr(self._registry, name)(*args))

    async def _change(self, name: str, *args: Any) -> Any:
        # Carried out again, a change gives what came of it the first time: the registry knows its place in the run.
        effect = Effect(f"registry.{name}", {"args": list(args)}, safe=True, goes_out=True)
        keys: list[IdempotencyKey] = []

        async def work() -> Any:
            keys.append(IdempotencyKey(self._run, "/".join(leaf_path(f"registry.{name}"))))
            return await getattr(self._registry, name)(*args, once=keys[0] if self._recorder.is_kept else None)

        count_written(args)
        outcome = await self._recorder.perform_as_step(effect, work)
        if not keys:
            await self.renew(name, *args)
        place = current_place()
        # Inside of an action it is known elsewhere when that has ended.
        if place is None or not place.state.is_covered:
            self._over += keys
        if len(self._over) >= MAX_OVER:
            self._forget()
        return outcome

    def _forget(self) -> None:
        """Let the registry forget the changes whose outcome is known elsewhere."""
        over, self._over = self._over, []
        if over and self._recorder.is_kept:
            with suppress(RegistryError):  # what is known too long does no harm
                self._registry.forget(over)
