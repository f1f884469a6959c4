"""Evaluations and cases that go on: after a kill or Ctrl-C, with more money, from an entry, against recordings."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from koi_lang.runtime.journal import store
from tests import forks
from tests.evaluation.evaluating import GREETER, NAMES, evaluated, id_of, report_of, write_cases, write_evals
from tests.limits import LIMIT_S
from tests.llm.server import Answer, Asked, ModelServer
from tests.projects import Project

KEY = "sk-" + "k" * 40
ASKING = """
eval "writes" over "./names.jsonl" times 2 {
  const name = await Host.write({ name: case.name })
  expect name == case.name
  score length = name.length
}
"""
INPUT = 100
MODEL = ("-m", "openai/gpt-4o-mini")


def name_in(asked: Asked) -> str:
    """The name that a request is about."""
    return re.findall(r"\b(Ada|Bo|Cyrus)\b", json.dumps(asked.body["messages"]))[-1]


def answer_to(asked: Asked) -> Answer:
    """An answer that returns the name, and is as long as it may be."""
    usage = (INPUT, min(4000, asked.body.get("max_tokens") or 4000), 0)
    return Answer(pieces=(json.dumps({"intent": "return", "data": name_in(asked)}),), usage=usage)


async def start(project: Project, server: ModelServer, *words: str) -> asyncio.subprocess.Process:
    """A command whose models are asked at a server of this process."""
    environment = {**project.environment, "OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{server.url}/v1"}
    pipe = asyncio.subprocess.PIPE
    python, *rest = forks.koi(*words)
    return await asyncio.create_subprocess_exec(
        python, *rest, cwd=project.folder, env=environment, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe
    )


async def end(process: asyncio.subprocess.Process) -> tuple[int | None, str, str]:
    """What a command came to."""
    out, err = await asyncio.wait_for(process.communicate(), LIMIT_S)
    return process.returncode, out.decode(), err.decode()


def journal_of(project: Project) -> Path | None:
    """The journal of the only evaluation."""
    return next((path for path in store.journals(project.folder) if not store.is_part(path)), None)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_an_evaluation_goes_on_where_it_was(project: Project, how: signal.Signals) -> None:
    """Cases that had come to their end are not asked again, the others are; the report is that of all of them."""
    write_evals(project, ASKING)

    answered: list[str] = []

    async def run() -> tuple[tuple[int | None, str, str], tuple[int | None, str, str], int]:
        def answer(asked: Asked) -> Answer:
            if len(server.requests) > 3 and not server.go_on.is_set():
                return Answer(silent=True)
            answered.append(name_in(asked))
            return answer_to(asked)

        async with ModelServer(answer, ["gpt-4o-mini"]) as server:
            process = await start(project, server, "eval", "-j", "2", *MODEL)
            while (path := journal_of(project)) is None or path.read_bytes().count(b'"case_ended"') < 3:  # noqa: ASYNC110 - a file tells it
                await asyncio.sleep(0.005)
            process.send_signal(how)
            first = await end(process)
            server.go_on.set()
            second = await end(await start(project, server, "resume", "-j", "2"))
            return first, second, len(server.requests)

    first, second, asked = asyncio.run(run())

    assert (-9 if how == signal.SIGKILL else 130, 0) == (first[0], second[0]), second[2]
    # A kill may come between the entry of a case and its line.
    assert first[1].count("passed writes") in ((2, 3) if how == signal.SIGKILL else (3,))
    assert 3 == second[1].count("passed writes")
    assert "writes: 3 cases (6 of 6 runs passed)\n  passed  100.0 %" in second[1]
    assert 6 <= asked <= 8
    assert {"Ada": 2, "Bo": 2, "Cyrus": 2} == Counter(answered)
    if how == signal.SIGINT:
        assert re.search(r"interrupted: 3 of 6 runs are done; `koi resume [0-9a-f]{12}` goes on", first[2])


def test_nobody_is_at_a_case_whose_evaluation_was_killed(project: Project) -> None:
    """The processes of cases end with it, whatever they are at; their journals are free."""
    project.write(
        "boom.py", 'import os, time\ndef hang():\n    open("pid", "a").write(f"{os.getpid()}\\n")\n    time.sleep(50)'
    )
    project.write("main.eval.koi", 'import boom from "./boom.py"\neval "hangs" over [1, 2] { boom.hang() }')

    async def run() -> list[int]:
        async with ModelServer() as server:
            process = await start(project, server, "eval", "-j", "2")
            pids = project.folder / "pid"
            while not pids.exists() or len(pids.read_text().split()) < 2:  # noqa: ASYNC110 - a file tells it
                await asyncio.sleep(0.005)
            process.kill()
            await end(process)
        return [int(pid) for pid in pids.read_text().split()]

    pids, late = asyncio.run(run()), time.monotonic() + LIMIT_S
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < late:
        time.sleep(0.01)

    assert [] == [pid for pid in pids if Path(f"/proc/{pid}").exists()]
    assert [False] * 3 == [store.is_running(path) for path in store.journals(project.folder)]


@pytest.mark.parametrize("jobs", ["1", "4"])
def test_no_more_is_spent_than_the_budget(project: Project, jobs: str) -> None:
    """The evaluation stops before it would spend more, says so, and goes on with more; nothing is asked twice."""
    write_evals(project, ASKING)

    async def run() -> tuple[tuple[int | None, str, str], int, tuple[int | None, str, str], int]:
        async with ModelServer(answer_to, ["gpt-4o-mini"]) as server:
            first = await end(await start(project, server, "eval", "-j", jobs, *MODEL, "--max-usd", "0.0064"))
            asked = len(server.requests)
            second = await end(await start(project, server, "resume", "--max-usd", "1", "-j", jobs))
            return first, asked, second, len(server.requests)

    first, asked, second, all_asked = asyncio.run(run())
    told = re.search(
        r"\$(0\.\d{4}) of \$0\.0064 are spent, and (\d) of 6 runs are done; `koi resume \w+ --max-usd", first[2]
    )

    assert (1, 0) == (first[0], second[0]), first[1] + first[2] + second[2]
    assert told is not None, first[2]
    assert 0.002 < float(told[1]) <= 0.0064
    assert (2 <= asked < 6, asked) == (True, int(told[2]))
    assert (6, True) == (all_asked, "(6 of 6 runs passed)" in second[1])


def test_a_case_is_replayed_and_gone_back_in(project: Project) -> None:
    """Its run repeats what it did; from an entry with another answer it has another end, and the exit code says so."""
    write_evals(project, ASKING)
    given = {case["id"]: [{"intent": "return", "data": case["name"]}] for case in NAMES}
    project.write("answers.json", json.dumps({"cases": given}))
    done = evaluated(project, "--answers", "answers.json")
    case = f"{id_of(done)}-3"
    tree = project.koi("runs", "tree", case)
    entry = re.search(r"^ +(\d+) .*(?:answer|return)", tree.stdout, re.MULTILINE)
    assert entry is not None, tree.stdout
    other = '{"intent": "return", "data": "Eve"}'

    replayed = project.koi("replay", case)
    again = project.koi("resume", case, "--at", entry[1])
    wrong = project.koi("resume", case, "--at", entry[1], "--answer", other)

    assert (0, True) == (replayed.returncode, "nothing is different" in replayed.stderr)
    assert (0, True) == (again.returncode, "score length: 2" in again.stderr), again.stderr
    assert (1, True) == (wrong.returncode, "the two sides are not equal" in wrong.stderr), wrong.stderr
    assert "score length: 3" in wrong.stderr


def test_a_replay_tells_other_scores(project: Project) -> None:
    """A program that has been changed since shows what is different, scores and expectations included."""
    write_evals(project)
    case = f"{id_of(evaluated(project))}-1"
    path = project.folder / "main.eval.koi"
    path.write_text(path.read_text().replace("answer.greeting.length", "3").replace('!= "Bo"', '!= "Ada"'))

    done = project.koi("replay", case)

    assert 1 == done.returncode
    assert ("- value: 11.0\n+ name", True) == ("- value: 11.0\n+ name", "+ value: 3.0" in done.stderr)
    assert "the two sides are equal" in done.stderr


def test_a_changed_program_or_case_begins_anew(project: Project) -> None:
    """What was measured is not mixed with something else; the message says what to do instead."""
    write_evals(project, 'eval "fails" over "./names.jsonl" { throw new Error("no") }')
    project.write("boom.py", "import os, signal\ndef end(): os.kill(os.getppid(), signal.SIGKILL)")
    project.write(
        "main.eval.koi", GREETER + 'import boom from "./boom.py"\neval "ends" over "./names.jsonl" { boom.end() }'
    )
    evaluated(project)
    first = project.folder / "main.eval.koi"
    text = first.read_text()

    write_cases(project, NAMES[:2])
    other_cases = project.koi("resume")
    write_cases(project, NAMES)
    first.write_text(text + "// more\n")
    other_program = project.koi("resume")

    assert (1, True) == (other_cases.returncode, "its cases have changed since the evaluation" in other_cases.stderr)
    assert (1, True) == (other_program.returncode, "the program, or Koi, has changed" in other_program.stderr)
    assert "begin another one; `koi eval --since" in other_program.stderr.lower()


def test_a_case_that_ends_its_process_fails_alone(project: Project) -> None:
    """The others are carried out, and the evaluation comes to its end."""
    project.write("boom.py", "import os\ndef leave(): os._exit(3)")
    project.write(
        "main.eval.koi",
        'import boom from "./boom.py"\neval "leaves" over [{ n: 1 }, { n: 2 }] { if (case.n == 2) boom.leave() }',
    )

    done = evaluated(project)

    assert 0 == done.returncode
    assert (1, 1) == (done.stdout.count("passed leaves"), done.stdout.count("failed leaves: 2"))
    assert "ended itself with the exit code 3" in done.stdout


KILLING = """
import boom from "./boom.py"
eval "ends" over [{ n: 1 }, { n: 2 }] { if (case.n == 1) { try { boom.end() } catch (e) { } } score n = case.n }
"""


def kill_evaluation(project: Project) -> str:
    """Carry out an evaluation whose first case kills all processes within an effect; its id."""
    project.write(
        "boom.py", "import os, signal\ndef end(): os.kill(os.getppid(), signal.SIGKILL); os.kill(os.getpid(), 9)"
    )
    project.write("main.eval.koi", KILLING)
    evaluated(project, "-j", "1")
    (id,) = {path.stem for path in store.journals(project.folder) if not store.is_part(path)}
    return id


def test_an_effect_in_doubt_keeps_only_its_case(project: Project) -> None:
    """A case that cannot know what became of an effect is told; decided by itself, the evaluation counts it."""
    id = kill_evaluation(project)
    going = project.koi("resume", "-j", "1")
    decided = project.koi("resume", f"{id}-1", "--on-doubt", "skip")
    whole = project.koi("resume", "-j", "1")

    assert (1, True) == (going.returncode, f"`{id}-1` (ends: 1) cannot go on" in going.stderr), going.stderr
    assert (0, True) == (decided.returncode, "score n: 1" in decided.stderr), decided.stderr
    assert (0, True) == (whole.returncode, "ends: 2 cases\n  passed  100.0 %" in whole.stdout), whole.stderr


@pytest.mark.parametrize("wish", ["skip", "result=1"])
def test_a_decision_about_doubts_reaches_the_cases(project: Project, wish: str) -> None:
    """`--on-doubt` at the evaluation decides what its cases do not know, so that it comes to its end as a whole."""
    id = kill_evaluation(project)
    whole = project.koi("resume", id, "-j", "1", "--on-doubt", wish)

    assert (0, True) == (whole.returncode, "ends: 2 cases\n  passed  100.0 %" in whole.stdout), whole.stderr
    assert f"`{id}-1` (ends: 1):\n`boom.end` had begun and its end is not known" in whole.stderr


def test_the_last_run_is_the_evaluation(project: Project) -> None:
    """`last`, and the beginning of an id, mean the evaluation and not one of its cases."""
    write_evals(project)
    id = id_of(evaluated(project))

    shown, ended, back = (
        project.koi("runs", "show"),
        project.koi("resume", id[:8]),
        project.koi("resume", id, "--at", "1"),
    )

    assert f"run       {id}\n" in shown.stdout
    assert (1, True) == (ended.returncode, f"the evaluation `{id}` has come to its end" in ended.stderr)
    assert (2, True) == (back.returncode, f"`koi resume {id}-1 --at ENTRY`" in back.stderr)
    assert report_of(evaluated(project, "--since", id)).count("may be chance (p = 1.000)") == 2


def test_an_evaluation_is_removed_with_its_cases(project: Project) -> None:
    """Their journals go with it, and no others."""
    write_evals(project)
    first, second = id_of(evaluated(project)), id_of(evaluated(project, "-n", "1"))

    removed = project.koi("runs", "delete", first, "--yes")
    left = sorted(path.stem for path in store.journals(project.folder))
    all_removed = project.koi("runs", "delete", "--older", "0.001s", "--yes")

    assert (0, [second, f"{second}-1", f"{second}-2"]) == (removed.returncode, left)
    assert (0, "") == (all_removed.returncode, all_removed.stderr)
    assert [] == store.journals(project.folder)


def test_only_one_goes_on_with_an_evaluation(project: Project) -> None:
    """While it goes on, a second `koi resume` is told so, and asks nobody."""
    write_evals(project, ASKING)

    async def run() -> tuple[tuple[int | None, str, str], tuple[int | None, str, str], int]:
        async with ModelServer(lambda asked: Answer(silent=True), ["gpt-4o-mini"]) as server:
            process = await start(project, server, "eval", "-j", "2", *MODEL)
            while len(server.requests) < 2:
                await server.asked.wait()
                await asyncio.sleep(0.005)
            second = await end(await start(project, server, "resume", "last"))
            asked = len(server.requests)
            process.send_signal(signal.SIGINT)
            return second, await end(process), asked

    second, first, asked = asyncio.run(run())

    assert (1, True, 2) == (second[0], "goes on" in second[2], asked), second[2]
    assert (130, True) == (first[0], "interrupted: 0 of 6 runs are done; `koi resume " in first[2])
