"""The pages over HTTP: what they come with, and that nothing else of the machine can be asked for."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from koi_lang.web.pages import STATIC, PageFiles


@pytest.fixture
def client() -> TestClient:
    """Asks a server that has the pages and nothing else."""
    return TestClient(Starlette(routes=PageFiles().routes))


def test_files_come_with_what_keeps_them_from_acting(client: TestClient) -> None:
    """A browser runs nothing that is written into a page, loads nothing of others and shows it in no frame."""
    response = client.get("/static/api.js")
    policy = response.headers["content-security-policy"]

    assert (200, "text/javascript; charset=utf-8") == (response.status_code, response.headers["content-type"])
    assert {"default-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "object-src 'none'"} <= {
        *policy.split("; ")
    }
    assert "unsafe" not in policy
    assert ("nosniff", "no-referrer") == tuple(
        response.headers[name] for name in ("x-content-type-options", "referrer-policy")
    )


def test_a_file_is_sent_once(client: TestClient) -> None:
    """A browser that has a file is told so, and one that has another version gets it."""
    tag = client.get("/static/koi.css").headers["etag"]

    assert [304, 304, 200] == [
        client.get("/static/koi.css", headers={"If-None-Match": given}).status_code
        for given in (tag, f'"other", W/{tag}', '"other"')
    ]


def test_files_are_compressed_for_who_reads_that(client: TestClient) -> None:
    """The same file comes small, and as it is where nobody asked for less."""
    small = client.get("/static/koi.css", headers={"Accept-Encoding": "gzip"})
    plain = client.get("/static/koi.css", headers={"Accept-Encoding": "identity"})
    content = (STATIC / "koi.css").read_bytes()

    assert ("gzip", content) == (small.headers["content-encoding"], small.content)
    assert int(small.headers["content-length"]) == len(gzip.compress(content)) < len(content)
    assert ("content-encoding" in plain.headers, content) == (False, plain.content)


OUTSIDE = (
    "../pages.py",
    "..%2fpages.py",
    "vendor/../../pages.py",
    "%2e%2e/pages.py",
    "vendor",
    "",
    "/etc/passwd",
    "a%00",
)


@pytest.mark.parametrize("name", OUTSIDE)
def test_only_files_of_the_folder_are_sent(client: TestClient, name: str) -> None:
    """Names lead nowhere else."""
    assert client.get(f"/static/{name}").status_code in (404, 405)


def test_addresses_are_relative() -> None:
    """The pages work below any path of a proxy: no file names one that begins at the root, or another host."""
    texts = {path: path.read_text("utf-8") for path in STATIC.rglob("*.[hjc]*") if "vendor" not in path.parts}
    wrong = ('="/', "='/", 'from "/', '"/api', '"/static', "url(/", "http://", "https://")
    found = {f"{path.name}: {part}" for path, text in texts.items() for part in wrong if part in text}

    assert len(texts) >= 2
    assert found == set()


def test_pages_are_those_of_the_folder(tmp_path: Path) -> None:
    """A page stands at its place; its file has no other name there."""
    (tmp_path / "index.html").write_text("<p>here")
    client = TestClient(Starlette(routes=PageFiles(tmp_path).routes))

    assert ("<p>here", 404) == (client.get("/").text, client.get("/dev").status_code)


def test_modules_are_asked_for_at_once() -> None:
    """The page for people names every module that it loads, so that none waits until another one was read."""
    page = (STATIC / "index.html").read_text("utf-8")
    named = {STATIC.parent / name for name in re.findall(r'(?:href|src)="(static/[^"]*\.js)"', page)}
    wanted, waiting = set[Path](), [STATIC / "chat" / "main.js"]
    while waiting:
        module = waiting.pop()
        if module not in wanted:
            wanted.add(module)
            imports = re.findall(r'^import .* from "(\.[^"]+)";', module.read_text("utf-8"), re.MULTILINE)
            waiting += [(module.parent / name).resolve() for name in imports if module.parent.name != "vendor"]

    assert wanted == named
