"""A loaded program with the options of a command line as an MCP service, and its serving."""

from __future__ import annotations

import asyncio
import logging
import os
import stat
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from anyio import BrokenResourceError
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from koi_lang.extensions import additions
from koi_lang.http_server.address import Address
from koi_lang.mcp_server.documents import documents, made_prompts
from koi_lang.mcp_server.http import serve_http
from koi_lang.mcp_server.prompts_and_resources import by_name, sources
from koi_lang.mcp_server.server import McpService, server_of
from koi_lang.mcp_server.sessions import ClientSession, OpenSession, Sessions
from koi_lang.mcp_server.tools import exposed_agents, offers
from koi_lang.program import declarations
from koi_lang.program.error_report import explain
from koi_lang.runtime.actions.lookup import all_actions
from koi_lang.runtime.budget.limits import Budget
from koi_lang.runtime.events import Consumer
from koi_lang.runtime.host import Host
from koi_lang.runtime.run import Run
from koi_lang.sessions.prepared import Prepared

if TYPE_CHECKING:
    from anyio import AsyncFile

MAX_BYTES = 1 << 26


async def serve(service: McpService, address: Address | None, *, debug: bool) -> None:
    """Serve until the client leaves or the process is told to end; over stdio without an address."""
    if not debug:
        # What libraries log is for those who look into it; a client gets an answer to everything it does wrong.
        for name in ("mcp", "uvicorn"):
            logging.getLogger(name).addHandler(logging.NullHandler())
    server = server_of(service)
    if address is None:
        if sys.stdin.isatty():
            service.log(
                "an MCP client is expected at stdin and stdout, which usually starts this itself; Ctrl-D ends it"
            )
        await serve_stdio(server)
        return
    # The library keeps others from writing to stdout only over stdio.
    with redirect_stdout(sys.stderr):
        await serve_http(server, address, lambda url: _announce(service, url, address))


def _announce(service: McpService, url: str, address: Address) -> None:
    sys.stderr.write(f"serving `{service.name}` at {url}\n{address.advice}")
    sys.stderr.flush()


def service_of(
    ready: Prepared,
    log: Callable[[str], None],
    consumers: Sequence[Consumer] = (),
    open_session: OpenSession | None = None,
) -> McpService:
    """The service of a program.

    Args:
        log: takes lines about the service.
        consumers: are told what happens in all sessions.
        open_session: makes the session of a client; by default each has a run of its own.

    Raises:
        UsageError: there is nothing to serve.
    """
    path, limit = Path(ready.path), Budget(time_s=ready.options.call_time_s)
    agents = exposed_agents(ready.agents, path.name)
    redact = ready.redactor()
    # What is wrong with an extension is told before the first client comes.
    actions = [*all_actions(), *additions(ready.extensions).actions.values()]
    lines = [f"{agent.about.name}: {agent.about.affordance}" for agent in agents if agent.about.affordance]
    return McpService(
        name=agents[0].about.name if len(agents) == 1 else path.stem,
        instructions="\n".join(lines),
        tools={offer.name: offer for offer in offers(agents, actions)},
        prompts=by_name(declarations.prompts_of(ready.module)),
        made_prompts=made_prompts(agents),
        documents=documents(agents),
        sources=sources(path.as_posix(), list(ready.entry.files), redact),
        open_session=open_session or partial(ClientSession, _opener(ready, consumers), log, limit),
        explain=lambda error: redact(explain(error, Path.cwd().as_posix())),
        log=log,
    )


def _opener(ready: Prepared, consumers: Sequence[Consumer]) -> Callable[[Host, Consumer], Run]:
    """A function that makes the run of a session, with the models, permissions and limits of `koi run`."""

    def open_run(host: Host, consumer: Consumer) -> Run:
        reported: set[str] = set()

        def note(text: str) -> None:
            """Tell the client of a session, the same line once."""
            if text not in reported:
                reported.add(text)
                host.log(text)

        return ready.run(host, [consumer, *consumers], note, limits=ready.options.session_limits)

    return open_run


async def serve_stdio(server: Server[Sessions]) -> None:
    """Serve the client at the other end until it leaves."""
    with _own_stdin() as descriptor:
        # Only the iteration over lines is asked of the file; the library would read it in a thread, which nothing
        # can interrupt.
        incoming = cast("AsyncFile[str]", _lines(descriptor))
        try:
            async with stdio_server(stdin=incoming) as (reading, writing):
                await server.run(reading, writing, server.create_initialization_options())
        except* BrokenResourceError:
            pass  # a client has left while calls were under way: nobody reads their answers


@contextmanager
def _own_stdin() -> Iterator[int]:
    """A descriptor for the messages of clients; standard input is empty for all other code and child processes."""
    own, nothing = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    try:
        yield own
    finally:
        os.dup2(own, 0)
        os.close(own)


async def _lines(descriptor: int) -> AsyncIterator[str]:
    """The lines of a descriptor as they come; waiting for one can be cancelled."""
    file = os.fdopen(os.dup(descriptor), "rb", buffering=0)
    if _never_waits(descriptor):
        with file:
            for line in file:
                yield line.decode("utf-8", "replace")
        return
    reader = asyncio.StreamReader(limit=MAX_BYTES)
    loop = asyncio.get_running_loop()
    pipe, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), file)
    try:
        async for line in reader:
            yield line.decode("utf-8", "replace")
    finally:
        pipe.close()


def _never_waits(descriptor: int) -> bool:
    """Whether reading a descriptor ends at once: files and the null device cannot be watched, and need not be."""
    about = os.fstat(descriptor)
    return stat.S_ISREG(about.st_mode) or about.st_rdev == os.stat(os.devnull).st_rdev
