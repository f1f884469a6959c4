"""Long outputs of runs: whose they are, many at once, and the same again when a run goes on or is replayed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from koi_lang.runtime.outputs import run_outputs
from tests.playbook.conftest import play as play
from tests.playbook.playing import Player, act, done, solo
from tests.playbook.transports import talk
from tests.projects import Project

SEQ = "seq -f %.0f-abcdefghijklmnopqrs 1 9999 | head -c 108894"
PROGRAM = """
role R { can execute }
agent Main : R { on go(args: Json) { playbook "Do it." } }
run Main.go({})
"""
CODE = """
role R { can execute }
agent Main : R {
  on go(args: Json) {
    const r = await this.callAction("shell", { command: "COMMAND", description: "x" })
    console.log(r.stdout.length, r.stdout.slice(-4))
  }
}
run Main.go({})
"""
TEAM = """
role Boss { can delegate, can execute }
role Looker { can think }
team T { looker: Helper }
agent Helper : Looker { on look(args) { playbook "Look." } }
agent Main : Boss { uses team T  on go(args) { playbook "Lead." } }
"""
SKILL = """
role R { can think }
skill Big {
  affordance "Gives much."
  export function lines(count: number) { return { text: "line\\n".repeat(count) } }
}
agent Main : R { uses skill Big  on go(args) { playbook "Do it." } }
"""


def shell(command: str = SEQ, **fields: Any) -> dict[str, Any]:
    """A command."""
    return act("shell", command=command, description="to see", **{"id": "x", **fields})


def read(**fields: Any) -> dict[str, Any]:
    """Reading an output."""
    return act("read_output", data={"id": 1, **fields})


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"id": 2}, "there is no output 2 among the results of `Main`. There are the outputs 1."),
        ({"id": 0}, "there is no output 0"),
        ({"id": "../../abc/1"}, "`id` must be a whole number"),
        ({"id": 1.5}, "`id` must be a whole number"),
        ({"id": [1]}, "`id` must be a whole number"),
        ({"from": -3}, "`from` must be between 1 and 4,401"),
        ({"from": 0}, "`from` must be between 1 and 4,401"),
        ({"from": 10**30}, "`from` must be between 1 and 4,401"),
        ({"count": 0}, "`count` must be between 1 and 2,000"),
        ({"count": -1}, "`count` must be between 1 and 2,000"),
        ({"count": 10**12}, "`count` must be between 1 and 2,000"),
    ],
)
def test_what_is_no_output_is_refused(play: Player, tmp_path: Path, fields: dict[str, Any], expected: str) -> None:
    """Each refusal is one sentence, and the run goes on."""
    played = play(solo("execute"), [shell(), read(**fields), done()], allow=["shell"], folder=tmp_path)

    assert played.error is None
    assert expected in played.feedback[2]


def test_outputs_of_others_are_not_read(play: Player, tmp_path: Path) -> None:
    """An agent reads what it was told of, and nothing that another agent has got, in this run or in another one."""
    (tmp_path / ".koi/outputs/other").mkdir(parents=True)
    (tmp_path / ".koi/outputs/other/2").write_text("secret")
    answers = {
        "Lead.": [shell(), act("looker::look", actionType="delegate", data={}), read(), done()],
        "Look.": [read(), read(id=2), done()],
    }
    played = play(TEAM, answers, allow=["shell"], folder=tmp_path, id="abc", detailed=True)
    told = "\n".join(played.feedback)

    assert 1 == told.count("there is no output 1 among the results of `Helper`. No result of yours was so long")
    assert 1 == told.count("there is no output 2")
    assert '"lines":4401' in played.feedback[-1]


def test_delegates_are_told_both_ends(play: Player, tmp_path: Path) -> None:
    """What is passed on as a whole is read by its delegate as by whoever had it; code and references have all of it."""
    passed = act("looker::look", actionType="delegate", data={"text": "${x.output.stdout}"})
    size = act("print", message="${args.text.length}")
    answers = {"Lead.": [{"batch": [shell(), passed, done()]}], "Look.": [{"batch": [size, read(count=1), done()]}]}
    played = play(TEAM, answers, allow=["shell"], folder=tmp_path, id="abc", detailed=True)
    begins = played.requests[1].messages[0].text

    assert ("108894",) == played.printed
    assert len(begins) < 6000
    assert "output 1: 108,894 bytes" in begins
    assert "read_output" in played.did()


def test_results_of_skills(play: Player, tmp_path: Path) -> None:
    """What a function gives to a model is kept, too, and read to its end piece by piece."""
    call = act("call_skill", skill="Big", function="lines", input={"count": 9000}, id="s")
    answers = [call, read(**{"from": 8999, "count": 9}), {"intent": "return", "data": {"n": "${s.output.text.length}"}}]
    played = play(SKILL, answers, folder=tmp_path)

    assert {"n": 45_000} == played.result
    assert '"from":8999,"to":9000,"lines":9000}\n"text":\n> line\n> line\n' in played.feedback[2]
    assert "output 1: 45,000 bytes, 9,000 lines, both ends shown" in played.feedback[1]


def test_reading_goes_on_where_it_ended(play: Player, tmp_path: Path) -> None:
    """No more than 20,000 bytes are given at once; `next` says where the rest begins."""
    played = play(solo("execute"), [shell(), read(count=2000), done()], allow=["shell"], folder=tmp_path)
    head, _, text = played.feedback[2].partition("-> ")[2].removesuffix("\nContinue.").partition('\n"text":\n')
    found, lines = json.loads(head), [line.removeprefix("> ") for line in text.split("\n")]

    assert 19_900 < len("".join(f"{line}\n" for line in lines)) <= 20_000
    assert found["next"] == found["to"] + 1 == len(lines) + 1


def test_forty_at_once(play: Player, tmp_path: Path) -> None:
    """Each has its own number, its own file and all of its bytes."""
    commands = [shell(f"echo {n}; {SEQ}", id=f"x{n}") for n in range(40)]
    sizes = {f"n{n}": f"${{x{n}.output.stdout.length}}" for n in range(40)}
    files = {f"f{n}": f"${{x{n}.output.stdoutFile}}" for n in range(40)}
    answers = [{"batch": [{"parallel": commands}, act("return", data={**sizes, **files})]}]
    played = play(solo("execute"), answers, allow=["shell"], folder=tmp_path, id="abc", detailed=True)
    given = played.result

    assert {108_894 + len(f"{n}\n") for n in range(40)} == {given[f"n{n}"] for n in range(40)}
    assert 40 == len({given[f"f{n}"] for n in range(40)})
    assert all((tmp_path / given[f"f{n}"]).read_text().startswith(f"{n}\n1-") for n in range(40))


def test_forty_floods_share_what_a_run_keeps(play: Player, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Together they keep no more than a run may, in files and in memory; the others have both ends."""
    monkeypatch.setattr(run_outputs, "MAX_RUN_BYTES", 10_000_000)
    commands = [shell(f"yes {n} | head -c 3000000", id=f"x{n}") for n in range(40)]
    sizes = {f"n{n}": f"${{x{n}.output.stdout.length}}" for n in range(40)}
    answers = [{"batch": [{"parallel": commands}, act("return", data=sizes)]}]
    played = play(solo("execute"), answers, allow=["shell"], folder=tmp_path, id="abc", detailed=True)
    kept = [file.stat().st_size for file in (tmp_path / ".koi/outputs/abc").iterdir()]

    assert sum(kept) <= 10_000_000
    assert all(size == 3_000_000 or size < 3_100_000 for size in played.result.values())
    assert sum(played.result.values()) < 12_000_000


@pytest.mark.parametrize("way", [("openai", "tools"), ("anthropic", "tools"), ("responses", "tools")])
def test_models_that_call_tools_are_offered_it(play: Player, tmp_path: Path, way: tuple[str, str]) -> None:
    """From the first request on where they have commands, so that the list of tools stays in caches."""
    short, long = (act("shell", command=command, description="to see") for command in ("seq 9", SEQ))
    script = [[short], [long], [act("read_output", id=1, **{"from": 4401})], [done()]]
    played, asked, _ = talk(play, solo("execute"), script, way, played={"allow": ["shell"], "folder": tmp_path})
    _, others, _ = talk(play, solo("think"), [[done()]], way, played={"folder": tmp_path})
    tools = {json.dumps(each.body["tools"]) for each in asked}

    assert played.error is None
    assert (1, True) == (len(tools), '"read_output"' in tools.pop())
    assert b'"read_output"' not in others[0].sent
    assert '"to":4401' in asked[3].sent.decode().replace("\\", "")


def test_prompts_of_others_are_as_they_were(play: Player, tmp_path: Path) -> None:
    """Who has no long result is told nothing of outputs, nor is a model that answers with JSON before the result."""
    played = play(solo("execute"), [shell("echo 1"), shell(), done()], allow=["shell"], folder=tmp_path)

    assert 1 == len({request.system for request in played.requests})
    assert "read_output" not in played.requests[0].system
    assert "read_output" not in played.feedback[1]


# ---------------------------------------------------------------- runs that go on


def test_code_has_all_of_it_and_the_journal_little(project: Project) -> None:
    """What code calls is kept by reference, too; a replay has the same text."""
    project.write("a.koi", CODE.replace("COMMAND", SEQ))
    ran = project.koi("run", "a.koi", "--allow", "shell")
    (journal,) = (project.folder / ".koi/runs").glob("*.jsonl")
    replayed = project.koi("replay", "last")

    assert "108894 opqr" in ran.stdout or ran.stdout.startswith("108894 ")
    assert ran.stdout == replayed.stdout
    assert journal.stat().st_size < 10_000


def test_a_resumed_run_has_the_same_text(project: Project) -> None:
    """A run that broke off goes on with all of an output, its number, and what it had read of it."""
    count = act("print", message="${x.output.stdout.length}")
    project.write("a.koi", PROGRAM)
    project.write("answers.json", json.dumps([shell(), read(**{"from": 4000, "count": 2})]))
    first = project.koi("run", "a.koi", "--answers", "answers.json", "--allow", "shell", "--max-turns", "2")
    project.write("answers.json", json.dumps([shell(), read(**{"from": 4000, "count": 2}), {"batch": [count, done()]}]))
    resumed = project.koi("resume", "last", "--max-turns", "9")
    (folder,) = (project.folder / ".koi/outputs").iterdir()

    assert 0 != first.returncode
    assert (0, "108894\n") == (resumed.returncode, resumed.stdout)
    assert ["1"] == [file.name for file in folder.iterdir()]


@pytest.mark.parametrize("damage", ["gone", "changed"])
def test_a_resumed_run_ends_where_an_output_is_gone(project: Project, damage: str) -> None:
    """It would not be the same any more; the sentence names the file, and a branch goes on with what is left."""
    count = act("print", message="${x.output.stdout.length}")
    project.write("a.koi", PROGRAM)
    project.write("answers.json", json.dumps([shell()]))
    project.koi("run", "a.koi", "--answers", "answers.json", "--allow", "shell", "--max-turns", "1")
    (file,) = (project.folder / ".koi/outputs").glob("*/1")
    file.unlink() if damage == "gone" else file.write_text("other")
    project.write("answers.json", json.dumps([shell(), {"batch": [count, done()]}]))
    resumed = project.koi("resume", "last", "--max-turns", "9")

    assert 0 != resumed.returncode
    assert "/1` is not there as it was" in resumed.stderr
    assert "koi resume --branch" in resumed.stderr
    assert "Traceback" not in resumed.stderr


def test_what_is_computed_again_keeps_its_number(project: Project) -> None:
    """The result of a function comes anew when a run goes on, and is told as it was before."""
    call = act("call_skill", skill="Big", function="lines", input={"count": 9000}, id="s")
    count = act("print", message="${s.output.text.length}")
    project.write("a.koi", SKILL.replace("go(args)", "go(args: Json)") + "run Main.go({})\n")
    project.write("answers.json", json.dumps([call, read(count=1)]))
    project.koi("run", "a.koi", "--answers", "answers.json", "--max-turns", "2")
    project.write("answers.json", json.dumps([call, read(count=1), {"batch": [count, done()]}]))
    resumed = project.koi("resume", "last", "--max-turns", "9")
    (folder,) = (project.folder / ".koi/outputs").iterdir()

    assert (0, "45000\n") == (resumed.returncode, resumed.stdout)
    assert ["1"] == [file.name for file in folder.iterdir()]


def test_a_branch_has_outputs_of_its_own(project: Project) -> None:
    """So that it has them after the run is removed that it goes on from."""
    count = act("print", message="${x.output.stdout.length}")
    project.write("a.koi", PROGRAM)
    project.write("answers.json", json.dumps([shell()]))
    project.koi("run", "a.koi", "--answers", "answers.json", "--allow", "shell", "--max-turns", "1")
    (journal,) = (project.folder / ".koi/runs").glob("*.jsonl")
    project.write("answers.json", json.dumps([shell(), {"batch": [count, done()]}]))
    branch = project.koi("resume", "last", "--branch", "--max-turns", "9")
    project.koi("runs", "delete", journal.stem, "--yes")
    replayed = project.koi("replay", "last")

    assert (0, "108894\n") == (branch.returncode, branch.stdout)
    assert (0, "108894\n") == (replayed.returncode, replayed.stdout)
