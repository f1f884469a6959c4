"""A server for tests: over stdio, or over HTTP with `http`, `json` or `sse`, at a port that it prints.

It notes its process in `PIDS`.

Tools: a text, a large one, JSON, a structured result, a failure, several texts, a question, a change of the tools, no
answer, and one that ends the process.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.types import (
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    ImageContent,
    InputRequiredResult,
    TextContent,
)

server = MCPServer("shelf", log_level="ERROR")


@server.tool(structured_output=False)
def read(path: str, limit: int = 10) -> str:
    """Read
    a file.
    """  # noqa: D205 -- two lines, as some servers have them
    return f"{path} {limit}"


@server.tool(structured_output=False)
def big(bytes: int) -> str:
    """Give a text of a size."""
    return "x" * bytes


@server.tool(structured_output=False)
def count(items: list[str]) -> str:
    """Count items, as JSON."""
    return f'{{"count": {len(items)}.0}}'


@server.tool()
def structured(name: str) -> dict[str, str | None]:
    """Give a record."""
    return {"name": name, "from": os.environ.get("SHELF"), "empty": os.environ.get("EMPTY")}


@server.tool(structured_output=False)
def several() -> list[str]:
    """Give two texts."""
    return ["one", "two"]


@server.tool()
def picture() -> CallToolResult:
    """Give a text and an image."""
    image = ImageContent(type="image", data="aGk=", mime_type="image/png")
    return CallToolResult(content=[TextContent(type="text", text="seen"), image])


@server.tool()
def fail(reason: str) -> CallToolResult:
    """Fail."""
    return CallToolResult(content=[TextContent(type="text", text=reason)], is_error=True)


@server.tool(structured_output=False)
async def ask(context: Context) -> InputRequiredResult | str:
    """Ask the person for a name, in the way of the newer protocol."""
    answers = context.input_responses or {}
    if not answers:
        form = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        asked = ElicitRequest(params=ElicitRequestFormParams(message="Who?", requested_schema=form))
        return InputRequiredResult(input_requests={"who": asked})
    who = answers["who"]
    assert isinstance(who, ElicitResult)
    return f"hello {(who.content or {}).get('name')}"


@server.tool()
async def grow(context: Context) -> str:
    """Get a tool more, and tell those who listen."""
    server.add_tool(several, name="grown", structured_output=False)
    await context.notify_tools_changed()
    return "grown"


@server.tool()
async def hang() -> str:
    """Give no answer."""
    await asyncio.sleep(600)
    return "late"


@server.tool()
def die() -> str:
    """End the process."""
    print("the shelf\nbreaks", file=sys.stderr, flush=True)
    os._exit(3)


def listen(app: Any) -> None:
    """Answer at a free port of this machine."""
    import uvicorn

    with socket.create_server(("127.0.0.1", 0)) as listening:
        print(listening.getsockname()[1], flush=True)
        uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listening])


if __name__ == "__main__":
    if pids := os.environ.get("PIDS"):
        with Path(pids).open("a", encoding="utf-8") as file:
            file.write(f"{os.getpid()}\n")
    if len(sys.argv) > 1:
        way = sys.argv[1]
        listen(server.sse_app() if way == "sse" else server.streamable_http_app(json_response=way == "json"))
    else:
        server.run()
