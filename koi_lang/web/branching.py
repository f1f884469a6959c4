"""Branches from the page for developers: at an entry, with another answer or with an edited playbook.

A session of the service goes on in the service; any other run in a process of its own, as `koi resume --at` has it.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from koi_lang.errors import JournalError
from koi_lang.runtime.journal.reader import program_of, read, read_header
from koi_lang.runtime.journal.store import delete, journal_paths
from koi_lang.service.program_edits import (
    ProgramEdit,
    edit_point,
    edit_program,
    editable_playbook,
    edited_file,
    is_outside,
)
from koi_lang.sessions.earlier_session import BranchPoint
from koi_lang.web.answers import HttpError
from koi_lang.web.api_schemas import COUNT, TEXT, YES_OR_NO, closed_object, object_of, or_null
from koi_lang.web.request_context import body_with, started_answer
from koi_lang.web.run_library import RunLibrary

_EDITED = object_of({"handler": TEXT, "text": TEXT})
WISHES = closed_object({"at": {**COUNT, "minimum": 1}}, answer=or_null(TEXT), playbook=or_null(_EDITED))
# Between two looks at whether the journal of a branch has begun, and how long that may take, in seconds.
PAUSE_S, MAX_WAIT_S = 0.05, 20.0


async def branch_recorded(request: Request) -> Response:
    """Go on from an entry of a run, perhaps with another answer there, or with an edited playbook."""
    library, user = request.app.state.library, request.state.user
    body = await body_with(request, WISHES)
    at = body["at"]
    answer = body.get("answer")
    playbook = body.get("playbook")
    path = library.find(request.path_params["id"], user)
    if not user.is_admin:
        raise HttpError(403, "admins_only", "only admins begin processes", help="Branch a session of the service.")
    edited = None
    if playbook is not None:
        file = program_of(path, read_header(path))
        edited = await asyncio.to_thread(edit_program, library.folder, file, playbook["handler"], playbook["text"])
    try:
        if edited is not None and library.is_hosted(path.stem, user):
            back = BranchPoint(at, answer)
            session, _ = await library.host.branch(library.host.find(path.stem, user), user, back, None, edited=edited)
            return started_answer(session)
        branch = await _resume(library, path.stem, at, answer, edited)
    except BaseException:
        if edited is not None and (edit := ProgramEdit.of(library.folder, edited)) is not None:
            edit.remove()
        raise
    return JSONResponse({**await library.facts(branch, user), "id": branch}, 202)


def require_admin(request: Request) -> None:
    """Raise HttpError for a user with the right to run programs but not to inspect them."""
    if not request.state.user.is_admin:
        help = "The page at `/` is for those who use programs."
        raise HttpError(403, "admins_only", "what a program consists of is for admins only", help=help)


async def show_playbook(request: Request) -> Response:
    """The playbook of a handler of a run as a text to edit, and the entry that the run would go back to with it."""
    library = request.app.state.library
    user = request.state.user
    given = request.query_params
    path = library.find(request.path_params["id"], user)
    handler = given.get("handler", "")
    entry = given.get("entry", "")
    require_admin(request)

    def look() -> dict[str, Any]:
        at = edit_point(read(path), handler, int(entry) if entry.isascii() and entry.isdecimal() else 0)
        program = program_of(path, read_header(path))
        playbook = editable_playbook(library.folder, program, handler)
        if library.redactor()(playbook.text) != playbook.text:
            raise HttpError(409, "failed", f"the playbook of `{handler}` has a secret", help="Edit it in its file.")
        stays = is_outside(library.folder, program)
        return {"handler": handler, "text": playbook.text, "at": at, "is_outside": stays}

    return JSONResponse(await asyncio.to_thread(look))


async def settle_edit(request: Request) -> Response:
    """Write the edited playbook of a run into the file of its program, or remove the run with it."""
    library, user = request.app.state.library, request.state.user
    is_kept = (await body_with(request, closed_object({"keep": YES_OR_NO})))["keep"]
    path = library.find(request.path_params["id"], user)
    require_admin(request)
    file = edited_file(library.folder, read_header(path))
    edit = None if file is None else ProgramEdit.of(library.folder, file)
    if edit is None:
        raise HttpError(400, "invalid_request", f"`{path.stem}` is no run with an edited playbook")
    if is_kept:
        files = await asyncio.to_thread(edit.keep)
        if library.host is not None:
            await library.host.programs.reload_apart()
        return JSONResponse({"files": files})
    if library.is_hosted(path.stem, user):
        await library.host.delete(path.stem, user)
    else:
        await asyncio.to_thread(delete, path)
    if not any(edited_file(library.folder, read_header(each)) == file for each in journal_paths(library.folder)):
        edit.remove()
    return JSONResponse({"files": []})


async def _resume(library: RunLibrary, run: str, at: int, answer: str | None, program: Path | None = None) -> str:
    """Have `koi resume` begin a branch of a run, which then goes on by itself; gives the id. Raises HttpError."""
    known = set(journal_paths(library.folder))
    given = [*(() if answer is None else ("--answer", answer)), *(("--program", str(program)) if program else ())]
    with TemporaryFile() as output:  # a pipe would end the run with this process, or fill up
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "koi_lang", "resume", run, "--at", str(at), "--quiet", *given),
            cwd=library.folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=output,
            start_new_session=True,
        )
        branch = await _wait_for_branch(library.folder, known, run, process)
        if not branch:
            output.seek(0)
            reason = _error_in(output.read().decode("utf-8", "replace"))
            raise HttpError(409, "not_allowed_here", reason or "the branch could not be begun")
    return branch


async def _wait_for_branch(folder: Path, known: set[Path], run: str, process: asyncio.subprocess.Process) -> str:
    """The id of the branch that a process begins; empty where it ended without one. Raises HttpError."""
    for _ in range(int(MAX_WAIT_S / PAUSE_S)):  # the system does not tell that a file has come
        found = _branch_of(folder, known, run)
        if found or process.returncode is not None:
            return found
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), PAUSE_S)
    process.kill()
    raise HttpError(503, "failed", f"the branch has not begun within {MAX_WAIT_S:g} s")


def _branch_of(folder: Path, known: set[Path], run: str) -> str:
    """The run that has begun since as a branch of another one; empty where there is none yet."""
    for path in set(journal_paths(folder)) - known:
        with suppress(JournalError):  # its first line is not written yet
            parent = read_header(path).parent
            if parent is not None and parent[0] == run:
                return path.stem
    return ""


def _error_in(text: str) -> str:
    """The message of a command that failed."""
    lines = [line.removeprefix("error: ") for line in text.splitlines() if line.startswith("error: ")]
    return lines[-1] if lines else ""
