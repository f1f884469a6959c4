"""Files of a project written, edited and removed for agents, once the person allows what is shown: `write_file`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from koi_lang.errors import AgentError, PermissionDeniedError, UnreadableFileError, reason
from koi_lang.runtime.guards.working_files import working_path
from koi_lang.runtime.guards.write_quota import count_written
from koi_lang.std.code.access import Workplace
from koi_lang.std.code.editing import apply_diff, replace_piece, replace_text
from koi_lang.std.code.line_changes import EditedText, LineChange, changes_between, split_lines
from koi_lang.std.code.opened_files import OpenedFile
from koi_lang.std.code.project_files import require_reading
from koi_lang.std.code.text_files import TextFile, decode_file, encode_file, encode_new, plain_ends
from koi_lang.system.open_folders import folder_of, open_inside, replace_inside

# Makes the edit of a text.
Change = Callable[[str], EditedText]


async def write_file(place: Workplace, path: str, content: str) -> dict[str, Any]:
    """Make a file as it is given, or replace the text of one, which keeps its ends of lines and its byte order mark.

    Returns:
        `success` and `path`, with `created`, `noChanges`, or the new `lines` with their numbers.

    Raises:
        AgentError: it is no text, or the file is none.
        PermissionDeniedError: a rule or the person does not allow it.
    """
    if not isinstance(content, str):
        raise AgentError("`content` is no text", help="Give the whole text of the file.")
    target = _Target.of(place, path)
    if target.before is None:
        return await _create(place, target, content)
    place.require_seen(target.name)
    return await _change(place, target, lambda text: replace_text(text, plain_ends(content)), "replace")


async def edit_file(
    place: Workplace, path: str, before: str | None = None, after: str | None = None, diff: str | None = None
) -> dict[str, Any]:
    """Change a part of a file: a piece that stands in it once, or by a unified diff.

    Returns:
        As `write_file` does, with `notes` where what was given differs from what stands in the file.

    Raises:
        AgentError: the place is not certain, or the file is no text.
        PermissionDeniedError: a rule or the person does not allow it, or that the file is read, of which this tells.
    """
    may_read = await place.require_reading(path)
    target = _Target.of(place, path)
    require_reading(may_read, target.name, path)
    if target.before is None:
        raise UnreadableFileError(f"there is no file `{target.name}`", help="Make it with `write_file`.")
    if diff is not None and before is None and after is None:
        wanted = diff
        _require_same_file(diff, target.name)
        return await _change(place, target, lambda text: apply_diff(text, wanted), "edit")
    if before is None or after is None or diff is not None:
        raise AgentError("`edit_file` takes `before` and `after`, or a `diff`", help="Give one of the two.")
    old, new = before, after
    return await _change(place, target, lambda text: replace_piece(text, old, new), "edit")


async def remove_file(place: Workplace, path: str) -> bool:
    """Remove a file with a text; says whether it was there.

    Raises:
        AgentError: it is no text.
        PermissionDeniedError: a rule or the person does not allow it.
    """
    target = _Target.of(place, path)
    if target.before is None:
        return False
    preview = unified_diff(decode_file(target.before, target.name).text, "", target.name)
    await place.require_writing(target.name, f"remove `{target.name}`", preview)
    await _put(place, target, None)
    return True


def _require_same_file(diff: str, name: str) -> None:
    """Raise AgentError for a diff whose header names another file."""
    for line in diff.splitlines():
        mark, _, path = line.partition(" ")
        named = path.partition("\t")[0].strip().rpartition("/")[2]
        if mark in ("---", "+++") and path and named not in ("null", name.rpartition("/")[2]):
            message = f"the diff is for `{path.strip()}`, and `path` is `{name}`"
            raise AgentError(message, help="Give the diff of one file, with its path.")
        if line.startswith("@@"):
            return


# ---------------------------------------------------------------- what is there


@dataclass(frozen=True, slots=True)
class _Target:
    """A file that is to be changed.

    Attributes:
        name: its path from the project.
        before: what it holds; None where it is not there.
    """

    root: Path
    file: Path
    name: str
    before: bytes | None

    @classmethod
    def of(cls, place: Workplace, path: str) -> _Target:
        file = working_path(place.root, path, changing=True)
        name = place.name_of(file)
        return cls(place.root, file, name, _content(place.root, file, name))


def _content(root: Path, file: Path, name: str) -> bytes | None:
    try:
        held = open_inside(root, file)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise AgentError(f"`{name}` cannot be opened: {reason(error)}") from error
    try:
        return OpenedFile(name, name, held).content()
    finally:
        os.close(held)


# ---------------------------------------------------------------- changing it


async def _create(place: Workplace, target: _Target, content: str) -> dict[str, Any]:
    data, text = encode_new(content, target.name), plain_ends(content)
    edit = replace_text("", text)
    await place.require_writing(target.name, f"create `{target.name}`", unified_diff("", text, target.name))
    await _put(place, target, data)
    return {"success": True, "path": target.name, "created": True, "lines": changed_lines(edit)}


async def _change(place: Workplace, target: _Target, change: Change, verb: str) -> dict[str, Any]:
    assert target.before is not None
    known: TextFile = decode_file(target.before, target.name)
    edit = change(known.text)
    data = encode_file(known, edit, target.name)
    # Of a file that may not be read, not even this is told: it would confirm a guess of what is in it.
    if data == target.before and place.may_read(target.name):
        return {"success": True, "path": target.name, "noChanges": True}
    preview = unified_diff(known.text, edit.text, target.name)
    await place.require_writing(target.name, f"{verb} `{target.name}`", preview)
    await _put(place, target, data)
    result = {"success": True, "path": target.name, "lines": changed_lines(edit)}
    return {**result, "notes": list(edit.notes)} if edit.notes else result


async def _put(place: Workplace, target: _Target, data: bytes | None) -> None:
    """Replace a file, or remove it without data, unless it has become another one since it was looked at."""
    count_written("" if data is None else data.decode("utf-8", "replace"))
    if place.run is None:
        _replace(target, data)
        return
    async with place.run.changes.record([target.file], place.agent):
        _replace(target, data)
    place.note_written(target.name)


def _replace(target: _Target, data: bytes | None) -> None:
    """Write beside the file and rename, or remove it, in a folder that was opened without following links."""
    if _content(target.root, target.file, target.name) != target.before:
        help = "Read it again, and make the change to what stands there now."
        raise AgentError(f"`{target.name}` has been changed by somebody else meanwhile", help=help)
    try:
        if data is not None:
            replace_inside(target.root, target.file, data)
            return
        with folder_of(target.root, target.file) as (folder, name):
            os.unlink(name, dir_fd=folder)
    except OSError as error:
        raise PermissionDeniedError(f"`{target.name}` cannot be written: {reason(error)}") from error


AROUND = 2
WIDTH = 5
MAX_SHOWN = 60


def changed_lines(edit: EditedText) -> str:
    """The new lines with their numbers, and two lines around them; of a large change the beginning."""
    new = split_lines(edit.text)[0]
    numbers = dict.fromkeys(
        number
        for first, last in edit.ranges
        for number in range(max(1, first - AROUND), min(len(new), last + AROUND) + 1)
    )
    shown = [f"{number:>{WIDTH}}\t{new[number - 1]}" for number in sorted(numbers)]
    left = len(shown) - MAX_SHOWN
    return "\n".join([*shown[:MAX_SHOWN], *([f"… ({left:,} more lines)"] if left > 0 else [])])


# ---------------------------------------------------------------- what the person is shown

PREVIEW_AROUND = 3
# More than a file that is changed may have; a person who is asked is to see all of it.
MAX_PREVIEW_LINES = 200_000
MAX_LINE_CHARS = 100_000


def unified_diff(before: str, after: str, path: str, *, most_lines: int = MAX_PREVIEW_LINES) -> str:
    """The unified diff of a change; empty for none. Lines beyond the bound are counted, not shown."""
    if before == after:
        return ""
    (old, is_ended), (new, is_ended_now) = split_lines(before), split_lines(after)
    lines = [f"--- a/{path}" if before else "--- /dev/null", f"+++ b/{path}" if after else "+++ /dev/null"]
    for group in _groups(changes_between(old, new)):
        lines += _hunk(old, group)
    if is_ended != is_ended_now and before and after:
        lines.append("\\ The last line is ended now" if is_ended_now else "\\ The last line is not ended any more")
    left = len(lines) - most_lines
    rest = [f"… {left:,} more lines of this difference"] if left > 0 else []
    return "\n".join(each[:MAX_LINE_CHARS] + "…" * (len(each) > MAX_LINE_CHARS) for each in lines[:most_lines] + rest)


def _groups(changes: Sequence[LineChange]) -> Iterator[list[tuple[LineChange, int]]]:
    """Changes whose surroundings touch, each with how far the lines behind it have moved before."""
    group: list[tuple[LineChange, int]] = []
    moved = 0
    for change in changes:
        if group and change.start - group[-1][0].end > 2 * PREVIEW_AROUND:
            yield group
            group = []
        group.append((change, moved))
        moved += len(change.lines) - (change.end - change.start)
    if group:
        yield group


def _hunk(old: Sequence[str], group: Sequence[tuple[LineChange, int]]) -> list[str]:
    first, moved = group[0]
    start, end = max(0, first.start - PREVIEW_AROUND), min(len(old), group[-1][0].end + PREVIEW_AROUND)
    lines: list[str] = []
    at = start
    for change, _ in group:
        lines += [" " + line for line in old[at : change.start]]
        lines += ["-" + line for line in old[change.start : change.end]]
        lines += ["+" + line for line in change.lines]
        at = change.end
    lines += [" " + line for line in old[at:end]]
    new_count = sum(not line.startswith("-") for line in lines)
    return [f"@@ -{_range(start, end - start)} +{_range(start + moved, new_count)} @@", *lines]


def _range(start: int, count: int) -> str:
    return f"{start + bool(count)},{count}"
