"""Snapshots of the project for `std/workspace`: taking, comparing, and restoring them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any, TypeVar

from koi_lang.errors import AgentError, reason
from koi_lang.runtime.concurrency.stoppable_threads import Stop, run_in_thread
from koi_lang.runtime.context import current
from koi_lang.runtime.replay.calls import Effect
from koi_lang.runtime.snapshots.retention import begin_keeping
from koi_lang.runtime.tree.project import ProjectTree
from koi_lang.std.effects import agent, folder, perform_effect, project_settings

T = TypeVar("T")
# The name of the effect, as journals have it.
SNAPSHOT = "workspace.snapshot"
# How late a run that is killed while it restores may have changed a file.
MAX_RESTORE_S = 600.0


async def snapshot() -> dict[str, Any]:
    """Keep the tree of the project; gives `id`, `files`, `bytes`, `skipped` and `skippedCount`. Raises KoiError."""

    async def work() -> dict[str, Any]:
        run = current.get()
        if run is None:
            raise AgentError("snapshots are kept with a run, and nothing is run here")
        end = await _in_thread(lambda stop: begin_keeping(run.folder, run.id, stop))
        if end is not None:
            run.keep_until_end(lambda: asyncio.to_thread(end))
        return await _in_thread(lambda stop: _here(stop).snapshot(run.id))

    return dict(await perform_effect(Effect(SNAPSHOT, safe=True), work))


async def changes(since: Any) -> dict[str, Any]:
    """The differences since a snapshot: `added`, `changed`, `removed` and `left` paths. Raises KoiError."""
    return dict(await _with_snapshot("workspace.changes", since, lambda tree, id: tree.changes(id)))


async def restore(since: Any) -> dict[str, Any]:
    """Restore the tree of a snapshot; returns the `written`, `removed` and `left` paths.

    Doing it again does no harm, so that a run that was ended in the middle of it does it again.

    Raises:
        PermissionDeniedError: code would be changed, and the role of the agent does not allow that.
        KoiError: something cannot be read or written.
    """
    asking = agent()
    role = None if asking is None else asking.role
    return dict(await _with_snapshot("workspace.restore", since, lambda tree, id: tree.restore(id, role), _recording))


@asynccontextmanager
async def _recording() -> AsyncIterator[None]:
    """A context in which files may be changed, so that it can be undone where the run is recorded."""
    run, asking = current.get(), agent()
    if run is None:
        yield
        return
    async with run.changes.watch(MAX_RESTORE_S, "" if asking is None else asking.name):
        yield


def _with_snapshot(
    name: str,
    since: Any,
    do: Callable[[ProjectTree, str], Any],
    context: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
) -> Awaitable[Any]:
    id = since.get("id") if isinstance(since, dict) else since
    if not isinstance(id, str):
        raise AgentError("this is no snapshot", help="Give what `snapshot()` gave, or its `id`.")
    effect = Effect(name, {"snapshot": id}, safe=True)

    async def work() -> Any:
        async with context():
            return await _in_thread(lambda stop: do(_here(stop), id))

    return perform_effect(effect, work)


def _here(stop: Stop) -> ProjectTree:
    return ProjectTree(folder().resolve(), stop, project_settings())


async def _in_thread(work: Callable[[Stop], T]) -> T:
    """The result of work on the project; an error of the system becomes an AgentError."""
    try:
        return await run_in_thread(work)
    except OSError as error:
        about = f"`{error.filename}`" if isinstance(error.filename, str) else "the project"
        raise AgentError(f"{about} cannot be kept or restored: {reason(error)}") from error
