"""The server side of A2A: messages of other agents become calls in a session, and results become tasks."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from a2a import types
from a2a.helpers import get_data_parts, new_data_part, new_task_from_user_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.context import ServerCallContext
from a2a.server.events import Event, EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskStore, TaskUpdater
from a2a.types import Message, Part

from koi_lang.errors import KoiError
from koi_lang.events import CallEnded, CallStarted
from koi_lang.llm.messages import Message as KoiMessage
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.journal.reader import read
from koi_lang.service.host import SessionHost
from koi_lang.service.hosted import HostedSession
from koi_lang.service.known_state import read_state
from koi_lang.service.store import Database
from koi_lang.service.threads import ThreadRow, ThreadTable
from koi_lang.service.users import User
from koi_lang.sessions import calls
from koi_lang.sessions.calls import begin_message, begin_named
from koi_lang.web.a2a.cards import public_handlers

PROTOCOL = "a2a"
# The member of a message's metadata that names a handler.
SKILL = "skill"
USER = "user"
SILENCE_S = 60.0
WAITS = "It waits until the person who runs it has allowed something."


class SessionExecutor(AgentExecutor):
    """Carries out the messages for one agent; a context of the protocol is a session of its user."""

    def __init__(self, host: SessionHost, program: str, agent: type[Agent]) -> None:
        self._host = host
        self._program = program
        self._agent = agent
        self._threads = ThreadTable(host.database)

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Carry out a message until its call has ended or asks something; without one, follow the call of the task."""
        message = context.message
        updater = TaskUpdater(event_queue, str(context.task_id), str(context.context_id))
        if context.current_task is None and message is not None:
            await event_queue.enqueue_event(new_task_from_user_message(message))
        try:
            session, row = await self._session_of(context)
            if message is None:
                await session.wake()
                entries = (await asyncio.to_thread(read, session.feed.journal)).entries
                calls = {entry.data.get("call"): entry.n for entry in entries if entry.kind == CallStarted.type}
                if updater.task_id not in calls:
                    reason = "the service ended before it began with this task"
                    raise KoiError(reason, help="Send the message again, as another task.")
                since = calls[updater.task_id]
            else:
                # What an earlier task has not told, since the service ended, is no part of a new one.
                until = None if context.current_task is None else row.told or None
                since = (await asyncio.to_thread(read_state, session.feed.journal, until)).last
                await self._begin(message, session, updater.task_id)
                await updater.start_work()
            await self._follow(session, replace(row, told=since), updater)
        except KoiError as error:
            await updater.failed(_message_of(updater, f"{error.message}. {error.help or ''}".strip()))

    async def _follow(self, session: HostedSession, row: ThreadRow, updater: TaskUpdater) -> None:
        """Publish the events of a task's call, behind the last published entry."""
        reader, number = session.feed.subscribe(row.told), row.told
        try:
            async for messages in reader.listen(SILENCE_S):
                for entry, message in messages:
                    number = entry or number
                    if await self._pass_on(json.loads(message), updater):
                        return
            await updater.failed(_message_of(updater, "the session has ended"))
        finally:
            reader.close()
            self._threads.keep(replace(row, told=number))

    async def _session_of(self, context: RequestContext) -> tuple[HostedSession, ThreadRow]:
        """The session of a context. Raises KoiError."""
        user: User = context.call_context.state[USER]
        name = f"{PROTOCOL}/{self._program}/{self._agent.about.name}"
        row = self._threads.find(name, str(context.context_id), user.name)
        if row is not None:
            return self._host.find(row.run, user), row
        session, _ = await self._host.start(user, self._program, None, f"{self._agent.about.name} (A2A)")
        row = ThreadRow(name, str(context.context_id), user.name, session.id)
        self._threads.keep(row)
        return session, row

    async def _begin(self, message: Message, session: HostedSession, task: str) -> None:
        """Pass a message to a session: as an answer to its question, or as a call with the id of its task.

        Raises KoiError.
        """
        data = [_with_whole_numbers(each) for each in get_data_parts(message.parts)]
        text = "\n".join(part.text for part in message.parts if part.HasField("text"))
        question = next((each for each in session.feed.requests if each["type"] == "question"), None)
        if question is not None:
            answer = text or json.dumps(data[0] if data else "")
            await session.perform(calls.answer, request=question["id"], answer=answer)
            return
        name = self._handler_of(message, has_data=bool(data))
        if data:
            payload = data[0] if len(data) == 1 else data
            await session.begin_call(partial(begin_named, name=name, payload=payload, id=task))
        else:
            await session.begin_call(partial(begin_message, said=KoiMessage("user", text), name=name, id=task))

    def _handler_of(self, message: Message, *, has_data: bool) -> str:
        """The handler that a message is for, or the agent, whose handlers then decide. Raises KoiError."""
        agent, events = self._agent.about.name, [each.event for each in public_handlers(self._agent)]
        wanted = dict(message.metadata.items()).get(SKILL)
        if wanted is not None and wanted not in events:
            raise KoiError(f"`{agent}` has no skill `{wanted}`", help=f"It has {', '.join(events)}.")
        if wanted is None and has_data and len(events) == 1:
            wanted = events[0]
        if wanted is None and has_data:
            raise KoiError("data is for one skill", help=f"Name it in the metadata: {', '.join(events)}.")
        return agent if wanted is None else f"{agent}.{wanted}"

    async def _pass_on(self, message: Mapping[str, Any], updater: TaskUpdater) -> bool:
        """Publish the meaning of a session's message; returns whether the task is over or waits."""
        if message["type"] == "question":
            options = ", ".join(message.get("options") or [])
            await updater.requires_input(
                _message_of(updater, message["question"] + (f" ({options})" if options else ""))
            )
            return True
        if message["type"] == "approval_request":
            await updater.start_work(_message_of(updater, WAITS))
        elif message["type"] == "session_failed":
            await updater.failed(_message_of(updater, str(message["error"])))
            return True
        elif message["type"] == "event":
            return await self._pass_on_event(message["event"], updater)
        return False

    async def _pass_on_event(self, event: Mapping[str, Any], updater: TaskUpdater) -> bool:
        if event["type"] == "printed":
            await updater.start_work(_message_of(updater, event["message"]))
        if event["type"] != CallEnded.type or event["call"] != updater.task_id:
            return False
        if event["ok"]:
            parts = _parts_of(event.get("result"))
            if parts:
                await updater.add_artifact(parts, name="result")
            await updater.complete()
        elif event.get("aborted"):
            await updater.cancel()
        else:
            await updater.failed(_message_of(updater, str(event.get("error") or "the call has failed")))
        return True

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """End the call of a task."""
        session, _ = await self._session_of(context)
        await session.perform(calls.abort)
        await TaskUpdater(event_queue, str(context.task_id), str(context.context_id)).cancel()


def _message_of(updater: TaskUpdater, text: str) -> Message:
    return updater.new_agent_message([new_text_part(text)])


def _parts_of(result: Any) -> list[Part]:
    """The result of a handler as parts of an artifact."""
    if result is None or result == "undefined":
        return []
    return [new_text_part(result)] if isinstance(result, str) else [new_data_part(result)]


def _with_whole_numbers(value: Any) -> Any:
    """A value in which numbers are whole that are: the protocol has floating point only."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {name: _with_whole_numbers(each) for name, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_with_whole_numbers(each) for each in value]
    return value


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
        """Handle a message, and return its result."""
        await self._follow_again(params.message.task_id, context)
        outcome: types.Message | types.Task = await super().on_message_send(params, context)
        return outcome

    async def on_message_send_stream(
        self, params: types.SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event, None]:
        """Handle a message, and stream its events."""
        await self._follow_again(params.message.task_id, context)
        async for event in super().on_message_send_stream(params, context):
            yield event

    async def on_subscribe_to_task(
        self, params: types.SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event, None]:
        """Stream the events of a task from now on."""
        await self._follow_again(params.id, context)
        async for event in super().on_subscribe_to_task(params, context):
            yield event
