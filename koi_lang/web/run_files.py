"""The files of a session over HTTP: listed, sent, taken in and removed; none of them acts in a browser."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, BinaryIO

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from koi_lang.errors import KoiError
from koi_lang.service.session_files import FileMissingError, FileTooLargeError, SessionFiles
from koi_lang.web.answers import HttpError
from koi_lang.web.request_context import host_of, session_of

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

# What a model or a person has put there is saved, not shown: a page in it could ask for all that its reader may.
HEADERS = {
    "Content-Disposition": "attachment",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Content-Type": "application/octet-stream",
}
PIECE = 1 << 18


class FileContent(Response):
    """The content of a file, read in pieces as it is sent; the file is closed behind it."""

    def __init__(self, content: BinaryIO, size: int) -> None:
        super().__init__(headers={**HEADERS, "Content-Length": str(size)})
        self._content, self._size = content, size

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the content of the file, piece by piece."""
        with self._content:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            rest = self._size  # what is added to it meanwhile is no part of the answer
            while rest > 0 and (piece := await asyncio.to_thread(self._content.read, min(PIECE, rest))):
                rest -= len(piece)
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})


def _files_of(request: Request) -> SessionFiles:
    session = session_of(request)
    return SessionFiles(session.files, partial(host_of(request).space.reserve, session.id))


def _refusal(error: KoiError) -> HttpError:
    """Why nothing is done, as HTTP says it."""
    status, code = 400, "invalid_path"
    if isinstance(error, FileMissingError):
        status, code = 404, "unknown_file"
    elif isinstance(error, FileTooLargeError):
        status, code = 413, "too_large"
    return HttpError(status, code, error.message, help=error.help)


async def list_files(request: Request) -> Response:
    """The files of a session."""
    return JSONResponse({"files": [file.as_data() for file in await _files_of(request).list_all()]})


async def get_file(request: Request) -> Response:
    """The content of a file."""
    files = _files_of(request)
    try:
        file, content = files.open(request.path_params["path"])
    except KoiError as error:
        raise _refusal(error) from error
    return FileContent(content, file.size)


async def put_file(request: Request) -> Response:
    """Create or replace a file; one that declares too large a size is refused before it is read."""
    files, given = _files_of(request), request.headers.get("content-length", "")
    size = int(given) if given.isdecimal() and len(given) < 19 else None
    try:
        file = await files.write(request.path_params["path"], request.stream(), size)
    except KoiError as error:
        raise _refusal(error) from error
    return JSONResponse(file.as_data(), 201)


async def delete_file(request: Request) -> Response:
    """Remove a file."""
    files = _files_of(request)
    try:
        await files.remove(request.path_params["path"])
    except KoiError as error:
        raise _refusal(error) from error
    return Response(status_code=204)
