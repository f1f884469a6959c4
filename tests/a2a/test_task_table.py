"""Tasks of other agents in the database of a service."""

from __future__ import annotations

import asyncio
from pathlib import Path

from a2a.server.context import ServerCallContext
from a2a.types import ListTasksRequest, Task

from koi_lang.service.store import Database
from koi_lang.web.a2a.executor import TaskTable
from koi_lang.web.a2a.routes import NamedUser


def test_tasks_belong_to_their_user_and_agent(tmp_path: Path) -> None:
    """Nobody else finds, lists or removes them, whatever ids they try."""
    database = Database.connect(tmp_path)
    clerk, other = TaskTable(database, "desk/Clerk"), TaskTable(database, "desk/Other")
    ada, bob = (ServerCallContext(user=NamedUser(name)) for name in ("ada", "bob"))

    async def use() -> list[object]:
        await clerk.save(Task(id="t", context_id="ada's"), ada)
        await clerk.save(Task(id="t", context_id="bob's"), bob)
        await clerk.delete("t", bob)
        task, listed = await clerk.get("t", ada), await clerk.list(ListTasksRequest(), ada)
        of_bob = await clerk.list(ListTasksRequest(), bob)
        return [
            task and task.context_id,
            listed.total_size,
            of_bob.total_size,
            await clerk.get("t", bob),
            await other.get("t", ada),
        ]

    try:
        assert asyncio.run(use()) == ["ada's", 1, 0, None, None]
    finally:
        database.close()
