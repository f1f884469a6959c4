"""The registry of a run: what it gave is kept, so that a run that goes on reads the same and writes nothing again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from koi_lang.runtime.effects import Effects
from koi_lang.runtime.outside import Effect
from koi_lang.runtime.registry.registry import Registry


class KeptRegistry:
    """A registry with the methods of `Registry`, which say what they do."""

    __koi_members__: ClassVar[Mapping[str, str]] = Registry.__koi_members__
    __koi_kind__: ClassVar[str] = "the registry"

    def __init__(self, registry: Registry, effects: Effects) -> None:
        self._registry, self._effects = registry, effects

    async def get(self, key: str) -> Any:
        """The value of a key."""
        return await self._once("get", key)

    async def set(self, key: str, value: object) -> None:
        """Keep a JSON value under a key."""
        await self._once("set", key, value)

    async def delete(self, key: str) -> bool:
        """Forget a key; says whether it was there."""
        return bool(await self._once("delete", key))

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
        return int(await self._once("clear"))

    async def stats(self) -> dict[str, Any]:
        """`backend`, `count`, `file` and `size`."""
        return dict(await self._once("stats"))

    def close(self) -> None:
        """Release the store's files."""
        self._registry.close()

    async def _once(self, name: str, *args: Any) -> Any:
        # All of them can be done twice without harm: what a key holds is then the same.
        effect = Effect(f"registry.{name}", {"args": list(args)}, safe=True)
        return await self._effects.announced(effect, lambda: getattr(self._registry, name)(*args))
