"""An editor as a test sees it: the client of the package `agent-client-protocol` beside a process `koi acp`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import acp
from acp import schema
from acp.client.connection import ClientSideConnection

from tests import forks
from tests.limits import LIMIT_S
from tests.projects import Project

Test: TypeAlias = Callable[["Editor"], Awaitable[Any]]


class Editor:
    """The client; what it is told is kept as data of the protocol.

    Attributes:
        updates: of all sessions, in order, each with its session.
        permissions: the requests that it was sent.
        decide: the option that the person selects; an empty one cancels.
        answers: to elicitations, in order; None declines.
        koi: the agent.
        errors: what it has written to stderr, once it has ended.
    """

    koi: ClientSideConnection
    process: asyncio.subprocess.Process
    errors = ""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.updates: list[tuple[str, dict[str, Any]]] = []
        self.permissions: list[dict[str, Any]] = []
        self.questions: list[dict[str, Any]] = []
        self.decide: Callable[[dict[str, Any]], Awaitable[str]] = self._refuse
        self.answers: list[Any] = []
        self._news = asyncio.Event()

    async def _refuse(self, request: dict[str, Any]) -> str:
        return "no"

    # ------------------------------------------------------------ as a client

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        """Keep what is told."""
        self.updates.append((session_id, update.model_dump(by_alias=True, exclude_none=True, mode="json")))
        self._news.set()

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_: Any
    ) -> schema.RequestPermissionResponse:
        """Have the person decide."""
        shown = {"toolCall": tool_call, "options": options}
        data = json.loads(json.dumps(shown, default=lambda each: each.model_dump(by_alias=True, exclude_none=True)))
        self.permissions.append(data)
        self._news.set()
        chosen = await self.decide(data)
        if not chosen:
            return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
        return schema.RequestPermissionResponse(outcome=schema.AllowedOutcome(outcome="selected", option_id=chosen))

    async def create_elicitation(self, message: str, mode: Any, **_: Any) -> Any:
        """Have the person fill a form in."""
        self.questions.append({"message": message, **mode.model_dump(by_alias=True, exclude_none=True, mode="json")})
        answer = self.answers.pop(0)
        if answer is None:
            return schema.DeclineElicitationResponse(action="decline")
        return schema.AcceptElicitationResponse(action="accept", content=answer)

    def on_connect(self, conn: Any) -> None:
        """Nothing is to be done."""

    # ------------------------------------------------------------ for tests

    async def begin(self, folder: str = "", **more: Any) -> str:
        """The id of a new session in the folder of the project, or in one below it."""
        opened = await self.koi.new_session(cwd=str(self.project.folder / folder), mcp_servers=[], **more)
        return opened.session_id

    async def say(self, session: str, *blocks: Any) -> str:
        """Why the turn of a message has ended."""
        content = [acp.text_block(block) if isinstance(block, str) else block for block in blocks]
        return str((await self.koi.prompt(session_id=session, prompt=content)).stop_reason)

    def told(self, kind: str, session: str = "") -> list[dict[str, Any]]:
        """The updates of a kind."""
        return [update for id, update in self.updates if update["sessionUpdate"] == kind and session in ("", id)]

    def text(self, kind: str = "agent_message_chunk", session: str = "") -> str:
        """The pieces of texts, put together."""
        return "".join(update["content"]["text"] for update in self.told(kind, session))

    async def until(self, is_so: Callable[[], Any]) -> None:
        """Wait until something has been told."""
        while not is_so():
            self._news.clear()
            await self._news.wait()


def edit(
    project: Project,
    test: Test,
    *words: str,
    capabilities: Mapping[str, Any] | None = None,
    **environment: str,
) -> Editor:
    """Start `koi acp` and have a test talk to it; gives the editor after the end of the process."""
    return asyncio.run(edit_in_loop(project, test, words, capabilities or {}, environment))


async def edit_in_loop(
    project: Project,
    test: Test,
    words: tuple[str, ...],
    capabilities: Mapping[str, Any],
    environment: Mapping[str, str],
) -> Editor:
    """The same in an event loop that is running."""
    editor = Editor(project)
    spawned = acp.spawn_agent_process(
        editor,  # type: ignore[arg-type]  # it takes whatever arguments a version gives
        *forks.koi("acp", *words),
        cwd=project.folder,
        env={**project.environment, **environment},
        # The package has elicitation among the unstable parts still.
        use_unstable_protocol=True,
    )
    async with asyncio.timeout(LIMIT_S), spawned as (koi, process):
        editor.koi, editor.process = koi, process
        known = schema.ClientCapabilities.model_validate(capabilities)
        await koi.initialize(protocol_version=acp.PROTOCOL_VERSION, client_capabilities=known)
        await test(editor)
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.close()
        editor.errors = (await process.stderr.read()).decode()
    return editor
