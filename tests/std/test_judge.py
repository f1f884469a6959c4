"""What comes of judging: scores, answers that do not fit, findings over rounds, and long results."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Any

import pytest

from koi_lang.errors import ProviderError
from koi_lang.llm.messages import Request
from koi_lang.llm.token_weight import weight
from tests.playbook.conftest import play
from tests.playbook.playing import Played, Player, Voice
from tests.projects import Project
from tests.std.judging import PROGRAM, WEIGHTS, answer, finding, grades, numbers_in, told

__all__ = ["play"]

DIMENSION = 'must be "clarity" or "accuracy" or "tone" or "structure", not'
NAN = '{"intent": "return", "data": {"dimensions": [{"name": "clarity", "score": "${0 / 0}"}], "findings": []}}'


def judge(play: Player, *answers: Any, **payload: Any) -> Played:
    """What comes of one judgement with these answers of the judge."""
    return play(PROGRAM, list(answers), payload={"result": "Some text.", **payload})


# ---------------------------------------------------------------- scores


@pytest.mark.parametrize("seed", range(20))
def test_the_score_is_the_mean_by_weights(seed: int, play: Player) -> None:
    """Whatever the answer says about it; a blocker lets its dimension have 0.3 at most."""
    chance = random.Random(seed)
    scores = {name: chance.choice([0, 1, round(chance.random(), 3)]) for name in WEIGHTS}
    found = [
        finding(f"Flaw {n}.", chance.choice(["blocker", "important", "suggestion"]), chance.choice([*WEIGHTS]))
        for n in range(chance.randrange(4))
    ]
    blocked = {each["dimension"] for each in found if each["severity"] == "blocker"}
    capped = {name: min(score, 0.3) if name in blocked else score for name, score in scores.items()}
    result = judge(play, answer({**grades(*found, **scores), "score": 1, "graded": False})).result

    assert result["dimensions"] == capped
    assert result["score"] == pytest.approx(sum(capped[name] * WEIGHTS[name] for name in WEIGHTS), abs=1e-9)
    assert result["graded"] is True


def test_perfect_is_exactly_one(play: Player) -> None:
    """Sums of weights leave nothing behind the comma that a threshold would notice."""
    assert judge(play, answer(grades())).result["score"] == 1
    assert judge(play, answer(grades(clarity=0.8, accuracy=0.8, tone=0.8, structure=0.8))).result["score"] == 0.8


# ---------------------------------------------------------------- answers that do not fit

MISFITS: dict[str, tuple[Any, str]] = {
    "prose": ("It is a very good text, 10/10.", "the answer is not JSON"),
    "nothing": (answer({}), "`dimensions` is missing"),
    "too high": (answer(grades(tone=1.1)), "`dimensions[2].score` must be a number from 0 to 1, not 1.1"),
    "too low": (answer(grades(tone=-0.1)), "`dimensions[2].score` must be a number from 0 to 1, not -0.1"),
    "a text": (answer(grades(tone="high")), "`dimensions[2].score` must be a number, not"),  # type: ignore[arg-type]
    "no number": (NAN, "`dimensions[0].score` must be a number"),
    "missing": (answer({**grades(), "dimensions": grades()["dimensions"][:3]}), "`dimensions` lacks structure"),
    "unknown": (
        answer({**grades(), "dimensions": [{"name": "wit", "score": 1}]}),
        f'`dimensions[0].name` {DIMENSION} "wit"',
    ),
    "twice": (
        answer({**grades(), "dimensions": grades()["dimensions"] * 2}),
        '`dimensions[4].name` is "clarity" a second time',
    ),
    "severity": (answer(grades(finding("A.", "high"))), "`findings[0].severity` must be "),
    "dimension": (answer(grades(finding("A.", dimension="wit"))), f'`findings[0].dimension` {DIMENSION} "wit"'),
    "no title": (answer(grades(finding(" "))), "`findings[0].title` must be a sentence"),
    "long title": (answer(grades(finding("x" * 2001))), "`findings[0].title` must have at most 2000 characters"),
    "long place": (answer(grades(finding("A.", where="x" * 2001))), "`findings[0].where` must have at most 2000"),
    "many": (answer(grades(*[finding(f"{n}") for n in range(51)])), "`findings` must be at most 20, not 51"),
    "resolved": (answer(grades(resolved=("F1",))), '`resolved[0]` must be the id of an earlier finding, not "F1"'),
    "refused": ({"intent": "shell", "command": "touch made", "description": "x"}, "shell"),
    "silence": ({"intent": "print", "message": "1.0"}, "there was no result"),
}


@pytest.mark.parametrize(("first", "why"), MISFITS.values(), ids=MISFITS)
def test_an_answer_that_does_not_fit_is_asked_for_once_more(first: Any, why: str, play: Player) -> None:
    """The judge is told what was wrong, and its second answer counts."""
    played = judge(play, first, answer(grades(tone=0.5)))

    assert played.result["score"] == pytest.approx(0.925)
    assert played.result["notes"] == []
    assert len(played.requests) == 2
    assert told(played.requests[0].messages[0].text)["problem"] == ""
    assert why in told(played.requests[1].messages[0].text)["problem"]


@pytest.mark.parametrize(("first", "why"), MISFITS.values(), ids=MISFITS)
@pytest.mark.parametrize("second", ["the same", "Still prose."])
def test_two_that_do_not_fit_give_no_number(first: Any, why: str, second: str, play: Player) -> None:
    """There is no third request, and no number anywhere; the note says why."""
    played = judge(play, first, first if second == "the same" else second)
    result = played.result

    assert (result["graded"], result["score"], result["dimensions"]) == (False, None, {})
    assert list(numbers_in(result)) == []
    assert len(played.requests) == 2
    assert (why if second == "the same" else "the answer is not JSON") in result["notes"][0]


def test_earlier_findings_outlive_a_judge_that_fails(play: Player) -> None:
    """Nothing is known of them then, so they stay."""
    before = judge(play, answer(grades(finding("A."), finding("B.")))).result
    result = judge(play, "prose", "prose", options={"earlier": before}).result

    assert result["findings"] == before["findings"]
    assert list(numbers_in(result)) == []


def test_a_model_that_cannot_be_asked_is_an_error(play: Player) -> None:
    """A provider that fails is no judgement, and is told as everywhere."""

    async def fail(request: Request) -> AsyncIterator[str]:
        raise ProviderError("the provider is down")
        yield ""

    assert "the provider is down" in play(PROGRAM, Voice(fail), payload={"result": "x"}).told


def test_the_budget_of_the_caller_counts(play: Player) -> None:
    """What ends the call around it is not caught as an answer that does not fit."""
    program = PROGRAM.replace("on go(", "budget { requests: 1 }\n  on go(")
    played = play(program, ["prose", answer(grades())], payload={"result": "x"})

    assert played.result is None
    assert "request" in played.told


# ---------------------------------------------------------------- findings over rounds


def test_findings_have_ids_worst_first(play: Player) -> None:
    """Numbers go by the order of the answer, places by severity; what stands there twice counts once."""
    found = [finding("A.", "suggestion"), finding("B.", "blocker"), finding("a. ", "blocker"), finding("C.")]
    result = judge(play, answer(grades(*found))).result

    assert [(each["id"], each["title"]) for each in result["findings"]] == [("F2", "B."), ("F3", "C."), ("F1", "A.")]


def test_parts_that_say_nothing_are_left_out(play: Player) -> None:
    """`where` and `fix` are there where they say something, and nothing else of the answer is."""
    found = finding(" A. ", where=None, fix=" ", id="F9", score=1)
    (only,) = judge(play, answer(grades(found))).result["findings"]

    assert only == {"id": "F1", "severity": "important", "dimension": "tone", "title": "A."}


def test_an_unresolved_blocker_still_counts(play: Player) -> None:
    """Also where the judge does not mention it again."""
    played = play(
        PROGRAM,
        [answer(grades(finding("A.", "blocker"))), answer(grades()), answer(grades(resolved=("F1",)))],
        call="Main.rounds",
        payload={"count": 3},
    )

    assert [each["dimensions"]["tone"] for each in played.result] == [0.3, 0.3, 1]
    assert [[one["id"] for one in each["resolved"]] for each in played.result] == [[], [], ["F1"]]


class Ids:
    """What ids have to do, in a few lines: a title has one id for good, and new titles have new ones."""

    def __init__(self) -> None:
        self.ids: dict[str, str] = {}
        self.open: set[str] = set()

    def judge(self, titles: list[str], resolved: set[str]) -> dict[str, str]:
        """The open findings of a round by their titles."""
        for title in titles:
            self.ids.setdefault(title, f"F{len(self.ids) + 1}")
        self.open = (self.open - resolved) | set(titles)
        return {title: self.ids[title] for title in self.open}


@pytest.mark.sampled(17)
@pytest.mark.parametrize("as_list", [False, True])
@pytest.mark.parametrize("seed", range(25))
def test_ids_are_kept_and_never_used_again(seed: int, as_list: bool, play: Player) -> None:
    """Over eight rounds of findings that come, go and come back, also where only their list is passed on."""
    chance, ids = random.Random(seed), Ids()
    answers, expected = [], []
    for _ in range(8):
        titles = chance.sample([f"Flaw {letter}." for letter in "abcdefgh"], chance.randrange(5))
        gone = {title for title in sorted(ids.open) if chance.random() < 0.5}
        resolved = tuple(ids.ids[title] for title in sorted(gone))
        answers.append(answer(grades(*[finding(title) for title in titles], resolved=resolved)))
        expected.append(ids.judge(titles, gone))
    rounds = play(PROGRAM, answers, call="Main.rounds", payload={"count": 8, "asList": as_list}).result

    assert [{each["title"]: each["id"] for each in result["findings"]} for result in rounds] == expected
    for result in rounds:
        known = [each["id"] for each in (*result["findings"], *result["resolved"])]
        assert len(known) == len(set(known))


def test_the_judge_is_told_earlier_findings(play: Player) -> None:
    """With their ids; those that are resolved are told no more."""
    answers = [answer(grades(finding("A."), finding("B."))), answer(grades(resolved=("F1",))), answer(grades())]
    played = play(PROGRAM, answers, call="Main.rounds", payload={"count": 3})
    earlier = [told(request.messages[0].text)["earlier"] for request in played.requests]

    assert [[each["id"] for each in one] for one in earlier] == [[], ["F1", "F2"], ["F2"]]


def test_a_copy_of_findings_will_do(play: Player) -> None:
    """As after a run has ended; ids go on behind the highest of the list."""
    earlier = judge(play, answer(grades(finding("A."), finding("B.")))).result["findings"]
    result = judge(play, answer(grades(finding("C."), resolved=("F1",))), options={"earlier": earlier}).result

    assert [each["id"] for each in result["findings"]] == ["F2", "F3"]


def test_a_model_may_have_something_judged(play: Player) -> None:
    """An agent that uses the skill calls it like any other; the judge knows nothing of the caller."""
    program = PROGRAM.replace("on go(", 'uses skill Judge\n  on work() { playbook "Have a text judged." }\n  on go(')
    input = {"rubric": "prose-quality", "task": "Write.", "result": "Some text."}
    called = {"id": "j", "intent": "call_skill", "skill": "Judge", "function": "judged", "input": input}
    answers = {
        "Have a text": [{"batch": [called, {"intent": "return", "data": "${j.output.score}"}]}],
        "You grade": [answer(grades(tone=0.5))],
    }
    played = play(program, answers, call="Main.work")

    assert played.result == 0.925
    assert "Have a text" not in str(played.requests[1])


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"earlier": "F1"}, "`earlier` is what `judged` gave before"),
        ({"earlier": [{"title": "A.", "severity": "important"}]}, "`earlier` is what `judged` gave before"),
        ({"earlier": [{"id": "../F1", "title": "A.", "severity": "important"}]}, "`earlier` is what"),
        ({"earlier": {"findings": {}}}, "`earlier` is what"),
        ({"earlier": [None]}, "`earlier` is what"),
        ({"erlier": []}, "`judged` has no option `erlier`: it has `earlier`"),
    ],
)
def test_options_that_make_no_sense_are_told(options: Mapping[str, Any], why: str, play: Player) -> None:
    """Before anything is asked."""
    played = judge(play, options=options)

    assert why in played.told
    assert played.requests == ()


# ---------------------------------------------------------------- what the judge is told


def test_its_model_is_that_of_the_role(play: Player) -> None:
    """`judge` of `koi.toml` answers, and nobody else."""
    blocks: list[Mapping[str, Any]] = []

    def connect(llm: Mapping[str, Any]) -> Voice:
        async def speak(request: Request) -> AsyncIterator[str]:
            yield json.dumps(answer(grades()))

        blocks.append(llm)
        return Voice(speak)

    models = {"default": partial(dict, model="usual"), "judge": partial(dict, model="strict")}
    play(PROGRAM, [], payload={"result": "x"}, connect=connect, models=models)

    assert blocks == [{"model": "strict"}]


def test_rules_come_first_and_are_the_same(play: Player) -> None:
    """The system text says nothing of task, result or rubric, so that providers need not read it again."""
    one = judge(play, answer(grades()), task="Sing.", result="La la.").requests[0]
    other = judge(play, answer(grades()), task="Dance.", result="Tap tap.").requests[0]

    assert one.system == other.system
    assert "Sing." in one.messages[0].text
    assert [message.role for message in one.messages] == ["user", "user"]


def test_it_may_do_nothing_that_needs_a_permission(play: Player) -> None:
    """It is offered no action at all, and one that it writes is refused."""
    shell = {"intent": "shell", "command": "touch done", "description": "to see"}
    played = judge(play, shell, answer(grades()))

    assert "## Actions" not in played.requests[0].system
    assert 2 == len(played.requests)
    assert not (play.folder / "done").exists()


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "text",
    [
        "a\n" * 700_000,
        "`" * 300_000,
        "日本語" * 200_000,
        '"\\' * 300_000,
        "".join(f"line {n}\n" for n in range(100_000)),
        "\ud800 half " * 60_000,
    ],
    ids=["lines", "fences", "wide", "quotes", "numbered", "halves"],
)
@pytest.mark.parametrize("window", [None, 16_000])
def test_a_long_result_is_cut_to_what_the_model_reads(text: str, window: int | None, play: Player) -> None:
    """Its beginning and its end are judged, and both judge and caller are told how much is not."""
    models = {} if window is None else {"default": partial(dict, context_tokens=window)}
    played = play(PROGRAM, [answer(grades())], payload={"result": text, "task": "t" * 900_000}, models=models)
    (request,) = played.requests
    shown = told(request.messages[0].text)
    fence, _, rest = shown["result"].partition("\n")
    body = rest.removesuffix(f"\n{fence}")
    head, tail = body.split("\n[… left out …]\n")

    assert played.result["graded"], played.told
    assert weight(request.system) + weight(request.messages[0].text) < (window or 105_000)
    assert weight(request.messages[0].text) > 0.5 * (window or 100_000) * 0.75
    assert text.startswith(head)
    assert text.endswith(tail)
    assert min(len(head), len(tail)) > 100
    assert max(map(len, re.findall("`+", body)), default=0) < len(fence)
    assert played.result["notes"] == shown["notes"]
    left = len(text) - len(head) - len(tail)
    assert f"{left} of {len(text)} characters in the middle of the result are left out" in shown["notes"]


def test_what_fits_is_told_as_it_is(play: Player) -> None:
    """Without notes."""
    shown = told(judge(play, answer(grades()), result="`a` and ```b```\n").requests[0].messages[0].text)

    assert (shown["result"], shown["notes"]) == ("````\n`a` and ```b```\n\n````", [])


def test_values_are_judged_as_json_without_images(play: Player) -> None:
    """No image is shown to the judge, and it is said that there was one."""
    picture = {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo" + "A" * 4000}
    played = judge(play, answer(grades()), result={"text": "Look:", "picture": picture})
    (request,) = played.requests
    shown = told(request.messages[0].text)

    assert request.messages[0].images == ()
    assert '"text": "Look:"' in shown["result"]
    assert "[image, image/png, 3 kB]" in shown["result"]
    assert "AAAA" not in request.messages[0].text
    assert played.result["notes"] == ["an image or other file in the result cannot be judged"]


@pytest.mark.parametrize("text", ["", "0", 0, False, None, [], {}])
def test_little_is_judged_too(text: Any, play: Player) -> None:
    """An empty answer is an answer."""
    assert judge(play, answer(grades()), result=text).result["graded"] is True


def test_nothing_cannot_be_judged(play: Player) -> None:
    """A forgotten result is told before anything is asked."""
    played = play(PROGRAM, [], payload={})

    assert "the result is missing" in played.told


@pytest.mark.parametrize(
    ("rubric", "why"), [("prose-qualty", "did you mean"), ("../prose-quality", "is no name"), (3, "is no")]
)
def test_a_rubric_that_is_none_is_told(rubric: Any, why: str, play: Player) -> None:
    """Before anything is asked."""
    played = judge(play, rubric=rubric)

    assert why in played.told
    assert played.requests == ()


# ---------------------------------------------------------------- at the same time, and again


def test_forty_judgements_keep_apart(play: Player) -> None:
    """Each has its own answers, also where a first one did not fit, and ids of its own."""
    seen: dict[int, int] = {}

    async def speak(request: Request) -> AsyncIterator[str]:
        number = int(re.findall(r"Text (\d+)\.", request.messages[0].text)[0])
        seen[number] = seen.get(number, 0) + 1
        await asyncio.sleep(0.001 * (number % 7))
        if number % 4 == 0 and seen[number] == 1:
            yield f"Text {number} is fine."
        elif number % 8 == 1:
            yield "No."
        else:
            yield json.dumps(answer(grades(finding(f"Flaw {number}."), finding("Same."), clarity=number / 40)))

    results = play(PROGRAM, Voice(speak), call="Main.many", payload={"count": 40}).result

    for number, result in enumerate(results):
        assert seen[number] == (2 if number % 4 == 0 or number % 8 == 1 else 1)
        if number % 8 == 1:
            assert (result["graded"], result["findings"]) == (False, [])
            continue
        assert result["dimensions"]["clarity"] == number / 40
        assert [(each["id"], each["title"]) for each in result["findings"]] == [
            ("F1", f"Flaw {number}."),
            ("F2", "Same."),
        ]


RECORDED = (
    PROGRAM.partition("run Main")[0].replace(
        "  on many(",
        """  on start() {
    let before = undefined
    for (const text of ["One.", "Two.", "Three."]) {
      before = await judged("mine", "Write.", text, { earlier: before })
      console.log(before.score, before.findings.map(each => each.id), before.graded)
    }
  }
  on many(""",
    )
    + "run Main.start()\n"
)
MINE = """\
---
name: mine
kind: evaluator
description: Judges prose.
dimensions: [{name: clarity, weight: 0.75, description: c}, {name: tone, weight: 0.25, description: t}]
---
"""


def mine(*findings: Mapping[str, Any], clarity: float = 1.0, resolved: tuple[str, ...] = ()) -> dict[str, Any]:
    """An answer by the rubric of the project."""
    dimensions = [{"name": "clarity", "score": clarity}, {"name": "tone", "score": 1}]
    return answer({"dimensions": dimensions, "findings": list(findings), "resolved": list(resolved)})


@pytest.fixture
def recorded(project: Project) -> Project:
    """A program that judges three texts by a rubric of the project; one answer does not fit."""
    project.write("main.koi", RECORDED)
    project.write(".agents/evaluators/mine/SKILL.md", MINE)
    answers = [mine(finding("A.", "blocker")), "prose", mine(finding("B."), clarity=0.5), mine(resolved=("F1",))]
    project.write("answers.json", json.dumps(answers))
    return project


PRINTED = "0.825 [ 'F1' ] true\n0.45 [ 'F1', 'F2' ] true\n1 [ 'F2' ] true\n"


def test_a_recorded_judgement_is_replayed(recorded: Project) -> None:
    """Also when the rubric says something else by now: what was judged was judged by what it said then."""
    ran = recorded.koi("run", "--answers", "answers.json", "main.koi")
    recorded.write(".agents/evaluators/mine/SKILL.md", MINE.replace("0.75", "0.5").replace("0.25", "0.5"))
    replayed = recorded.koi("replay", "last")

    assert (ran.stdout, ran.returncode) == (PRINTED, 0), ran.stderr
    assert replayed.returncode == 0, replayed.stderr
    assert "nothing is different" in replayed.stdout + replayed.stderr


@pytest.mark.thorough
@pytest.mark.parametrize("first", range(1, 7))
def test_a_judgement_killed_at_any_entry_is_resumed(first: int, recorded: Project) -> None:
    """It prints what it prints without that, and no answer that arrived is asked for again."""
    program = RECORDED.replace('"mine"', '"prose-quality"')
    answers = [
        answer(grades(finding("A.", "blocker"))),
        "prose",
        answer(grades(finding("B."), clarity=0.5)),
        answer(grades(resolved=("F1",))),
    ]
    recorded.write("main.koi", program)
    recorded.write("answers.json", json.dumps(answers))
    done = recorded.fork("-m", "tests.journal.killing", str(first), "6")
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]

    assert len(outcomes) > 2, done.stderr
    assert outcomes[-1]["killed"] == 0
    for outcome in outcomes:
        assert outcome["out"] == "0.895 [ 'F1' ] true\n0.745 [ 'F1', 'F2' ] true\n1 [ 'F2' ] true\n", outcome
