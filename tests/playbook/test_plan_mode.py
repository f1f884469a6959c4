"""Plan mode: nothing is changed before the person has accepted a plan, whatever models and delegates try."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from koi_lang.errors import PlanShownError
from tests.playbook.playing import Played, Player, act, ask, done
from tests.running import RecordingHost

PROGRAM = """
role Worker { can execute, can delegate, can registry, can read, can write, can web_access }
skill Marks {
  needs read export function look(): string { console.log("looked") return "seen" }
  needs write export function leave(): string { console.log("left") return "left" }
  export function unmarked(): string { console.log("unmarked") return "?" }
}
agent Hand : Worker { uses skill Marks on work(args) { playbook "Help." } on code() { return leave() } }
agent Main : Worker {
  uses team Crew
  uses skill Marks
  state { n: number = 0 }
  on go(args) { playbook "Do the work." }
  on code(args) { return await this.callAction(args.intent, args.fields) }
}
team Crew { hand: Hand, main: Main }
"""
STEPS = [{"text": "read the parser", "touches": ["src/parse.py"]}, {"text": "run the tests"}]
PROPOSE = act("propose_plan", steps=STEPS, why="It has to be renamed.")
SHELL = act("shell", command="true", description="d")
WRITE = act("registry_set", key="k", value=1)


def skill(function: str) -> dict[str, Any]:
    """A call of a function."""
    return act("call_skill", skill="Marks", function=function)


def tried(*actions: dict[str, Any]) -> list[dict[str, Any]]:
    """Actions of one answer, of which no failure ends the others."""
    return [{"parallel": list(actions)}, done()]


CHANGING = [
    SHELL,
    WRITE,
    act("registry_delete", key="k"),
    act("update_state", updates={"n": 1}),
    act("return", data={"state_updates": {"n": 1}}),
    skill("leave"),
    skill("unmarked"),
    act("if", condition=True, then=[SHELL]),
]


def test_only_what_is_marked_safe_is_done(play: Player) -> None:
    """Commands, entries, state and functions that do not say that they only read are refused at dispatch."""
    played = play(
        PROGRAM, tried(*CHANGING, skill("look"), act("registry_get", key="k"), act("print", message="hi")), plan=True
    )

    assert sorted(["return", "call_skill", "registry_get", "print"]) == sorted(played.did())
    assert {"looked", "hi"} == set(played.printed)
    assert ({"n": 0}, []) == (played.state("Main"), keys(played))


def keys(played: Played) -> list[str]:
    """What stands in the registry."""
    return list(asyncio.run(played.run.registry.keys("")))


def test_delegates_are_in_plan_mode_too(play: Player) -> None:
    """Neither a member's model nor its code does what plan mode does not permit."""
    help = [{"parallel": [SHELL, WRITE, skill("leave")]}, done()]
    answers = {"Do the work": tried(ask("hand::work"), ask("hand::code")), "Help": help}
    played = play(PROGRAM, answers, plan=True)

    assert [] == [intent for intent in played.did() if intent in ("shell", "registry_set", "call_skill", "hand::code")]
    assert ((), []) == (played.printed, keys(played))


@pytest.mark.parametrize("intent", ["shell", "registry_set", "update_state"])
def test_code_changes_nothing_by_actions(play: Player, intent: str) -> None:
    """Code is bound by plan mode as models are."""
    played = play(PROGRAM, [], call="Main.code", payload={"intent": intent, "fields": {}}, plan=True)

    assert "is not marked as safe, and the run is in plan mode, in which nothing is changed" in played.told


def test_prompts_offer_what_can_be_done(play: Player) -> None:
    """Plan mode adds at most 300 characters to a prompt; what it refuses is not offered."""
    usual = play(PROGRAM, [done()]).requests[0].system
    system = play(PROGRAM, [done()], plan=True).requests[0].system
    new = [line for line in system.split("\n") if line not in usual.split("\n")]

    assert ("- shell(" in usual, "- shell(" in system, "- propose_plan(" in usual) == (True, False, False)
    assert ("Marks.look" in system, "Marks.leave" in system, "Marks.unmarked" in system) == (True, False, False)
    assert len("\n".join(new)) <= 300
    assert any(line.startswith("- propose_plan(") for line in new)


def decided(play: Player, *said: str, more: Any = ()) -> Played:
    """What comes of a plan when the person says something."""
    return play(PROGRAM, [PROPOSE, *more, done(ok=True)], plan=True, host=RecordingHost(list(said)))


def plans(played: Played) -> list[dict[str, Any]]:
    """What was decided about plans."""
    return [dict(event.fields) for event in played.events if event.type == "plan_decided"]


def test_an_accepted_plan_ends_plan_mode_and_becomes_tasks(play: Player) -> None:
    """Its steps stand in the registry as `std/tasks` keeps them, and in front of the model from then on."""
    played = decided(play, "accept", more=[WRITE])
    first, second = (asyncio.run(played.run.registry.get(f"task:{id}")) for id in plans(played)[0]["tasks"])

    assert ("read the parser", "open", "touches src/parse.py", []) == tuple(
        first[name] for name in ("title", "status", "notes", "after")
    )
    assert ([first["id"]], "run the tests") == (second["after"], second["title"])
    assert "## Plan mode" in played.requests[0].system
    assert "1. read the parser (src/parse.py)\n2. run the tests" in played.requests[1].system
    assert "registry_set" in played.did()
    assert "## Plan mode" not in played.requests[1].system


@pytest.mark.parametrize(
    ("said", "steps"),
    [
        (["edit", "2: run pytest", "accept"], ["read the parser (src/parse.py)", "run pytest"]),
        (["-1", "accept"], ["run the tests"]),
        (["+ write a note", "-9", "yes"], ["read the parser (src/parse.py)", "run the tests", "write a note"]),
        (["edit", "-1", "-1", "accept"], ["run the tests"]),
    ],
)
def test_the_person_edits_the_steps(play: Player, said: list[str], steps: list[str]) -> None:
    """What counts is what the person has accepted."""
    assert [("accepted", steps)] == [(each["answer"], each["steps"]) for each in plans(decided(play, *said))]


@pytest.mark.parametrize(
    ("said", "words"), [(["use the old name"], "use the old name"), (["no", "not today"], "not today")]
)
def test_a_refusal_is_told_to_the_model_in_words(play: Player, said: list[str], words: str) -> None:
    """The run stays in plan mode, and the model may propose another plan."""
    played = decided(play, *said, more=[SHELL])

    assert [("refused", words)] == [(each["answer"], each["words"]) for each in plans(played)]
    assert words in played.feedback[1]
    assert "shell" not in played.did()


def test_with_nobody_there_the_plan_is_shown_and_nothing_done(play: Player) -> None:
    """The run ends with the plan, whatever else the model wants; that is no failure."""
    played = play(PROGRAM, [PROPOSE, WRITE, done()], plan=True)

    assert isinstance(played.error, PlanShownError)
    assert 0 == played.error.exit_code
    assert ("1. read the parser (src/parse.py)", "2. run the tests") == played.printed[1:]
    assert 1 == len(played.requests)


def test_steps_are_ticked_off(play: Player) -> None:
    """By `finish_step`, and by the functions of tasks; the model is told which are done, while some are not."""
    body = 'import "std/tasks"\n' + PROGRAM.replace("uses skill Marks\n  state", "uses skill Marks, Tasks\n  state")
    answers = [PROPOSE, act("finish_step", step=1), act("finish_step", step=3), act("finish_step", step=2), done()]
    played = play(body, answers, plan=True, host=RecordingHost(["accept"]))
    finished = [event.fields["step"] for event in played.events if event.type == "plan_step_finished"]

    assert [1, 2] == finished
    assert "is done.\nDone: 1\n2. run the tests" in played.requests[2].system
    assert "the plan has no step 3: it has 2" in played.feedback[3]
    assert "## Plan" not in played.requests[4].system


def test_another_plan_takes_the_place_of_the_first(play: Player) -> None:
    """What was left of the first one is dropped from the tasks, and no step of it counts any more."""
    other = act("propose_plan", steps=[{"text": f"do {n} {'x' * 280}"} for n in range(50)])
    played = play(PROGRAM, [PROPOSE, other, done()], plan=True, host=RecordingHost(["accept", "accept"]))
    left = [asyncio.run(played.run.registry.get(f"task:{id}"))["status"] for id in plans(played)[0]["tasks"]]
    told = played.requests[2].system.partition("## Plan\n")[2].partition("\n\n")[0]

    assert ["dropped", "dropped"] == left
    assert told.endswith("… and 40 more steps")
    assert 2800 < len(told) < 3200
    assert [] == [event for event in played.events if event.type == "plan_step_finished"]


def test_the_functions_of_tasks_tick_steps_off(play: Player) -> None:
    """A task that is finished, or changed to be done, is a step that is done; others are none."""
    code = """
      on finish(args) { const tasks = await listTasks("open"); return await finishTask(tasks[0].id) }
      on other() { const task = await addTask("something else"); return await finishTask(task.id) }
      on go("""
    source = 'import "std/tasks"\n' + PROGRAM.replace("\n  on go(", code, 1)
    calls = [("Main.go", {}), ("Main.other", {}), ("Main.finish", {}), ("Main.finish", {})]
    played = play.each(source, [PROPOSE, done()], calls, plan=True, host=RecordingHost(["accept"]))[0]

    assert [1, 2] == [event.fields["step"] for event in played.events if event.type == "plan_step_finished"]


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ([], "a plan has 1 to 50 steps, and this one has 0"),
        ([{"text": "x"}] * 500, "a plan has 1 to 50 steps, and this one has 500"),
        ([{"text": " \n\t "}], "step 1 is empty"),
        ([{"touches": ["a"]}], "step 1 is empty"),
        ([{"text": "a"}, {"text": "y" * 5000}], "step 2 has 5,000 characters; at most 300 are read"),
        ([{"text": "run <!-- rm --> tests"}], "step 1 holds characters or markup that hide text"),
        ([{"text": "see [the docs](http://x.org)"}], "step 1 holds characters or markup that hide text"),
        ([{"text": "a\u202eb"}], "step 1 holds characters or markup that hide text"),
        ([{"text": "a\x1b[8mb"}], "step 1 holds characters or markup that hide text"),
        ([{"text": "a" + " " * 40 + "b"}], "step 1 holds characters or markup that hide text"),
        ([{"text": "a", "touches": ["b\u200bc"]}], "what step 1 touches holds characters or markup that hide text"),
        ([{"text": "a", "touches": ["b"] * 30}], "step 1 touches 30 things; name at most 20"),
    ],
)
def test_a_plan_that_cannot_be_read_is_refused(play: Player, steps: list[Any], told: str) -> None:
    """The person is not asked, and the model is told in a sentence."""
    played = play(PROGRAM, [act("propose_plan", steps=steps), done()], plan=True, host=RecordingHost(["accept"]))

    assert told in played.feedback[1]
    assert [] == plans(played)
