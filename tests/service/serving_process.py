"""A service as a process, and what a client does with it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from koi_lang.system.certificates import certificates
from tests import forks
from tests.limits import LIMIT_S

ROOT = Path(__file__).parents[2]
TOKEN = "a-token-for-tests"


@dataclass(slots=True)
class ServiceProcess:
    """A `koi serve http` in a folder; started again it listens at the same port.

    Attributes:
        words: of its command line, files first.
        token: what requests show.
        is_forked: whether it is forked, so that `process` is another one that ends with it.
        variables: of its environment, beside those that all services of tests have.
    """

    folder: Path
    words: tuple[str, ...]
    token: str = TOKEN
    url: str = ""
    told: list[str] = field(default_factory=list)
    process: subprocess.Popen[str] | None = None
    is_forked: bool = True
    variables: dict[str, str] = field(default_factory=dict)

    def start(self) -> None:
        """Start it and wait until it listens."""
        at = self.url.rpartition("/")[2] or "127.0.0.1:0"
        kept = {
            name: os.environ[name]
            for name in ("PATH", "HOME", "KOI_CACHE_DIR", "KOI_CONFIG_DIR", "KOI_TRUST_FOLDER")
            if name in os.environ
        }
        self.process = subprocess.Popen(
            [
                *(forks.koi() if self.is_forked else (sys.executable, *forks.KOI)),
                "serve",
                "http",
                *self.words,
                "--http",
                at,
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env={**kept, "PYTHONPATH": str(ROOT), "KOI_SERVE_TOKEN": TOKEN, **self.variables},
        )
        assert self.process.stderr is not None
        while not (found := re.search(r"serving at (http://[^/\s]+)/", "".join(self.told))):
            line = self.process.stderr.readline()
            assert line, f"the service has ended: {self.told}"
            self.told.append(line)
        self.told.clear()
        self.url = found[1]

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send it a signal, and give how it ended."""
        assert self.process is not None
        with suppress(ProcessLookupError):
            self.process.send_signal(number)
        self.told += [text for text in self.process.communicate(timeout=LIMIT_S) if text]
        return self.process.returncode

    # ------------------------------------------------------------ requests

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> httpx2.Response:
        """The answer to a request; a body is sent as JSON."""
        shown = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        sent = {**shown, **{name.replace("_", "-"): value for name, value in headers.items()}}
        given = {} if body is None else {"json": body}
        return httpx2.request(
            method, f"{self.url}/{path}", headers=sent, timeout=LIMIT_S, verify=certificates(), **given
        )

    def get(self, path: str) -> Any:
        """The content of an answer."""
        return self.request("GET", path).json()

    def begin(self, **body: Any) -> str:
        """The id of a new run."""
        answer = self.request("POST", "api/runs", body)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    def command(self, run: str, type: str, **fields: Any) -> dict[str, Any]:
        """The response to a command, which has a number as those of the pages have."""
        body = {"run": run, "id": 1, "type": type, **fields}
        response: dict[str, Any] = self.request("POST", "api/command", body).json()
        return response

    def follow(self, run: str, since: str = "0") -> Iterator[tuple[str, dict[str, Any]]]:
        """The messages of a run with their ids, as they come."""
        headers = {"Authorization": f"Bearer {self.token}", "Last-Event-ID": since}
        end_s = time.monotonic() + LIMIT_S
        with httpx2.stream("GET", f"{self.url}/api/runs/{run}/events", headers=headers, timeout=LIMIT_S) as answer:
            id = ""
            for line in answer.iter_lines():
                assert time.monotonic() < end_s, "nothing that was waited for has come"  # but lines that keep it open
                name, _, value = line.partition(": ")
                if name == "id":
                    id = value
                elif name == "data":
                    yield id, json.loads(value)

    def follow_until(
        self, run: str, is_last: Callable[[dict[str, Any]], bool], since: str = "0"
    ) -> list[tuple[str, dict[str, Any]]]:
        """The messages up to one, that included."""
        found = []
        for id, message in self.follow(run, since):
            found.append((id, message))
            if is_last(message):
                break
        return found

    def wait_for_state(self, run: str, *states: str) -> dict[str, Any]:
        """A run once it is in one of some states."""
        end = time.monotonic() + LIMIT_S
        while True:
            told: dict[str, Any] = self.get(f"api/runs/{run}")
            if told["state"] in states:
                return told
            assert time.monotonic() < end, told
            time.sleep(0.02)


def is_event(type: str) -> Callable[[dict[str, Any]], bool]:
    """Whether a message is an event of a type."""
    return lambda message: message["type"] == "event" and message["event"]["type"] == type
