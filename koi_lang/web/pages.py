"""The pages and their files, with headers that keep shown content from acting."""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.routing import Route

from koi_lang.system.resources import PACKAGE

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Scope

STATIC = PACKAGE / "web" / "static"
# By where they stand, the files that are pages.
PAGES = {"/": "index.html", "/dev": "dev.html"}
# Scripts, styles and connections of this service alone, none of them written into a page; images also as they stand in
# a text. What would load something from elsewhere, or send it there, is refused by the browser.
CONTENT_POLICY = "; ".join(
    (
        "default-src 'self'",
        "img-src 'self' data:",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
SECURITY_HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
# Files that become smaller when they are compressed.
TEXTS = (".html", ".css", ".js", ".json", ".svg", ".toml", ".ts", ".txt")
# Media types that systems know differently, or not at all.
MEDIA_TYPES = {".js": "text/javascript", ".ts": "text/plain", ".svg": "image/svg+xml", ".toml": "text/plain"}


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file as it is sent.

    Attributes:
        compressed: by gzip; None where that would not make it smaller.
        tag: of its content.
    """

    content: bytes
    compressed: bytes | None
    tag: str
    media_type: str


def location_of_page(scope: Scope) -> str | None:
    """Where the page is whose address has a slash too few or too many at its end; None for other requests.

    It is relative where a proxy may have taken a path off, which is then kept.
    """
    public_path = scope.get("root_path", "")
    path = scope["path"].removeprefix(public_path)
    if scope["method"] not in ("GET", "HEAD"):
        return None
    if not path:
        return f"{public_path}/"
    return f"..{path[:-1]}" if path.endswith("/") and path[:-1] in PAGES else None


class PageFiles:
    """The files of a folder, each read when it is asked for first; nothing else can be asked for."""

    def __init__(self, folder: Path = STATIC) -> None:
        self._paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
        self._read: dict[str, PageFile] = {}

    @property
    def routes(self) -> list[Route]:
        """The additional routes of a service."""
        pages = [Route(place, self._page, name=name) for place, name in PAGES.items() if name in self._paths]
        return [*pages, Route("/static/{name:path}", self._file)]

    async def _page(self, request: Request) -> Response:
        return self.respond(request.scope["route"].name, request.headers)

    async def _file(self, request: Request) -> Response:
        return self.respond(request.path_params["name"], request.headers)

    def respond(self, name: str, headers: Headers) -> Response:
        """The response for a file: as it is, compressed, or that the browser has it; 404 where there is none."""
        file = self._file_named(name)
        if file is None:
            return Response("there is no such file", 404, SECURITY_HEADERS, "text/plain")
        about = {**SECURITY_HEADERS, "ETag": file.tag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
        if file.tag in [tag.strip().removeprefix("W/") for tag in headers.get("if-none-match", "").split(",")]:
            return Response(status_code=304, headers=about)
        if file.compressed is not None and "gzip" in headers.get("accept-encoding", ""):
            return Response(file.compressed, 200, {**about, "Content-Encoding": "gzip"}, file.media_type)
        return Response(file.content, 200, about, file.media_type)

    def _file_named(self, name: str) -> PageFile | None:
        if name not in self._paths:
            return None
        if name not in self._read:
            self._read[name] = _read(self._paths[name])
        return self._read[name]


def _read(path: Path) -> PageFile:
    content = path.read_bytes()
    compressed = gzip.compress(content, mtime=0) if path.suffix in TEXTS else None
    media_type = MEDIA_TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return PageFile(content, compressed, f'"{hashlib.sha256(content).hexdigest()[:32]}"', media_type)
