"""What a service tells others: its runs, its questions and its budgets, over kills, to who can check the sender."""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from koi_lang.service.store import Database
from tests.limits import LIMIT_S
from tests.pages import ROOT
from tests.projects import Project
from tests.service.receiver import Receiver, receiving
from tests.service.serving_process import ServiceProcess

START: dict[str, Any] = {"handler": "Editor.start", "payload": {"topic": "tea"}}
SECRET = "a-secret-of-the-service-0123456789"
EVENTS = ("run.ended", "run.failed", "question.open", "approval.open", "budget.80", "budget.100")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver on this machine."""
    with receiving() as server:
        yield server


def settings(receiver: Receiver, path: str = "ok", *, more: str = "") -> str:
    """A `koi.toml` that has it told everything."""
    hooks = "\n".join(f'"{event}" = "{receiver.url(path)}"' for event in EVENTS)
    return f'[http]\nallow = ["127.0.0.1"]\n[serve.hooks]\n{hooks}\n[serve.hook_secrets]\nout = "{SECRET}"\n{more}'


def wait_for(receiver: Receiver, *events: str, path: str = "ok") -> list[dict[str, Any]]:
    """The messages that came, once there are some of each kind."""
    end = time.monotonic() + LIMIT_S
    while not set(events) <= {got.headers["koi-event"] for got in receiver.at(path)}:
        assert time.monotonic() < end, [got.headers["koi-event"] for got in receiver.received]
        time.sleep(0.02)
    return [json.loads(got.body) for got in receiver.at(path)]


def recipe() -> Callable[..., bool]:
    """The function of the manual with which a receiver checks who has sent something."""
    text = (ROOT / "docs/service.md").read_text("utf-8").partition("```python\n")[2].partition("```")[0]
    names: dict[str, Any] = {}
    exec(text, names)
    check: Callable[..., bool] = names["is_from_koi"]
    return check


def test_others_are_told_of_a_run(
    start_service: Callable[..., ServiceProcess], tmp_path: Path, receiver: Receiver
) -> None:
    """A question and the end of a run arrive once each, signed as the manual says, with what they are about."""
    (tmp_path / "koi.toml").write_text(settings(receiver, more="[serve.limits]\ntokens_per_user = 2900\n"))
    service = start_service()
    run = service.begin(**START)
    (asked,) = [each for each in wait_for(receiver, "question.open") if each["event"] == "question.open"]
    service.command(run, "answer", request=asked["data"]["request"], answer="no")
    told = wait_for(receiver, "run.ended", "budget.80")
    by_event = {each["event"]: each for each in told}
    is_from_koi = recipe()

    assert ("Publish it?", ["yes", "no"]) == (asked["data"]["question"], asked["data"]["options"])
    assert {"program": "desk", "user": "admin", "call": "call-1", "ok": True}.items() <= by_event["run.ended"][
        "data"
    ].items()
    assert {run} == {each["run"] for each in told if each["run"]}
    assert ("user", "admin", 2900) == tuple(by_event["budget.80"]["data"][name] for name in ("of", "user", "most"))
    assert len(told) == len({each["event"] for each in told})
    for got in receiver.received:
        assert is_from_koi(SECRET, got.headers["koi-signature"], got.body)
        assert not is_from_koi(SECRET, got.headers["koi-signature"], got.body + b" ")
        assert not is_from_koi("another", got.headers["koi-signature"], got.body)
        assert not is_from_koi(SECRET, got.headers["koi-signature"], got.body, time.time() + 301)


def test_a_failed_run_and_a_refused_request_are_told(
    start_service: Callable[..., ServiceProcess], tmp_path: Path, receiver: Receiver
) -> None:
    """The error is told, and that the limit was what ended it."""
    (tmp_path / "koi.toml").write_text(settings(receiver, more="[serve.limits]\ntokens_per_user = 50\n"))
    service = start_service()
    service.begin(**START)
    told = {each["event"]: each["data"] for each in wait_for(receiver, "run.failed", "budget.100")}

    assert "the user `admin` has used 0 of its 50 tokens" in told["run.failed"]["error"]
    assert ("user", "tokens", 0, 50) == tuple(told["budget.100"][name] for name in ("of", "limit", "taken", "most"))


def end_a_run(service: ServiceProcess) -> str:
    """A run whose call has ended."""
    run = service.begin(**START)
    (question,) = service.wait_for_state(run, "waiting")["open"]
    service.command(run, "answer", request=question["id"], answer="no")
    service.wait_for_state(run, "idle")
    return run


def test_a_kill_loses_no_message(
    start_service: Callable[..., ServiceProcess], tmp_path: Path, receiver: Receiver
) -> None:
    """What was on its way when SIGKILL came is sent again by the next one, with the same id, and listed till then."""
    (tmp_path / "koi.toml").write_text(settings(receiver, "hang"))
    service = start_service()
    run = end_a_run(service)
    wait_for(receiver, "run.ended", path="hang")
    service.end(signal.SIGKILL)
    before, receiver.is_well = [got.id for got in receiver.received], True
    waiting = Project(tmp_path).koi("service", "hooks").stdout
    service.start()
    while any(each["state"] != "delivered" for each in service.get("api/deliveries")["deliveries"]):
        time.sleep(0.02)

    assert {"question.open", "run.ended"} == {line.split()[2] for line in waiting.splitlines()}
    assert {run} == {line.split()[3] for line in waiting.splitlines()}
    times = Counter(got.id for got in receiver.received)
    assert set(before) == set(times)
    assert min(times.values()) > 1


def test_an_end_that_nobody_wrote_down_is_told(
    start_service: Callable[..., ServiceProcess], tmp_path: Path, receiver: Receiver
) -> None:
    """A process that is killed between the journal and the delivery has the next one look; nothing is told twice."""
    (tmp_path / "koi.toml").write_text(settings(receiver))
    service = start_service()
    run = end_a_run(service)
    wait_for(receiver, "run.ended", "question.open")
    service.end(signal.SIGKILL)
    database = Database.connect(tmp_path)
    database.execute("delete from deliveries where event = 'run.ended'")
    database.execute("update watched_runs set last = last - 1")
    receiver.received.clear()
    service.start()
    (told,) = wait_for(receiver, "run.ended")
    service.end()
    service.start()
    service.get("api/status")

    assert (run, "run.ended", True) == (told["run"], told["event"], told["data"]["ok"])
    assert 1 == len(receiver.received)
