"""What the manual says about running a service: behind a proxy, by systemd, as an image."""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from urllib.parse import urljoin

import httpx2
import pytest
from websockets.sync.client import connect

from tests.needs import find_program
from tests.pages import FENCE, ROOT
from tests.service.conftest import desk_in
from tests.service.serving_process import LIMIT_S, ServiceProcess, is_event
from tests.service.test_sessions import START, is_question
from tests.web.conftest import open_browser

PAGE = (ROOT / "docs" / "unattended.md").read_text("utf-8")


def block(name: str) -> str:
    """A file that the page shows."""
    return next(text for _, file, text in FENCE.findall(PAGE) if file == name)


CLERK = """
role Worker { can execute }
agent Clerk : Worker {
  affordance "Counts"
  expose a2a
  on chat(args: { message: string }) { console.log(`heard ${args.message}`) return { answer: "well" } }
}
"""


@pytest.fixture(params=["taken off", "left"])
def proxied(
    start_service: Callable[..., ServiceProcess], tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[ServiceProcess]:
    """A service as clients of nginx see it, below a path, with the lines of the manual, or where the path is left."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    desk_in(tmp_path)
    (tmp_path / "clerk.koi").write_text(CLERK)
    service = start_service("clerk.koi", "--public-url", f"http://127.0.0.1:{port}/koi")
    location = block("koi.conf").replace("http://127.0.0.1:8421", service.url)
    if request.param == "left":
        location = location.replace(f"{service.url}/;", f"{service.url};").replace("location /koi/", "location /koi")
    (tmp_path / "nginx.conf").write_text(
        f"daemon off; pid {tmp_path}/pid; error_log {tmp_path}/error.log; events {{}} http {{ access_log off;"
        f" client_body_temp_path {tmp_path}/body; proxy_temp_path {tmp_path}/proxy; fastcgi_temp_path {tmp_path}/f;"
        f" uwsgi_temp_path {tmp_path}/u; scgi_temp_path {tmp_path}/s;"
        f" server {{ listen 127.0.0.1:{port}; {location} }} }}"
    )
    nginx = find_program("nginx")
    assert nginx is not None
    process = subprocess.Popen([nginx, "-c", tmp_path / "nginx.conf", "-p", tmp_path], stderr=subprocess.DEVNULL)
    try:
        wait_for_port(port)
        yield replace(service, url=f"http://127.0.0.1:{port}/koi")
    finally:
        process.terminate()
        process.wait()


def wait_for_port(port: int) -> None:
    """Wait until somebody listens."""
    end = time.monotonic() + LIMIT_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert time.monotonic() < end
            time.sleep(0.05)
        else:
            return


@pytest.mark.needs("nginx")
def test_a_proxy_passes_everything_on(proxied: ServiceProcess) -> None:
    """Below a path of a proxy the page opens, its cookie counts there, and what is told live comes at once."""
    page = proxied.request("GET", "")
    origin = proxied.url.removesuffix("/koi")
    redirected = [
        urljoin(f"{proxied.url}{slash}", httpx2.get(f"{proxied.url}{slash}").headers["location"])
        for slash in ("", "/dev/")
    ]
    repeated = proxied.request("POST", "api/runs/", {})
    card = proxied.get("a2a/Clerk/.well-known/agent-card.json")
    document = proxied.get("api/openapi.json")
    login = proxied.request("POST", "api/login", {"token": proxied.token}, Origin=origin)
    run = proxied.begin(program="desk", **START)
    question = proxied.follow_until(run, is_question)[-1][1]
    with connect(
        f"{proxied.url.replace('http', 'ws', 1)}/api/runs/{run}/ws",
        additional_headers={"Authorization": f"Bearer {proxied.token}"},
    ) as link:
        link.send(json.dumps({"type": "answer", "request": question["id"], "answer": "yes"}))
        while not is_event("call_ended")(json.loads(link.recv(timeout=LIMIT_S))):
            pass

    assert (200, 404) == (page.status_code, repeated.status_code)
    assert [f"{proxied.url}/", f"{proxied.url}/dev"] == redirected
    assert {f"{proxied.url}/a2a/Clerk"} == {each["url"] for each in card["supportedInterfaces"]}
    assert [{"url": f"{proxied.url}/api"}] == document["servers"]
    assert [] == re.findall(r'(?:src|href)="/', page.text)
    assert "Path=/koi" in login.headers["set-cookie"].split("; ")


@pytest.mark.needs("nginx")
@pytest.mark.needs("chromium")
def test_the_page_works_below_a_path(proxied: ServiceProcess) -> None:
    """In a browser behind the proxy somebody signs in, talks over the WebSocket, and signs out."""
    with open_browser() as browser:
        page = browser.new_page()
        wrong: list[str] = []
        sockets: list[str] = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("websocket", lambda socket: sockets.append(socket.url))
        page.goto(f"{proxied.url}/#token={proxied.token}")
        page.get_by_role("button", name="Clerk").click()
        page.fill("#message", "tea")
        page.get_by_role("button", name="Send").click()
        page.locator("main", has_text="heard tea").first.wait_for()
        cookies = [(each["path"], each["httpOnly"]) for each in page.context.cookies(f"{proxied.url}/api")]
        page.get_by_role("button", name="Sign out").click()
        page.get_by_label("Key").wait_for()

        assert ([("/koi", True)], []) == (cookies, page.context.cookies(f"{proxied.url}/api"))
    assert ([], True) == (wrong, all(each.startswith(proxied.url.replace("http", "ws")) for each in sockets))
    assert sockets


@pytest.mark.needs("systemd-analyze")
def test_the_unit_is_one(tmp_path: Path) -> None:
    """The unit of the manual is one in which systemd finds nothing wrong."""
    unit = tmp_path / "koi-desk.service"
    unit.write_text(block(unit.name).replace("/opt/koi/bin/koi", sys.executable))

    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, timeout=LIMIT_S
    )

    assert [] == [line for line in done.stderr.splitlines() if unit.name in line]


def test_the_unit_serves(start_service: Callable[..., ServiceProcess]) -> None:
    """The words of the unit and of the image are those of a command line that serves."""
    unit = re.findall(r"^ExecStart=\S+/koi serve http \S+ (.*)$", block("koi-desk.service"), re.MULTILINE)
    (image,) = re.findall(r"^CMD (.*)$", block("Containerfile"), re.MULTILINE)
    for words in (unit[0].split(), json.loads(image)[4:]):
        kept = [word for name, word in pairwise(words) if name == "--public-url" for word in (name, word)]
        service = start_service(*kept)

        assert 200 == service.request("GET", "api/status", Host="koi.example.org").status_code
        service.end()


def unit_variables(folder: Path) -> dict[str, str]:
    """The environment of the unit with its state in a folder; under it there is no folder of the person."""
    (words,) = re.findall(r"^Environment=(.*)$", block("koi-desk.service"), re.MULTILINE)
    placed = words.replace("/var/lib/koi-desk", str(folder))
    return {"HOME": "/dev/null", **dict(word.split("=", 1) for word in placed.split())}


@pytest.mark.parametrize("has_config", [True, False])
def test_sessions_go_on_under_the_unit(tmp_path: Path, has_config: bool) -> None:
    """A service that is started again in the environment of the unit goes on, also where no key of a person can be."""
    variables = unit_variables(tmp_path)
    if not has_config:
        variables |= {"KOI_CONFIG_DIR": "/dev/null/koi"}
    service = ServiceProcess(tmp_path, desk_in(tmp_path), variables=variables)
    service.start()
    run = service.begin(**START)
    question = service.follow_until(run, is_question)[-1][1]
    service.end()
    service.start()
    service.wait_for_state(run, "waiting")
    answered = service.request("POST", f"api/runs/{run}/answer", {"request": question["id"], "answer": "yes"})
    ended = service.follow_until(run, is_event("call_ended"))[-1][1]
    service.end()

    assert (200, True) == (answered.status_code, ended["event"]["ok"]), answered.text
    assert 0o600 == (tmp_path / ".koi" / "signing.key").stat().st_mode & 0o777


def test_a_backup_is_restored_elsewhere(tmp_path: Path) -> None:
    """By the commands of the page: a session goes on in another folder, with the program of another release."""
    releases = [tmp_path / "releases" / number for number in "12"]
    words = [desk_in(folder) for folder in releases]
    first, second = (tmp_path / name for name in ("first", "second"))
    first.mkdir()
    service = ServiceProcess(first, outside(releases[0], words[0]), variables=unit_variables(first))
    service.start()
    run = service.begin(**START)
    question = service.follow_until(run, is_question)[-1][1]
    service.end()
    for name, folder in (("backup.sh", first), ("restore.sh", second)):
        script = block(name).replace("/var/lib/koi-desk", str(folder)).replace("/root/", f"{tmp_path}/")
        # The services of this test are started and ended by it.
        subprocess.run(["sh", "-ec", re.sub("^systemctl", "true", script, flags=re.MULTILINE)], check=True)
    shutil.rmtree(first)
    shutil.rmtree(releases[0])
    service = ServiceProcess(second, outside(releases[1], words[1]), variables=unit_variables(second))
    service.start()
    service.wait_for_state(run, "waiting")
    service.request("POST", f"api/runs/{run}/answer", {"request": question["id"], "answer": "yes"})
    ended = service.follow_until(run, is_event("call_ended"))[-1][1]
    service.end()

    assert ended["event"]["ok"], ended
    assert 0o600 == (tmp_path / "koi-desk.tar.gz").stat().st_mode & 0o777


def outside(folder: Path, words: tuple[str, ...]) -> tuple[str, ...]:
    """The words that serve files of another folder."""
    return tuple(str(folder / word) if (folder / word).is_file() else word for word in words)


def test_a_key_that_others_can_read_does_not_count(tmp_path: Path) -> None:
    """It may have come with somebody's files: nothing that it signs is gone on with, and a line says what to do."""
    service = ServiceProcess(tmp_path, desk_in(tmp_path))
    service.start()
    run = service.begin(**START)
    service.follow_until(run, is_question)
    service.end()
    (tmp_path / ".koi" / "signing.key").chmod(0o644)
    service.start()
    refused = service.command(run, "get_state")
    service.end()

    assert (False, True) == (refused["success"], "without a key for signatures" in refused["error"]), refused


@pytest.mark.thorough
@pytest.mark.needs("git")
@pytest.mark.timeout(900)
def test_the_steps_of_the_image(tmp_path: Path) -> None:
    """The steps of the image, carried out below an empty folder, end with a command that starts."""
    steps = re.findall(r"^(COPY|RUN|WORKDIR|CMD) (.*)$", block("Containerfile"), re.MULTILINE)
    placed = [(name, re.sub(r'(?<=[ "])/(?=\w)', f"{tmp_path}/", f" {words}").strip()) for name, words in steps]
    clone = ["git", "clone", "-q", ROOT, tmp_path / "src"]
    subprocess.run(clone, check=True)
    for name, words in placed:
        if name == "RUN":
            subprocess.run(["sh", "-ec", words], check=True, cwd=tmp_path)
    (command,) = [json.loads(words) for name, words in placed if name == "CMD"]

    done = subprocess.run([*command[:3], "--help"], capture_output=True, text=True, check=True)

    assert "Serve each FILE" in done.stdout


def test_open_streams_leave_no_traceback(start_service: Callable[..., ServiceProcess]) -> None:
    """A service that is ended while pages follow runs says that it was, and nothing of its insides."""
    service = start_service()
    followed = service.follow(service.begin(**START))
    assert "rpc_ready" == next(followed)[1]["type"]
    assert service.process is not None
    service.process.send_signal(signal.SIGTERM)
    _, told = service.process.communicate(timeout=LIMIT_S)

    assert "ended by SIGTERM" in told
    assert "Traceback" not in told
