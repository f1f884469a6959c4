"""Two versions of a text to a unified diff for people, of bounded length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from koi_lang.std.code.line_changes import LineChange, changes_between, split_lines

AROUND = 3
# More than a file that is changed may have; a person who is asked is to see all of it.
MAX_LINES = 200_000
MAX_LINE_CHARS = 100_000


def unified_diff(before: str, after: str, path: str, *, most_lines: int = MAX_LINES) -> str:
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
        if group and change.start - group[-1][0].end > 2 * AROUND:
            yield group
            group = []
        group.append((change, moved))
        moved += len(change.lines) - (change.end - change.start)
    if group:
        yield group


def _hunk(old: Sequence[str], group: Sequence[tuple[LineChange, int]]) -> list[str]:
    first, moved = group[0]
    start, end = max(0, first.start - AROUND), min(len(old), group[-1][0].end + AROUND)
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
