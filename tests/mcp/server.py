"""A server for tests: over stdio, or over HTTP when a port is given; it notes its process in `PIDS`.

Tools: a text, JSON, a structured result, a failure, several texts, no answer, and one that ends the process.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult, ImageContent, TextContent

server = MCPServer("shelf", log_level="ERROR")


@server.tool(structured_output=False)
def read(path: str, limit: int = 10) -> str:
    """Read
    a file.
    """
    return f"{path} {limit}"


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


if __name__ == "__main__":
    if pids := os.environ.get("PIDS"):
        with Path(pids).open("a", encoding="utf-8") as file:
            file.write(f"{os.getpid()}\n")
    if len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run()
