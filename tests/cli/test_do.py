"""`koi do` on small projects: real files, real tests, and the answers of a model from a file."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests import forks
from tests.projects import Project
from tests.test_sample_projects import NAMES, PROJECTS, about, passes, texts

ALLOW = ("--allow", "write:**", "--allow", "run:**")


@pytest.fixture(autouse=True)
def _forked_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python that runs the tests of a project is forked."""
    for name in ("python", "python3"):
        forks.command(tmp_path / "commands", name)
    monkeypatch.setenv("PATH", f"{tmp_path / 'commands'}{os.pathsep}{os.environ['PATH']}")


def prepare(project: Project, name: str) -> tuple[Path, str]:
    """A copy of a sample project, and the file with the answers."""
    shutil.copytree(PROJECTS / name / "files", project.folder, dirs_exist_ok=True)
    return project.folder, str(PROJECTS / name / "answers.json")


def still(folder: Path, before: dict[str, str]) -> dict[str, str]:
    """The files that were there before, as they are now."""
    return {path: (folder / path).read_text("utf-8") for path in before if (folder / path).is_file()}


OF_NODE = pytest.mark.needs("node")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", [pytest.param(name, marks=[OF_NODE] * name.startswith("node")) for name in NAMES])
def test_a_task_is_done(name: str, project: Project) -> None:
    """The tests pass, only what is to change has changed, and undo puts all of it back."""
    expected = about(name)
    folder, answers = prepare(project, name)
    before = texts(folder)

    done = project.koi("do", expected["task"], "--answers", answers, *ALLOW)

    assert (done.returncode, done.stderr.count("error")) == (0, 0), done.stderr
    assert json.loads(Path(answers).read_text())[-1]["data"] in done.stdout
    assert passes(expected["check"], folder)
    after = still(folder, before)
    assert sorted(path for path in after if after[path] != before[path]) == expected["changed"]

    undone = project.koi("undo", "--yes")

    assert still(folder, before) == before, undone.stderr


def test_work_that_nobody_allows_is_a_best_effort(project: Project) -> None:
    """Without a person and rules nothing is written or run, and the exit code says so."""
    folder, answers = prepare(project, "failing-test")
    before = texts(folder)

    done = project.koi("do", "mend it", "--answers", answers)

    assert done.returncode == 3
    assert "the tests were not run: nobody can be asked" in done.stdout
    assert "coder.koi" not in done.stderr
    assert still(folder, before) == before


def test_without_an_accepted_plan_nothing_is_done(project: Project) -> None:
    """In plan mode work that proposes none ends so, and says so."""
    folder, answers = prepare(project, "failing-test")
    before = texts(folder)

    done = project.koi("do", "mend it", "--plan", "--answers", answers, *ALLOW)

    assert (done.returncode, still(folder, before)) == (3, before)
    assert "no plan was accepted, so nothing was changed" in done.stderr


def test_a_limit_has_its_own_exit_code(project: Project) -> None:
    """That of the whole run as well as that of a playbook."""
    _, answers = prepare(project, "failing-test")
    codes = [
        project.koi("do", "mend it", "--answers", answers, *ALLOW, *limit).returncode
        for limit in (("--max-requests", "2"), ("--max-turns", "2"))
    ]

    assert codes == [4, 4]


def test_rounds_go_on_until_the_tests_pass(project: Project) -> None:
    """The second round is told what the tests found; without a second one the work is a best effort."""
    folder, answers = prepare(project, "failing-test")
    rounds = [{"intent": "return", "data": "nothing was wrong"}, *json.loads(Path(answers).read_text())]
    script = project.write("rounds.json", json.dumps(rounds))

    once = project.koi("do", "mend it", "-i", "1", "--answers", str(script), *ALLOW)
    twice = project.koi("do", "mend it", "-i", "2", "--answers", str(script), *ALLOW)

    assert (once.returncode, twice.returncode) == (3, 0), twice.stderr
    assert "tests fail" in once.stdout
    assert passes(about("failing-test")["check"], folder)


HALF = ("return 0", "return a * 2")
WORSE = ("return a * 2", "raise ValueError")


def script_rounds(project: Project, *rounds: list[dict[str, object]]) -> str:
    """A project with two failing tests, and the file with the answers of rounds, each of which returns its number."""
    project.write("sums.py", "def add(a, b):\n    return 0\n")
    tests = ("assert add(1, 1) == 2", "assert add(1, 2) == 3")
    lines = (f"def test_{n}():\n    {test}\n" for n, test in enumerate(tests))
    project.write("test_sums.py", "from sums import add\n" + "".join(lines))
    ends = ({"intent": "return", "data": f"text {n}"} for n in range(1, len(rounds) + 1))
    answers = [answer for work, end in zip(rounds, ends, strict=True) for answer in (*work, end)]
    return str(project.write("rounds.json", json.dumps(answers)))


def edit(piece: tuple[str, str]) -> dict[str, object]:
    """An edit of the only module."""
    return {"intent": "edit_file", "path": "sums.py", "before": piece[0], "after": piece[1]}


def test_the_best_round_stays(project: Project) -> None:
    """Text, figure and files are those of one round, where a later one has made it worse."""
    answers = script_rounds(project, [edit(HALF)], [edit(WORSE)])

    done = project.koi("do", "mend it", "--answers", answers, *ALLOW)

    assert (done.returncode, done.stdout) == (3, "text 1\n1 of 2 tests fail\n"), done.stderr
    assert "return a * 2" in (project.folder / "sums.py").read_text()
    assert "round 2 was worse than round 1, so the last 1 of 3 were not tried\n" in done.stderr


FEWER = "fewer tests ran than before:"
NO_TEST = [{"intent": "run_command", "command": "rm test_sums.py"}]
NO_COLLECTION = {"path": "conftest.py", "content": "collect_ignore = ['test_sums.py']\n"}
ONE_TEST = {"path": "test_sums.py", "content": "def test_nothing():\n    pass\n"}
NEW_TEST = {"path": "test_more.py", "content": "def test_more():\n    pass\n"}
OWN_SCRIPT = {"path": "package.json", "content": '{"scripts": {"test": "true"}}'}


@pytest.mark.parametrize(
    ("work", "told"),
    [
        (NO_TEST, f"test_sums.py; {FEWER} 0 of 2"),
        ([{"intent": "write_file", **ONE_TEST}], f"test_sums.py; {FEWER} 1 of 2"),
        (
            [{"intent": "write_file", **NEW_TEST}, {"intent": "write_file", **NO_COLLECTION}],
            f"conftest.py; {FEWER} 1 of 2",
        ),
        ([*NO_TEST, {"intent": "write_file", **OWN_SCRIPT}], f"package.json, test_sums.py; {FEWER} 1 of 2"),
    ],
    ids=["no test", "another test", "settings", "script"],
)
def test_work_that_changes_its_judge_is_accepted_by_a_person_alone(
    work: list[dict[str, object]], told: str, project: Project
) -> None:
    """It is told, and asked about; where nobody can be asked, green tests are a best effort."""
    answers = script_rounds(project, work)

    done = project.koi("do", "mend it", "-i", "1", "--answers", answers, *ALLOW)

    assert done.returncode == 3, done.stdout + done.stderr
    assert f"what the tests rest on has changed: {told}\n" in done.stdout


def test_fewer_tests_than_before_are_told(project: Project) -> None:
    """Also where no test file has changed, since the tests are made of data; the work is not accepted by itself."""
    project.write("cases.txt", "1\n2\n3\n")
    lines = "import pytest\nCASES = open('cases.txt').read().split()\n"
    case = "@pytest.mark.parametrize('case', CASES)\ndef test_case(case):\n    assert case == '1'\n"
    project.write("test_cases.py", lines + case)
    work = {"intent": "write_file", "path": "cases.txt", "content": "1\n"}
    answers = project.write("rounds.json", json.dumps([work, {"intent": "return", "data": "text 1"}]))

    done = project.koi("do", "mend it", "-i", "1", "--answers", str(answers), *ALLOW)

    expected = "1 test passes; fewer tests ran than before: 1 of 3\n"
    assert (done.returncode, done.stdout) == (3, f"text 1\n{expected}"), done.stderr


def test_the_end_tells_what_changed(project: Project) -> None:
    """Files with added and removed lines, and how to put them back: on a pipe, too, and behind a limit."""
    more = {"intent": "write_file", "path": "notes/new.md", "content": "one\ntwo\n"}
    answers = script_rounds(project, [edit(("    return 0\n", "    a += b\n    return a\n")), more])

    done = project.koi("do", "mend it", "--answers", answers, *ALLOW)
    ended = project.koi("do", "mend it", "--answers", answers, "--max-turns", "1", "--allow", "write:notes/**")
    nothing = project.koi("do", "mend it", "-i", "1", "--answers", answers)

    run = done.stderr.partition("`koi undo ")[2][:12]
    assert done.stderr == f"2 files changed, +4 −1: notes/new.md, sums.py; `koi undo {run}` puts them back\n"
    assert "no file was changed\nerror: " in ended.stderr
    assert "no file was changed\nerror: " in nothing.stderr


def test_tests_of_a_round_that_is_put_back_are_not_missed(project: Project) -> None:
    """A later round that has more tests and is worse says nothing about the best one."""
    more = {"intent": "write_file", **NEW_TEST}
    answers = script_rounds(project, [edit(HALF)], [edit(WORSE), more])

    done = project.koi("do", "mend it", "--answers", answers, *ALLOW)

    assert (done.returncode, done.stdout) == (3, "text 1\n1 of 2 tests fail\n"), done.stderr
    assert "put back as the best round left it: sums.py, test_more.py; `koi undo " in done.stderr
    assert "1 file changed, +1 −1: sums.py; `koi undo " in done.stderr


def test_new_tests_change_no_judge(project: Project) -> None:
    """Work may add tests of its own; those that were there have to pass."""
    answers = script_rounds(project, [edit(("return 0", "return a + b")), {"intent": "write_file", **NEW_TEST}])

    done = project.koi("do", "mend it", "--answers", answers, *ALLOW)

    assert (done.returncode, done.stdout) == (0, "text 1\n3 tests pass\n"), done.stderr


def test_a_limit_leaves_the_files_to_go_on_with(project: Project) -> None:
    """A resumed run finds what its limit interrupted, also behind a round that is whole."""
    answers = script_rounds(project, [edit(HALF)], [edit(WORSE), edit(("raise ValueError", "return a + b"))])

    ended = project.koi("do", "mend it", "--max-turns", "2", "--answers", answers, *ALLOW)
    resumed = project.koi("resume", "--max-turns", "5")

    assert (ended.returncode, resumed.returncode) == (4, 0), ended.stderr + resumed.stderr
    assert "--max-turns N` goes on with a higher limit" in ended.stderr
    assert "return a + b" in (project.folder / "sums.py").read_text()


@pytest.mark.parametrize(
    ("words", "told"),
    [((" ",), "there is nothing to do"), ((), "Missing argument"), (("x", "-i", "0"), "0 is not")],
    ids=["blank", "nothing", "no round"],
)
def test_what_cannot_be_done_is_told(words: tuple[str, ...], told: str, project: Project) -> None:
    """In one message, before anything happens."""
    refused = project.koi("do", *words)

    assert (refused.returncode, refused.stdout) == (2, "")
    assert told in refused.stderr


def test_without_a_model_nothing_is_rehearsed(project: Project) -> None:
    """A rehearsal would do nothing to a project, so the message says what there is to do."""
    told = project.koi("do", "mend it").stderr

    assert "no model is configured" in told
    assert "Traceback" not in told


def test_a_run_is_replayed(project: Project) -> None:
    """A recorded run of `koi do` is a test of it."""
    _, answers = prepare(project, "failing-test")
    project.koi("do", "mend it", "--answers", answers, *ALLOW)

    replayed = project.koi("replay", "last")

    assert replayed.returncode == 0, replayed.stderr
    assert "nothing is different" in replayed.stderr


def test_chat_needs_no_file(project: Project) -> None:
    """Without one it is the agent of `koi do` that answers."""
    script = project.write("answers.json", json.dumps([{"intent": "return", "data": "four files"}]))

    said = project.koi("chat", "--answers", str(script), stdin="How many files are here?\n")

    assert (said.stdout.strip(), said.returncode) == ("four files", 0), said.stderr


def test_a_person_may_accept_another_judge(project: Project) -> None:
    """Whoever asked for other tests says so once."""
    answers = script_rounds(project, [{"intent": "write_file", **ONE_TEST}])

    done = project.koi("do", "another test", "--answers", answers, *ALLOW, stdin="yes\n")

    assert done.returncode == 0, done.stdout + done.stderr
