"""The tools of `std/code` as actions of playbooks, and as functions of skills for code.

Each is described once: its parameters are the fields of the action and the parameters of the function.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Any

from koi_lang.runtime.actions import shell
from koi_lang.runtime.actions.registered import MAX_SHOWN, ActionContext, ToolKind
from koi_lang.std.code import changing, outlines, project_files, reading, searching, symbols, web
from koi_lang.std.code import web_search as web_search_engines
from koi_lang.std.code.access import Workplace
from koi_lang.std.code.searching import SearchRequest

# Other names of fields: of the functions for code, and of the tools of other coding agents.
OTHER_NAMES = {
    "ignoreCase": "ignore_case", "maxMatches": "max_matches", "glob": "files", "timeout": "timeout_ms",
    "context": "context_lines", "maxChars": "max_chars", "text": "content", "file_text": "content",
    "file_path": "path", "path": "pattern", "is_background": "background",
    "old_string": "before", "old_str": "before", "new_string": "after", "new_str": "after",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ToolAction:
    """A function as an action.

    Attributes:
        needs: the permission that the role of an agent must have.
        safe: whether it changes nothing.
        shown: most characters of its result that a model is told at once.
        tool: its kind for editors.
        code: names of its fields whose texts are code.
    """

    function: Callable[..., Awaitable[Any]]
    needs: str | None
    safe: bool = False
    shown: int = MAX_SHOWN
    tool: ToolKind = "other"
    code: Collection[str] = ()


def _place(context: ActionContext) -> Workplace:
    return Workplace(context.run.folder, context.run, context.agent.name)


async def read_file(context: ActionContext, path: str, offset: int = 1, limit: int = 2000) -> Any:
    """Read a file as numbered lines, an image as an image, a folder as a list."""
    place = _place(context)
    may_read = await place.require_reading(path)
    place.note_seen(path)
    return await reading.read_file(place.root, path, offset, limit, may_read=may_read)


async def list_files(context: ActionContext, pattern: str = "**") -> Any:
    """List the files that a pattern such as `src/**/*.py` fits; ignored ones are left out."""
    place = _place(context)
    return await project_files.list_files(place.root, pattern, may_read=place.may_read)


async def grep(
    context: ActionContext,
    pattern: str,
    path: str = ".",
    files: str = "",
    context_lines: int = 0,
    ignore_case: bool = True,
    max_matches: int = 50,
) -> Any:
    """Search lines by a regular expression, below a path, in files that a pattern such as `*.py` fits."""
    place = _place(context)
    asked = SearchRequest(pattern, path, files, context_lines, ignore_case, max_matches)
    return await searching.grep(place.root, asked, may_read=place.may_read)


async def write_file(context: ActionContext, path: str, content: str) -> Any:
    """Make a file, or replace all of its text; the person is shown the difference."""
    return await changing.write_file(_place(context), path, content)


async def edit_file(
    context: ActionContext, path: str, before: str | None = None, after: str | None = None, diff: str | None = None
) -> Any:
    """Change a part of a file: `before`, which stands there once, to `after`; or by a unified `diff`."""
    return await changing.edit_file(_place(context), path, before, after, diff)


async def outline(context: ActionContext, path: str) -> Any:
    """List what a file declares, with lines: classes, functions, headings."""
    place = _place(context)
    may_read = await place.require_reading(path)
    return await outlines.outline(place.root, path, may_read=may_read)


async def find_symbol(context: ActionContext, name: str) -> Any:
    """Find where a class, function or the like is declared."""
    place = _place(context)
    return await symbols.find_symbol(place.root, name, may_read=place.may_read)


async def web_fetch(context: ActionContext, url: str, max_chars: int = web.DEFAULT_CHARS) -> Any:
    """Read a page of the web as text."""
    return await web.web_fetch(url, max_chars)


async def web_search(context: ActionContext, query: str, count: int = 5) -> Any:
    """Search the web; gives `results` with `title`, `url` and `text`."""
    return await web_search_engines.web_search(query, count)


async def run_command(
    context: ActionContext,
    command: str,
    description: str = "",
    cwd: str | None = None,
    background: bool = False,
    timeout_ms: int = 120_000,
    until: str = "",
) -> Any:
    """Run a command; `description` tells the person why. Gives `exitCode`, `stdout`, `stderr`.

    One that goes on, in the background or after a line that fits the regular expression `until`, gives `command`.
    """
    return await shell.shell(context, command, description, cwd, background, timeout_ms, until)


async def think(context: ActionContext, thought: str) -> Any:
    """Write down a thought; nothing is done."""
    return {"success": True}


# As much as a long text shows of itself, as JSON.
LONG = 60_000
# An output of a command, on both streams.
MAX_OUTPUT_CHARS = 30_000
TOOLS = (
    ToolAction(read_file, "read", safe=True, shown=LONG, tool="read"),
    ToolAction(list_files, "read", safe=True, shown=LONG, tool="search"),
    ToolAction(grep, "read", safe=True, shown=LONG, tool="search"),
    ToolAction(outline, "read", safe=True, shown=LONG, tool="read"),
    ToolAction(find_symbol, "read", safe=True, shown=LONG, tool="search"),
    ToolAction(write_file, "write", tool="edit", code={"content"}),
    ToolAction(edit_file, "write", tool="edit", code={"before", "after", "diff"}),
    ToolAction(run_command, "execute", shown=MAX_OUTPUT_CHARS, tool="execute", code={"command"}),
    ToolAction(web_fetch, "web_access", safe=True, shown=LONG, tool="fetch"),
    ToolAction(web_search, "web_access", safe=True, shown=LONG, tool="search"),
    ToolAction(think, None, safe=True, tool="think"),
)


def extend_koi(koi: Any) -> None:
    """Add the tools to the runs of programs that import `std/code`."""
    for tool in TOOLS:
        names = tool.function.__code__.co_varnames[: tool.function.__code__.co_argcount]
        aliases = {name: meant for name, meant in OTHER_NAMES.items() if meant in names and name not in names}
        about = {"safe": tool.safe, "shown": tool.shown, "tool": tool.tool, "code": tool.code}
        koi.action(tool.needs, aliases=aliases, **about)(tool.function)
