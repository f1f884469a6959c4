"""Actions on the registry that all agents share."""

from __future__ import annotations

from typing import Any

from koi_lang.runtime.actions.registered import ActionContext, action


async def _set_again(context: ActionContext, key: str, value: Any) -> None:
    await context.run.registry.renew("set", key, value)


async def _delete_again(context: ActionContext, key: str) -> None:
    await context.run.registry.renew("delete", key)


@action("registry:write", safe=True, renew=_set_again)
async def registry_set(context: ActionContext, key: str, value: Any) -> Any:
    """Store a value in the shared registry."""
    await context.run.registry.set(key, value)
    return {"success": True, "key": key, "saved": True}


async def _change_again(context: ActionContext, key: str, from_: Any, to: Any) -> None:
    await context.run.registry.renew("swap", key, from_, to)


@action("registry:write", safe=True, renew=_change_again)
async def registry_change(context: ActionContext, key: str, from_: Any, to: Any) -> Any:
    """Store `to` under a key that still has the value `from`, null for none; gives `changed`, and the `value` now."""
    has_changed = await context.run.registry.swap(key, from_, to)
    value = to if has_changed else await context.run.registry.get(key)
    return {"success": True, "key": key, "changed": has_changed, "value": value}


@action("registry:read", safe=True, tool="read", only_looks=True)
async def registry_get(context: ActionContext, key: str) -> Any:
    """Read a value from the shared registry; gives `value` and `found`."""
    found = await context.run.registry.has(key)
    return {"success": True, "key": key, "value": await context.run.registry.get(key), "found": found}


@action("registry:write", safe=True, renew=_delete_again)
async def registry_delete(context: ActionContext, key: str) -> Any:
    """Remove a key from the shared registry; gives `deleted`."""
    return {"success": True, "key": key, "deleted": await context.run.registry.delete(key)}


@action("registry:read", safe=True, tool="search", only_looks=True)
async def registry_keys(context: ActionContext, prefix: str = "") -> Any:
    """List the keys of the shared registry that begin with a prefix; gives `count` and `keys`."""
    keys = await context.run.registry.keys(prefix)
    return {"success": True, "count": len(keys), "keys": keys}


@action("registry:read", safe=True, tool="search", only_looks=True)
async def registry_search(context: ActionContext, query: dict[str, Any]) -> Any:
    """Find values by their fields, e.g. {"age": {"$gt": 30}}; gives `count` and `results`."""
    results = await context.run.registry.search(query)
    return {"success": True, "count": len(results), "results": results}
