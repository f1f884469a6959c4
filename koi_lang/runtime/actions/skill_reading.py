"""The action that reads a skill of the project, or a file beside it."""

from __future__ import annotations

from typing import Any

from koi_lang.runtime.actions.registered import ActionContext, ActionError, action

READ_SKILL = "read_skill"
# Of one answer; `MAX_PART` characters of a text have that much room as JSON.
MAX_SHOWN = 24_000


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
