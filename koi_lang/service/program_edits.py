"""Edited programs: versions in which the text of a playbook is another one, each kept for the runs that go on with it.

`.koi/versions/ID/files` has the files of the program with the edit and links to what stands beside them;
`.koi/versions/ID/edit.json` says which files those are, and what they were. A folder of somebody else may have such a
record, so it is believed only of `.koi` files of that folder. Before `keep` nothing is changed in the program. One
that is outside of the project is never changed.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from difflib import unified_diff
from pathlib import Path
from typing import Any

from koi_lang.compiler import nodes as n
from koi_lang.compiler.calls.graph import CallGraph
from koi_lang.diagnostics import CompileError
from koi_lang.errors import KoiError, UsageError, reason
from koi_lang.events import CallStarted, HandlerStarted
from koi_lang.program import build, cache
from koi_lang.program.formatting import Formatted, replace_file
from koi_lang.runtime.guards.paths import project_path
from koi_lang.runtime.journal.calls import is_session
from koi_lang.runtime.journal.entries import Header
from koi_lang.runtime.journal.reader import Journal
from koi_lang.source import Source
from koi_lang.system.open_folders import STATE_FOLDER

FILES, RECORD = "files", "edit.json"
FENCE = '"""'


@dataclass(frozen=True, slots=True)
class EditablePlaybook:
    """The text of a playbook, and where it stands.

    Attributes:
        start: where what is replaced begins in the source; `end` likewise.
        is_fenced: whether it stands between three quotes.
    """

    handler: str
    source: Source
    text: str
    start: int
    end: int
    is_fenced: bool

    @staticmethod
    def find(program: Path, handler: str) -> EditablePlaybook:
        """The playbook of a handler, by the `Agent.event` of that. Raises KoiError where it cannot be edited."""
        checked = build.check(str(program))
        routines = CallGraph(checked.files).routines if checked.files else ()
        routine = next((each for each in routines if each.is_handler and each.name == handler), None)
        if routine is None or routine.playbook is None:
            raise UsageError(f"`{handler}` has no playbook in `{program.name}`", help="Choose a step of a playbook.")
        part = routine.playbook.parts[0]
        if len(routine.playbook.parts) != 1 or not isinstance(part, n.Text):
            help = "Edit it in its file; `koi run --since` goes on from there."
            raise UsageError(f"the playbook of `{handler}` does not consist of one text", help=help)
        source = routine.file.unit.source
        if part.start is None:
            return EditablePlaybook(handler, source, part.value, part.span.start, part.span.end, False)
        end = part.start + len(part.value)
        return EditablePlaybook(handler, source, part.value.replace("\r\n", "\n"), part.start, end, True)

    def source_with(self, text: str) -> str:
        """The source with another text of the playbook. Raises UsageError for one that no literal can hold."""
        if not text.strip():
            raise UsageError("a playbook cannot be empty", help="Write what the model is to do.")
        if FENCE in text:
            raise UsageError("a playbook cannot contain three quotes in a row", help="Write one or two.")
        ended = text.strip() + (" " if text.strip().endswith('"') else "")
        if "\n" in text and not self.is_fenced:
            ended = f"{FENCE}{ended}{FENCE}"
        elif not self.is_fenced:
            ended = '"' + text.strip().replace("\\", "\\\\").replace('"', '\\"') + '"'
        if "\r\n" in self.source.text:
            ended = ended.replace("\n", "\r\n")
        return self.source.text[: self.start] + ended + self.source.text[self.end :]


@dataclass(frozen=True, slots=True)
class ProgramEdit:
    """An edited version of a program.

    Attributes:
        folder: of the project.
        version: the folder of the version.
        handlers: whose playbooks have another text.
        files: the hash of each edited file as it was before, by its path as seen from the project.
        originals: what was in these files, where the program is outside of the project; then paths are as seen from it.
    """

    folder: Path
    version: Path
    handlers: Collection[str]
    files: Mapping[str, str]
    originals: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(folder: Path, program: Path) -> ProgramEdit | None:
        """The edit that a program is the outcome of; None for a program of a person."""
        versions = versions_folder(folder)
        if not program.is_relative_to(versions):
            return None
        version = versions / program.relative_to(versions).parts[0]
        try:
            record = json.loads((version / RECORD).read_text("utf-8"))
            originals = {name: str(text) for name, text in record.get("originals", {}).items()}
            return ProgramEdit(folder, version, list(record["handlers"]), dict(record["files"]), originals)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None

    def write(self) -> None:
        """Write the record of the edit."""
        about = {"handlers": list(self.handlers), "files": dict(self.files), "originals": dict(self.originals)}
        (self.version / RECORD).write_text(json.dumps(about), encoding="utf-8")

    def changes(self) -> list[Formatted]:
        """Each edited file: as it is in the program by now, and as the version has it. Raises KoiError."""
        found = []
        for name in self.files:
            edited = project_path(self.version / FILES, name)
            original = self.originals.get(name)
            file = project_path(self.folder, name) if original is None else Path(name)
            if file.suffix != ".koi":
                raise KoiError(f"`{name}` is no program, and is left alone", help=f"Remove `{self.version}`.")
            try:
                data, after = file.read_bytes() if original is None else original.encode(), edited.read_bytes()
            except OSError as error:
                raise KoiError(f"`{name}` cannot be read: {reason(error)}") from error
            found.append(Formatted(str(file), data, data.decode("utf-8", "replace"), after.decode("utf-8")))
        return found

    def as_data(self, redact: Callable[[str], str] = str) -> dict[str, Any]:
        """The edit as data for pages: its `handlers` and `diff`, and whether it is, or can be, in the files."""
        changes = self.changes()
        lines = [
            line
            for name, each in zip(self.files, changes, strict=True)
            for line in unified_diff(
                redact(each.text).splitlines(), redact(each.after).splitlines(), name, name, n=2, lineterm=""
            )
        ]
        is_kept = not any(each.is_changed for each in changes)
        is_stale = not is_kept and not self.originals and any(map(self.is_stale, self.files, changes))
        state = {"is_kept": is_kept, "is_stale": is_stale, "is_outside": bool(self.originals)}
        return {"handlers": list(self.handlers), "diff": "\n".join(lines), **state}

    def is_stale(self, name: str, change: Formatted) -> bool:
        """Whether a file is another one than when it was edited first."""
        return cache.digest(change.read) != self.files[name]

    def keep(self) -> list[str]:
        """Write the edit into the files of the program; gives their names.

        Raises:
            KoiError: one of them has changed, or the program is outside of the project.
        """
        if self.originals:
            message = "the program is outside of this project, and is left alone"
            raise KoiError(message, help="Write the difference into its file by hand.")
        changes = self.changes()
        for name, change in zip(self.files, changes, strict=True):
            if change.is_changed and self.is_stale(name, change):
                help = "Look at the difference, and edit the file by hand, or begin from a newer run."
                raise KoiError(f"`{name}` was changed since the playbook was edited, and is left alone", help=help)
        for change in changes:
            replace_file(change)
        return list(self.files)

    def remove(self) -> None:
        """Remove the version."""
        shutil.rmtree(self.version, ignore_errors=True)


def versions_folder(folder: Path) -> Path:
    """Where the edited versions of programs are."""
    return folder.resolve() / STATE_FOLDER / "versions"


def edited_file(folder: Path, header: Header) -> Path | None:
    """The file of the edited program that a run is of; None for a run of a program as it is, or was."""
    file = Path(os.path.normpath(folder.resolve() / header.program))
    return file if file.is_relative_to(versions_folder(folder)) and file.is_file() else None


def edit_point(journal: Journal, handler: str, entry: int) -> int:
    """The entry at which a run goes back to go on with another playbook of a handler. Raises UsageError.

    Of a session, calls that had ended stay as they were, so that is within the call of `entry`; of a run, it is before
    anything that the text had to do with.
    """
    calls = [each.n for each in journal.entries if each.kind == CallStarted.type and each.n <= entry]
    first = calls[-1] if calls and is_session(journal.header) else 0
    for each in journal.entries:
        is_of_handler = bool(each.path) and each.path[-1].partition("#")[0] == handler
        if each.kind == HandlerStarted.type and is_of_handler and each.n >= first:
            return each.n
    raise UsageError(f"`{handler}` was not called there", help="Choose a step of a playbook.")


def editable_playbook(folder: Path, program: Path, handler: str) -> EditablePlaybook:
    """The playbook of a handler, where a version of the program can have another text. Raises KoiError."""
    playbook = EditablePlaybook.find(program.resolve(), handler)
    if not Path(playbook.source.path).is_relative_to(_tree_of(folder, program.resolve())):
        message = f"the playbook of `{handler}` is in a file outside of the program's folder"
        raise UsageError(message, help="Edit it in its file.")
    return playbook


def is_outside(folder: Path, program: Path) -> bool:
    """Whether a program, or that which it is an edited version of, is outside of the project and stays as it is."""
    before = ProgramEdit.of(folder, program.resolve())
    if before is not None:
        return bool(before.originals)
    return not program.resolve().is_relative_to(folder.resolve())


def _tree_of(folder: Path, program: Path) -> Path:
    """The folder of which a version of a program has a copy: the project, or that of a program outside of it."""
    before = ProgramEdit.of(folder, program)
    if before is not None:
        return before.version / FILES
    return program.parent if is_outside(folder, program) else folder.resolve()


def edit_program(folder: Path, program: Path, handler: str, text: str) -> Path:
    """Make a version of a program in which a playbook has another text; gives the file of the program in it.

    Args:
        folder: of the project.
        program: its file, which may be that of an edited version.

    Raises:
        KoiError: the playbook cannot be edited, or the program has errors with that text.
    """
    program, before = program.resolve(), ProgramEdit.of(folder, program.resolve())
    tree = _tree_of(folder, program)
    playbook = editable_playbook(folder, program, handler)
    sources = [Path(path) for path in build.check(str(program)).read]
    edited = Path(playbook.source.path).relative_to(tree)
    version = versions_folder(folder) / secrets.token_hex(6)
    files = {edited.as_posix(): cache.digest(Path(playbook.source.path).read_bytes())}
    handlers = {handler: None}
    originals = {edited.as_posix(): playbook.source.text} if is_outside(folder, program) else {}
    if before is not None:
        files = {**files, **before.files}
        handlers = {**dict.fromkeys(before.handlers), **handlers}
        originals = {**originals, **before.originals}
    try:
        mirror_files(tree, version / FILES, {file.relative_to(tree) for file in sources if file.is_relative_to(tree)})
        (version / FILES / edited).write_bytes(playbook.source_with(text).encode())
        ProgramEdit(folder, version, list(handlers), files, originals).write()
        made = version / FILES / program.relative_to(tree)
        if errors := build.check(str(made)).errors:
            raise CompileError(errors)
    except OSError as error:
        shutil.rmtree(version, ignore_errors=True)
        raise KoiError(f"the edited program cannot be written: {reason(error)}") from error
    except KoiError:
        shutil.rmtree(version, ignore_errors=True)
        raise
    return made


def mirror_files(tree: Path, target: Path, copied: Collection[Path]) -> None:
    """Make a folder that has copies of some files of another one, and links to all that stands beside them."""
    folders = {parent for file in copied for parent in file.parents}
    for inner in sorted(folders):
        (target / inner).mkdir(parents=True, exist_ok=True)
        for each in (tree / inner).iterdir():
            place = inner / each.name
            if place in copied:
                shutil.copyfile(each, target / place)
            elif place not in folders and each.name != STATE_FOLDER:
                (target / place).symlink_to(each.resolve(), target_is_directory=each.is_dir())
