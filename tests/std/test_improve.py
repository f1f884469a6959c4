"""What `std/improve` promises: gates before scores, never worse than the best round, and the tree of that round."""

from __future__ import annotations

import random
from typing import Any

import pytest

from koi_lang.cli.ui.activity_text import describe_round
from koi_lang.events import RoundEnded
from tests.playbook.conftest import play as play
from tests.playbook.playing import Player, act
from tests.projects import Project

PROGRAM = """
import "std/improve"
import "std/files"
role Maker { can execute, can write_code }
agent Main : Maker {
  state { told: any[] = [], judged: int = 0 }
  on go(args: { rounds: any[], options?: any, writes?: boolean, repeats?: boolean }): Improvement {
    this.state.told = []
    this.state.judged = 0
    return await improve(
      async round => {
        this.state.told.push(round)
        const wanted = args.rounds[round.round - 1]
        if (wanted.fails) throw new Error("no idea")
        if (args.writes) await writeFile("work.py", `x = ${round.round}`)
        return args.repeats ? "the same" : `draft ${round.round}`
      },
      async (result, round) => {
        this.state.judged++
        const { score, gates, graded } = args.rounds[round.round - 1]
        return { score, gates, graded, findings: [{ id: "F1", title: `of ${result}` }] }
      },
      { ...(args.options ?? {}) })
  }
}
"""


def scored(*scores: float, **gates: bool) -> list[dict[str, Any]]:
    """Rounds with some scores; gates are the same in each."""
    return [{"score": score, "gates": gates, "graded": True} for score in scores]


UNREADABLE = {"score": None, "gates": {}, "graded": False}
# Rounds, options, and what comes of them: decision, round, score.
MATRIX: dict[str, tuple[list[dict[str, Any]], dict[str, Any], tuple[str, int, float | None]]] = {
    "at once": (scored(0.9), {}, ("accepted", 1, 0.9)),
    "second": (scored(0.5, 0.9), {}, ("accepted", 2, 0.9)),
    "worse": (scored(0.9, 0.4), {"accept": 0.95}, ("worse", 1, 0.9)),
    "no gain": (scored(0.5, 0.5, 0.5), {}, ("no gain", 1, 0.5)),
    "too little": (scored(0.5, 0.54), {}, ("no gain", 2, 0.54)),
    "enough": (scored(0.5, 0.55, 0.6), {}, ("best", 3, 0.6)),
    "a little worse": (scored(0.6, 0.5), {}, ("no gain", 1, 0.6)),
    "unreadable": ([UNREADABLE], {}, ("not graded", 1, None)),
    "unreadable later": ([*scored(0.5), UNREADABLE], {}, ("not graded", 1, 0.5)),
    "work fails": ([*scored(0.5), {"fails": True}], {}, ("failed", 1, 0.5)),
    "red with 1.0": (scored(1.0, 1.0, tests=False), {}, ("no gain", 1, 1.0)),
    "red to the end": (scored(0.5, 0.6, 1.0, tests=False), {}, ("best", 3, 1.0)),
    "green at a lower score": ([*scored(1.0, tests=False), *scored(0.5, tests=True)], {"rounds": 2}, ("best", 2, 0.5)),
    "broken at a higher score": ([*scored(0.5, tests=True), *scored(1.0, tests=False)], {}, ("no gain", 1, 0.5)),
    "one round": (scored(0.5), {"rounds": 1}, ("best", 1, 0.5)),
}


@pytest.mark.parametrize(("rounds", "options", "expected"), MATRIX.values(), ids=MATRIX)
def test_decisions(rounds: list[Any], options: dict[str, Any], expected: Any, play: Player) -> None:
    """Each sequence of scores and gates ends as the rules say, with the best of its rounds."""
    played = play(PROGRAM, [], payload={"rounds": rounds, "options": options})

    assert played.error is None
    assert expected == tuple(played.result[name] for name in ("decision", "round", "score"))


def best_by_the_rules(rounds: list[dict[str, Any]], most: int, accept: float) -> tuple[str, int]:
    """The rules in a few lines: what is decided, and which round counts."""
    best, key = 0, (99, 0.0)
    for number, each in enumerate(rounds[:most], 1):
        red, score = list(each["gates"].values()).count(False), each["score"]
        before, (least, highest) = best, key
        best, key = (number, (red, score)) if (red, -score) < (least, -highest) else (best, key)
        if red == 0 and score >= accept:
            return "accepted", best
        gained = round(score - highest, 9)
        if before and red >= least and gained < -0.2:
            return "worse", best
        if before and red >= least and (red > least or gained < 0.05):
            return "no gain", best
    return "best", best


@pytest.mark.sampled(1)
@pytest.mark.parametrize("first", range(0, 100, 4))
def test_random_sequences(play: Player, first: int) -> None:
    """Sequences of scores and gates each end by the rules, and the tree is that of the round that counts."""
    for seed in range(first, first + 4):
        chance = random.Random(seed)
        count = chance.randint(1, 4)
        rounds = [
            {
                "score": chance.choice([0, 0.1, 0.3, 0.35, 0.5, 0.52, 0.7, 0.9, 1]),
                "gates": {"a": chance.random() < 0.7, "b": chance.random() < 0.8},
                "graded": True,
            }
            for _ in range(count)
        ]
        options = {"rounds": count, "accept": 0.85, "files": "restore"}

        played = play(PROGRAM, [], payload={"rounds": rounds, "options": options, "writes": True})

        assert played.error is None, seed
        assert best_by_the_rules(rounds, count, 0.85) == (played.result["decision"], played.result["round"]), seed
        assert f"x = {played.result['round']}" == (play.folder / "work.py").read_text(), seed


def test_what_fails_at_once_is_raised(play: Player) -> None:
    """Without any round there is nothing to give, and the files are as they were."""
    work = play.folder / "work.py"
    work.write_text("x = 0")

    played = play(PROGRAM, [], payload={"rounds": [{"fails": True}], "options": {"files": "restore"}, "writes": True})

    assert "no idea" in str(played.error)
    assert "x = 0" == work.read_text()


def test_an_error_can_be_raised_with_the_files_as_they_are(play: Player) -> None:
    """So that a resumed run finds what it has written, also behind a round that was judged."""
    options = {"files": "restore", "errors": "raise"}

    played = play(PROGRAM, [], payload={"rounds": [*scored(0.5), {"fails": True}], "options": options, "writes": True})

    assert "no idea" in str(played.error)
    assert "x = 1" == (play.folder / "work.py").read_text()


def test_rounds_know_what_was_found(play: Player) -> None:
    """A round is told its number, and findings, score and result of the one before."""
    played = play(PROGRAM, [], payload={"rounds": scored(0.5, 0.6, 0.7)})

    assert [
        (1, [], None, None),
        (2, [{"id": "F1", "title": "of draft 1"}], 0.5, "draft 1"),
        (3, [{"id": "F1", "title": "of draft 2"}], 0.6, "draft 2"),
    ] == [
        tuple(told[name] for name in ("round", "findings", "score", "result")) for told in played.state("Main")["told"]
    ]


def test_the_same_work_is_judged_once(play: Player) -> None:
    """What gives the same as before has the same score, which is no gain."""
    played = play(PROGRAM, [], payload={"rounds": scored(0.5, 0.9), "repeats": True})

    assert ("no gain", 1, 1) == (played.result["decision"], played.result["round"], played.state("Main")["judged"])
    assert played.result["history"][1]["repeated"] is True


def test_other_files_are_judged_again(play: Player) -> None:
    """Where files are put back, work that says the same and leaves another tree is judged anew."""
    payload = {"rounds": scored(0.5, 0.9), "repeats": True, "writes": True, "options": {"files": "restore"}}

    played = play(PROGRAM, [], payload=payload)

    assert ("accepted", 2) == (played.result["decision"], played.state("Main")["judged"])


def test_a_budget_ends_a_round(play: Player) -> None:
    """A limit acts inside of a round; what was best until then is given."""
    program = """
    import "std/improve"
    role Maker { can execute }
    agent Writer : Maker { on write(args: { round: int }): string { playbook "Write." budget { requests: 2 } } }
    agent Main : Maker {
      on go() {
        return await improve(round => Writer.write({ round: round.round }), text => ({ score: text.length / 10 }))
      }
    }
    """
    answers = [
        act("return", data="abc"),
        act("print", message="a"),
        act("print", message="b"),
        act("return", data="abcdef"),
    ]

    played = play(program, answers)

    assert ("budget", "abc", 1) == tuple(played.result[name] for name in ("decision", "result", "round"))
    assert "2 requests" in played.result["history"][1]["error"]
    assert 3 == len(played.requests)


BAD: dict[str, tuple[Any, str]] = {
    "unknown": ({"round": 3}, "`improve` has no option `round`: it has rounds, accept, gain, drop, files, errors"),
    "no rounds": ({"rounds": 0}, "`rounds` must be a whole number from 1, not 0"),
    "half a round": ({"rounds": 1.5}, "`rounds` must be a whole number from 1, not 1.5"),
    "accept": ({"accept": 80}, "`accept` must be a number from 0 to 1, not 80"),
    "files": ({"files": "undo"}, '`files` must be "keep" or "restore", not "undo"'),
    "errors": ({"errors": "keep"}, '`errors` must be "end" or "raise", not "keep"'),
}


@pytest.mark.parametrize(("options", "told"), BAD.values(), ids=BAD)
def test_bad_options(options: Any, told: str, play: Player) -> None:
    """A wrong option is one message, before anything is done."""
    played = play(PROGRAM, [], payload={"rounds": scored(0.9), "options": options})

    assert told in str(played.error)
    assert [] == played.state("Main")["told"]


@pytest.mark.parametrize("score", [None, 2, "good", float("nan")])
def test_a_score_is_a_number(score: Any, play: Player) -> None:
    """A judge that gives no score, or none from 0 to 1, does not count as one that could not grade."""
    played = play(PROGRAM, [], payload={"rounds": [{"score": score, "gates": {}, "graded": True}]})

    assert "the score of a result must be a number from 0 to 1" in str(played.error)


def test_rounds_are_events(play: Player) -> None:
    """Each round tells when it begins, and how it ends, as the terminal shows it."""
    played = play(PROGRAM, [], payload={"rounds": [*scored(0.5, tests=False), *scored(0.82, tests=True)]})

    told = [event for event in played.events if event.type.startswith("round_")]
    assert ["round_started", "round_ended"] * 2 == [event.type for event in told]
    assert ["round 1 of 3: 0.50, tests red", "round 2 of 3: 0.82, tests green, accepted"] == [
        describe_round(event.data) for event in told if isinstance(event.data, RoundEnded)
    ]


def test_a_misspelt_gate_is_not_left_open(play: Player) -> None:
    """A judge that gives `gate` means something that must hold, which would be missed."""
    program = PROGRAM.replace("return { score, gates, graded,", "return { score, gate: gates, graded,")
    played = play(program, [], payload={"rounds": scored(0.9, tests=False)})

    assert "judges give `gates`, not `gate`" in str(played.error)


MEANWHILE = """
import "std/improve"
import "std/files"
import others from "./others.py"
role Maker { can execute, can write_code }
agent Main : Maker {
  on go(): Improvement {
    return await improve(
      async ({ round }) => {
        others.work(round)
        await writeFile("work.txt", `round ${round}`)
        await writeFile("shared.txt", `round ${round}`)
        if (round === 2) await writeFile("made.txt", "by round 2")
        others.edit(round)
        return round
      },
      async (result, { round }) => ({ score: round === 1 ? 0.5 : 0.1 }),
      { files: "restore" })
  }
}
run Main.go()
"""
OTHERS = """
from pathlib import Path

def work(round):
    if round == 2:
        Path("notes.md").write_text("mine")
        Path("kept.txt").write_text("mine")

def edit(round):
    if round == 2:
        Path("shared.txt").write_text("mine")
"""


def test_putting_the_best_round_back_leaves_the_work_of_others(project: Project) -> None:
    """Only what the run itself has changed is put back; a file that both have changed is left and named."""
    project.write("main.koi", MEANWHILE)
    project.write("others.py", OTHERS)
    project.write("kept.txt", "before")
    done = project.koi("run", "main.koi")
    files = {name: project.folder / name for name in ("work.txt", "shared.txt", "made.txt", "notes.md", "kept.txt")}
    texts = {name: file.read_text() if file.exists() else None for name, file in files.items()}
    again = done.stderr.partition("`koi undo ")[2].partition("`")[0].split()
    undone = project.koi("undo", *again, "--yes")

    assert {
        "work.txt": "round 1", "shared.txt": "mine", "made.txt": None, "notes.md": "mine", "kept.txt": "mine",
    } == texts, done.stderr  # fmt: skip
    assert "put back as the best round left it: made.txt, work.txt; `koi undo " in done.stderr
    assert "shared.txt is left as it is: somebody else has changed it\n" in done.stderr
    assert (0, "round 2", "by round 2") == (
        undone.returncode,
        files["work.txt"].read_text(),
        files["made.txt"].read_text(),
    )
    assert ("mine", "mine") == (files["shared.txt"].read_text(), files["notes.md"].read_text())
