"""Branches: a run that goes on from an earlier entry, with another answer, or with a program that was changed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from koi_lang.runtime.journal.entries import JournalEntry
from koi_lang.runtime.journal.history import History, in_doubt
from koi_lang.runtime.journal.reader import read
from tests.journal.commands import Commands

PROGRAM = '''
role R { can execute, can delegate, can registry:write }
team T { first: First, second: Second, asker: Asker }
agent First : R { on work(args: Json) { playbook """Do the first half.""" } }
agent Second : R { on work(args: Json) { playbook """Do the second half.""" } }
agent Asker : R { on work(args: Json) { playbook """Ask for a name.""" } }
agent Lead : R {
  uses team T
  on start(args: Json) { playbook """Have everything done.""" }
}
run Lead.start({})
'''
TWO_PRINTS = """
role R { can execute }
agent A : R { on go(x: Json) { console.log("a"); console.log("b") } }
run A.go({})
"""
DONE = {"intent": "return", "data": {"ok": True}}


def delegate(to: str) -> dict[str, Any]:
    """An action for a member of the team."""
    return {"actionType": "delegate", "intent": f"{to}::work", "data": {}}


def half(name: str) -> list[Any]:
    """The answers for one half: an effect, a print and the end."""
    effect = {"intent": "shell", "command": f"echo {name} >> effects", "description": "leave a line"}
    return [{"batch": [effect, {"intent": "print", "message": name}]}, DONE]


ANSWERS = {
    "Have everything": [{"batch": [delegate("first"), delegate("second"), delegate("asker")]}, DONE],
    "first half": half("first"),
    "second half": half("second"),
    "Ask for": [
        {
            "batch": [
                {"id": "q", "intent": "prompt_user", "question": "Your name?"},
                {"intent": "print", "message": "hello ${q.output.answer}"},
            ]
        },
        DONE,
    ],
}
PRINTED = "first\nsecond\nhello Ada\n"


@pytest.fixture
def family(koi: Commands) -> Commands:
    """A run that ended well."""
    assert PRINTED == koi.record(PROGRAM, ANSWERS, "--allow", "shell", stdin="Ada\n").out
    return koi


def entry(koi: Commands, kind: str, label: str) -> str:
    """The number of the entry of a kind whose path ends in a label, in the first journal."""
    return str(next(e.n for e in koi.entries(koi.journals()[0]) if e.kind == kind and e.path[-1] == label))


def listed(koi: Commands) -> list[int]:
    """The numbers of the entries that the tree of the first run shows."""
    shown = koi("runs", "tree", koi.journals()[0].stem).out
    return [int(found[1]) for line in shown.splitlines() if (found := re.match(r" {2,4}(\d+)  ", line))]


# How an answer came in, what was decided about effects and what they changed, is told where it happens only.
LEFT_OUT = ("model_wrote", "doubt_settled", "file_changed", "tree_kept", "tree_compared")


def texts(path: Path) -> list[str]:
    """What a journal tells, without what only times and transport decide."""
    data = [entry.as_data() for entry in read(path).entries]
    dropped = ("n", "ts", "recalled", "stop", "unsafe", "lasting", "totals")
    told = [{name: value for name, value in each.items() if name not in dropped} for each in data]
    return sorted(json.dumps(each) for each in told if each["kind"] not in LEFT_OUT)


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.thorough)])
def test_every_entry_of_the_tree_can_be_gone_back_to(family: Commands, step: int) -> None:
    """From each the run comes to the same end, in a journal of its own that tells the same and can be replayed."""
    first, before = family.journal, family.journal.read_bytes()
    numbers = listed(family)
    kinds = {entry.kind for entry in family.entries() if entry.n in numbers}
    assert {"handler_started", "model_answered", "done"} == kinds
    for number in numbers[::step]:
        done = family("resume", first.stem, "--at", str(number), "--on-doubt", "retry", stdin="Ada\n")
        branch = next(path for path in family.journals() if path != first)

        assert (0, PRINTED.endswith(done.out)) == (done.code, True), (number, done.err)
        assert texts(first) == texts(branch), number
        assert 0 == family("replay", branch.stem).code, number
        branch.unlink()
    assert before == first.read_bytes()


def test_going_back_does_later_things_again(family: Commands) -> None:
    """What came before the entry is kept, and what came after it is done again, when that was decided."""
    first = entry(family, "begun", "shell#1")
    done = family("resume", "last", "--at", first, "--on-doubt", "retry", stdin="Ada\n")
    later = family("resume", family.journals()[0].stem, "--at", entry(family, "done", "second::work#1"), stdin="Eve\n")

    assert (0, 0) == (done.code, later.code), done.err + later.err
    assert (PRINTED, "hello Eve\n") == (done.out, later.out)
    assert ["first", "second", "first", "second"] == family.lines("effects")


def test_another_answer_of_the_person(family: Commands) -> None:
    """With `--answer` the person has said something else, and the run goes on from there."""
    number = entry(family, "done", "prompt_user#1")
    done = family("resume", "last", "--at", number, "--answer", "Eve")

    assert (0, "hello Eve\n", ["first", "second"]) == (done.code, done.out, family.lines("effects")), done.err
    assert "6 of 8 model answers were reused and not requested again\n" in done.err
    assert ["Eve"] == [entry.data["answer"] for entry in family.entries() if entry.kind == "answered"]


def test_another_answer_of_a_model(family: Commands) -> None:
    """With `--answer` the model has written something else; nothing that followed from its answer counts."""
    answer = json.dumps({"batch": [delegate("second"), DONE]})
    at = ("--at", entry(family, "model_answered", "model#1"), "--answer", answer)
    done = family("resume", "last", *at, "--on-doubt", "retry")

    assert (0, "second\n", ["first", "second", "second"]) == (done.code, done.out, family.lines("effects")), done.err
    assert 0 == family("replay", "last").code


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--at", "1", "--answer", "x"), "entry 1 is no answer that can be replaced"),
        (("--answer", "x"), "`--answer` needs `--at`"),
        (("--program", "main.koi"), "`--program` needs `--at`"),
        (("--at", "999"), "there is no entry 999 to go back to"),
    ],
)
def test_what_cannot_be_gone_back_to_is_told(family: Commands, words: tuple[str, ...], told: str) -> None:
    """One message, and no journal is written."""
    done = family("resume", "last", *words)

    assert (2, 1, f"error: {told}") == (done.code, len(family.journals()), done.err.splitlines()[0])


def test_a_changed_playbook_goes_on_where_it_changed(family: Commands) -> None:
    """Of two delegates only the one with another playbook does its work again; how much was saved is said."""
    family.project.write("main.koi", PROGRAM.replace("second half", "second half, please"))
    answers = {**ANSWERS, "second half": half("other")}
    family.project.write("answers.json", json.dumps(answers))
    first, before = family.journal, family.journal.read_bytes()
    done = family("resume", "last", stdin="Ada\n")

    assert (0, "other\nhello Ada\n") == (done.code, done.out), done.err
    assert ["first", "second", "other"] == family.lines("effects")
    assert f"going on as a branch of {first.stem}: " in done.err
    assert "has changed since" not in done.err  # what is asked anew is meant to differ
    assert " are known; allowed as before: shell\n" in done.err
    assert "3 of 8 model answers were reused and not requested again\n" in done.err
    assert (2, before) == (len(family.journals()), first.read_bytes())


def test_a_branch_goes_on_with_another_version_of_its_program(family: Commands) -> None:
    """With `--program` the file may be elsewhere; from its changed playbook on all is done anew."""
    family.project.write("other/main.koi", PROGRAM.replace("second half", "second half, please"))
    answers = {**ANSWERS, "second half": half("other")}
    family.project.write("answers.json", json.dumps(answers))
    done = family("resume", "last", "--at", "2", "--program", "other/main.koi", "--on-doubt", "retry", stdin="Ada\n")

    assert (0, "hello Ada") == (done.code, done.out.splitlines()[-1]), done.err
    assert ["first", "second", "first", "other"] == family.lines("effects")


def test_a_run_that_went_on_as_a_branch_is_not_resumed_again(koi: Commands) -> None:
    """Without an id, a run that was interrupted and has a branch is passed over; its own id still resumes it."""
    koi.record(TWO_PRINTS)
    koi.cut_behind("printed")
    koi.project.write("main.koi", TWO_PRINTS.replace('"b"', '"c"'))
    first, again = koi("resume"), koi("resume")
    run, branch = (path.stem for path in koi.journals())

    assert ("c\n", 0, 1) == (first.out, first.code, again.code)
    assert again.err.startswith("error: no run of this folder was interrupted\n")
    assert f"help: `{run}` went on as the branch `{branch}`; `koi resume {run}` goes on" in again.err
    assert "c\n" == koi("resume", run).out
    assert f"going on as a branch of {run}: 1 line of output is known\n" == first.err
    assert koi("runs", "tree").out == koi("runs", "tree", "last").out != ""


def test_a_changed_print_is_shown(family: Commands) -> None:
    """A branch does not show again what was shown, but what the program says differently now."""
    family.record(TWO_PRINTS)
    family.project.write("main.koi", TWO_PRINTS.replace('"a"', '"c"').replace('"b"', '"d"'))
    done = family("resume", "last")
    note = "note: the program has changed since: `A.go` now prints something else than before\n"

    assert ("c\nd\n", note) == (done.out, done.err.partition("known\n")[2])


def test_a_branch_is_a_run_like_any_other(family: Commands) -> None:
    """Its journal can be cut and resumed, replayed, and branched again; the tree shows the whole family."""
    first = family.journal
    family("resume", "last", "--at", entry(family, "done", "second::work#1"), stdin="Eve\n")
    branch = family.journal
    family.cut_behind("done", "prompt_user#1")
    resumed = family("resume", branch.stem)
    family("resume", branch.stem, "--at", str(len(family.entries()) - 2))
    twig = family.journal
    tree = family("runs", "tree", twig.stem).out.splitlines()

    assert (0, "hello Eve\n") == (resumed.code, resumed.out), resumed.err
    assert [0, 0, 0] == [family("replay", path.stem).code for path in (first, branch, twig)]
    heads = [f"{first.stem}  ok  main.koi", f"│ {branch.stem}  ok  main.koi", f"│ │ {twig.stem}  ok  main.koi"]
    assert heads == [line for line in tree if line.endswith("main.koi")]
    assert "  resumed" in "\n".join(tree)


def test_the_tree_of_a_damaged_journal_is_refused(koi: Commands) -> None:
    """A journal whose first line cannot be read has no tree, and that is said."""
    koi.project.write(".koi/runs/0123456789ab.jsonl", "damaged\n")

    done = koi("runs", "tree", "0123456789ab")

    assert (done.code, done.out, "does not begin as a journal does" in done.err) == (1, "", True)


def test_the_tree_does_not_steer_the_terminal(koi: Commands) -> None:
    """What a program printed is shown without what would clear a screen."""
    says = 'agent Main : R { on go(args: Json) { console.log("a" + String.fromCharCode(27) + "[2Jb") } }'
    koi.project.write("b.koi", f"role R {{ can execute }}\n{says}\nrun Main.go({{}})\n")
    koi("run", "--record", "b.koi")

    out = koi("runs", "tree", "last").out

    assert ("print a b" in out or "print ab" in out, "\x1b" in out) == (True, False)


# ---------------------------------------------------------------- effects of the parent

LEAVING = """
import py from "./py.py"
role R { can execute }
agent Main : R { on go(x: Json) {
  py.note("one")
  console.log("between")
  py.note("two")
  py.note("three")
} }
run Main.go({})
"""
NOTE = 'def note(text):\n    with open("log", "a") as file:\n        file.write(text + "\\n")\n'


@pytest.fixture
def leaving(koi: Commands) -> Commands:
    """A run that left three notes outside."""
    koi.project.write("py.py", NOTE)
    koi.record(LEAVING)
    return koi


def between(koi: Commands) -> str:
    """The entry behind the first note."""
    return str(next(entry.n for entry in koi.entries() if entry.kind == "printed"))


def test_a_branch_asks_before_it_does_something_again(leaving: Commands) -> None:
    """What the run did behind the entry is told; without a decision the branch stops, and does nothing twice."""
    run, at = leaving.journal.stem, between(leaving)
    stopped = leaving("resume", run, "--at", at)
    again = leaving("resume", run, "--at", at, "--on-doubt", "retry")

    assert (1, 0) == (stopped.code, again.code), again.err
    assert (
        'the run did this later on; you are asked before it is done again: `py.note` {"args": ["two"]}' in stopped.err
    )
    assert "`py.note` was done in the run that this is a branch of" in stopped.err
    assert ["one", "two", "three", "two", "three"] == leaving.lines("log")
    assert "left behind" not in again.err


def test_a_branch_tells_what_it_leaves_behind(leaving: Commands) -> None:
    """A program that does something else now does not do what the run did; that is not undone, and told."""
    leaving.project.write("main.koi", LEAVING.replace('"two"', '"other"').replace('  py.note("three")\n', ""))
    done = leaving("resume", "last")

    assert (0, ["one", "two", "three", "other"]) == (done.code, leaving.lines("log")), done.err
    assert 'left behind, which this branch has not done: `py.note` {"args": ["two"]} (entry' in done.err
    assert '`py.note` {"args": ["three"]}' in done.err


REFUSED = """
role R { can execute }
agent Main : R { on go(args) {
  try { await callAction("shell", { command: "true", description: "to see" }) } catch { }
} }
run Main.go({})
"""


def test_what_was_refused_is_not_left_behind(koi: Commands) -> None:
    """A command that nobody allowed never ran, so a branch without it leaves nothing behind."""
    koi.record(REFUSED)
    before = [(entry.kind, entry.data.get("intent")) for entry in koi.entries()]
    koi.project.write("main.koi", re.sub("try .*", 'console.log("no command")', REFUSED))
    done = koi("resume", "last")

    assert ("failed", "shell") in before
    assert (0, False) == (done.code, "left behind" in done.err), done.err


@pytest.mark.parametrize(("is_parent", "expected"), [(False, []), (True, ["begun"])])
def test_what_waited_in_the_parent_has_been_done(*, is_parent: bool, expected: list[str]) -> None:
    """A branch that was killed while it took over a permission does not take what it is about for undone."""
    place = ("A.go#1", "shell#1")
    data: dict[str, Any] = {"recalled": True} if is_parent else {}
    begun = {"intent": "shell", "unsafe": True, "fields": {}, **data}
    asked = {"what": "run x", "detail": "", **data}
    told = [
        JournalEntry(1, 0.0, "begun", place, "A", begun),
        JournalEntry(2, 0.0, "approval_requested", place, "A", asked),
    ]

    assert expected == [entry.kind for entry in in_doubt(told)]
    assert History(told, "resume").waits_for_leave(place) is not is_parent
