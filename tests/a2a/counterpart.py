"""An A2A server made of the official SDK, whose agent does what its messages say."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import uvicorn
from a2a.helpers import get_data_parts, get_message_text, new_data_part, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Task, TaskState, TaskStatus
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send


@dataclass
class Counterpart:
    """The server, and what it was told.

    Attributes:
        token: that it wants to be shown; empty where it wants none.
    """

    port: int = 0
    messages: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    requests: int = 0
    token: str = ""


class Doer(AgentExecutor):
    """Does what a message says: `echo`, `wait`, `ask`, `fail`, `data`, `hang`."""

    def __init__(self, counterpart: Counterpart) -> None:
        self._counterpart = counterpart

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Carry out a message."""
        assert context.message is not None
        text = get_message_text(context.message)
        data = get_data_parts(context.message.parts)
        self._counterpart.messages.append(text or str(data))
        updater = TaskUpdater(event_queue, str(context.task_id), str(context.context_id))
        if context.current_task is None:
            status = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
            await event_queue.enqueue_event(
                Task(id=context.task_id, context_id=context.context_id, status=status, history=[context.message])
            )
            await self._begin(updater, text, data)
        else:
            await self._finish(updater, f"you said {text}")

    async def _begin(self, updater: TaskUpdater, text: str, data: list[object]) -> None:
        await updater.start_work()
        if text == "ask":
            await updater.requires_input(updater.new_agent_message([new_text_part("Which one?")]))
        elif text == "fail":
            await updater.failed(updater.new_agent_message([new_text_part("out of tea")]))
        elif text == "data":
            await updater.add_artifact([new_data_part({"n": 1.0})])
            await updater.complete()
        elif text == "hang":
            await asyncio.sleep(3600)
        else:
            await asyncio.sleep(0.4 if text == "wait" else 0)
            await self._finish(updater, f"echo {text or data}")

    async def _finish(self, updater: TaskUpdater, text: str) -> None:
        await updater.add_artifact([new_text_part(text)])
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Note that it was cancelled."""
        self._counterpart.cancelled.append(str(context.task_id))
        await TaskUpdater(event_queue, str(context.task_id), str(context.context_id)).cancel()


class _Guard:
    def __init__(self, app: ASGIApp, counterpart: Counterpart) -> None:
        self._app, self._counterpart = app, counterpart

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        token, self._counterpart.requests = self._counterpart.token, self._counterpart.requests + 1
        if scope["type"] == "http" and token and Request(scope).headers.get("authorization") != f"Bearer {token}":
            await Response("no", 401)(scope, receive, send)
            return
        await self._app(scope, receive, send)


@contextmanager
def serving() -> Iterator[Counterpart]:
    """The server at work, in a thread of its own."""
    counterpart = Counterpart()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        counterpart.port = listener.getsockname()[1]
        base = f"http://127.0.0.1:{counterpart.port}/agents/echo"
        card = AgentCard(
            name="echo",
            description="Repeats what it is told.",
            version="1.0",
            supported_interfaces=[
                AgentInterface(url=f"{base}/rpc", protocol_binding="JSONRPC", protocol_version="1.0")
            ],
            capabilities=AgentCapabilities(streaming=True),
            default_input_modes=["text/plain"],
            default_output_modes=["text/plain"],
            skills=[AgentSkill(id="echo", name="echo", description="Repeats.", tags=["test"])],
        )
        handler = DefaultRequestHandler(Doer(counterpart), InMemoryTaskStore(), card)
        elsewhere = AgentCard()
        elsewhere.CopyFrom(card)
        elsewhere.supported_interfaces[0].url = "http://example.org/rpc"
        routes = [
            *create_agent_card_routes(card, card_url="/agents/echo/.well-known/agent-card.json"),
            *create_agent_card_routes(elsewhere, card_url="/agents/elsewhere/.well-known/agent-card.json"),
            *create_jsonrpc_routes(handler, "/agents/echo/rpc"),
        ]
        app = _Guard(Starlette(routes=routes), counterpart)
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])))
        thread.start()
        try:
            yield counterpart
        finally:
            server.should_exit = server.force_exit = True
            thread.join()
