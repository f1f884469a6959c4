"""The data of the page for developers: recorded runs, their programs, differences, and previews of branches."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from koi_lang.runtime.journal.entries import JournalEntry, entry_in, header_of
from koi_lang.runtime.journal.line_ends import is_changed
from koi_lang.runtime.journal.reader import MAX_HEADER_BYTES, open_journal, read_header
from koi_lang.runtime.journal.store import SUFFIX, export_recording
from koi_lang.service.program_edits import ProgramEdit, edited_file
from koi_lang.service.user_view import entries_as_user
from koi_lang.web.answers import HttpError
from koi_lang.web.api_schemas import TEXT, closed_object
from koi_lang.web.branching import branch_recorded, require_admin, settle_edit, show_playbook
from koi_lang.web.page_file import run_page
from koi_lang.web.program_data import graph_data, source_data
from koi_lang.web.request_context import body_with, user_of
from koi_lang.web.run_data import (
    comparison_data,
    header_data,
    preview_data,
    program_path,
    run_graph,
    run_source,
    tree_data,
)
from koi_lang.web.run_library import ID, RunLibrary, RunQuery

Given = TypeVar("Given")
PAGE, MAX_PAGE = 100, 500
# Fields of the header of a journal that every user is shown.
HEADER = ("journal", "run", "started", "version", "today", "parent")
# How long a command may take that is asked to look at a program, in seconds.
MAX_WAIT_S = 60.0
# Where runs are kept as tests.
TESTS = "tests"


def library_of(request: Request) -> RunLibrary:
    """The runs that the app has."""
    library: RunLibrary = request.app.state.library
    return library


def _journal_of(request: Request, name: str = "id") -> Path:
    """The journal of the run that is asked for. Raises ServiceError."""
    return library_of(request).find(request.path_params[name], user_of(request))


async def _tell(function: Callable[..., Given], *given: Any) -> Response:
    """The result of a function as JSON, computed in a thread."""
    return JSONResponse(await asyncio.to_thread(function, *given))


def _number(request: Request, name: str, default: int) -> int:
    """A number of the query. Raises HttpError."""
    given = request.query_params.get(name, "")
    if not given:
        return default
    if not given.isdecimal() or len(given) > 15:
        raise HttpError(400, "invalid_request", f"`{name}` is no number", help=f"Send {name}=17, or leave it out.")
    return int(given)


# ---------------------------------------------------------------- runs


async def list_recorded(request: Request) -> Response:
    """The runs that the user may see, also those that were not begun by the service, with totals by day."""
    wish = RunQuery.of(request.query_params)
    limit = min(_number(request, "limit", PAGE), MAX_PAGE)
    runs = await library_of(request).all(user_of(request))
    return JSONResponse(wish.page(runs, limit, request.query_params.get("before", "")))


async def show_recorded(request: Request) -> Response:
    """One run, with the header of its journal."""
    library, path = library_of(request), _journal_of(request)
    facts = await library.facts(path.stem, user_of(request))
    header = header_data(path)
    if not user_of(request).is_admin:
        return JSONResponse({**facts, "header": {name: value for name, value in header.items() if name in HEADER}})
    edited = edited_file(library.folder, read_header(path))
    edit = None if edited is None else ProgramEdit.of(library.folder, edited)
    edit_data = None if edit is None else await asyncio.to_thread(edit.as_data, library.redactor().source)
    return JSONResponse({**facts, "header": header, "edit": edit_data})


async def list_entries(request: Request) -> Response:
    """Entries of a run behind one."""
    path = _journal_of(request)
    since = _number(request, "since", 0)
    limit = _number(request, "limit", MAX_PAGE)
    page = await asyncio.to_thread(read_page, path, since, limit)
    if user_of(request).is_admin:
        return JSONResponse(page.as_data())
    entries = list(entries_as_user(page.entries))
    return JSONResponse({"entries": entries, "last": page.last, "more": page.more})


async def show_tree(request: Request) -> Response:
    """The runs that it is connected with, of those that the user may see, each with its `state`."""
    library, user = library_of(request), user_of(request)
    tree = await asyncio.to_thread(tree_data, _journal_of(request))
    states = {facts["id"]: facts["state"] for facts in await library.all(user)}
    runs = [{**run, "state": states[run["run"]]} for run in tree["runs"] if run["run"] in states]
    return JSONResponse({**tree, "runs": runs})


async def show_difference(request: Request) -> Response:
    """The differences between the run and another one, with the requests to their models."""
    library, user = library_of(request), user_of(request)
    own = _journal_of(request)
    other = library.find(request.query_params.get("with", ""), user)
    require_admin(request)
    found = await asyncio.to_thread(comparison_data, own, other)
    for side, path in (("before", own), ("after", other)):
        found[side]["state"] = (await library.facts(path.stem, user))["state"]
    return JSONResponse(found)


async def show_preview(request: Request) -> Response:
    """The reused part of a branch at an entry, and the estimated cost of the rest."""
    return await _tell(preview_data, _journal_of(request), _number(request, "at", 0))


async def save_page(request: Request) -> Response:
    """The run as a page that is one file, with the source of its program."""
    require_admin(request)
    path = _journal_of(request)
    text = await asyncio.to_thread(run_page, path, library_of(request).redactor().source)
    headers = {"Content-Disposition": f'attachment; filename="{path.stem}.html"', "Cache-Control": "no-store"}
    return HTMLResponse(text, headers=headers)


# ---------------------------------------------------------------- programs


async def show_source(request: Request) -> Response:
    """The source of the program of a run."""
    require_admin(request)
    return await _tell(run_source, _journal_of(request), library_of(request).redactor().source)


async def show_graph(request: Request) -> Response:
    """The graph of the program of a run."""
    require_admin(request)
    return await _tell(run_graph, _journal_of(request))


async def show_audit(request: Request) -> Response:
    """The permissions of models in the program of a run."""
    require_admin(request)
    return await _audit(request, program_path(_journal_of(request)))


async def replay_run(request: Request) -> Response:
    """The differences of the present program with the answers of a run."""
    require_admin(request)
    return JSONResponse(await _command(request, "replay", "--json", str(_journal_of(request))))


async def keep_test(request: Request) -> Response:
    """Copy a run into the folder of tests, where `koi test` replays it."""
    name = (await body_with(request, closed_object({"name": TEXT})))["name"]
    path, library = _journal_of(request), library_of(request)
    require_admin(request)
    if not ID.fullmatch(name):
        raise HttpError(400, "invalid_request", "no test can have this name", help="Use letters, digits, `-` and `_`.")
    if edited_file(library.folder, read_header(path)) is not None:
        help = "Keep its text in the file, and run it again."
        raise HttpError(409, "not_allowed_here", "the run is one of an edited playbook", help=help)
    output = library.folder / TESTS / f"{name}{SUFFIX}"
    if output.exists():
        raise HttpError(409, "not_allowed_here", f"`{TESTS}/{output.name}` exists", help="Choose another name.")
    await asyncio.to_thread(export_recording, path, output)
    return JSONResponse({"file": f"{TESTS}/{output.name}"})


def _program_of(request: Request) -> Path:
    """The file of a served program, for admins. Raises ServiceError, HttpError."""
    require_admin(request)
    host = library_of(request).host
    if host is None:
        raise HttpError(404, "unknown_program", "no program is served here")
    return Path(host.programs.find(request.path_params["name"]).file)


async def show_program_source(request: Request) -> Response:
    """The source of a served program."""
    return await _tell(source_data, str(_program_of(request)), library_of(request).redactor().source)


async def show_program_graph(request: Request) -> Response:
    """The graph of a served program."""
    return await _tell(graph_data, str(_program_of(request)))


async def show_program_audit(request: Request) -> Response:
    """The permissions of models in a served program."""
    return await _audit(request, _program_of(request))


async def _audit(request: Request, program: Path) -> Response:
    return JSONResponse({"agents": await _command(request, "audit", "--json", str(program))})


async def _command(request: Request, *words: str) -> Any:
    """The JSON output of a `koi` command in its own process, which loads the program. Raises HttpError."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "koi_lang", *words),
        cwd=library_of(request).folder,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(MAX_WAIT_S):
            out, err = await process.communicate()
    except TimeoutError as error:
        raise HttpError(503, "failed", f"`koi {words[0]}` took longer than {MAX_WAIT_S:g} s") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return _json_of(out, err, words)


def _json_of(out: bytes, err: bytes, words: Sequence[str]) -> Any:
    try:
        return json.loads(out)
    except ValueError as error:
        first = err.decode("utf-8", "replace").strip().split("\n")[0].removeprefix("error: ")
        raise HttpError(409, "failed", first or f"`koi {words[0]}` told nothing") from error


RUNS = "/api/dev/runs"
DEV_ROUTES = (
    Route(RUNS, list_recorded),
    Route(f"{RUNS}/{{id}}", show_recorded),
    Route(f"{RUNS}/{{id}}/entries", list_entries),
    Route(f"{RUNS}/{{id}}/tree", show_tree),
    Route(f"{RUNS}/{{id}}/diff", show_difference),
    Route(f"{RUNS}/{{id}}/branch-preview", show_preview),
    Route(f"{RUNS}/{{id}}/page.html", save_page),
    Route(f"{RUNS}/{{id}}/source", show_source),
    Route(f"{RUNS}/{{id}}/graph", show_graph),
    Route(f"{RUNS}/{{id}}/audit", show_audit),
    Route(f"{RUNS}/{{id}}/replay", replay_run, methods=["POST"]),
    Route(f"{RUNS}/{{id}}/test", keep_test, methods=["POST"]),
    Route(f"{RUNS}/{{id}}/branch", branch_recorded, methods=["POST"]),
    Route(f"{RUNS}/{{id}}/playbook", show_playbook),
    Route(f"{RUNS}/{{id}}/edit", settle_edit, methods=["POST"]),
    Route("/api/dev/program/{name}/source", show_program_source),
    Route("/api/dev/program/{name}/graph", show_program_graph),
    Route("/api/dev/program/{name}/audit", show_program_audit),
)


# Lines begin with their number, so that those that are not wanted are passed over unread.
NUMBER = re.compile(rb'\{"n":(\d+),')
MAX_ENTRIES = 2000


@dataclass(frozen=True, slots=True)
class EntryPage:
    """Some entries of a journal.

    Attributes:
        last: the number of the last one, or where the reader has asked from.
        more: whether there are further ones.
    """

    entries: tuple[JournalEntry, ...]
    last: int
    more: bool

    def as_data(self) -> dict[str, Any]:
        """The JSON form."""
        return {"entries": [entry.as_data() for entry in self.entries], "last": self.last, "more": self.more}


def read_page(path: Path, since: int, limit: int) -> EntryPage:
    """The entries behind the one with the number `since`, at most `limit` and 2,000. Raises JournalError."""
    most = min(max(limit, 1), MAX_ENTRIES)
    found: list[JournalEntry] = []
    for entry in _entries_behind(path, since):
        if len(found) == most:
            return EntryPage(tuple(found), found[-1].n, more=True)
        found.append(entry)
    return EntryPage(tuple(found), found[-1].n if found else since, more=False)


def _entries_behind(path: Path, since: int) -> Iterator[JournalEntry]:
    """The sound entries behind one; a last line that is not whole may still be on its way."""
    with open_journal(path) as file:
        run = header_of(file.readline(MAX_HEADER_BYTES), path.name).run
        for line in file:
            number = NUMBER.match(line)
            if number is not None and int(number[1]) <= since:
                continue
            entry = entry_in(line) if line.endswith(b"\n") and not is_changed(line, run) else None
            if entry is not None and entry.n > since:
                yield entry
