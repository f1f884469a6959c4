"""`koi eval` as a person calls it: what it prints, which cases it takes, and its exit codes."""

from __future__ import annotations

import pytest

from tests.evaluation.evaluating import GREETER, evaluated, report_of, write_cases, write_evals
from tests.projects import Project

REPORT = """\
failed greets: bo 1/2 (0.0 s), length 10
failed greets: bo 2/2 (0.0 s), length 10
passed greets: ada 1/2 (0.0 s), length 11
passed greets: ada 2/2 (0.0 s), length 11
passed greets: cy 1/2 (0.0 s), length 13
passed greets: cy 2/2 (0.0 s), length 13

greets: 3 cases (4 of 6 runs passed)
  passed  66.7 % (95 % interval 20.8 to 93.9 %)
  length  11.33 (95 % interval 7.539 to 15.13)
  90 % had to pass: missed

6 runs, 0 tokens, $0.0000, 0.0 s; evaluation ID
"""
FAILURE = """\
  error: the two sides are equal [E0500]
    --> main.eval.koi:10:3
     |
  10 |   expect case.name != "Bo"
     |   ^^^^^^^^^^^^^^^^^^^^^^^^
    left:  'Bo'
    right: 'Bo'
"""


def test_the_report_has_rates_and_scores_with_intervals(project: Project) -> None:
    """Each case has a line, each failure its reason; then come the share of what passed, scores, and the verdict."""
    write_evals(project)

    done = evaluated(project)

    report = report_of(done)
    assert (1, 1, 1) == (done.returncode, report.count(FAILURE), done.stdout.count("  as `"))
    assert report.replace(FAILURE, "") == REPORT


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("accept", "code"), [("pass 0.6", 0), ("pass 0.7", 1), ("", 0)])
def test_a_missed_share_is_the_exit_code(project: Project, accept: str, code: int) -> None:
    """1 where fewer pass than have to; an eval without `pass` gives no verdict."""
    write_evals(project, f'eval "names" over "./names.jsonl" {accept} {{ expect case.name != "Bo" }}')

    done = evaluated(project)

    assert code == done.returncode
    assert bool(accept) == ("had to pass" in done.stdout)


def test_cases_come_from_json_csv_and_lists(project: Project) -> None:
    """All four kinds of sources give the same cases; a comma, a quote and a line break stand in a field of CSV."""
    evals = [
        f'eval "{name}" over {over} {{ expect case.name.length == case.size * 1 }}'
        for name, over in [("jsonl", '"./c.jsonl"'), ("json", '"./c.json"'), ("csv", '"./data/c.csv"'),
                           ("list", r'[{ name: "A, \"B\"\nC", size: 8 }, { name: "Bo", size: 2 }]')]
    ]  # fmt: skip
    cases = [{"name": 'A, "B"\nC', "size": 8}, {"name": "Bo", "size": 2}]
    project.write("main.eval.koi", "\n".join(evals))
    write_cases(project, cases, "c.jsonl")
    project.write("c.json", '[{"name": "A, \\"B\\"\\nC", "size": 8}, {"name": "Bo", "size": 2}]')
    project.write("data/c.csv", '\ufeffname,size\n"A, ""B""\nC",8\nBo,2\n')

    done = evaluated(project)

    assert (0, 8) == (done.returncode, done.stdout.count("passed jsonl: ") + done.stdout.count("passed json: ")
                      + done.stdout.count("passed csv: ") + done.stdout.count("passed list: "))  # fmt: skip


def test_an_eval_without_source_has_one_case(project: Project) -> None:
    """It is `{}`, and carried out once."""
    project.write("main.eval.koi", 'eval "once" { expect case == {}  score one = 1 }')

    done = evaluated(project)

    assert (0, True) == (done.returncode, "once: 1 case\n  passed  100.0 %" in done.stdout)


def test_words_choose_evals_and_cases(project: Project) -> None:
    """`-k` chooses evals by file and name, `-n` the first cases of each."""
    write_evals(project, 'eval "long" over "./names.jsonl" { }  eval "short" over "./names.jsonl" { }')

    done = evaluated(project, "-k", "long", "-n", "2")

    chosen = [line.split(" (")[0] for line in done.stdout.split("\n") if line.startswith("passed")]
    assert (0, ["passed long: ada", "passed long: bo"]) == (done.returncode, sorted(chosen))


def test_nothing_to_evaluate(project: Project) -> None:
    """A folder without evals, and words that choose none, end with 5 and say what would."""
    assert (5, True) == ((done := evaluated(project)).returncode, "there are no evals here" in done.stderr)
    write_evals(project)

    done = evaluated(project, "-k", "sings")

    assert (5, True) == (done.returncode, "no eval has `sings` in its name" in done.stderr)


def test_tests_and_runs_leave_evals_alone(project: Project) -> None:
    """`koi test` finds no test in a file of evals, and `koi run` carries out what `run` says."""
    project.write("main.eval.koi", GREETER + 'run Host.greet({ name: "Ada" })\neval "fails" { expect false }\n')

    tested, run = project.koi("test"), project.koi("run", "main.eval.koi")

    assert (5, 0, "Hello, Ada!\n") == (tested.returncode, run.returncode, run.stdout)


def test_words_of_evals_are_names_elsewhere(project: Project) -> None:
    """`eval`, `over`, `times`, `pass`, `score` and `case` are ordinary names outside of evals, and inside, too."""
    project.write(
        "main.koi",
        """
        role Worker { can execute }
        agent Main : Worker {
          on start() {
            const over = 1, times = 2, pass = 3, score = 4, evals = { eval: 5, case: 6 }
            let scores = score
            scores = times * over
            console.log(over, times, pass, score, evals.eval, evals.case, scores)
          }
        }
        run Main.start()
        eval "names" { const score = 2, times = score  score over = times + score  expect output == [] }
        """,
    )

    run, done = project.koi("run", "main.koi"), evaluated(project, "main.koi")

    assert (0, "1 2 3 4 5 6 2\n") == (run.returncode, run.stdout)
    assert (0, True) == (done.returncode, ", over 4\n" in done.stdout)


def test_a_case_goes_on_behind_what_does_not_hold(project: Project) -> None:
    """All expectations of a case are looked at and its scores count; an error of the program ends it."""
    steps = 'expect false  expect 1 == 2  expect await Host.greet(3) fails "never"  score a = 1'
    write_evals(project, f'eval "misses" {{ {steps} }}  eval "fails" {{ score b = 1  throw new Error("oh")  }}')

    done = evaluated(project)

    assert 0 == done.returncode
    for told in ("this is not true", "the two sides are not equal", "failed with another message", "  a       1", "oh"):
        assert told in done.stdout


@pytest.mark.sampled(3)
@pytest.mark.parametrize("value", ["NaN", "1 / 0", '"1"', "null", "{ }", "case.missing", "1 == 1"])
def test_a_score_is_a_finite_number(project: Project, value: str) -> None:
    """Anything else fails the case with the line, and is no score."""
    write_evals(project, f'eval "scored" {{\n  const value = {value}\n  score good = value\n}}')

    done = evaluated(project)

    assert "error: the score `good` must be a number, not " in done.stdout
    assert "--> main.eval.koi:8:3" in done.stdout
    assert "\n  good" not in done.stdout


def test_no_rehearsal_stands_in_for_a_model(project: Project) -> None:
    """Without a model an eval that asks one is refused with what to do, and leaves nothing behind."""
    write_evals(project, 'eval "asks" over "./names.jsonl" { await Host.write({ name: case.name }) }')

    done = evaluated(project)

    assert (2, "") == (done.returncode, done.stdout)
    assert "error: no model is configured, and this is no rehearsal" in done.stderr
    assert "`-m provider/model`; `--answers FILE` takes answers from a file" in done.stderr
    assert [] == list((project.folder / ".koi" / "runs").glob("*"))


def test_answers_begin_anew_for_each_case(project: Project) -> None:
    """A list of answers counts for every case and each of its repeats; so do those that the eval gives itself."""
    write_evals(
        project,
        """
        eval "from the file" over "./names.jsonl" times 2 { expect await Host.write({ name: case.name }) == "hi" }
        eval "given" over "./names.jsonl" {
          given model answers [{ intent: "return", data: case.name }]
          expect await Host.write({ name: case.name }) == case.name
        }
        """,
    )
    project.write("answers.json", '[{"intent": "return", "data": "hi"}]')

    done = evaluated(project, "--answers", "answers.json")

    passed = done.stdout.count("passed from"), done.stdout.count("passed given")
    assert (0, (6, 3), "") == (done.returncode, passed, done.stderr)


def test_answers_are_given_by_cases_and_repeats(project: Project) -> None:
    """`{"cases": …}` has them by the id of a case, and by id and number of the repeat, which goes first."""
    text = 'eval "asks" over "./names.jsonl" times 2 { score n = await Host.write({ name: case.name }) }'
    write_evals(project, text, [{"id": "ada", "name": "Ada"}, {"id": 7, "name": "Bo"}])
    give = '[{{"intent": "return", "data": {} }}]'.format
    given = f'{{"ada": {give(1)}, "ada 2": {give(2)}, "7": {{"Greet": {give(3)}}}}}'
    project.write("answers.json", f'{{"cases": {given}}}')
    project.write("few.json", f'{{"cases": {{"ada": {give(1)}}}}}')

    done, few = evaluated(project, "--answers", "answers.json"), evaluated(project, "--answers", "few.json")

    passed = [line for line in report_of(done).split("\n") if line.startswith("passed")]
    told = [line.removeprefix("passed asks: ").replace(" (0.0 s)", "") for line in passed]
    assert ["7 1/2, n 3", "7 2/2, n 3", "ada 1/2, n 1", "ada 2/2, n 2"] == told
    assert (2, "") == (few.returncode, few.stdout)
    assert "`few.json` has no answers for the case `7`" in few.stderr


def test_a_failure_shows_no_secret(project: Project) -> None:
    """What a journal does not show is not shown of what was expected either."""
    write_evals(
        project, 'eval "keeps" over "./names.jsonl" { expect case.password == 1 }', [{"password": "swordfish-17"}]
    )

    done = evaluated(project)

    assert ("failed keeps: 1" in done.stdout, "k9XfQ2mZ" in done.stdout + done.stderr) == (True, False)


def test_a_case_without_an_end_costs_itself(project: Project) -> None:
    """After `--max-time` it has failed, whether it waits or computes; the others are carried out."""
    steps = "if (case == 1) while (true) { }  if (case == 2) await new Promise(() => { })"
    project.write("main.eval.koi", f'eval "ends" over [1, 2, 3] {{ {steps} }}')

    done = evaluated(project, "--max-time", "1")

    assert (0, 2, 1) == (done.returncode, done.stdout.count("failed ends"), done.stdout.count("passed ends: 3"))
    assert "this did not end within 1 s" in done.stdout


@pytest.mark.parametrize(("jobs", "times"), [(8, 4), pytest.param(40, 20, marks=pytest.mark.thorough)])
def test_many_processes_are_no_trouble(project: Project, jobs: int, times: int) -> None:
    """More processes than processors: every case is carried out once."""
    text = f'eval "counts" over "./names.jsonl" times {times} {{ score n = case.n }}'
    write_evals(project, text, [{"n": n} for n in range(3)])

    done = evaluated(project, "-j", str(jobs))

    assert (0, 3 * times) == (done.returncode, done.stdout.count("passed counts"))
    assert f"({3 * times} of {3 * times} runs passed)" in done.stdout


def test_running_a_file_of_evals_says_how_they_are_carried_out(project: Project) -> None:
    """`koi run` has nothing to do with evals."""
    write_evals(project)

    done = project.koi("run", "main.eval.koi")

    assert (2, True) == (done.returncode, "carried out by `koi eval main.eval.koi`" in done.stderr)


REFUSED = (
    '[permissions]\ndeny = ["runn:**"]',
    '[mcp.h]\ndeny = "write_*"',
    '[mcp.h]\ndenny = ["write_*"]',
    "[serve.limits]\nusd_per_sesion = 1",
)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("settings", REFUSED)
@pytest.mark.parametrize("command", ["run", "rpc", "audit", "eval", "test"])
def test_refused_settings_are_told_before_anything_runs(project: Project, command: str, settings: str) -> None:
    """Every command ends with the code of wrong usage, and no case and no test is carried out before."""
    write_evals(project)
    project.write("main.test.koi", 'test "adds" { expect 1 + 1 == 2 }')
    project.write("koi.toml", settings)
    files = {"test": "main.test.koi"}

    done = project.koi(command, files.get(command, "main.eval.koi"))

    assert (2, "") == (done.returncode, done.stdout)
    assert "error: " in done.stderr
