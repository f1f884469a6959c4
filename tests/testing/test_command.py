"""`koi test` as a person calls it: what it prints, exit codes, and tests that end their process."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree.ElementTree import parse

import pexpect
import pytest

import koi_lang
from tests import forks
from tests.limits import LIMIT_S
from tests.projects import Project

GOOD = 'test "adds" { expect 1 + 1 == 2 }\ntest "multiplies" { expect 2 * 3 == 6 }\n'
BAD = 'test "subtracts" { expect 2 - 1 == 0 }\n'
HARMFUL = """
    import boom from "./boom.py"
    test "leaves" { boom.leave() }
    test "crashes" { boom.crash() }
    test "asks the network" { await fetch("http://example.com/") }
    test "asks this machine" { expect await fetch("http://127.0.0.1:1/") fails "fetch failed" }
    test "passes" { expect true }
    """
ENDLESS = """
    import boom from "./boom.py"
    test "spins" { while (true) { } }
    test "sleeps" { while (true) { await new Promise(done => setTimeout(done, 1)) } }
    test "hangs" { boom.hang() }
    """
BOOM = """
    import os, signal, time
    def leave(): os._exit(3)
    def crash(): os.kill(os.getpid(), signal.SIGSEGV)
    def shout(): os.write(1, b"past everything\\n")
    def hang():
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
        time.sleep(60)
    """


def without_times(text: str) -> str:
    """A report whose times are all the same."""
    return re.sub(r"\d+\.\d\d s", "0.00 s", text)


def test_all_tests_pass(project: Project) -> None:
    """The files of the current folder are run, and only the counts are printed."""
    project.write("a.test.koi", GOOD)
    project.write("more/b.test.koi", GOOD)

    done = project.koi("test")

    assert (0, "4 passed in 0.00 s\n", "") == (done.returncode, without_times(done.stdout), done.stderr)


def test_failures_are_shown_in_the_order_of_the_files(project: Project) -> None:
    """A failure shows its line; a file that does not compile is a failure of its own; the exit code is 1."""
    project.write("a.test.koi", GOOD + BAD)
    project.write("b.test.koi", 'test "unfinished" {')

    done = project.koi("test", "-j", "3")

    assert (1, "") == (done.returncode, done.stderr)
    assert (
        "failed a.test.koi: subtracts\n\nerror: the two sides are not equal [E0500]\n --> a.test.koi:3:20\n"
        in done.stdout
    )
    assert "  left:  1\n  right: 0\n" in done.stdout
    assert "failed b.test.koi\n\nerror: this `{` is never closed [E0131]\n --> b.test.koi:1:19\n" in done.stdout
    assert done.stdout.index("failed a.test.koi") < done.stdout.index("failed b.test.koi")
    assert without_times(done.stdout).endswith("\n2 failed, 2 passed in 0.00 s\n")
    assert "\x1b" not in done.stdout


def test_tests_are_chosen_and_listed(project: Project) -> None:
    """`--list` prints what would be run, `-k` chooses by file and name."""
    project.write("a.test.koi", GOOD + BAD)

    listed = project.koi("test", "--list", "-k", "a.test and not adds")
    done = project.koi("test", "-k", "adds or multiplies", "-v", "-j", "1", "--durations", "1")

    assert (0, "a.test.koi: multiplies\na.test.koi: subtracts\n") == (listed.returncode, listed.stdout)
    assert without_times(done.stdout).split("\n")[:2] == [
        "passed a.test.koi: adds (0.00 s)",
        "passed a.test.koi: multiplies (0.00 s)",
    ]
    assert (0, True) == (done.returncode, "slowest:\n" in done.stdout)


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ((), 5, "there are no tests here"),
        (("plain.koi", "-k", "nothing"), 5, "no test has `nothing` in its name"),
        (("missing.koi",), 2, "there is no file or folder `missing.koi`"),
        (("-k", "(", "plain.koi"), 2, "`-k (` cannot be read"),
        (("-j", "0"), 2, "Invalid value for '-j'"),
        (("plain.koi", "--junit", "missing/report.xml"), 2, "`missing/report.xml` cannot be written"),
    ],
)
def test_exit_codes(project: Project, words: tuple[str, ...], code: int, told: str) -> None:
    """5 where there is nothing to run, 2 for wrong usage."""
    project.write("plain.koi", GOOD)

    done = project.koi("test", *words)

    assert code == done.returncode
    assert told in done.stderr


def test_the_first_failure_ends_the_run(project: Project) -> None:
    """With `-x` what has not begun by then is not run."""
    project.write("a.test.koi", BAD + GOOD)

    done = project.koi("test", "-x", "-j", "1")

    assert (1, "1 failed in 0.00 s") == (done.returncode, without_times(done.stdout).split("\n")[-2])


def failures_of(project: Project, *words: str) -> dict[str | None, str | None]:
    """The failures of `a.test.koi` by the names of the tests."""
    project.koi("test", "a.test.koi", "-j", "2", "--junit", "report.xml", *words)
    cases = parse(project.folder / "report.xml").iter("testcase")
    return {case.get("name"): failure.get("message") for case in cases for failure in case.iter("failure")}


def test_harmful_tests_harm_only_themselves(project: Project) -> None:
    """A test that ends its process, crashes or reaches for the network is one failure; the others go on."""
    project.write("a.test.koi", HARMFUL)
    project.write("boom.py", BOOM)

    assert failures_of(project) == {
        "leaves": "the process of this test ended itself with the exit code 3",
        "crashes": "the process of this test was ended by the signal SIGSEGV",
        "asks the network": "a test reaches nothing outside of this machine, and this asks for `example.com` [E0500]",
    }


def test_endless_tests_are_ended(project: Project) -> None:
    """A test that takes too long is one failure, also where it cannot be interrupted."""
    project.write("a.test.koi", ENDLESS)
    project.write("boom.py", BOOM)

    assert failures_of(project, "--max-time", "0.5") == {
        "spins": "this did not end within 0.5 s [E0500]",
        "sleeps": "this did not end within 0.5 s [E0500]",
        "hangs": "this did not end within 0.5 s, and its process was killed",
    }


def test_what_is_written_past_python_is_no_report(project: Project) -> None:
    """The report alone is on standard output."""
    project.write("a.test.koi", 'import boom from "./boom.py"\ntest "shouts" { boom.shout() }')
    project.write("boom.py", BOOM)

    done = project.koi("test")

    assert ("1 passed in 0.00 s\n", "past everything\n") == (without_times(done.stdout), done.stderr)


def test_an_interrupted_run_tells_what_is_done(project: Project) -> None:
    """Ctrl-C ends all processes; results up to then are reported, and no traceback."""
    project.write("a.test.koi", GOOD + 'test "spins" { while (true) { } }')
    command = [sys.executable, "-m", "koi_lang", "test", "-v", "-j", "1"]
    environment = {**os.environ, "PYTHONPATH": str(Path(koi_lang.__file__).parents[1])}
    with subprocess.Popen(
        command, cwd=project.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        begun = [process.stdout.readline() for _ in range(2)]
        process.send_signal(signal.SIGINT)
        rest, told = process.communicate(timeout=LIMIT_S)

    assert ["passed", "passed"] == [text.split()[0] for text in begun]
    assert (130, "interrupted after 2 of 3 tests\n") == (process.returncode, told)
    assert without_times(rest).endswith("2 passed in 0.00 s\n")


@pytest.mark.parametrize(("environment", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_a_terminal_has_colours(project: Project, environment: dict[str, str], coloured: bool) -> None:
    """Counts are coloured on a terminal, unless NO_COLOR is set."""
    project.write("a.test.koi", GOOD)
    around = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    around |= {"PYTHONPATH": str(Path(koi_lang.__file__).parents[1]), **environment}
    python, *words = forks.koi("test")

    shown = pexpect.spawn(python, words, cwd=str(project.folder), env=around, timeout=LIMIT_S).read().decode()

    assert ("\x1b[32m2 passed" in shown, "2 passed in" in shown) == (coloured, True)


def test_coverage_sees_what_tests_run(project: Project) -> None:
    """Lines of tests and of what they call are counted, in whichever process they run."""
    project.write("a.test.koi", 'import "./b.koi"\ntest "adds" {\n  const sum = add(1)\n  expect sum == 2\n}\n')
    project.write("b.koi", "skill B {\n  export function add(a) {\n    if (a > 5) return 7\n    return a + 1\n  }\n}\n")
    project.write(".coveragerc", "[run]\nplugins = koi_lang.coverage\nconcurrency = multiprocessing\nsource = .\n")

    for words in (("run", "-m", "koi_lang", "test", "-j", "2"), ("combine", "-q")):
        assert project.fork("-m", "coverage", *words).returncode == 0
    reported = project.fork("-m", "coverage", "json", "-q", "-o", "-")

    files = json.loads(reported.stdout)["files"]
    assert {name: file["missing_lines"] for name, file in files.items()} == {"a.test.koi": [], "b.koi": []}
    assert [1, 2, 3, 4] == files["a.test.koi"]["executed_lines"]


def test_programs_are_told_where_tests_are(project: Project) -> None:
    """`--list --json` prints a line with the place of each test; a file that does not compile is one by itself."""
    path = project.write("a.test.koi", "// first\n" + GOOD)
    broken = project.write("b.test.koi", "test {")

    done = project.koi("test", "--list", "--json")

    assert [
        {"file": str(path), "line": 2, "name": "adds"},
        {"file": str(path), "line": 3, "name": "multiplies"},
        {"file": str(broken), "line": 1, "name": ""},
    ] == list(map(json.loads, done.stdout.splitlines()))


def test_programs_are_told_what_came_of_tests(project: Project) -> None:
    """`--json` prints a line for each test, a failure with its message and the line it happened on."""
    path = project.write("a.test.koi", 'test "adds" {\n  console.log("é")\n  expect 1 == 1\n}\n' + BAD)

    done = project.koi("test", "--json", "-j", "1")
    good, bad = map(json.loads, done.stdout.splitlines())

    assert (1, "") == (done.returncode, done.stderr)
    assert good.pop("seconds") >= 0
    assert {"file": str(path), "line": 1, "name": "adds", "outcome": "passed", "printed": ["é"]} == good
    assert ("failed", 5, {"file": str(path), "line": 5}) == (bad["outcome"], bad["line"], bad["at"])
    assert bad["message"].startswith("error: the two sides are not equal [E0500]")


def test_one_test_is_run_by_its_name(project: Project) -> None:
    """`FILE::NAME` is one test, spelt as in its file; another name is refused with a near one."""
    project.write("a.test.koi", GOOD + 'test "adds and not less" { expect true }\n')

    done = project.koi("test", "a.test.koi::adds and not less", "-v")
    missed = project.koi("test", "a.test.koi::ads")

    assert "passed a.test.koi: adds and not less (0.00 s)\n1 passed in 0.00 s\n" == without_times(done.stdout)
    assert (2, True) == (missed.returncode, "did you mean `adds`?" in missed.stderr)
