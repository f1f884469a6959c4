"""A folder to the journals in it: finding, listing, repairing and deleting them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import filterfalse
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from koi_lang.errors import JournalError
from koi_lang.lazy import lazy_module
from koi_lang.runtime.journal.entries import Header, line_of
from koi_lang.runtime.journal.line_ends import seal_line, unseal_line
from koi_lang.runtime.journal.reader import in_order, lines, open_journal, program_of, read_header
from koi_lang.system.file_locks import try_lock, try_lock_patiently
from koi_lang.system.open_folders import STATE_FOLDER

if TYPE_CHECKING:
    import shutil

    from koi_lang.runtime.outputs import output_files
    from koi_lang.runtime.snapshots import store as snapshots
else:
    output_files = lazy_module("koi_lang.runtime.outputs.output_files")
    shutil = lazy_module("shutil")
    snapshots = lazy_module("koi_lang.runtime.snapshots.store")

# In `.output` earlier versions kept long output of commands.
SUFFIX = ".jsonl"
TORN = ".torn"
OUTPUT = ".output"
STREAMS = ".streams"
LAST = "last"
# Between the id of an evaluation and the number of its case.
PART = "-"
PIECE = 1 << 16


def runs_folder(folder: Path) -> Path:
    """Where the journals of programs that are run in a folder are."""
    return folder / STATE_FOLDER / "runs"


def path_of(folder: Path, run: str) -> Path:
    """The journal of a run, whether or not there is one."""
    return runs_folder(folder) / f"{run}{SUFFIX}"


def streams_folder(folder: Path, run: str) -> Path:
    """The folder for the recorded streams of a run; removed with its journal."""
    return path_of(folder, run).with_suffix(STREAMS)


def journals(folder: Path) -> list[Path]:
    """The journals of a folder, those of the earliest runs first."""
    return sorted(journal_paths(folder), key=_start_time)


def journal_paths(folder: Path) -> list[Path]:
    """The same by their names, without a look into them."""
    return sorted(runs_folder(folder).glob(f"*{SUFFIX}"))


def _start_time(path: Path) -> tuple[float, str]:
    try:
        return read_header(path).started, path.name
    except JournalError:
        return _changed_at(path), path.name


def _changed_at(path: Path) -> float:
    """When a file was written last; 0 where it has been removed meanwhile."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def find(folder: Path, run: str) -> Path:
    """The journal that an id, the beginning of one, or `last` names. Raises JournalError."""
    known = journal_paths(folder)
    if not known:
        help = "`koi run --record FILE` writes a journal."
        raise JournalError(f"there are no journals in `{runs_folder(folder)}`", help=help)
    if run == LAST:
        return max(filterfalse(is_part, known), key=_start_time)
    found = [path for path in known if run and path.stem.startswith(run)]
    whole = list(filterfalse(is_part, found))
    found = whole if len(whole) == 1 and all(path.stem.startswith(whole[0].stem) for path in found) else found
    exact = [path for path in found if path.stem == run]
    if len(exact or found) == 1:
        return (exact or found)[0]
    if not found:
        raise JournalError(f"there is no run `{run}`", help="`koi runs list` shows the runs of this folder.")
    several = ", ".join(f"`{path.stem}`" for path in found[:6])
    raise JournalError(f"`{run}` is the beginning of several runs", help=f"Write more of one of these: {several}.")


def family_of(journal: Path, run: str) -> list[dict[str, Any]]:
    """The runs that one goes on from or that go on from it, in their order, as `get_tree` gives them."""
    headers = _headers(journal)
    nodes = []
    for id in sorted(_family(headers, run), key=lambda each: (headers[each].started, each)):
        header = headers[id]
        parent, entry = header.parent or (None, None)
        node = {"run": id, "started": header.started, "program": header.program, "parent": parent, "entry": entry}
        nodes.append(node)
    return nodes


def _headers(journal: Path) -> dict[str, Header]:
    """The headers of all journals beside one, by the id of their runs; damaged ones are left out."""
    headers: dict[str, Header] = {}
    for path in journals(journal.parents[2]):
        try:
            header = read_header(path)
        except JournalError:
            continue
        headers[header.run] = header
    return headers


def _family(headers: Mapping[str, Header], run: str) -> set[str]:
    """The runs that are connected with one by branching."""
    parents = {id: header.parent[0] for id, header in headers.items() if header.parent is not None}
    family = {run}
    while True:
        kin = {id for id, parent in parents.items() if parent in family} | {
            parents[id] for id in family & parents.keys()
        }
        if kin <= family:
            return family & headers.keys()
        family |= kin


def is_running(path: Path) -> bool:
    """Whether the run of a journal goes on. Raises JournalError when it cannot be read."""
    with open_journal(path) as file:
        return not try_lock(file.fileno(), shared=True)


def is_part(path: Path) -> bool:
    """Whether a journal is of a case of an evaluation that there is a journal of."""
    evaluation, dash, _ = path.stem.rpartition(PART)
    return bool(dash) and path.with_name(f"{evaluation}{SUFFIX}").exists()


def repair(path: Path) -> int:
    """Cut a torn last line off and keep it beside the journal, in `<id>.torn`; gives how many bytes that were.

    Raises:
        JournalError: the file is no journal, or its run goes on; then it is left as it is.
    """
    read_header(path)
    with _alone(path) as file:
        end = _end_of_whole_lines(file)
        file.seek(end)
        torn = file.read()
        if torn:
            _keep(path.with_suffix(TORN), torn)
            file.truncate(end)
            os.fsync(file.fileno())
    return len(torn)


def delete(path: Path) -> None:
    """Remove a journal and the stored files of its run. Raises JournalError while its run goes on.

    With an evaluation go its cases.
    `sweep_snapshots` then removes the contents of its snapshots, as far as nothing else needs them.
    """
    with _alone(path):
        for part in [] if is_part(path) else sorted(path.parent.glob(f"{path.stem}{PART}*{SUFFIX}")):
            delete(part)
        for suffix in (OUTPUT, STREAMS):
            shutil.rmtree(path.with_suffix(suffix), ignore_errors=True)  # leaves a link alone
        if path.parent == runs_folder(project := path.parent.parent.parent):
            snapshots.delete_snapshots(project, path.stem)
            output_files.delete_outputs(project, path.stem)
        path.unlink()
        path.with_suffix(TORN).unlink(missing_ok=True)


def put_in_order(path: Path) -> int | None:
    """Keep the sound lines of a journal, in the order in which they were written; gives how many others there were.

    These are added to what was cut off it, in `<id>.torn`. Where every line is sound and in its place it gives None.

    Raises:
        JournalError: the file is no journal, or its run goes on; then it is left as it is.
    """
    with _alone(path) as file:
        whole = [line for line in lines(path) if line.is_whole]
        kept = in_order(whole)
        if kept == whole:
            return None
        others = {line.number for line in whole} - {line.number for line in kept}
        if others:
            _keep(path.with_suffix(TORN), b"".join(line.text for line in whole if line.number in others))
        _replace(path, [file.readline(), *(line.text for line in kept)])
    return len(others)


def export(path: Path, target: BinaryIO, header: Header) -> int:
    """Write a header and all entries that can be relied on; gives how many lines were left out. Raises JournalError."""
    found = list(lines(path))
    kept = in_order(found)
    target.write(seal_line(line_of(header, str), header.run))
    for line in kept:
        target.write(seal_line(unseal_line(line.text), header.run))
    return len(found) - len(kept)


def export_recording(path: Path, output: Path) -> int:
    """Write a run to a new file, with its program named as seen from there; gives how many lines were left out.

    Raises:
        JournalError: the run cannot be read.
        OSError: the file exists, or cannot be written.
    """
    header = read_header(path)
    seen = os.path.relpath(program_of(path, header), output.absolute().parent)
    output.parent.mkdir(parents=True, exist_ok=True)
    with output.open("xb") as file:
        return export(path, file, replace(header, program=Path(seen).as_posix()))


@contextmanager
def _alone(path: Path) -> Iterator[BinaryIO]:
    """A journal that nobody else writes. Raises JournalError."""
    with open_journal(path, "r+b") as file:
        if not try_lock_patiently(file.fileno()):
            raise JournalError(f"the run `{path.stem}` goes on", help="Wait until it has ended, or end it first.")
        yield file


def _end_of_whole_lines(file: BinaryIO) -> int:
    """The position behind the last line break."""
    end = file.seek(0, os.SEEK_END)
    while end > 0:
        start = max(0, end - PIECE)
        file.seek(start)
        found = file.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _replace(path: Path, lines: Iterable[bytes]) -> None:
    """Give a file another content at once. Raises OSError, and then it has its old one."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with ExitStack() as undo:
        undo.callback(beside.unlink, missing_ok=True)
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
        undo.pop_all()


def _keep(path: Path, torn: bytes) -> None:
    """Add bytes to a file and have them on disk."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "ab") as file:
        file.write(torn)
        file.flush()
        os.fsync(file.fileno())
