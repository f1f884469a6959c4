"""Where a plan ends and the model takes over: results unlike those of all recordings, and values a shell would read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from koi_lang.freezing.candidates import UnexplainedError
from koi_lang.freezing.plans import HandoverError, explain_calls, hold
from koi_lang.freezing.recordings import RecordedCall, RecordedStep
from koi_lang.program.safe_expressions import evaluate
from tests.in_process import exit_code_of
from tests.projects import Project

COPY = """
    role Clerk { can execute }
    agent Desk : Clerk {
      on save(args: { names: array<string> }) {
        playbook "Copy each of the files to backup, and print that it is saved."
      }
    }
    run Desk.save()
"""
MODEL = [{"batch": [{"intent": "print", "message": "MODEL"}, {"intent": "return"}]}]
SAVED = [["ada", "bo"], ["cy"], ["di", "ed", "flo"]]


def answers(names: list[str], *, looks: bool) -> list[Any]:
    """What a model does: it looks at each result before it goes on, or not."""
    pairs = [
        [
            {"intent": "shell", "command": f"cp {name} backup", "description": "copy"},
            {"intent": "print", "message": f"{name} is saved"},
        ]
        for name in names
    ]
    actions = [*(each for pair in pairs for each in pair), {"intent": "return"}]
    return actions if looks else [{"batch": actions}]


def save(project: Project, names: str | list[str], said: list[Any], allowed: str = "run:cp *") -> Any:
    """The outcome of a run for some files."""
    project.write("answers.json", json.dumps(said))
    args = json.dumps({"names": names})
    return project.koi("run", "copy.koi", "--answers", "answers.json", "--allow", allowed, "--args", args)


@pytest.mark.parametrize("looks", [True, False])
def test_a_command_that_fails_ends_a_plan(project: Project, monkeypatch: pytest.MonkeyPatch, looks: bool) -> None:
    """Nobody is told that a file is saved which is not; the model is told what was done."""
    project.write("copy.koi", COPY)
    monkeypatch.chdir(project.folder)
    Path("backup").mkdir()
    for names in SAVED:
        for name in names:
            Path(name).write_text(name)
        project.write("answers.json", json.dumps(answers(names, looks=looks)))
        words = ("run", "copy.koi", "--answers", "answers.json", "--allow", "run:cp *")
        assert exit_code_of(*words, "--args", json.dumps({"names": names})) == 0
    made = project.koi("freeze", "copy.koi", "Desk.save", "--yes")
    good, bad = save(project, ["bo", "di"], []), save(project, ["ada", "nofile"], MODEL)

    assert (0, "Desk.save: 3 recordings explained by 2 actions; plans/Desk.save.json") == (
        made.returncode,
        made.stdout.splitlines()[-1],
    )
    assert "bo is saved\ndi is saved\n" == good.stdout
    assert "ada is saved\nMODEL\n" == bad.stdout
    told = project.koi("runs", "show", "last", "--json").stdout
    assert ("exitCode" in told, "This was item 2 of 2" in told) == (True, True)


def recording(number: int, result: Any, *, was_seen: bool = True) -> RecordedCall:
    """A call that looks something up, and then prints."""
    look = RecordedStep("desk::look", {"data": {"id": number}}, result, {}, was_seen)
    printed = RecordedStep("print", {"message": f"{number} is there"}, {"printed": True}, {})
    playbook = "Look ⟨args.id⟩ up, and print that it is there."
    return RecordedCall(f"run{number}", "Sunday, 2026-11-29, UTC", playbook, {"id": number}, {}, (look, printed))


@pytest.mark.parametrize(
    ("result", "clause"),
    [
        ({"place": "B2", "is_open": True, "count": 4}, ""),
        (
            {"place": "B2", "is_open": False, "count": 4},
            "`s1.output.is_open` was always true",
        ),
        (
            {"place": "", "is_open": True, "count": 4},
            "`s1.output.place` was never empty",
        ),
        ({"is_open": True, "count": 4}, "`s1.output` always had `place`"),
    ],
)
def test_what_a_model_saw_is_part_of_what_it_went_on_from(result: Any, clause: str) -> None:
    """A result has the form of those that were recorded, as the payload has."""
    results = [{"place": place, "is_open": True, "count": n} for place, n in (("A1", 7), ("C3", 3), ("D4", 12))]
    plan = explain_calls([recording(n + 5, each) for n, each in enumerate(results)], evaluate)
    try:
        hold(plan.actions, recording(9, result), evaluate)
        said = ""
    except HandoverError as error:
        said = error.message

    assert (clause and f"{clause} in the recordings of this plan") == said


def test_what_no_model_has_seen_is_no_condition() -> None:
    """A model that wrote everything at once goes on whatever a result is, unless that says that it has failed."""
    made = [recording(n, {"success": True, "place": "A1"}, was_seen=False) for n in (5, 6, 7)]
    plan = explain_calls(made, evaluate)
    hold(plan.actions, recording(8, {"success": True, "place": "B2"}), evaluate)

    with pytest.raises(HandoverError, match=r"`s1\.output\.success` was always true"):
        hold(plan.actions, recording(8, {"success": False, "place": "A1"}), evaluate)


def test_a_result_that_looks_like_an_expression_is_refused() -> None:
    """It would be computed where it is compared."""
    made = [recording(n, {"text": "${args.id}"}) for n in (5, 6, 7)]

    with pytest.raises(UnexplainedError, match="a result of `desk::look` holds what looks like an expression"):
        explain_calls(made, evaluate)


def test_numbers_of_results_are_none_of_the_playbook() -> None:
    """A number that only results have is one that no recording shows."""
    made = [
        replace(recording(n, {"left": 7}), playbook="Look ⟨args.id⟩ up, and print that it is there, unless 7 are.")
        for n in (15, 16, 18)
    ]

    with pytest.raises(UnexplainedError, match="the playbook names 7"):
        explain_calls(made, evaluate)


@pytest.mark.parametrize("price", [8.575, 1.005, 0.125])
def test_half_a_cent_is_for_the_model(price: float) -> None:
    """Where no recording has shown how it is rounded; as a binary number it would go either way."""
    made = [bill(pieces, each) for pieces, each in ((3, 2.5), (2, 10.25), (7, 4.1))]
    plan = explain_calls(made, evaluate)
    hold(plan.actions, bill(1, 2.75), evaluate)
    hold(plan.actions, bill(1, 1.0049), evaluate)

    with pytest.raises(HandoverError, match=r"`args\.pieces \* args\.price` was never half a cent"):
        hold(plan.actions, bill(1, price), evaluate)


def bill(pieces: int, price: float) -> RecordedCall:
    """A call that prints an amount."""
    args, playbook = {"pieces": pieces, "price": price}, "Print the total of the pieces at the price."
    printed = RecordedStep("print", {"message": f"{pieces * price + 1e-9:.2f}"}, {"printed": True}, {})
    return RecordedCall(f"run {price}", "Sunday, 2026-11-29, UTC", playbook, args, {}, (printed,))


# ---------------------------------------------------------------- commands


def echo(name: str, command: str) -> RecordedCall:
    """A call that runs a command."""
    step = RecordedStep("shell", {"command": command}, {"success": True, "exitCode": 0}, {})
    return RecordedCall(f"run {name}", "Sunday, 2026-11-29, UTC", "Say ⟨args.name⟩.", {"name": name}, {}, (step,))


READ = ("x; touch y", "$(touch y)", "`touch y`", "x > y", "x && y", "O'Brien", "-rf", "a b", "*")


@pytest.mark.parametrize("name", READ)
def test_a_value_that_a_shell_would_read_is_for_the_model(name: str) -> None:
    """Nothing of a payload is run as a command, nor taken for an option or for two words."""
    plan = explain_calls([echo(each, f"echo {each} >> list") for each in ("Ada", "Bo", "Łukasz")], evaluate)
    hold(plan.actions, echo("Zoe", "echo Zoe >> list"), evaluate)

    with pytest.raises(HandoverError, match="which a shell may read as more than a word"):
        hold(plan.actions, echo(name, f"echo {name} >> list"), evaluate)


WORDS = ("Ada", "Bo", "Cy")
BLANKS = ("Ada L", "Bo", "Cy")


@pytest.mark.parametrize(
    ("command", "recorded", "name", "is_taken"),
    [
        ('git commit -m "{}"', BLANKS, "mend the roof, again", True),
        ("git commit -m '{}'", BLANKS, "mend the roof", True),
        ('git commit -m "{}"', BLANKS, "mend $HOME", False),
        ("git commit -m '{}'", BLANKS, "it's", False),
        ("git commit -m '{}'", BLANKS, "n=1", False),
        ("git commit -m '{}'", ("n=1", "Bo", "Cy"), "m=2", True),
        ("git commit -m '{}'", ("n=1", "Bo", "Cy"), "m = 2", False),
        ("git commit -m '{}'", ("n=1", "Bo L", "Cy"), "m = 2", True),
        ("git commit -m '{}'", WORDS, "mend the roof", False),
        ("git commit -m '{}'", WORDS, "roof", True),
        ('echo "is" {}', WORDS, "two words", False),
        ('echo "$(cat {})"', WORDS, "two words", False),
        ('echo "it\'s" {}', WORDS, "two words", False),
        ('sh -c "rm -f data/{}"', WORDS, "a.txt", True),
        ('sh -c "rm -f data/{}"', WORDS, "x keep.txt", False),
        ("sh -c 'rm -f \"{}\" '", WORDS, "x keep.txt", False),
        ('psql -c "DELETE FROM t WHERE id = {}"', ("17", "4", "23"), "8", True),
        ('psql -c "DELETE FROM t WHERE id = {}"', ("17", "4", "23"), "8 OR 1=1", False),
        ('psql -c "DELETE FROM t WHERE id = {}"', ("17", "4", "23"), "id", False),
        ('psql -c "DELETE FROM t WHERE id = {} AND x"', ("a1", "b4", "c3"), "a1--", False),
    ],
)
def test_what_values_in_commands_may_be(command: str, recorded: tuple[str, ...], name: str, is_taken: bool) -> None:
    """In an argument of its own as those that were recorded, and in a text around it a plain word."""
    plan = explain_calls([echo(each, command.format(each)) for each in recorded], evaluate)
    try:
        hold(plan.actions, echo(name, command.format(name)), evaluate)
        taken = True
    except HandoverError:
        taken = False

    assert is_taken == taken


def test_blanks_within_a_text_are_refused() -> None:
    """What reads the text would read two words."""
    with pytest.raises(UnexplainedError, match='`command` is made of "a b", which a shell may read as more'):
        explain_calls([echo(each, f'sh -c "rm {each}"') for each in ("a b", "c", "d")], evaluate)


def test_recordings_with_such_values_are_refused() -> None:
    """A plan would never be used for them."""
    with pytest.raises(UnexplainedError, match='`command` is made of "O\'Brien", which a shell may read as more'):
        explain_calls([echo(each, f'echo "{each}"') for each in ("Ada", "Bo", "O'Brien")], evaluate)


def test_nothing_of_a_payload_is_run(project: Project) -> None:
    """Not even where all commands are allowed."""
    program = COPY.replace("Copy each of the files to backup, and print that it is saved", "Say the name")
    project.write("copy.koi", program.replace("array<string>", "string"))
    for name in ("Ada", "Bo", "Cy"):
        say = {"intent": "shell", "command": f"echo {name}", "description": "say"}
        save(project, name, [{"batch": [say, {"intent": "return"}]}], "run")
    made = project.koi("freeze", "copy.koi", "Desk.save", "--yes")
    ran = [save(project, name, MODEL, "run").stdout for name in ("Zoe", "Zoe; touch pwned")]

    assert (0, ["", "MODEL\n"]) == (made.returncode, ran), made.stderr
    assert not (project.folder / "pwned").exists()
