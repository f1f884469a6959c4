"""Users of a service: tokens by their hashes, runs that are their own, limits of each."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import sqlite3
import time
import tomllib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from koi_lang.service.accounts import Days
from koi_lang.service.spending import SpendingTable
from koi_lang.service.users import EVERYBODY, User, Users, hash_of, new_token
from koi_lang.settings.service import UserSettings, read_service
from tests.limits import LIMIT_S
from tests.playbook.playing import done
from tests.projects import Project
from tests.service.conftest import desk_in
from tests.service.serving_process import ServiceProcess
from tests.service.user_tokens import as_user, post_at_once

START: dict[str, Any] = {"handler": "Editor.start", "payload": {"topic": "tea"}}


def test_tokens_are_known_by_their_hashes() -> None:
    """Whoever shows the token is the user; the hash itself, or a part of the token, is nobody's."""
    token = new_token()
    users = Users("start", {"ada": UserSettings(hash_of(token)), "eve": UserSettings(f"sha256:{'0' * 64}", True)})

    assert (User("ada"), EVERYBODY) == (users.of_token(token), users.of_token("start"))
    assert {None} == {users.of_token(each) for each in (hash_of(token), token[:-1], "", "0" * 64, "\udce9", "ä")}


def test_a_token_is_made_and_shown_once(project: Project) -> None:
    """What the command prints is TOML that lets the user in, and only as a comment the token itself."""
    told = project.koi("service", "token", "mail@example.org", "--admin").stdout
    (token,) = re.findall(r"^# (koi_\S+)$", told, re.MULTILINE)
    users = Users(None, read_service(tomllib.loads(told)["serve"]).users)

    assert User("mail@example.org", is_admin=True) == users.of_token(token)
    assert token not in re.sub("^#.*", "", told, flags=re.MULTILINE)


def test_nobody_sees_the_runs_of_others(shared: ServiceProcess) -> None:
    """Lists and counts hold the own runs alone; an admin sees all, and who they are of."""
    ada, bob, root = (as_user(shared, name) for name in ("ada", "bob", "root"))
    run = ada.begin(**START)

    assert ("ada", False) == (ada.get("api/status")["user"], ada.get("api/status")["admin"])
    assert [(run, "ada")] == [(each["id"], each["owner"]) for each in ada.get("api/runs")["runs"]]
    assert ([], {0}) == (bob.get("api/runs")["runs"], {*bob.get("api/status")["sessions"].values()})
    assert run in [each["id"] for each in root.get("api/runs")["runs"]]
    assert run in [each["id"] for each in shared.get("api/runs")["runs"]]


def test_only_an_admin_replaces_what_a_model_answered(shared: ServiceProcess) -> None:
    """A user may branch with another answer to a question, never with words of the model."""
    ada, root = (as_user(shared, name) for name in ("ada", "root"))
    run = ada.begin(**START)
    (question,) = ada.wait_for_state(run, "waiting")["open"]
    ada.command(run, "answer", request=question["id"], answer="yes")
    ada.wait_for_state(run, "idle")
    entries = root.get(f"api/runs/{run}/entries")["entries"]
    of_model = next(each["n"] for each in entries if each["kind"] == "model_answered")
    of_person = next(each["n"] for each in entries if each["kind"] == "done" and each["intent"] == "prompt_user")
    forged = {"at": of_model, "answer": '[{"intent": "return", "data": "forged"}]'}
    refused = ada.request("POST", f"api/runs/{run}/branch", forged)

    assert (403, "only admins replace the answer of a model") == (refused.status_code, refused.json()["message"])
    assert 202 == ada.request("POST", f"api/runs/{run}/branch", {"at": of_person, "answer": "no"}).status_code
    assert 202 == root.request("POST", f"api/runs/{run}/branch", forged).status_code


def test_a_user_has_so_many_sessions_at_work(shared: ServiceProcess) -> None:
    """One too many is refused with the number; others are not concerned, and one that rests makes room."""
    bob = as_user(shared, "bob")
    runs = [bob.begin(**START) for _ in range(2)]
    for run in runs:
        bob.wait_for_state(run, "waiting")
    refused = bob.request("POST", "api/runs", START)

    assert (429, "limit_reached") == (refused.status_code, refused.json()["code"])
    message = "`bob` has 2 sessions that wait for an answer, all that may be awake at a time"
    assert (message, "Answer or cancel one") == (refused.json()["message"], refused.json()["help"][:20])
    assert as_user(shared, "ada").begin(**START)
    (question,) = bob.get(f"api/runs/{runs[0]}")["open"]
    bob.command(runs[0], "answer", request=question["id"], answer="no")
    bob.wait_for_state(runs[0], "idle")
    assert bob.begin(**START)
    assert "asleep" == bob.get(f"api/runs/{runs[0]}")["state"]


def test_forty_requests_at_once_begin_as_many_as_may_be(shared: ServiceProcess) -> None:
    """However many come at the same time, no session more than allowed is awake, and the others are told so."""
    eve = as_user(shared, "eve")

    assert {202: 5, 429: 35} == asyncio.run(post_at_once(eve, 40, START))
    assert 5 == len(eve.get("api/runs")["runs"])


def test_a_folder_has_one_service(shared: ServiceProcess) -> None:
    """A second process would keep accounts of its own, so it does not begin, and says where the other one works."""
    second = Project(shared.folder).koi("serve", "http", "desk.koi", "--http", "127.0.0.1:0", "--rehearse")

    assert 2 == second.returncode
    assert f"another service works in `{shared.folder}`" in second.stderr


ONE = """
    role Worker { can think }
    agent Main : Worker { amnesia = true
      on go(args) { playbook \"\"\"Say something.\"\"\" } }
    """


def wait_for_spending(folder: Path) -> None:
    """Wait until a service has paid for something."""
    end = time.monotonic() + LIMIT_S
    with closing(sqlite3.connect(folder / ".koi/service.sqlite")) as database:
        while not database.execute("select 1 from spending").fetchone():
            assert time.monotonic() < end
            time.sleep(0.01)


def test_forty_runs_at_once_keep_to_a_limit(start_service: Callable[..., ServiceProcess], tmp_path: Path) -> None:
    """Over HTTP as well: what all of them take is no more than the limit, also where SIGKILL comes between."""
    (tmp_path / "koi.toml").write_text('[serve.limits]\ntokens_per_user = 9000\nzone = "Europe/Berlin"\n')
    (tmp_path / "answers.json").write_text(json.dumps({"Say something": [done(ok=True)] * 100}))
    service = start_service("--answers", "answers.json", one=ONE)
    begun = asyncio.run(post_at_once(service, 40, {"handler": "Main.go", "payload": {}}))
    wait_for_spending(tmp_path)
    service.end(signal.SIGKILL)
    first = SpendingTable(tmp_path).of_day(Days("Europe/Berlin").today())
    service.start()
    asyncio.run(post_at_once(service, 20, {"handler": "Main.go", "payload": {}}))
    runs = [service.begin(handler="Main.go", payload={}) for _ in range(2)]
    told = service.follow_until(runs[-1], lambda message: message.get("event", {}).get("type") == "call_ended")
    taken = SpendingTable(tmp_path).of_day(Days("Europe/Berlin").today())

    assert {202: 40} == begun
    assert 0 < first.tokens <= 9000  # with the most that the killed requests could take
    assert 0 < taken.tokens <= 9000  # less than that, where these were asked again and took less
    ended = told[-1][1]["event"]
    assert re.search(r"the user `admin` has used \d+ of its 9000 tokens", ended["error"])
    assert ended["help"].endswith("00:00 Europe/Berlin.")


def test_what_koi_toml_says_is_served(start_service: Callable[..., ServiceProcess], tmp_path: Path) -> None:
    """Programs, names and the folder of the runs are taken from `[serve]` where the command line says nothing."""
    (tmp_path / "runs").mkdir()
    desk_in(tmp_path)
    about = 'programs = ["desk.koi", "std/coder"]\nnames = ["koi.example.org"]\nrecord_dir = "runs"\n'
    (tmp_path / "koi.toml").write_text(f"[serve]\n{about}")
    service = ServiceProcess(tmp_path, ("--answers", "desk.answers.json"))
    service.start()
    try:
        programs = service.get("api/program")["programs"]
        assert [("desk", True), ("coder", True)] == [(each["name"], each["ok"]) for each in programs]
        assert 200 == service.request("GET", "api/status", Host="koi.example.org").status_code
        run = service.begin(program="desk", **START)
        assert (tmp_path / "runs/.koi/runs" / f"{run}.jsonl").exists()
    finally:
        service.end()
