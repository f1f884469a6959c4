"""Tasks of other agents, kept in the database of the service, so that they outlast its process."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator

from a2a import types
from a2a.server.agent_execution import RequestContext
from a2a.server.context import ServerCallContext
from a2a.server.events import Event
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskStore

from koi_lang.service.store import Database

# How long a task is found after its last change.
KEPT_S = 30 * 86400.0
UNDER_WAY = (types.TaskState.TASK_STATE_SUBMITTED, types.TaskState.TASK_STATE_WORKING)


class TaskTable(TaskStore):
    """The tasks of one agent, each for its owner alone.

    Args:
        agent: names the agent, with its program.
    """

    def __init__(self, database: Database, agent: str) -> None:
        self._database, self._agent = database, agent
        database.execute(
            "create table if not exists a2a_tasks (agent text not null, id text not null, owner text not null,"
            " changed real not null, task blob not null, primary key (agent, id, owner))"
        )
        database.execute("delete from a2a_tasks where changed < ?", (time.time() - KEPT_S,))

    async def save(self, task: types.Task, context: ServerCallContext) -> None:
        """Keep a task as it is now."""
        values = (self._agent, task.id, context.user.user_name, time.time(), task.SerializeToString())
        self._database.execute("insert or replace into a2a_tasks values (?, ?, ?, ?, ?)", values)

    async def get(self, task_id: str, context: ServerCallContext) -> types.Task | None:
        """The task of an id; None where the user has none of it."""
        where = "agent = ? and id = ? and owner = ?"
        values = (self._agent, task_id, context.user.user_name)
        rows = self._database.execute(f"select task from a2a_tasks where {where}", values)
        return types.Task.FromString(rows[0][0]) if rows else None

    async def list(self, params: types.ListTasksRequest, context: ServerCallContext) -> types.ListTasksResponse:
        """The page of tasks that a request asks for, those that changed last first."""
        values = (self._agent, context.user.user_name)
        all_of_user = InMemoryTaskStore(use_copying=False)
        for (task,) in self._database.execute("select task from a2a_tasks where agent = ? and owner = ?", values):
            await all_of_user.save(types.Task.FromString(task), context)
        return await all_of_user.list(params, context)

    async def delete(self, task_id: str, context: ServerCallContext) -> None:
        """Forget a task."""
        values = (self._agent, task_id, context.user.user_name)
        self._database.execute("delete from a2a_tasks where agent = ? and id = ? and owner = ?", values)


class LastingTasks(DefaultRequestHandler):
    """The requests of the protocol; a task that an earlier process was at work on is followed again.

    The session of such a task goes on by itself. Whoever asks for the task first has it followed.
    """

    async def _follow_again(self, id: str, context: ServerCallContext) -> None:
        task = await self.task_store.get(id, context) if id else None
        if not isinstance(task, types.Task) or task.status.state not in UNDER_WAY:
            return
        if await self._active_task_registry.get(id) is None:
            active = await self._active_task_registry.get_or_create(id, context, task.context_id)
            # Without a message, which has been carried out.
            request = RequestContext(context, task_id=id, context_id=task.context_id, task=task)
            await active.enqueue_request(request)

    async def on_get_task(self, params: types.GetTaskRequest, context: ServerCallContext) -> types.Task | None:
        """A task."""
        await self._follow_again(params.id, context)
        task: types.Task | None = await super().on_get_task(params, context)
        return task

    async def on_list_tasks(
        self, params: types.ListTasksRequest, context: ServerCallContext
    ) -> types.ListTasksResponse:
        """A page of tasks."""
        page: types.ListTasksResponse = await super().on_list_tasks(params, context)
        for task in page.tasks:
            await self._follow_again(task.id, context)
        return page

    async def on_cancel_task(self, params: types.CancelTaskRequest, context: ServerCallContext) -> types.Task | None:
        """End the call of a task."""
        await self._follow_again(params.id, context)
        task: types.Task | None = await super().on_cancel_task(params, context)
        return task

    async def on_message_send(
        self, params: types.SendMessageRequest, context: ServerCallContext
    ) -> types.Message | types.Task:
        """Carry out a message, and give what comes of it."""
        await self._follow_again(params.message.task_id, context)
        outcome: types.Message | types.Task = await super().on_message_send(params, context)
        return outcome

    async def on_message_send_stream(
        self, params: types.SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event, None]:
        """Carry out a message, and tell what happens."""
        await self._follow_again(params.message.task_id, context)
        async for event in super().on_message_send_stream(params, context):
            yield event

    async def on_subscribe_to_task(
        self, params: types.SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event, None]:
        """Tell what happens in a task from now on."""
        await self._follow_again(params.id, context)
        async for event in super().on_subscribe_to_task(params, context):
            yield event
