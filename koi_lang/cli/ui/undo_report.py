"""What is to be put back of a run, what is left and why, as lines for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from difflib import unified_diff

from koi_lang.cli.ui.text import count_text
from koi_lang.errors import KoiError
from koi_lang.runtime.file_changes.run_undo import RunUndo
from koi_lang.runtime.file_changes.undo_plan import PathUndo, UndoPlan
from koi_lang.runtime.file_changes.undoing import UndoneFile
from koi_lang.runtime.host import visible
from koi_lang.runtime.journal.reader import read
from koi_lang.runtime.journal.store import path_of
from koi_lang.runtime.ports import RunPort
from koi_lang.system.text_width import clean

# Of a difference, in lines; of what is compared line by line, in bytes.
MAX_LINES, MAX_COMPARED = 60, 1_000_000
# Of the line at the end: files that are named, and bytes of one whose lines are counted.
MAX_NAMED, MAX_COUNTED = 5, 200_000
Redact = Callable[[str], str]


def plan_lines(undo: RunUndo, plan: UndoPlan, redact: Redact) -> Iterator[str]:
    """What a plan does to each path, and what it leaves with the difference to what the run had left."""
    for each in plan.to_change:
        by = f" ({', '.join(each.by)})" if each.by else ""
        unsure = "; the run was interrupted while it changed this" if each.is_unsure else ""
        yield clean(redact(f"  {_verb(each):10}  {visible(each.file)}{by}{unsure}"))
    for each in plan.refusals:
        yield clean(redact(f"  {'leave':10}  {visible(each.file)}: {each.refusal}"))
        yield from _difference(undo, each, redact)


def _verb(undo: PathUndo) -> str:
    if undo.target is None:
        return "remove"
    return "bring back" if undo.now.state is None else "put back"


def _difference(undo: RunUndo, left: PathUndo, redact: Redact) -> Iterator[str]:
    """What is different from what the run had left, which is shown without secrets."""
    if left.left == left.now.state:
        return
    if left.left is None and left.now.state is not None:
        yield "    the run had removed it"
        return
    if left.now.state is None:
        yield "    it is not there any more"
        return
    contents = undo.contents(left.left, left.now)
    if contents is None:
        yield f"    it is {_kind(left)} now"
        return
    if contents[0] == contents[1]:
        yield "    its mode is another one"
        return
    if any(b"\0" in data or len(data) > MAX_COMPARED for data in contents):
        yield f"    {len(contents[0]):,} bytes became {len(contents[1]):,}"
        return
    names = "as the run left it", "as it is now"
    yield from (f"    {line}" for line in _compare_texts(contents, names, redact))


def _compare_texts(contents: Sequence[bytes], names: tuple[str, str], redact: Redact) -> Iterator[str]:
    """A unified diff of two texts, without secrets and cut off where it is long."""
    before, now = (redact(data.decode("utf-8", "replace")).splitlines() for data in contents)
    lines = list(unified_diff(before, now, *names, lineterm="", n=2))
    yield from map(clean, lines[:MAX_LINES])
    if len(lines) > MAX_LINES:
        yield f"({len(lines) - MAX_LINES:,} more lines)"


def diff_lines(undo: RunUndo, redact: Redact) -> Iterator[str]:
    """The files that a run has changed, each as a unified diff from before the run to now."""
    for each in undo.plan().to_change:
        contents = undo.contents(each.target, each.now)
        if contents is None or any(b"\0" in data or len(data) > MAX_COMPARED for data in contents):
            what = "removed" if each.now.state is None else "added" if each.target is None else "changed"
            yield clean(redact(f"{what}: {visible(each.file)}"))
            continue
        file = visible(each.file)
        yield from _compare_texts(contents, (f"a/{file}", f"b/{file}"), redact)


def _kind(left: PathUndo) -> str:
    state = left.now.state
    return "not there" if state is None else state.content if state.is_of == "other" else f"a {state.is_of}"


def outcome_lines(run: str, plan: UndoPlan, done: Sequence[UndoneFile], redact: Redact) -> Iterator[str]:
    """What came of it."""
    count = sum(not each.refusal for each in done)
    if count:
        yield f"put back {count_text(count, 'path')} that {run} had changed"
    for each in done:
        file = visible(each.undo.file)
        if each.refusal:
            yield clean(redact(f"warning: {file} was left: {each.refusal}"))
        elif each.is_kept_folder:
            yield clean(redact(f"{file} stays: files are in it that the run has not made, or a repository"))


def changes_text(run: RunPort, unchanged: str = "no file was changed") -> str:
    """The files that a recorded run has changed, with added and removed lines; empty where that is not known.

    Args:
        unchanged: stands for no files.
    """
    marks: list[str] = []
    names: list[str] = []
    try:
        undo = RunUndo(run.folder, run.id, read(path_of(run.folder, run.id)).entries, run.settings)
        for each in undo.plan().paths:
            states = [state for state in (each.now.state, each.target) if state is not None]
            if not (each.has_change or each.refusal) or any(state.is_of == "folder" for state in states):
                continue
            names.append(visible(each.file))
            contents = undo.contents(each.target, each.now)
            if contents is not None and max(map(len, contents)) <= MAX_COUNTED:
                before, now = (data.decode("utf-8", "replace").splitlines() for data in contents)
                marks += [line[0] for line in list(unified_diff(before, now, lineterm="", n=0))[2:]]
    except KoiError:
        return ""
    if not names:
        return unchanged
    more = f", and {len(names) - MAX_NAMED:,} more" if len(names) > MAX_NAMED else ""
    count = f"{count_text(len(names), 'file')} changed, +{marks.count('+'):,} −{marks.count('-'):,}"
    them = "it" if len(names) == 1 else "them"
    return f"{count}: {', '.join(sorted(names)[:MAX_NAMED])}{more}; `koi undo {run.id}` puts {them} back"


def nothing_text(run: str, entry: int) -> str:
    """That there is nothing to put back."""
    since = f" since entry {entry}" if entry else ""
    return f"nothing is left to undo of {run}: no file is changed by it{since}"
