"""Branches of recorded runs over HTTP: each goes on in a process of its own, as `koi resume --at` has it."""

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
from koi_lang.runtime.journal.reader import read_header
from koi_lang.runtime.journal.store import journal_paths
from koi_lang.web.answers import HttpError, body_of
from koi_lang.web.run_library import RunLibrary

FIELDS = ("at", "answer")
# Between two looks at whether the journal of a branch has begun, and how long that may take, in seconds.
PAUSE_S, LONGEST_S = 0.05, 20.0


async def branch_recorded(request: Request) -> Response:
    """Go on from an entry of a run that is no session of the service; the answer there may be another one."""
    library, user = request.app.state.library, request.state.user
    at, answer = _read_wishes(await body_of(request))
    path = library.find(request.path_params["id"], user)
    if not user.is_admin:
        raise HttpError(403, "admins_only", "only admins begin processes", help="Branch a session of the service.")
    branch = await _resume(library, path.stem, at, answer)
    return JSONResponse({**await library.facts(branch, user), "id": branch}, 202)


def _read_wishes(body: dict[str, Any]) -> tuple[int, str | None]:
    """The entry and the answer that a request names. Raises HttpError."""
    at, answer = body.get("at"), body.get("answer")
    unknown = next((name for name in body if name not in FIELDS), None)
    if unknown is not None or type(at) is not int or at < 1 or not isinstance(answer, str | None):
        told = f"there is no field `{unknown}`" if unknown else "no entry is named that a run can go back to"
        raise HttpError(400, "invalid_request", told, help='Send {"at": 22}, and perhaps an "answer", a text.')
    return at, answer


async def _resume(library: RunLibrary, run: str, at: int, answer: str | None) -> str:
    """Have `koi resume` begin a branch of a run, which then goes on by itself; gives the id. Raises HttpError."""
    known = set(journal_paths(library.folder))
    given = () if answer is None else ("--answer", answer)
    with TemporaryFile() as told:  # a pipe would end the run with this process, or fill up
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "koi_lang", "resume", run, "--at", str(at), "--quiet", *given),
            cwd=library.folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=told,
            start_new_session=True,
        )
        branch = await _wait_for_branch(library.folder, known, run, process)
        if not branch:
            told.seek(0)
            reason = _error_in(told.read().decode("utf-8", "replace"))
            raise HttpError(409, "not_allowed_here", reason or "the branch could not be begun")
    return branch


async def _wait_for_branch(folder: Path, known: set[Path], run: str, process: asyncio.subprocess.Process) -> str:
    """The id of the branch that a process begins; empty where it ended without one. Raises HttpError."""
    for _ in range(int(LONGEST_S / PAUSE_S)):  # the system does not tell that a file has come
        found = _branch_of(folder, known, run)
        if found or process.returncode is not None:
            return found
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), PAUSE_S)
    process.kill()
    raise HttpError(503, "failed", f"the branch has not begun within {LONGEST_S:g} s")


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
