"""A small MCP server for `mcp-files.koi`: it reads and writes the files of one folder, which its argument names."""

from __future__ import annotations

import sys
from pathlib import Path

# What the example starts it with.
python, path = sys.executable, __file__


def serve(folder: Path) -> None:
    """Answer until the client has gone."""
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError

    server = MCPServer("files", log_level="ERROR")

    def inside(path: str) -> Path:
        wanted = (folder / path).resolve()
        if not wanted.is_relative_to(folder):
            raise ToolError(f"{path} lies outside of {folder.name}")
        return wanted

    @server.tool(structured_output=False)
    def list_directory(path: str) -> str:
        """List what is in a folder, one name a line."""
        return "\n".join(sorted(entry.name for entry in inside(path).iterdir()))

    @server.tool(structured_output=False)
    def read_text_file(path: str) -> str:
        """Read a text file."""
        return inside(path).read_text("utf-8")

    @server.tool(structured_output=False)
    def write_file(path: str, content: str) -> str:
        """Write a text file, over the one that is there."""
        inside(path).write_text(content, "utf-8")
        return f"wrote {path}"

    server.run()


if __name__ == "__main__":
    shelf = Path(sys.argv[1]).resolve()
    shelf.mkdir(parents=True, exist_ok=True)
    serve(shelf)
