"""`koi serve http` starts jobs: at times, when files change, for messages that are signed, and on after a kill."""

from __future__ import annotations

import base64
import hmac
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import jsonschema
import pytest

from koi_lang.errors import JournalError
from koi_lang.events import LinePrinted
from koi_lang.runtime.journal.reader import lines
from koi_lang.runtime.journal.store import path_of
from koi_lang.system.certificates import certificates
from koi_lang.web.api_schemas import SCHEMAS
from tests.service.serving_process import LIMIT_S, ServiceProcess

PROGRAM = """
role Worker { can execute }
agent Reporter : Worker {
  on daily(args: { top: number }) { console.log("top", args.top) }
  on changed(args: { files: { path: string, change: string }[] }) {
    for (const file of args.files) console.log(file.change, file.path)
  }
  on issue(event: { action: string }) {
    if (event.action == "bad") throw new Error("no such thing")
    console.log("issue", event.action)
  }
}
run Reporter.daily({ top: 3 }) every "1s"
run Reporter.daily({ top: 9 }) every "1 January 00:00" { name: "yearly" }
run Reporter.changed() when "file docs/**/*.md"
run Reporter.issue() when "hook /github"
run Reporter.issue() when "hook /many" { name: "many", overlap: "together" }
run Reporter.issue() when "hook /open" { name: "open" }
"""
SECRET = "a secret for tests"
SETTINGS = f'[serve.hook_secrets]\n"/github" = "{SECRET}"\n"/many" = "{SECRET}"\n'
SLOW = """
role Worker { can execute }
agent Slow : Worker {
  on work(args) {
    console.log("begun")
    await new Promise(done => setTimeout(done, 3000))
    console.log("done")
  }
}
run Slow.work({}) every "2s" { missed: "never" }
"""
ASKS = """
role Worker { can execute }
agent Asker : Worker {
  on ask(args) {
    const said = await callAction("prompt_user", { question: "Who?" })
    console.log(said.answer)
  }
}
run Asker.ask({}) every "1s"
"""


def until(find: Callable[[], Any]) -> Any:
    """What is found once it is there."""
    end = time.monotonic() + LIMIT_S
    while not (found := find()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return found


def last_of(service: ServiceProcess, name: str, *states: str) -> Any:
    """What was started last of a job, once it is in a state."""

    def find() -> Any:
        jobs = {job["name"]: job for job in service.get("api/jobs")["jobs"]}
        last = jobs[name].get("last")
        return last if last is not None and last["state"] in states else None

    return until(find)


def runs_of(service: ServiceProcess) -> list[str]:
    """The runs of a service, the oldest first."""
    return [str(run["id"]) for run in reversed(service.get("api/runs")["runs"])]


def printed(folder: Path, run: str) -> list[str]:
    """What a run has printed; nothing where it has not begun."""
    try:
        entries = [line.entry for line in lines(path_of(folder, run))]
    except JournalError:
        return []
    return [entry.data["message"] for entry in entries if entry is not None and entry.kind == LinePrinted.type]


def sign(body: bytes, secret: str = SECRET) -> dict[str, str]:
    """The header of GitHub for a body."""
    return {"X-Hub-Signature-256": f"sha256={hmac.digest(secret.encode(), body, 'sha256').hex()}"}


def sign_with_time(body: bytes, id: str, seconds: float) -> dict[str, str]:
    """The headers of Standard Webhooks for a body."""
    made = hmac.digest(SECRET.encode(), f"{id}.{int(seconds)}.".encode() + body, "sha256")
    signature = f"v1,{base64.b64encode(made).decode()}"
    return {"Webhook-Id": id, "Webhook-Timestamp": str(int(seconds)), "Webhook-Signature": signature}


def sign_as_koi(body: bytes, seconds: float) -> dict[str, str]:
    """The header of other services of Koi for a body."""
    made = hmac.digest(SECRET.encode(), f"{int(seconds)}.".encode() + body, "sha256").hex()
    return {"Koi-Signature": f"t={int(seconds)},v1={made}"}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service with jobs of all kinds."""
    folder = tmp_path_factory.mktemp("jobs")
    (folder / "docs").mkdir()
    (folder / "desk.koi").write_text(PROGRAM, "utf-8")
    (folder / "koi.toml").write_text(SETTINGS, "utf-8")
    service = ServiceProcess(folder, ("desk.koi",))
    service.start()
    yield service
    service.end()


def send(service: ServiceProcess, path: str, body: bytes, **headers: str) -> httpx2.Response:
    """Send a message, as another program does: without the token of the service."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx2.post(
        f"{service.url}/hooks/{path}", content=body, headers=named, timeout=LIMIT_S, verify=certificates()
    )


def test_a_time_starts_runs(desk: ServiceProcess) -> None:
    """A job that is due is a run of the service like others; what is not due is started by nobody."""
    run = until(lambda: [run for run in runs_of(desk) if ["top 3"] == printed(desk.folder, run)])[0]

    assert ("desk", "Reporter.daily") == (desk.get(f"api/runs/{run}")["program"], desk.get(f"api/runs/{run}")["title"])
    told = desk.get("api/jobs")
    jsonschema.validate(told, dict(SCHEMAS["Jobs"]))
    yearly = next(job for job in told["jobs"] if job["name"] == "yearly")
    assert yearly["next"].endswith("-01-01T00:00:00+00:00")
    assert "last" not in yearly


def test_files_start_a_run(desk: ServiceProcess) -> None:
    """Those of the folder of the service."""
    until(lambda: desk.get("api/jobs"))
    time.sleep(1.5)  # the first look
    (desk.folder / "docs/a.md").write_text("1", "utf-8")

    run = last_of(desk, "Reporter.changed", "ended")["run"]

    assert ["added docs/a.md"] == printed(desk.folder, run)


def test_a_message_starts_a_run(desk: ServiceProcess) -> None:
    """One that is signed in either form; the same one again leads to the same run."""
    body = b'{"action": "opened", "more": 1}'
    first = send(desk, "github", body, **sign(body), X_GitHub_Delivery="one")
    again = send(desk, "github", body, **sign(body), X_GitHub_Delivery="one")
    of_koi = send(desk, "github", body, **sign_as_koi(body, time.time()))
    timed = send(desk, "github", body, **sign_with_time(body, "two", time.time()))

    assert [202, 202, 202, 202] == [answer.status_code for answer in (first, again, of_koi, timed)]
    assert first.json() == again.json()
    assert first.json()["run"] != timed.json()["run"]
    until(lambda: last_of(desk, "Reporter.issue", "ended")["run"] == timed.json()["run"])
    assert ["issue opened"] == printed(desk.folder, first.json()["run"])


@pytest.mark.parametrize("form", ["koi", "of a service", "standard", "long"])
def test_a_message_that_somebody_has_seen_begins_no_second_run(desk: ServiceProcess, form: str) -> None:
    """Whatever id the one who sends it again writes beside it: what is signed counts."""
    body = b'{"action": "opened", "form": "%s", "id": "%s"}' % (
        form.encode(),
        b"dlv_1" if form == "of a service" else b"1",
    )
    now = time.time()
    signed = sign_with_time(body, "x" * (300 if form == "long" else 3), now) if form in ("standard", "long") else None
    signed = signed or sign_as_koi(body, now)
    ids: list[dict[str, str]] = [{}, {"Koi-Delivery": "a"}, {"Koi-Delivery": "b"}, {"Idempotency-Key": "c"}]
    answers = [send(desk, "github", body, **signed, **more) for more in ids]
    if form == "koi":
        seconds, _, digits = signed["Koi-Signature"].partition(",v1=")
        answers.append(send(desk, "github", body, Koi_Signature=f"v1={digits.upper()} , {seconds}"))
    if form == "of a service":
        answers.append(send(desk, "github", body, **sign_as_koi(body, now - 9)))

    assert {202} == {answer.status_code for answer in answers}
    assert 1 == len({answer.json()["run"] for answer in answers})


def test_a_run_that_fails_is_told(desk: ServiceProcess) -> None:
    """With the error of the program; the next message is taken nevertheless."""
    body = b'{"action": "bad"}'
    run = send(desk, "github", body, **sign(body)).json()["run"]

    last = last_of(desk, "Reporter.issue", "failed")

    assert (run, True) == (last["run"], "no such thing" in last["reason"])


GOOD = b'{"action": "opened"}'


@pytest.mark.sampled(7)
@pytest.mark.parametrize(
    ("path", "body", "headers", "status", "code"),
    [
        ("github", GOOD, {}, 401, "wrong_signature"),
        ("github", GOOD, sign(GOOD, "another"), 401, "wrong_signature"),
        ("github", GOOD, sign(GOOD + b" "), 401, "wrong_signature"),
        ("github", b"", sign(b""), 400, "parse_error"),
        ("github", GOOD, {"X-Hub-Signature-256": "sha1=00"}, 401, "wrong_signature"),
        ("github", GOOD, sign_with_time(GOOD, "old", time.time() - 3600), 401, "wrong_signature"),
        ("github", GOOD, sign_as_koi(GOOD, time.time() + 3600), 401, "wrong_signature"),
        ("github", GOOD, sign_as_koi(GOOD + b" ", time.time()), 401, "wrong_signature"),
        ("github", GOOD, {"Koi-Signature": "t=,v1=,,=="}, 401, "wrong_signature"),
        ("github", GOOD, {**sign_with_time(GOOD, "x", time.time()), "Webhook-Id": "y"}, 401, "wrong_signature"),
        ("github", GOOD, {**sign(GOOD), "Webhook-Signature": "v1,AAAA"}, 401, "wrong_signature"),
        ("open", GOOD, sign(GOOD, ""), 403, "no_secret"),
        ("nowhere", GOOD, sign(GOOD), 404, "unknown_hook"),
        ("github", b'{"action": 3}', sign(b'{"action": 3}'), 422, "invalid_payload"),
        ("github", b"[]", sign(b"[]"), 400, "parse_error"),
        ("github", b"action=opened", sign(b"action=opened"), 400, "parse_error"),
        ("github", b"[" * 2000, sign(b"[" * 2000), 400, "parse_error"),
        ("github", b" " * (6 << 20), sign(GOOD), 413, "parse_error"),
    ],
)
def test_other_messages_are_refused(
    path: str, body: bytes, headers: dict[str, str], status: int, code: str, desk: ServiceProcess
) -> None:
    """Nobody else's, none that the handler does not take, and none that is too much; each says why."""
    answer = send(desk, path, body, **headers)

    assert (status, code) == (answer.status_code, answer.json()["code"])
    assert SECRET not in answer.text


def test_forty_messages_at_once(desk: ServiceProcess) -> None:
    """Each is taken, and none is lost, whatever works at a time."""
    bodies = [b'{"action": "n%d"}' % number for number in range(40)]

    with ThreadPoolExecutor(40) as pool:
        answers = list(pool.map(lambda body: send(desk, "many", body, **sign(body)), bodies))

    assert {202} == {answer.status_code for answer in answers}
    runs = [answer.json()["run"] for answer in answers]
    assert 40 == len(set(runs))
    until(lambda: 40 == sum(printed(desk.folder, run) != [] for run in runs))


def test_jobs_are_for_who_has_the_token(desk: ServiceProcess) -> None:
    """Their payloads may be private."""
    assert 401 == httpx2.get(f"{desk.url}/api/jobs").status_code


def test_a_kill_in_the_middle_of_a_run(start_service: Callable[..., ServiceProcess], tmp_path: Path) -> None:
    """The same run goes on after the restart, and does nothing twice; no other one is begun for its time."""
    service = start_service(slow=SLOW)
    run = until(lambda: runs_of(service))[0]
    until(lambda: ["begun"] == printed(tmp_path, run))

    service.end(signal.SIGKILL)
    assert ["begun"] == printed(tmp_path, run)
    service.start()

    until(lambda: ["begun", "done"] == printed(tmp_path, run))
    until(lambda: len(runs_of(service)) > 1)
    assert [run] == runs_of(service)[:1]
    assert ["begun", "done"] == printed(tmp_path, run)


def test_a_run_that_asks_a_person(start_service: Callable[..., ServiceProcess], tmp_path: Path) -> None:
    """It waits as others do, also over a restart, and the job goes on when somebody has answered."""
    service = start_service(asks=ASKS)
    run = until(lambda: runs_of(service))[0]
    service.wait_for_state(run, "waiting")
    service.end()
    service.start()
    service.wait_for_state(run, "waiting")
    request = service.get(f"api/runs/{run}")["open"][0]["id"]

    assert service.command(run, "answer", request=request, answer="Ann")["success"]

    until(lambda: ["Ann"] == printed(tmp_path, run))
    until(lambda: len(runs_of(service)) > 1)
