"""Users of a service: tokens by their hashes, runs that are their own, limits of each."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from koi_lang.service.users import EVERYBODY, User, Users, hash_of, new_token
from koi_lang.settings.service import UserSettings, read_service
from tests.projects import Project
from tests.service.conftest import desk_in
from tests.service.serving_process import ServiceProcess
from tests.service.user_tokens import TOKENS, as_user

START: dict[str, Any] = {"handler": "Editor.start", "payload": {"topic": "tea"}}


def test_tokens_are_known_by_their_hashes() -> None:
    """Whoever shows the token is the user; the hash itself, or a part of the token, is nobody's."""
    token = new_token()
    users = Users("start", {"ada": UserSettings(hash_of(token)), "eve": UserSettings(f"sha256:{'0' * 64}", True)})

    assert (User("ada"), EVERYBODY) == (users.of_token(token), users.of_token("start"))
    assert {None} == {users.of_token(each) for each in (hash_of(token), token[:-1], "", "0" * 64, "\udce9", "ä")}


def test_a_token_is_made_and_shown_once(project: Project) -> None:
    """What the command prints is TOML that lets the user in, and only as a comment the token itself."""
    told = project.koi("serve", "token", "mail@example.org", "--admin").stdout
    (token,) = re.findall(r"^# (koi_\S+)$", told, re.MULTILINE)
    users = Users(None, read_service(tomllib.loads(told)["serve"]).users)

    assert User("mail@example.org", is_admin=True) == users.of_token(token)
    assert token not in re.sub("^#.*", "", told, flags=re.MULTILINE)


def test_nobody_sees_the_runs_of_others(shared: ServiceProcess) -> None:
    """Lists and counts hold the own runs alone; an admin sees all, and who they are of."""
    ada, bob, root = (as_user(shared, name) for name in TOKENS)
    run = ada.begin(**START)

    assert ("ada", False) == (ada.get("api/status")["user"], ada.get("api/status")["admin"])
    assert [(run, "ada")] == [(each["id"], each["owner"]) for each in ada.get("api/runs")["runs"]]
    assert ([], {}) == (bob.get("api/runs")["runs"], bob.get("api/status")["sessions"])
    assert run in [each["id"] for each in root.get("api/runs")["runs"]]
    assert run in [each["id"] for each in shared.get("api/runs")["runs"]]


def test_a_user_has_so_many_sessions_at_work(shared: ServiceProcess) -> None:
    """One too many is refused with the number; others are not concerned, and one that rests makes room."""
    bob = as_user(shared, "bob")
    runs = [bob.begin(**START) for _ in range(2)]
    for run in runs:
        bob.wait_for_state(run, "waiting")
    refused = bob.request("POST", "api/runs", START)

    assert (429, "limit_reached") == (refused.status_code, refused.json()["code"])
    assert "`bob` has 2 sessions at work, all that may be awake at a time" == refused.json()["message"]
    assert as_user(shared, "ada").begin(**START)
    (question,) = bob.get(f"api/runs/{runs[0]}")["open"]
    bob.command(runs[0], "answer", request=question["id"], answer="no")
    bob.wait_for_state(runs[0], "idle")
    assert bob.begin(**START)
    assert "asleep" == bob.get(f"api/runs/{runs[0]}")["state"]


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ("tokens_per_user = 50", "the user `admin` has used 0 of its 50 tokens"),
        ("tokens_per_session = 50", "the session has used 0 of its 50 tokens"),
        ("tokens_per_day = 50", "everybody together has used 0 of its 50 tokens"),
    ],
)
def test_a_limit_of_the_service_ends_a_call(
    start_service: Callable[..., ServiceProcess], tmp_path: Path, limits: str, told: str
) -> None:
    """Whose limit it is, what it is and when it ends stands in the end of the call."""
    (tmp_path / "koi.toml").write_text(f'[serve.limits]\n{limits}\nzone = "Europe/Berlin"\n')
    service = start_service()
    run = service.begin(**START)
    messages = service.follow_until(run, lambda message: message.get("event", {}).get("type") == "call_ended")
    ended = messages[-1][1]["event"]

    assert told in ended["error"]
    assert "00:00 Europe/Berlin" in ended["help"] or "the whole session" in ended["help"]


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
