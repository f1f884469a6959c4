"""What the page for developers is told over HTTP: all runs of a folder, their entries, branches, replays and audits."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from koi_lang.runtime.journal.reader import read
from koi_lang.runtime.journal.store import is_running, path_of
from koi_lang.service.errors import ServiceError
from koi_lang.service.users import User
from koi_lang.web.answers import HttpError
from koi_lang.web.dev_routes import read_page
from koi_lang.web.run_library import RunLibrary, RunQuery
from tests.limits import LIMIT_S
from tests.projects import Project
from tests.service.serving_process import ServiceProcess
from tests.service.user_tokens import SETTINGS, as_user
from tests.web.conftest import ANSWERS, DESK

DEV = "api/dev/runs"
# What is told to admins only.
ADMINS = ("/source", "/page.html")
START: dict[str, Any] = {"handler": "Editor.start", "payload": {"topic": "green tea"}}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service in a folder in which a program was run before."""
    project = Project(tmp_path_factory.mktemp("served"))
    project.write("main.koi", DESK)
    project.write("answers.json", json.dumps(ANSWERS))
    project.write("koi.toml", SETTINGS)
    done = project.koi("run", "--answers", "answers.json", "main.koi", stdin="yes\n")
    assert done.returncode == 0, done.stderr
    service = ServiceProcess(project.folder, ("main.koi", "--answers", "answers.json"))
    service.start()
    yield service
    service.end()


def recorded_in(service: ServiceProcess) -> str:
    """The run that was recorded before the service was started."""
    found: list[dict[str, Any]] = service.get(DEV)["runs"]
    return next(str(run["id"]) for run in reversed(found) if not run["hosted"])


def answered(service: ServiceProcess, run: str, answer: str) -> dict[str, Any]:
    """A session of which the question that is open has been answered, when it has nothing more to do."""
    request = service.wait_for_state(run, "waiting")["open"][0]
    assert service.command(run, "answer", request=request["id"], answer=answer)["success"]
    return service.wait_for_state(run, "idle")


def last_result(service: ServiceProcess, run: str) -> Any:
    """What the last call of a run came to."""
    entries = read(path_of(service.folder, run)).entries
    return [entry.data["result"] for entry in entries if entry.kind == "handler_ended"][-1]


def test_the_list_holds_what_was_run_besides(served: ServiceProcess) -> None:
    """Sessions of the service and runs of the command line stand in one list, and are filtered and cut into pages."""
    run = served.begin(**START)
    first = served.get(f"{DEV}?limit=1")
    second = served.get(f"{DEV}?limit=1&before={first['next']}")
    recorded = served.get(f"{DEV}?state=ok")["runs"]
    hosted = served.get(f"{DEV}/{run}")

    assert (run, True) == (first["runs"][0]["id"], first["runs"][0]["hosted"])
    assert run not in [each["id"] for each in second["runs"]]
    assert ["tea is one plant"] == [each["title"] for each in recorded if each["parent"] is None]
    assert run == hosted["header"]["run"]
    answered(served, run, "yes")


def test_entries_come_in_pages(served: ServiceProcess) -> None:
    """All pages together are the journal, and nothing comes twice."""
    run = recorded_in(served)
    found: list[dict[str, Any]] = []
    more = True
    while more:
        page = served.get(f"{DEV}/{run}/entries?since={len(found)}&limit=7")
        found += page["entries"]
        more = page["more"]

    assert [entry.as_data() for entry in read(path_of(served.folder, run)).entries] == found
    assert 400 == served.request("GET", f"{DEV}/{run}/entries?since=x").status_code


def test_a_line_that_is_being_written_is_left_for_later(desk: Path) -> None:
    """A page ends before a line without its end, and a damaged line is left out."""
    whole = read_page(desk, 0, 2000)
    lines = desk.read_bytes().splitlines(keepends=True)
    desk.write_bytes(b"".join([*lines[:5], lines[5].replace(b'"agent"', b'"agenT"'), *lines[6:-1], lines[-1][:-9]]))
    rest = read_page(desk, 0, 2000)

    assert [entry.n for entry in whole.entries if entry.n not in (5, whole.last)] == [entry.n for entry in rest.entries]
    assert (whole.last - 1, False) == (rest.last, rest.more)


def test_a_session_branches_with_another_answer(served: ServiceProcess) -> None:
    """What came before is taken over, and the branch is a session that goes on by itself."""
    run = served.begin(**START)
    answered(served, run, "yes")
    (at,) = [
        entry.n
        for entry in read(path_of(served.folder, run)).entries
        if entry.kind == "done" and entry.data.get("intent") == "prompt_user"
    ]
    preview = served.get(f"{DEV}/{run}/branch-preview?at={at}")
    made = served.request("POST", f"api/runs/{run}/branch", {"at": at, "answer": "no"})
    branch = served.wait_for_state(made.json()["id"], "idle")["id"]
    tree = served.get(f"{DEV}/{run}/tree")
    found = served.get(f"{DEV}/{run}/diff?with={branch}")

    assert (202, "yes", "no") == (
        made.status_code,
        last_result(served, run)["published"],
        last_result(served, branch)["published"],
    )
    assert (2, 1) == (preview["kept"]["answers"], preview["anew"]["answers"])
    assert [(run, None), (branch, run)] == [(each["run"], each["parent"]) for each in tree["runs"]]
    assert {"idle"} == {each["state"] for each in (*tree["runs"], found["before"], found["after"])}


def test_a_run_of_the_command_line_branches(served: ServiceProcess) -> None:
    """It goes on in a process of its own, as `koi resume` has it."""
    run = recorded_in(served)
    entries = read(path_of(served.folder, run)).entries
    at = next(entry.n for entry in entries if entry.kind == "done" and entry.data.get("intent") == "prompt_user")
    made = served.request("POST", f"{DEV}/{run}/branch", {"at": at, "answer": "no"})
    refused = served.request("POST", f"{DEV}/{run}/branch", {"at": 1, "answer": "no"})
    wrong = served.request("POST", f"{DEV}/{run}/branch", {"at": "1"})

    assert (202, run, False) == (made.status_code, made.json()["parent"], made.json()["hosted"])
    assert (409, "entry 1 is no answer that can be replaced") == (refused.status_code, refused.json()["message"])
    assert 400 == wrong.status_code


def test_a_run_is_replayed_and_audited(served: ServiceProcess) -> None:
    """The commands of the same names say what is different, and what models may do."""
    run = recorded_in(served)
    replayed = served.request("POST", f"{DEV}/{run}/replay").json()
    audited = served.get(f"{DEV}/{run}/audit")["agents"]

    assert (True, 3, []) == (replayed["same"], replayed["answers"], replayed["differences"])
    assert {"Editor", "Counter"} == {agent["agent"] for agent in audited}
    assert audited == served.get("api/dev/program/main/audit")["agents"]
    assert 404 == served.request("GET", "api/dev/program/nothing/source").status_code


def test_nothing_is_told_without_a_token(served: ServiceProcess) -> None:
    """All of it needs one, and no id leads out of the folder of journals."""
    run = recorded_in(served)
    paths = (DEV, f"{DEV}/{run}", f"{DEV}/{run}/entries", f"{DEV}/{run}/page.html", "api/dev/program/main/source")
    stranger = ServiceProcess(served.folder, (), token="", url=served.url)

    assert {401} == {stranger.request("GET", path).status_code for path in paths}
    for name in ("..%2f..%2fanswers", "%2e%2e", "a%00b", "x" * 200, f"{run}.jsonl"):
        assert 404 == served.request("GET", f"{DEV}/{name}").status_code


def test_runs_of_the_folder_are_for_admins(desk: Path) -> None:
    """Whoever is none sees own sessions only; what was run besides is nobody's."""
    library = RunLibrary(desk.parents[2])

    assert desk == library.find(desk.stem, User("Ada", is_admin=True))
    with pytest.raises(ServiceError, match="there is no run"):
        library.find(desk.stem, User("Ada"))


def test_users_see_their_own_sessions_and_no_source(served: ServiceProcess) -> None:
    """Others' runs and those of the folder are not there for somebody who is no admin, nor is the program's source."""
    ada, bob, recorded = as_user(served, "ada"), as_user(served, "bob"), recorded_in(served)
    run = ada.begin(**START)
    ada.wait_for_state(run, "waiting")
    whats = ("", "/entries", "/tree", "/source", "/page.html", "/branch-preview?at=2", f"/diff?with={run}")

    assert [run] == [each["id"] for each in ada.get(DEV)["runs"]]
    assert [] == bob.get(DEV)["runs"]
    assert run in [each["id"] for each in as_user(served, "root").get(DEV)["runs"]]
    assert {404} == {bob.request("GET", f"{DEV}/{run}{what}").status_code for what in whats if what not in ADMINS}
    assert {404} == {ada.request("GET", f"{DEV}/{recorded}{what}").status_code for what in whats if what not in ADMINS}
    assert {403} == {ada.request("GET", f"{DEV}/{run}{what}").status_code for what in (*ADMINS, f"/diff?with={run}")}
    assert 404 == ada.request("GET", f"{DEV}/{run}/diff?with={recorded}").status_code
    assert 200 == ada.request("GET", f"{DEV}/{run}/entries").status_code
    assert 403 == ada.request("GET", "api/dev/program/main/source").status_code
    assert 404 == bob.request("POST", f"{DEV}/{run}/branch", {"at": 2}).status_code


def test_a_session_is_replayed(served: ServiceProcess) -> None:
    """All its calls are compared."""
    run = served.begin(**START)
    answered(served, run, "yes")
    replayed = served.request("POST", f"{DEV}/{run}/replay").json()

    assert (True, 3) == (replayed["same"], replayed["answers"])


@pytest.mark.thorough
def test_a_session_is_replayed_that_was_started_anew(served: ServiceProcess) -> None:
    """Its calls are compared, also those after the service was started again, and what is different is told."""
    run = served.begin(**START)
    answered(served, run, "yes")
    served.end()
    served.start()
    called = served.request(
        "POST", f"api/runs/{run}/calls?wait=20", {"handler": "Counter.count", "payload": {"text": "a"}}
    )
    replayed = served.request("POST", f"{DEV}/{run}/replay").json()
    file = served.folder / "main.koi"
    before = file.read_text()
    file.write_text(before.replace('"counting"', '"counts"'))
    different = served.request("POST", f"{DEV}/{run}/replay").json()
    file.write_text(before)

    assert {"words": 1} == called.json()["result"]
    assert (True, 3) == (replayed["same"], replayed["answers"])
    assert [["printed#1"]] * 2 == [each["path"][-1:] for each in different["differences"]]


def test_a_session_is_kept_as_a_test(served: ServiceProcess) -> None:
    """`koi test` replays what was kept."""
    run = served.begin(**START)
    answered(served, run, "yes")
    kept = served.request("POST", f"{DEV}/{run}/test", {"name": "tea"})
    again = served.request("POST", f"{DEV}/{run}/test", {"name": "tea"})
    outside = served.request("POST", f"{DEV}/{run}/test", {"name": "../tea"})
    tested = Project(served.folder).koi("test")

    assert ({"file": "tests/tea.jsonl"}, 409, 400) == (kept.json(), again.status_code, outside.status_code)
    assert "1 passed" in tested.stdout, tested.stdout


def edited_branch(service: ServiceProcess, run: str, text: str) -> dict[str, Any]:
    """The answer to the wish to go on with another playbook of `Editor.start`."""
    told = service.get(f"{DEV}/{run}/playbook?handler=Editor.start&entry=20")
    playbook = {"handler": "Editor.start", "text": text}
    answer: dict[str, Any] = service.request(
        "POST", f"{DEV}/{run}/branch", {"at": told["at"], "playbook": playbook}
    ).json()
    return answer


def wait_for_end(service: ServiceProcess, run: str) -> None:
    """Wait until the process of a run has let go of its journal, a little later than the run has ended."""
    end = time.monotonic() + LIMIT_S
    while is_running(path_of(service.folder, run)):
        assert time.monotonic() < end, run
        time.sleep(0.05)


def first_prompt(service: ServiceProcess, run: str) -> str:
    """What the first request of a run tells its model."""
    entries = service.get(f"{DEV}/{run}/entries")["entries"]
    return next(json.dumps(each) for each in entries if each["kind"] == "model_asked")


@pytest.mark.parametrize("restarts", [False, pytest.param(True, marks=pytest.mark.thorough)])
def test_a_session_goes_on_with_an_edited_playbook(served: ServiceProcess, *, restarts: bool) -> None:
    """Its branch has the new text, also after the service was started again; the file keeps the old one until then."""
    run = served.begin(**START)
    answered(served, run, "yes")
    told = served.get(f"{DEV}/{run}/playbook?handler=Editor.start&entry=20")
    text = told["text"].replace("ask whether", 'ask "at once" whether')
    branch = edited_branch(served, run, text)["id"]
    served.wait_for_state(branch, "waiting")
    before = (served.folder / "main.koi").read_text()
    if restarts:
        served.end()
        served.start()
    answered(served, branch, "no")
    shown = served.get(f"{DEV}/{branch}")["edit"]
    kept = served.request("POST", f"{DEV}/{branch}/edit", {"keep": True}).json()
    after = (served.folder / "main.koi").read_text()
    (served.folder / "main.koi").write_text(before)

    assert "ask whether to publish" in before
    assert "at once" in first_prompt(served, branch)
    assert {"files": ["main.koi"]} == kept
    assert 'ask \\"at once\\" whether' in after
    assert (False, False) == (shown["is_kept"], shown["is_stale"])
    assert "+" in {line[0] for line in shown["diff"].splitlines()}


def test_an_edit_is_not_written_over_a_newer_file(served: ServiceProcess) -> None:
    """A recorded run goes on in a process; its edit is refused where the file has changed, and can be thrown away."""
    run = recorded_in(served)
    text = served.get(f"{DEV}/{run}/playbook?handler=Editor.start&entry=20")["text"]
    branch = edited_branch(served, run, f"{text}\nBe brief.")["id"]
    file = served.folder / "main.koi"
    before = file.read_text()
    file.write_text(f"{before}\n// newer\n")
    refused = served.request("POST", f"{DEV}/{branch}/edit", {"keep": True})
    is_stale = served.get(f"{DEV}/{branch}")["edit"]["is_stale"]
    file.write_text(before)
    left = [*(served.folder / ".koi" / "versions").iterdir()]
    wait_for_end(served, branch)
    thrown = served.request("POST", f"{DEV}/{branch}/edit", {"keep": False})

    assert (True, 400) == (is_stale, refused.status_code)
    assert "was changed since the playbook was edited" in refused.json()["message"]
    assert (200, 404) == (thrown.status_code, served.request("GET", f"{DEV}/{branch}").status_code)
    assert len(left) - 1 == len([*(served.folder / ".koi" / "versions").iterdir()])


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[ServiceProcess]:
    """A service of a program that is in the folder beside its own."""
    program = Project(tmp_path / "opt")
    program.write("main.koi", DESK)
    program.write("answers.json", json.dumps(ANSWERS))
    (tmp_path / "var").mkdir()
    service = ServiceProcess(tmp_path / "var", ("../opt/main.koi", "--answers", "../opt/answers.json"))
    service.start()
    yield service
    service.end()


def test_a_program_of_another_folder_is_edited_for_a_branch(elsewhere: ServiceProcess) -> None:
    """It goes on with the text, also when the service was started again; its file is left alone."""
    service, file = elsewhere, elsewhere.folder.parent / "opt" / "main.koi"
    before = file.read_text()
    run = service.begin(**START)
    answered(service, run, "yes")
    told = service.get(f"{DEV}/{run}/playbook?handler=Editor.start&entry=20")
    branch = edited_branch(service, run, "Publish it at once.")["id"]
    service.wait_for_state(branch, "waiting")
    service.end()
    service.start()
    answered(service, branch, "no")
    edit = service.get(f"{DEV}/{branch}")["edit"]
    refused = service.request("POST", f"{DEV}/{branch}/edit", {"keep": True})

    assert (True, True, False) == (told["is_outside"], edit["is_outside"], edit["is_kept"])
    assert '+    playbook "Publish it at once."' in edit["diff"].splitlines()
    assert "Publish it at once." in first_prompt(service, branch)
    assert (400, before) == (refused.status_code, file.read_text())


def test_an_edited_playbook_that_is_wrong_is_refused(served: ServiceProcess) -> None:
    """What is wrong is told, nothing is left of it, and only admins edit."""
    run = recorded_in(served)
    before = len([*(served.folder / ".koi" / "versions").glob("*")])
    empty, quotes = edited_branch(served, run, " "), edited_branch(served, run, '"""')
    code = served.request("GET", f"{DEV}/{run}/playbook?handler=Counter.count&entry=20").json()
    ada = as_user(served, "ada")

    assert ["a playbook cannot be empty", "a playbook cannot contain three quotes in a row"] == [
        each["message"] for each in (empty, quotes)
    ]
    assert "`Counter.count` has no playbook in `main.koi`" == code["message"]
    assert before == len([*(served.folder / ".koi" / "versions").glob("*")])
    assert 404 == ada.request("GET", f"{DEV}/{run}/playbook?handler=Editor.start&entry=20").status_code
    assert 404 == ada.request("POST", f"{DEV}/{run}/edit", {"keep": False}).status_code


def test_runs_are_filtered_sorted_and_added_up() -> None:
    """By outcome, user, day, cost and time; totals are those of all that are wanted, not of the page."""
    day = datetime(2026, 11, 28, 12).timestamp()
    rows = [("a", "ok", "ada", 0.5, 10), ("b", "failed", "bob", None, 400), ("c", "interrupted", "ada", 0.02, 3)]
    runs = [
        {"id": id, "state": state, "owner": owner, "usd": usd, "program": "x.koi", "started": day + 86400 * (id == "a")}
        for id, state, owner, usd, _ in rows
    ]
    runs = [{**run, "updated": run["started"] + row[-1]} for run, row in zip(runs, rows, strict=True)]

    def ids(**given: str) -> str:
        return "".join(run["id"] for run in RunQuery.of(given).page(runs, 10, "")["runs"])

    assert ("acb", "bac", "bca") == (ids(sort="-usd"), ids(sort="-seconds"), ids(sort="state"))
    assert ("cb", "ac", "a", "ac", "b") == (
        *(ids(state="bad"), ids(user="ada"), ids(day="2026-11-29"), ids(usd="0.01"), ids(seconds="60")),
    )
    page = RunQuery().page(runs, 1, "")
    assert ["a", "a"] == [page["next"], page["runs"][0]["id"]]
    assert [("2026-11-29", 1, 0), ("2026-11-28", 2, 2)] == [
        (each["day"], each["runs"], each["bad"]) for each in page["days"]
    ]
    with pytest.raises(HttpError, match="`sort` is no such word"):
        RunQuery.of({"sort": "mood"})
