"""The actions that read texts which a model is not told whole: long outputs of actions, and skills in files."""

from __future__ import annotations

import asyncio
import re
from itertools import islice
from typing import TYPE_CHECKING, Any

from koi_lang.runtime.actions.registered import ActionContext, ActionError, action
from koi_lang.runtime.outputs.ends import DEFAULT_ROWS, READ_OUTPUT
from koi_lang.runtime.outputs.long_texts import MAX_ROW_CHARS, count_rows, data_of
from koi_lang.runtime.outputs.run_outputs import require_told

if TYPE_CHECKING:
    from koi_lang.runtime.background_commands import BackgroundCommand

# Lines at once, and bytes of them.
MAX_ROWS, MAX_READ = 2000, 20_000
READ_SKILL = "read_skill"
# Of one answer; `MAX_PART` characters of a skill have that much room as JSON.
MAX_SHOWN = 24_000
ROW = re.compile(rf"[^\n]{{1,{MAX_ROW_CHARS}}}\n?|\n")


@action(
    name=READ_OUTPUT,
    aliases={"output": "id", "start": "from"},
    safe=True,
    shown=60_000,
    tool="read",
    only_looks=True,
    is_occasional=True,
)
async def read_output(context: ActionContext, id: int, from_: int = 1, count: int = DEFAULT_ROWS) -> Any:
    """Read lines of a long result by the number of its output; `from` counts from 1. Gives `text` and `next`."""
    if not 1 <= count <= MAX_ROWS:
        raise ActionError(f"`count` must be between 1 and {MAX_ROWS:,}")
    command = context.run.commands.find(context.agent.name, id) if context.run.has_commands else None
    if command is not None:
        return await _read_command(context, command, from_, count)
    kept = require_told(context.run.outputs, context.agent.name, id)
    if not 1 <= from_ <= kept.rows:
        raise ActionError(f"`from` must be between 1 and {kept.rows:,}, the last line of output {id}")
    text = await context.run.outputs.text_of(kept)
    if text is None:
        raise ActionError(f"output {id} is not there any more", help="Carry the action out again that gave it.")
    rows = await asyncio.to_thread(_rows, text, from_, count)
    end = from_ + len(rows) - 1
    following = {"next": end + 1} if end < kept.rows else {}
    return {"id": id, "from": from_, "to": end, "lines": kept.rows, **following, "text": "".join(rows)}


async def _read_command(context: ActionContext, command: BackgroundCommand, start: int, count: int) -> Any:
    """Lines of the output of a command, as far as it has come; behind its last line there is nothing yet."""
    text = context.run.commands.text_of(command)
    last = await asyncio.to_thread(count_rows, text) if text else 0
    if not 1 <= start <= last + 1:
        raise ActionError(f"`from` must be between 1 and {last + 1:,}; the output has {last:,} lines so far")
    rows = await asyncio.to_thread(_rows, text, start, count)
    end = start + len(rows) - 1
    following = {"next": end + 1} if end < last or command.state == "running" else {}
    about = {"id": command.number, "state": command.state, "from": start, "to": end, "lines": last}
    return {**about, **following, "text": "".join(rows)}


def _rows(text: str, start: int, count: int) -> list[str]:
    """Some lines of a text, at least one and no more than may be read at once."""
    rows: list[str] = []
    size = 0
    for found in islice(ROW.finditer(text), start - 1, start - 1 + count):
        size += len(data_of(found[0]))
        if rows and size > MAX_READ:
            break
        rows.append(found[0])
    return rows


@action(
    name=READ_SKILL,
    aliases={"skill": "name", "path": "file"},
    safe=True,
    shown=MAX_SHOWN,
    tool="read",
    only_looks=True,
    is_occasional=True,
)
async def read_skill(context: ActionContext, name: str, file: str = "", offset: int = 1) -> Any:
    """Read a skill, or a file beside it, from line `offset` on; gives `text`, and `next` where there is more."""
    if offset < 1:
        raise ActionError(f"`offset` is the number of a line, from 1, not {offset}")
    return await context.run.guidance.read_skill(context.agent, name, file, offset)
