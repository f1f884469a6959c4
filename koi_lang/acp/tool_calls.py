"""Actions as tool calls of ACP: titles, kinds and diffs for an editor."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from koi_lang.acp.connection import JsonObject
from koi_lang.acp.prompts import code_block
from koi_lang.runtime.actions.registered import ActionKind, ToolKind
from koi_lang.runtime.snapshots.store import DamagedContentError, SnapshotStore, snapshots_folder

# The kinds of functions that playbooks call; that of an action is its own.
FUNCTIONS: Mapping[str, ToolKind] = {
    "patch_file": "edit", "run_tests": "execute", "run_lint": "execute", "run_types": "execute",
}  # fmt: skip
# The field of an action that says most about it: the first one that is there.
TELLING = ("command", "path", "pattern", "url", "query", "name", "event")
# The fields that name what an action calls.
NAMED_BY = {"call_skill": "function", "call_mcp": "tool"}
MAX_TITLE_CHARS = 200
MAX_OUTPUT_CHARS = 20_000
MAX_DIFF_BYTES = 1_000_000
# The side of a diff that is no file, and what lines of a hunk begin with.
NOTHING, MARKS = " /dev/null", (" ", "-", "+")


def start_of(event: JsonObject, folder: Path, action: ActionKind | None) -> JsonObject:
    """The update for the start of an action."""
    fields = event.get("fields") or {}
    name = fields.get(NAMED_BY.get(event["intent"], "")) or event["intent"]
    arguments = fields["input"] if isinstance(fields.get("input"), dict) else fields
    telling = next((str(arguments[key]) for key in TELLING if isinstance(arguments.get(key), str)), "")
    kind, path = kind_of(str(name), action), arguments.get("path")
    title = f"`{telling}`" if kind == "execute" and telling else f"{name} {telling}".strip()
    line = {"line": arguments["offset"]} if isinstance(arguments.get("offset"), int) and arguments["offset"] > 0 else {}
    places = {"locations": [{"path": str(folder / path), **line}]} if isinstance(path, str) and path else {}
    return {"title": " ".join(title.split())[:MAX_TITLE_CHARS], "kind": kind, "rawInput": fields, **places}


def kind_of(name: str, action: ActionKind | None) -> ToolKind:
    """The kind of what is called by a name; an action knows its own."""
    return FUNCTIONS.get(name, action.tool if action is not None else "other")


def output_of(event: JsonObject, action: ActionKind | None) -> list[JsonObject]:
    """The result of an action as content of its tool call; an edit is shown by its diff alone."""
    result: Any = event.get("result")
    is_edit = action is not None and action.tool == "edit"
    if isinstance(result, dict) and (result == {"success": True} or is_edit):
        return []
    match result:
        case {"stdout": str(out), "stderr": str(err)}:
            text = out + err + (f"\nexit code {code}" if (code := result.get("exitCode")) else "")
        case {"content": str(text)} | str(text):
            pass
        case None:
            return []
        case _:
            text = json.dumps(result, ensure_ascii=False, indent=2, default=str)
    return [text_content(code_block(text[:MAX_OUTPUT_CHARS]))] if text.strip() else []


def text_content(text: str) -> JsonObject:
    """A text as content of a tool call."""
    return {"type": "content", "content": {"type": "text", "text": text}}


class FileDiffs:
    """The changes that actions make of files, from the contents that the run keeps of them.

    Args:
        folder: of the project.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._store = folder, SnapshotStore(snapshots_folder(folder))
        self._changes: dict[str, dict[str, tuple[Any, Any]]] = {}

    def add(self, id: str, event: JsonObject) -> None:
        """Note a change that the tool call of an id has made."""
        files = self._changes.setdefault(id, {})
        before, _ = files.get(event["file"], (event["before"], None))
        files[event["file"]] = (before, event["after"])

    def take(self, id: str) -> list[JsonObject]:
        """The changes of a tool call as content, text files only."""
        content = []
        for file, (before, after) in self._changes.pop(id, {}).items():
            old, new = self._text(before), self._text(after)
            if (old, new) != (None, None) and before != after:
                whole = {} if old is None else {"oldText": old}
                content.append({"type": "diff", "path": str(self._folder / file), "newText": new or "", **whole})
        return content

    def _text(self, state: Any) -> str | None:
        if not isinstance(state, Mapping) or state.get("is") != "file":
            return None
        try:
            data = self._store.get(str(state["content"]))
            return data.decode() if len(data) <= MAX_DIFF_BYTES else None
        except (DamagedContentError, UnicodeDecodeError):
            return None


def preview_content(preview: str, folder: Path) -> list[JsonObject]:
    """A unified diff of one file as content: each hunk with the lines around its changes, and its notes."""
    if not preview:
        return []
    old, new, *lines = preview.splitlines()
    path = (old if new.endswith(NOTHING) else new)[len("+++ b/") :]
    hunks: list[list[str]] = []
    notes: list[str] = []
    for line in lines:
        if line.startswith("@@ "):
            hunks.append([])
        elif line[:1] in MARKS and hunks:
            hunks[-1].append(line)
        else:
            notes.append(line)
    content = []
    for hunk in hunks:
        before, after = (_side(hunk, marks) for marks in (" -", " +"))
        whole = {} if old.endswith(NOTHING) else {"oldText": before}
        content.append({"type": "diff", "path": str(folder / path), "newText": after, **whole})
    return [*content, *map(text_content, notes)]


def _side(lines: Iterable[str], marks: str) -> str:
    """The lines of a hunk before or after the change."""
    return "".join(f"{line[1:]}\n" for line in lines if line[0] in marks)
