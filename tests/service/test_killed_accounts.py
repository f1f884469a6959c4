"""The account of a user over the kill of a service whose requests are on their way to a provider."""

from __future__ import annotations

import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.limits import LIMIT_S
from tests.service.serving_process import ServiceProcess
from tests.web.slow_model import slow_model

TELLER = """
    role Worker { can think }
    agent Teller : Worker { amnesia = true
      llm default = { provider: "openai", model: "gpt-4o-mini", base_url: "URL", max_tokens: 900 }
      on chat(args: { message: string }) { playbook "Tell {{args.message}}" } }
    """
LIMITS = "[serve.limits]\ntokens_per_user = 4000\n"


def rows(folder: Path, table: str) -> tuple[int, int]:
    """How many rows a table of the accounts has, and the tokens in them."""
    with closing(sqlite3.connect(folder / ".koi/service.sqlite")) as database:
        number, tokens = database.execute(f"select count(*), coalesce(sum(tokens), 0) from {table}").fetchone()
    return number, tokens


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ServiceProcess]:
    """A service with a limit, whose provider is slow."""
    with slow_model({"intent": "return", "data": {"answer": "once upon a time " * 20}}, pause_s=0.1) as (url, hurry):
        (tmp_path / "teller.koi").write_text(TELLER.replace("URL", url))
        (tmp_path / ".env").write_text("OPENAI_API_KEY=sk-mark\n")
        (tmp_path / "koi.toml").write_text(LIMITS)
        served = ServiceProcess(tmp_path, ("teller.koi",))
        served.start()
        yield served
        hurry.set()
        served.end()


def test_a_request_that_was_on_its_way_is_counted_once(service: ServiceProcess, tmp_path: Path) -> None:
    """Killed with a request open, the next process counts it in full, and by what it read once its run asks again."""
    run = service.begin(message="a story")
    end = time.monotonic() + LIMIT_S
    while rows(tmp_path, "reservations")[0] == 0:
        assert time.monotonic() < end
        time.sleep(0.02)
    service.end(signal.SIGKILL)
    _, most = rows(tmp_path, "reservations")
    service.start()
    before = rows(tmp_path, "reservations")
    service.command(run, "get_state")
    while rows(tmp_path, "spending")[0] == 0:
        assert time.monotonic() < end
        time.sleep(0.02)
    (_, left), (_, spent) = rows(tmp_path, "reservations"), rows(tmp_path, "spending")

    assert before in ((1, most), (1, most - 900))  # the latter where the run goes on already
    assert most > 900
    assert 0 < spent < most - 800
    assert left <= 4000 - spent
