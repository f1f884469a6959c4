"""Results of calls over REST: further calls in a session, requests that wait, and failures that are told as such."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from koi_lang.service.host import SessionHost
from koi_lang.service.idempotency import digest_of
from tests import forks
from tests.service.hosting import begin, called, play, until
from tests.service.serving_process import ServiceProcess
from tests.service.user_tokens import SETTINGS, as_user

PROGRAM = """
role Worker { can execute }
agent Adder : Worker {
  on add(args: { a: number, b: number }) { return args.a + args.b }
  on fail(args: Json) { throw new Error("no tea, says http://10.0.0.7:8700/v1 without TEA_API_KEY") }
  on say(args: { message: string }) { return `heard ${args.message}` }
}
"""
ADD = {"handler": "Adder.add", "payload": {"a": 1, "b": 2}}
START = {"handler": "Editor.start", "payload": {"topic": "tea"}}
FAIL = {"handler": "Adder.fail", "payload": {}}
OUTCOME = ("state", "ok", "result", "error")


@pytest.fixture(scope="module")
def adder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service of code alone, with users."""
    folder = tmp_path_factory.mktemp("results")
    (folder / "koi.toml").write_text(SETTINGS)
    (folder / "adder.koi").write_text(PROGRAM)
    service = ServiceProcess(folder, ("adder.koi",))
    service.start()
    yield service
    service.end()


def outcome(told: dict[str, Any]) -> tuple[Any, ...]:
    """What an answer tells of the last call."""
    return tuple(told[name] for name in OUTCOME)


def test_a_request_that_waits_has_the_result(adder: ServiceProcess) -> None:
    """Starting a run, a further call and a message in it answer with what came of them; the run tells the last one."""
    first = adder.request("POST", "api/runs?wait=30", ADD)
    run = f"api/runs/{first.json()['id']}"
    called = adder.request("POST", f"{run}/calls?wait=30", {**ADD, "payload": {"a": 5, "b": 5}})
    said = adder.request("POST", f"{run}/messages?wait=30", {"message": "hi", "handler": "Adder.say"})

    assert [200] * 3 == [answer.status_code for answer in (first, called, said)]
    assert [3, 10, "heard hi"] == [answer.json()["result"] for answer in (first, called, said)]
    assert ("idle", True, "heard hi", None) == outcome(adder.get(run))
    assert ["call-1", "call-2", "call-3"] == [answer.json()["last_call"] for answer in (first, called, said)]


def test_many_clients_of_one_session_get_their_own_results(adder: ServiceProcess) -> None:
    """Whose call is not the last one any more is told that it was begun, never what came of somebody else's."""
    run = adder.begin()

    def add(number: int) -> tuple[int, int, Any]:
        answer = adder.request("POST", f"api/runs/{run}/calls?wait=30", {**ADD, "payload": {"a": number, "b": 0}})
        return number, answer.status_code, answer.json().get("result")

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(add, range(40)))

    assert {200, 202, 409} >= {status for _, status, _ in answers}
    assert [] == [each for each in answers if each[1] == 200 and each[0] != each[2]]
    assert any(status == 200 for _, status, _ in answers)


def test_a_further_call_need_not_be_waited_for(adder: ServiceProcess, service: ServiceProcess) -> None:
    """Without `wait` it is answered with 202 and its id, as the start of a run; a question ends waiting for a call."""
    run = adder.begin()
    begun = adder.request("POST", f"api/runs/{run}/calls", ADD)
    ended = adder.request("GET", f"api/runs/{run}?wait=30").json()
    desk = service.begin()
    asked = service.request("POST", f"api/runs/{desk}/calls?wait=30", START)
    busy = service.request("POST", f"api/runs/{desk}/calls", START)

    assert (202, "call-1", 3) == (begun.status_code, begun.json()["call"], ended["result"])
    assert (202, "waiting", "call-1") == (asked.status_code, asked.json()["state"], asked.json()["call"])
    assert (409, "agent_busy") == (busy.status_code, busy.json()["code"])
    assert None is service.get(f"api/runs/{desk}")["ok"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("calls", {}),
        ("calls", {"handler": 5}),
        ("calls", {**ADD, "payload": {"a": "x"}}),
        ("calls", {**ADD, "message": "hi"}),
        ("messages", {}),
        ("messages", {"message": 5}),
        ("messages?wait=0", {"message": "hi"}),
        ("messages?wait=61", {"message": "hi"}),
    ],
)
def test_further_calls_that_do_not_fit_are_refused(adder: ServiceProcess, path: str, body: Any) -> None:
    """What is missing, wrong or unknown is told, and nothing is called."""
    run = adder.begin()
    answer = adder.request("POST", f"api/runs/{run}/{path}", body)

    assert (400, {"code", "message", "help"}) == (answer.status_code, set(answer.json()))
    assert None is adder.get(f"api/runs/{run}")["ok"]


def test_a_run_begun_with_a_key_is_waited_for_again(adder: ServiceProcess) -> None:
    """A request that waits and is sent again answers with the result of the run that it has begun."""
    answers = [adder.request("POST", "api/runs?wait=30", ADD, Idempotency_Key="waits") for _ in range(2)]

    assert [(200, 3)] * 2 == [(answer.status_code, answer.json()["result"]) for answer in answers]
    assert [None, "true"] == [answer.headers.get("Idempotency-Replayed") for answer in answers]
    assert 1 == len({answer.json()["id"] for answer in answers})


@pytest.mark.parametrize(
    ("path", "body", "result"),
    [("calls", ADD, 3), ("messages", {"message": "hi", "handler": "Adder.say"}, "heard hi")],
)
def test_a_further_call_with_a_key_takes_place_once(
    adder: ServiceProcess, path: str, body: dict[str, Any], result: Any
) -> None:
    """Sent again, also to be waited for, it has the answer of the first time; another request is refused."""
    run = f"api/runs/{adder.begin()}"
    key = {"Idempotency-Key": f"further-{path}"}
    first = adder.request("POST", f"{run}/{path}", body, **key)
    second = adder.request("POST", f"{run}/{path}", body, **key)
    waited = adder.request("POST", f"{run}/{path}?wait=30", body, **key)
    other = adder.request("POST", f"{run}/{path}", {**body, "handler": "Adder.fail"}, **key)
    elsewhere = adder.request("POST", f"api/runs/{adder.begin()}/{path}", body, **key)

    assert (202, first.json(), "true") == (second.status_code, second.json(), second.headers["Idempotency-Replayed"])
    assert (200, result, "true") == (
        waited.status_code,
        waited.json()["result"],
        waited.headers["Idempotency-Replayed"],
    )
    assert [(409, "key_in_use")] * 2 == [(each.status_code, each.json()["code"]) for each in (other, elsewhere)]
    assert [first.json()["call"]] == calls_in(adder, run)
    adder.request("POST", f"{run}/calls?wait=30", {**ADD, "payload": {"a": 5, "b": 5}})
    later = adder.request("POST", f"{run}/{path}?wait=30", body, **key)
    assert (200, result) == (later.status_code, later.json()["result"]), "also when another call has ended behind it"


def test_a_further_call_that_was_refused_may_be_sent_again(adder: ServiceProcess) -> None:
    """While another one is under way nothing begins, and the key is free for the next time."""
    run, key = f"api/runs/{adder.begin()}", {"Idempotency-Key": "refused-first"}
    wrong = adder.request("POST", f"{run}/calls", {**ADD, "payload": {"a": "x"}}, **key)
    right = adder.request("POST", f"{run}/calls?wait=30", ADD, **key)

    assert (400, 200, 3) == (wrong.status_code, right.status_code, right.json()["result"])


def calls_in(service: ServiceProcess, run: str) -> list[str]:
    """The ids of the calls that were begun in a run."""
    entries = service.get(f"{run}/entries?limit=1000")["entries"]
    return [entry["call"] for entry in entries if entry["kind"] == "call_started"]


@pytest.mark.parametrize("has_begun", [True, False])
def test_a_further_call_is_not_carried_out_again_after_a_crash(
    start_service: Callable[..., ServiceProcess], tmp_path: Path, has_begun: bool
) -> None:
    """Killed before it was answered, the call is found by its id where it had begun, goes on and ends under that id."""
    service = start_service()
    run, key = f"api/runs/{service.begin()}", {"Idempotency-Key": "key"}
    service.request("POST", f"{run}/calls?wait=30", START, **(key if has_begun else {}))
    (before,) = calls_in(service, run)
    service.end(signal.SIGKILL)
    forget_answer(tmp_path, run, before.removeprefix("call-") if has_begun else "0123456789ab")
    service.start()
    service.wait_for_state(run.removeprefix("api/runs/"), "waiting")
    again = service.request("POST", f"{run}/calls", START, **key)
    if has_begun:
        (question,) = service.get(run)["open"]
        service.request("POST", f"{run}/answer", {"request": question["id"], "answer": "yes"})
        ended = service.request("POST", f"{run}/calls?wait=30", START, **key).json()
        assert (before, True) == (again.json()["call"], ended["ok"])
    else:
        assert (409, "agent_busy") == (again.status_code, again.json()["code"])
    assert [before] == calls_in(service, run)


def forget_answer(folder: Path, run: str, id: str) -> None:
    """Leave a database as it is where the process was killed between the claim of the key and the answer."""
    asked = digest_of({"run": run.removeprefix("api/runs/"), **START})
    with closing(sqlite3.connect(folder / ".koi" / "service.sqlite")) as database, database:
        database.execute(
            "insert or replace into idempotency values ('admin', 'key', ?, ?, '', ?)", (asked, id, time.time())
        )


def states_of(service: ServiceProcess, run: str) -> set[str]:
    """The state of a run by each place that tells one."""
    found = {service.get(f"{path}/{run}")["state"] for path in ("api/runs", "api/dev/runs")}
    for path in ("api/runs", "api/dev/runs", "api/runs?state=failed", "api/dev/runs?state=failed"):
        found |= {each["state"] for each in service.get(path)["runs"] if each["id"] == run} or {f"not in {path}"}
    return found


def recorded_states(folder: Path, run: str) -> set[str]:
    """The same by the commands for recorded runs."""
    commands = (("runs", "list", "--json"), ("runs", "export", "runs"))
    lists = [json.loads(forks.run(words, folder, dict(os.environ)).stdout) for words in commands]
    return {each["state"] for runs in lists for each in runs if each["run"] == run}


def test_a_failed_run_is_failed_everywhere(start_service: Callable[..., ServiceProcess], tmp_path: Path) -> None:
    """Awake, asleep and after a kill each list says so; a further call that ends well makes the run well."""
    service = start_service(adder=PROGRAM)
    run = service.request("POST", "api/runs?wait=30", FAIL).json()["id"]
    awake = states_of(service, run) | recorded_states(tmp_path, run)
    service.end(signal.SIGKILL)
    killed = recorded_states(tmp_path, run)
    service.start()
    asleep = states_of(service, run)
    service.request("POST", f"api/runs/{run}/calls?wait=30", ADD)
    service.request("POST", f"api/runs/{run}/calls?wait=30", FAIL)
    service.end()
    ended = recorded_states(tmp_path, run)
    service.start()
    again = service.request("POST", f"api/runs/{run}/calls?wait=30", ADD).json()

    assert [{"failed"}] * 4 == [awake, killed, asleep, ended]
    assert ("idle", True, 3, None) == outcome(again)


def test_a_cancelled_call_is_no_failure(service: ServiceProcess) -> None:
    """It has no result and no error, and the session goes on."""
    run = service.request("POST", "api/runs?wait=30", START).json()["id"]
    assert service.request("POST", f"api/runs/{run}/cancel").json()["aborted"]
    told = service.get(f"api/runs/{run}")

    assert (("idle", False, None, None), True) == (outcome(told), told["aborted"])


def test_the_operator_reads_why_a_call_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the reference that the person reads, once, without secrets, and without lines of the program's own."""
    monkeypatch.setenv("TEA_API_KEY", "sk-0123456789abcdefghij")
    told = "no tea with sk-0123456789abcdefghij\\nserving at http://evil.example"
    (tmp_path / "adder.koi").write_text(PROGRAM.replace("no tea, says http://10.0.0.7:8700/v1", told))
    lines: list[str] = []

    async def scenario(host: SessionHost) -> str:
        session = await begin(host, "Adder.fail")
        await until(session, "idle")
        await called(session, "Adder.add", a=1, b=2)
        await session.sleep()
        await called(session, "Adder.add", a=1, b=2)
        return session.id

    run = play(tmp_path, scenario, "adder.koi", note=lines.append)

    assert [f"{run}-5: `Adder.fail` failed: no tea with [redacted]"] == lines


def test_a_user_is_not_told_addresses_of_the_operator(adder: ServiceProcess) -> None:
    """The error of a call has neither addresses nor names of variables, in the answer, the run and its entries."""
    ada = as_user(adder, "ada")
    answer = ada.request("POST", "api/runs?wait=30", FAIL)
    run = answer.json()["id"]
    texts = (
        answer.text,
        ada.request("GET", f"api/runs/{run}").text,
        ada.request("GET", f"api/runs/{run}/entries").text,
    )

    assert "no tea, says … without …" == answer.json()["error"]
    assert [] == [word for text in texts for word in ("10.0.0.7", "TEA_API_KEY") if word in text]
    assert "10.0.0.7" in adder.get(f"api/runs/{run}")["error"]
