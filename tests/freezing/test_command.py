"""`koi freeze`: plans of recorded calls, which `koi run` uses while what they were made for has not changed."""

from __future__ import annotations

import asyncio
import json
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pexpect
import pytest

from koi_lang.cli.freeze import describe_actions
from koi_lang.runtime.journal import store
from koi_lang.runtime.model_calls.frozen_plans import describe_form, read_plan
from tests import forks
from tests.first.machine import KEY
from tests.in_process import exit_code_of
from tests.llm.server import Answer, Asked, ModelServer
from tests.projects import LIMIT_S, Project

PROGRAM = '''
    import counter from "./counter.py"
    role Clerk { can execute, can delegate, can registry:write }
    role Helper { can execute }
    type Order = { customer: string, items: array<string>, pieces: number }
    agent Stock : Helper {
      on reserve(args: { item: string }) {
        counter.note(args.item)
        if (args.item === "broken") throw new Error("the shelf fell down")
        return { place: "shelf " + args.item.charCodeAt(0) }
      }
    }
    agent Other : Helper { on reserve(args: { item: string }) { return { place: "far away" } } }
    team Shop { stock: Stock }
    agent Desk : Clerk {
      uses team Shop
      on place(args: Order): { count: number } {
        playbook """
        Store the order of {{args.customer}} with how many items there are and the pieces, reserve each item, and say
        where it is. Return how many items there are.
        """
      }
    }
    run Desk.place()
'''
COUNTER = """
    import os

    def note(item):
        with open("reserved", "a") as file:
            file.write(item + "\\n")
        if item == "kill" and not os.path.exists("killed"):
            open("killed", "w").close()
            os.kill(os.getpid(), 9)
        return item
"""
ORDERS: list[dict[str, Any]] = [
    {"customer": "Ada", "items": ["tea", "jam"], "pieces": 7},
    {"customer": "Grace", "items": ["pot"], "pieces": 12},
    {"customer": "Alan", "items": ["cup", "rye", "oil"], "pieces": 5},
    {"customer": "Barbara", "items": ["nut", "pie"], "pieces": 31},
]
PLAN = "plans/Desk.place.json"


def answer(order: dict[str, Any], **other: Any) -> list[dict[str, Any]]:
    """What the model says about an order."""
    count = len(order["items"])
    value = {"count": count, "pieces": order["pieces"]}
    actions: list[dict[str, Any]] = [{"intent": "registry_set", "key": f"order-{order['customer']}", "value": value}]
    for number, item in enumerate(order["items"]):
        actions.append({"intent": "stock::reserve", "id": f"r{number}", "data": {"item": item}})
        actions.append({"intent": "print", "message": f"{item} is at shelf {ord(item[0])}"})
    return [{"batch": [*actions, {"intent": "return", "data": {"count": count, **other}}]}]


def place(project: Project, order: dict[str, Any], answers: Any, *words: str) -> Any:
    """The outcome of a run for an order."""
    project.write("answers.json", json.dumps(answers))
    return project.koi("run", "orders.koi", "--answers", "answers.json", "--args", json.dumps(order), *words)


@pytest.fixture
def shop(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project with a program, and with recordings of it that are made in this process."""
    project.write("counter.py", COUNTER)
    project.write("orders.koi", PROGRAM)
    monkeypatch.chdir(project.folder)
    for order in ORDERS:
        project.write("answers.json", json.dumps(answer(order)))
        assert exit_code_of("run", "orders.koi", "--answers", "answers.json", "--args", json.dumps(order)) == 0
    return project


@pytest.fixture
def frozen(shop: Project) -> Project:
    """The same with a plan."""
    made = shop.koi("freeze", "orders.koi", "Desk.place", "--yes")
    assert (0, SHOWN) == (made.returncode, made.stdout)
    return shop


SHOWN = """\
playbook of Desk.place:
  Store the order of ⟨args.customer⟩ with how many items there are and the pieces, reserve each item, and say
  where it is. Return how many items there are.
form:
  args.customer: text, never empty
  args.items: list, never empty
  args.items[]: text, never empty
  args.pieces: number, whole, above 0
plan:
  registry_set
    key: order-${args.customer}
    value.count: ${args.items.length}
    value.pieces: ${args.pieces}
  for each item of ${args.items}:
    stock::reserve (s1)
      data.item: ${item}
    print
      message: ${item} is at ${s1.output.place}
  return
    data.count: ${args.items.length}
Desk.place: 4 recordings explained by 3 actions; plans/Desk.place.json
"""
NEW = {"customer": "Zoe", "items": ["a", "b", "c", "d"], "pieces": 4}
RETURN = {"intent": "return"}
LINES = "a is at shelf 97\nb is at shelf 98\nc is at shelf 99\nd is at shelf 100\n"


def test_a_plan_answers_in_the_place_of_the_model(frozen: Project) -> None:
    """An order that was not recorded is placed without a request, and the run says what has answered."""
    ran = place(frozen, NEW, [])
    (run,) = json.loads(frozen.koi("runs", "list", "--json").stdout)[-1:]

    assert (0, LINES) == (ran.returncode, ran.stdout)
    assert 0 == run["requests"]
    assert 'model="frozen/Desk.place"' in frozen.koi("runs", "show", "last").stdout


def test_no_plans_asks_the_model(frozen: Project) -> None:
    """`--no-plans` leaves plans alone."""
    assert "the script has 0" in place(frozen, NEW, [], "--no-plans").stderr


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("Return how many items", "Return the number of items", "its playbook has changed"),
        ("role Clerk { can execute,", "role Clerk { can execute, can read,", "its role has changed"),
        ("pieces: number }", "pieces: number, note?: string }", "its types have changed"),
        (
            "on reserve(args: { item: string })",
            "on reserve(args: { item: string, n?: number })",
            "its team has changed",
        ),
        ("item: string }) {", 'item: string }) { affordance "Reserve it for a day"', "its team has changed"),
        ("agent Stock : Helper {", 'agent Stock : Helper { affordance "Stock of a rival"', "its team has changed"),
        ("stock: Stock", "stock: Other", "its team has changed"),
    ],
)
def test_a_changed_program_is_not_answered_by_its_old_plan(frozen: Project, before: str, after: str, why: str) -> None:
    """The model is asked, and the person is told why."""
    program = (frozen.folder / "orders.koi").read_text()
    assert before in program
    (frozen.folder / "orders.koi").write_text(program.replace(before, after, 1))
    ran = place(frozen, NEW, answer(NEW))

    assert 0 == ran.returncode
    assert f"the plan of `Desk.place` is not used: {why}; freeze it again" in ran.stderr


def test_a_plan_that_was_changed_by_hand_is_not_used(frozen: Project) -> None:
    """The model is asked, and the person is told why."""
    path = frozen.folder / PLAN
    path.write_text(path.read_text().replace(" is at ", " stands at "))
    ran = place(frozen, NEW, answer(NEW))

    assert LINES == ran.stdout
    assert "the plan of `Desk.place` is not used: `Desk.place.json` was changed by hand" in ran.stderr


def test_arguments_that_were_not_recorded_go_to_the_model(frozen: Project) -> None:
    """An empty list, and a text that looks like an expression, are not what the plan was made of."""
    empty, odd = {**NEW, "items": []}, {**NEW, "customer": "${args.pieces}"}

    assert "`args.items` was never empty in its recordings" in place(frozen, empty, answer(empty)).stderr
    assert "a value holds what looks like an expression" in place(frozen, odd, answer(odd)).stderr


def test_without_a_model_a_plan_answers_all_the_same(frozen: Project) -> None:
    """What it does not take says that no model is configured, and counts as no request."""
    words = ("run", "orders.koi", "--args")
    ran = frozen.koi(*words, json.dumps(NEW))
    refused = frozen.koi(*words, json.dumps({**NEW, "items": []}))

    assert (0, LINES) == (ran.returncode, ran.stdout)
    assert 2 == refused.returncode
    assert "no model is configured" in refused.stderr
    assert 0 == json.loads(frozen.koi("runs", "list", "--json").stdout)[-1]["requests"]


def test_an_action_that_fails_hands_over_to_the_model(frozen: Project) -> None:
    """The model is told what was done, and goes on from there."""
    order = {**NEW, "items": ["a", "broken", "c"]}
    ran = place(frozen, order, [{"intent": "return", "data": {"count": 1}}], "--result")
    shown = frozen.koi("runs", "show", "last", "--json").stdout

    assert (0, {"count": 1}) == (ran.returncode, json.loads(ran.stdout))
    assert "the shelf fell down" in shown
    assert ["a", "broken"] == (frozen.folder / "reserved").read_text().split()[-2:]
    assert 1 == json.loads(frozen.koi("runs", "list", "--json").stdout)[-1]["requests"]


def test_a_killed_plan_is_resumed(frozen: Project) -> None:
    """What was done before `kill -9` is not done again, and the rest is done without a request."""
    order = {**NEW, "items": ["a", "kill", "c"]}
    ran = place(frozen, order, [])
    resumed = frozen.koi("resume", "last", "--on-doubt", "retry")

    assert -signal.SIGKILL == ran.returncode
    assert (0, "kill is at shelf 107\nc is at shelf 99\n") == (resumed.returncode, resumed.stdout[-38:])
    assert ["a", "kill", "kill", "c"] == (frozen.folder / "reserved").read_text().split()[-4:]
    assert 0 == json.loads(frozen.koi("runs", "list", "--json").stdout)[-1]["requests"]


def test_a_result_that_misfits_hands_over_to_the_model(frozen: Project) -> None:
    """The model is told what was done and what is wrong."""
    path = frozen.folder / PLAN
    plan = read_plan(path)
    *actions, end = plan.actions
    wrong = replace(plan, actions=[*actions, {**end, "data": {"count": "${args.customer}"}}])
    path.write_text(json.dumps(wrong.as_data()))
    ran = place(frozen, NEW, [{"intent": "return", "data": {"count": 4}}], "--result")

    assert (0, {"count": 4}) == (ran.returncode, json.loads(ran.stdout))
    assert 1 == json.loads(frozen.koi("runs", "list", "--json").stdout)[-1]["requests"]


# ---------------------------------------------------------------- held against recordings


def test_check_holds_plans_against_all_recordings(frozen: Project) -> None:
    """A recording that a plan does not do again is named, with what differs."""
    holds = frozen.koi("freeze", "orders.koi", "--check")
    other = {**NEW, "customer": "Yves"}
    answers = answer(other)
    answers[0]["batch"][0]["value"]["pieces"] = 99
    place(frozen, other, answers, "--no-plans")
    differs = frozen.koi("freeze", "orders.koi", "--check")

    assert (0, "Desk.place: holds\n") == (holds.returncode, holds.stdout)
    assert 1 == differs.returncode
    assert '`value` of step 1, `registry_set`, was {"count": 4, "pieces": 99}' in differs.stdout


def test_koi_test_holds_plans_against_recordings(frozen: Project) -> None:
    """A plan is a case of its own, beside the tests of a program."""
    passed = frozen.koi("test")
    path = frozen.folder / PLAN
    plan = read_plan(path)
    path.write_text(json.dumps(replace(plan, actions=plan.actions[:-1]).as_data()))
    failed = frozen.koi("test")

    assert (0, 1) == (passed.returncode, failed.returncode)
    assert "the plan does not hold" in failed.stdout
    assert "`return` was carried out, and the plan has ended" in failed.stdout


# ---------------------------------------------------------------- what cannot be frozen


def test_two_explanations_are_named(project: Project) -> None:
    """Nothing is written where the recordings do not tell two explanations apart."""
    project.write("counter.py", COUNTER)
    project.write("orders.koi", PROGRAM)
    for order in ORDERS[:3]:
        order = {**order, "pieces": len(order["items"])}
        place(project, order, answer(order))
    made = project.koi("freeze", "orders.koi", "Desk.place", "--yes")

    assert 1 == made.returncode
    assert "`count` of `value` of `registry_set` is `args.pieces` or `args.items.length`; run it with" in made.stderr
    assert not (project.folder / PLAN).exists()


def test_ask_makes_the_run_that_tells_them_apart(project: Project) -> None:
    """The model is asked once more, with what both explanations name, and the plan is written."""
    project.write("counter.py", COUNTER)
    project.write("orders.koi", PROGRAM)
    project.write("koi.toml", '[models]\ndefault = "openai/gpt-4o-mini"\n')
    for order in ORDERS[:3]:
        order = {**order, "pieces": len(order["items"])}
        place(project, order, answer(order))

    def respond(asked: Asked) -> Answer:
        context = asked.body["messages"][1]["content"].partition("Context: ")[2].partition("\n")[0]
        return Answer(pieces=(json.dumps(answer(json.loads(context)["args"])[0]),))

    async def freeze() -> tuple[Any, int]:
        async with ModelServer(respond, ["gpt-4o-mini"]) as server:
            settings = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{server.url}/v1"}
            made = await asyncio.to_thread(
                project.koi, "freeze", "orders.koi", "Desk.place", "--yes", "--ask", **settings
            )
            return made, len(server.requests)

    made, requests = asyncio.run(freeze())

    assert (0, 1) == (made.returncode, requests), made.stderr
    assert "is `args.pieces` or `args.items.length`" in made.stderr
    assert (project.folder / PLAN).exists()


def test_a_rehearsal_is_no_recording(project: Project) -> None:
    """What follows the steps of a playbook without a model shows nothing of what a model does."""
    project.write("counter.py", COUNTER)
    project.write("orders.koi", PROGRAM.replace(": { count: number }", ""))
    for order in ORDERS[:3]:
        project.koi("run", "orders.koi", "--rehearse", "--args", json.dumps(order))
    made = project.koi("freeze", "orders.koi", "Desk.place", "--yes")

    assert 1 == made.returncode
    assert "there is no recorded call of `Desk.place` to explain" in made.stderr
    assert "is left out: a rehearsal answered it" in made.stderr


def test_ask_without_a_model_says_so(project: Project) -> None:
    """Nothing is rehearsed instead, and what is recorded stays as it was."""
    project.write("counter.py", COUNTER)
    project.write("orders.koi", PROGRAM)
    for order in ORDERS[:3]:
        order = {**order, "pieces": len(order["items"])}
        place(project, order, answer(order))
    asked = project.koi("freeze", "orders.koi", "Desk.place", "--yes", "--ask")
    made = project.koi("freeze", "orders.koi", "Desk.place", "--yes")

    assert "Configure a model for `--ask`" in asked.stderr
    assert "is `args.pieces` or `args.items.length`" in made.stderr


def test_answers_of_a_plan_are_no_evidence_for_it(frozen: Project) -> None:
    """However often a plan has answered, a recording that it does not do again is what counts."""
    other = {**NEW, "customer": "Yves"}
    answers = answer(other)
    answers[0]["batch"][0]["value"]["pieces"] = 99
    place(frozen, other, answers, "--no-plans")
    for number in range(2):
        place(frozen, {**NEW, "pieces": 50 + number}, [])
    made = frozen.koi("freeze", "orders.koi", "Desk.place", "--yes", "--runs", "3")

    assert 1 == made.returncode
    assert "nothing explains" in made.stderr


def test_an_older_recording_that_differs_refuses_a_plan(shop: Project) -> None:
    """A plan of the latest recordings is held against all others before it is written."""
    made = shop.koi("freeze", "orders.koi", "Desk.place", "--yes", "--runs", "3")
    other = {**NEW, "items": ["a"], "customer": "Yves"}
    answers = answer(other)
    answers[0]["batch"][0]["value"]["pieces"] = 99
    place(shop, other, answers, "--no-plans")
    for order in ORDERS[:3]:
        again = {**order, "customer": order["customer"] + "x"}
        place(shop, again, answer(again), "--no-plans")
    refused = shop.koi("freeze", "orders.koi", "Desk.place", "--yes", "--runs", "3")

    assert (0, 1) == (made.returncode, refused.returncode)
    assert "another recording did something else" in refused.stderr
    assert "`--runs N` explains the last N calls" in refused.stderr


def test_recordings_that_contradict_each_other(shop: Project) -> None:
    """The runs are named."""
    place(shop, ORDERS[0], answer({**ORDERS[0], "pieces": 8}))
    made = shop.koi("freeze", "orders.koi", "Desk.place", "--yes")

    assert 1 == made.returncode
    assert "the recordings contradict each other" in made.stderr


def test_recordings_that_are_not_signed(shop: Project) -> None:
    """They are left out, and the person is told what would take them."""
    for path in store.journal_paths(shop.folder):
        shop.koi("runs", "export", path.stem, "-o", f"tests/{path.stem}.jsonl")
        path.unlink()
    files = sorted((shop.folder / "tests").glob("*.jsonl"))
    named = [word for path in files for word in ("--runs", str(path.relative_to(shop.folder)))]
    refused = shop.koi("freeze", "orders.koi", "Desk.place", "--yes", *named)

    assert 1 == refused.returncode
    assert "`--trust` takes it all the same" in refused.stderr
    assert 0 == shop.koi("freeze", "orders.koi", "Desk.place", "--yes", *named, "--trust").returncode


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("orders.koi", "Desk.plaice"), "there is no handler `Desk.plaice`"),
        (("orders.koi", "Stock.reserve"), "`Stock.reserve` is code"),
        (("orders.koi", "Desk.place"), "there is no recorded call of `Desk.place`"),
        (("orders.koi", "Desk.place", "--runs", "nobody"), "there are no journals"),
    ],
)
def test_what_cannot_be_meant(project: Project, words: tuple[str, ...], problem: str) -> None:
    """A handler that is not there, or is code, and recordings that are not there."""
    project.write("counter.py", COUNTER)
    project.write("orders.koi", PROGRAM)
    made = project.koi("freeze", *words)

    assert made.returncode != 0
    assert problem in made.stderr


def test_a_plan_of_a_handler_that_is_gone(frozen: Project) -> None:
    """It does not hold, and says so."""
    program = (frozen.folder / "orders.koi").read_text()
    other = program.replace("on place(", "on order(").replace("Desk.place", "Desk.order")
    (frozen.folder / "orders.koi").write_text(other)
    checked = frozen.koi("freeze", "orders.koi", "--check")

    assert 1 == checked.returncode
    assert "there is no handler `Desk.place`" in checked.stdout


def test_a_plans_folder_that_cannot_be_written(shop: Project) -> None:
    """A file in the place of the folder is one clear message."""
    Path(shop.folder / "plans").write_text("")
    made = shop.koi("freeze", "orders.koi", "Desk.place", "--yes")

    assert 1 == made.returncode
    assert "the plan cannot be written" in made.stderr


LETTERS = """
    role Clerk { can execute }
    skill Files {
      export function keep(content: string) { affordance "Keeps a text." console.log(content) return content.length }
    }
    agent Desk : Clerk {
      uses skill Files
      on place(args: { name: string, pieces: int }) {
        playbook "Have Files keep a letter to {{args.name}} with the pieces."
      }
    }
    run Desk.place()
"""


def test_a_plan_fills_code_in(project: Project) -> None:
    """In code of a model nothing but results is a name; what recordings have explained is, also in a replay."""
    project.write("orders.koi", LETTERS)
    for name, pieces in (("Ada", 7), ("Grace", 12), ("Alan", 5), ("Barbara", 31), ("Bo", 2)):
        content = f"Dear {name},\nyou have {pieces} pieces."
        said = [{"batch": [{"intent": "keep", "content": content}, {"intent": "return"}]}]
        assert 0 == place(project, {"name": name, "pieces": pieces}, said).returncode
    frozen = project.koi("freeze", "orders.koi", "Desk.place", "--yes")

    assert 0 == frozen.returncode, frozen.stderr
    assert "${args.name},\\nyou have ${args.pieces}" in (project.folder / PLAN).read_text("utf-8")
    done = project.koi("run", "--record", "orders.koi", "--args", json.dumps({"name": "Zoe", "pieces": 9}))
    assert (0, "Dear Zoe,\nyou have 9 pieces.\n") == (done.returncode, done.stdout), done.stderr
    again = project.koi("replay", "last", "--quiet")
    assert (0, True) == (again.returncode, again.stderr.endswith("nothing is different\n")), again.stderr


COUNT = """
    role Clerk { can execute }
    agent Desk : Clerk {
      on count(args: { items: array<string> }) { playbook "Print how many items there are." }
    }
    run Desk.count()
"""


def test_what_a_plan_hands_over_is_recorded_without_plans(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan that never saw one item leaves it to the model, and such a call is no recording."""
    project.write("count.koi", COUNT)
    monkeypatch.chdir(project.folder)
    for items in (["a", "b"], ["c", "d", "e"], ["f", "g", "h", "i"]):
        printed = {"intent": "print", "message": f"{len(items)} items"}
        project.write("answers.json", json.dumps([{"batch": [printed, RETURN]}]))
        words = ("run", "count.koi", "--answers", "answers.json", "--args", json.dumps({"items": items}))
        assert exit_code_of(*words) == 0
    assert project.koi("freeze", "count.koi", "Desk.count", "--yes").returncode == 0
    project.write("answers.json", json.dumps([{"batch": [{"intent": "print", "message": "1 item"}, RETURN]}]))
    ran = project.koi("run", "count.koi", "--answers", "answers.json", "--args", '{"items": ["z"]}')

    assert "1 item\n" == ran.stdout
    assert (
        "its plan had handed over" in project.koi("freeze", "count.koi", "Desk.count", "--yes", "--runs", "last").stderr
    )


CLASSIFY = """
    role Clerk { can execute }
    agent Desk : Clerk {
      on sort(args: { text: string }) { playbook "Classify the text as spam or ham." }
    }
    run Desk.sort()
"""


@pytest.fixture
def sorted_texts(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project with recordings of a handler that came to the same each time."""
    project.write("sort.koi", CLASSIFY)
    project.write("answers.json", '[{"batch": [{"intent": "print", "message": "ham"}, {"intent": "return"}]}]')
    monkeypatch.chdir(project.folder)
    for text in ("I am glad", "what joy", "great day", "so fun", "lovely"):
        words = ("run", "sort.koi", "--answers", "answers.json", "--args", json.dumps({"text": text}))
        assert exit_code_of(*words) == 0
    return project


def test_a_word_that_nobody_has_confirmed_is_not_frozen(sorted_texts: Project) -> None:
    """Where nobody can be asked the message says what to type; what was typed stands in the plan."""
    refused = sorted_texts.koi("freeze", "sort.koi", "Desk.sort", "--yes")
    made = sorted_texts.koi("freeze", "sort.koi", "Desk.sort", "--yes", "--fixed", "ham")

    assert "`message` of `print` was always `ham`, and the playbook names `ham` as one of several" in refused.stderr
    assert "type `koi freeze … --fixed ham --yes`" in refused.stderr
    assert "in doubt:\n  ? `message` of `print` was always `ham`" in refused.stdout
    assert "    message: ham   (always so)\n" in made.stdout
    assert ("ham",) == read_plan(sorted_texts.folder / "plans/Desk.sort.json").confirmed
    assert "Desk.sort: holds\n" == sorted_texts.koi("freeze", "sort.koi", "--check").stdout


def test_no_plan_is_written_that_nobody_has_confirmed(shop: Project) -> None:
    """Where nobody can be asked it is shown, and the message says what to type."""
    refused = shop.koi("freeze", "orders.koi", "Desk.place")

    assert (1, SHOWN.rpartition("Desk.place: ")[0]) == (refused.returncode, refused.stdout)
    assert "nobody has said that its plan does what the playbook says" in refused.stderr
    assert "type `koi freeze … --yes`" in refused.stderr
    assert not (shop.folder / PLAN).exists()


@pytest.mark.parametrize("words", [(), ("--yes",)])
def test_the_person_at_the_terminal_confirms(sorted_texts: Project, words: tuple[str, ...]) -> None:
    """An empty line is a no, after which nothing is written; what is in doubt is asked about all the same."""
    python, *words_of_koi = forks.koi("freeze", "sort.koi", "Desk.sort", *words)
    folder, environment = sorted_texts.folder, {**sorted_texts.environment, "NO_COLOR": "1"}
    options = {"cwd": str(folder), "env": environment, "encoding": "utf-8", "timeout": LIMIT_S}
    for typed, code in (("", 1), ("y", 0)):
        with pexpect.spawn(python, words_of_koi, **options) as child:
            child.expect_exact("and the playbook names `ham` as one of several (5 of 5 recordings)")
            child.expect_exact("Does this do what the playbook says for every payload of this form? [y/N]")
            child.sendline(typed)
            child.expect(pexpect.EOF)
        assert (code, not code) == (child.exitstatus, (folder / "plans/Desk.sort.json").exists())
    assert ("ham",) == read_plan(folder / "plans/Desk.sort.json").confirmed


def test_a_plan_is_shown_with_its_conditions_and_checks() -> None:
    """Indented, with the form of what it goes on with."""
    look = {"intent": "desk::look", "id": "s1", "data": {"names": ["${args.a}", 7], "more": {}}}
    fits = {"kinds": ["number"], "never": 1, "whole": True}
    checks = [{"intent": "expect", "of": "${args.n}", "as": "args.n", "fits": fits}]
    shell = [
        {"intent": "expect", "of": ["${args.a}"], "as": "command", "fits": {"shell": ["word"]}},
        {"intent": "shell", "command": "rm ${args.a}\nls"},
    ]
    branch = {"intent": "if", "condition": "args.n > 4", "then": shell, "else": [{"intent": "return", "data": False}]}

    assert [
        "only with args.n: number, whole, never 1",
        "desk::look (s1)",
        "  data.names.0: ${args.a}",
        "  data.names.1: 7   (always so)",
        "  data.more: {}   (always so)",
        "if args.n > 4:",
        "  only with plain words in `command`",
        "  shell",
        '    command: "rm ${args.a}\\nls"',
        "otherwise:",
        "  return",
        "    data: false   (always so)",
    ] == list(describe_actions([*checks, look, branch], ""))
    assert [
        'args.a?: text, one of ["x", "y"]',
        "args.b: list of 2",
        "args.b[]: number, not below 0",
        "args.c: always null",
    ] == list(
        describe_form(
            {
                "fields": {
                    "a": {"kinds": ["text"], "empty": True, "among": ["x", "y"]},
                    "b": {"items": {"kinds": ["number"], "from": 0}, "empty": False, "length": 2},
                    "c": {"is": None},
                },
                "optional": ["a"],
            },
            "args",
        )
    )


def test_invisible_characters_are_spelt_out_and_in_doubt(project: Project) -> None:
    """A plan that turns the direction of writing is not taken for one that does not."""
    project.write("counter.py", COUNTER)
    project.write("orders.koi", PROGRAM)
    for order in ORDERS:
        text = json.dumps(answer(order)).replace(" is at ", "\\u202e\\u200b is at ")
        assert 0 == place(project, order, [json.loads(text)[0]]).returncode
    made = project.koi("freeze", "orders.koi", "Desk.place", "--yes")

    assert (1, False) == (made.returncode, (project.folder / PLAN).exists())
    assert "${item}\\u202e\\u200b is at ${s1.output.place}" in made.stdout
    assert "the playbook does not say `\\u202e \\u200b`" in made.stderr
    assert "--fixed $'\\u202e \\u200b' --yes" in made.stderr


REMEMBERING = """
    role Clerk { can execute }
    agent Desk : Clerk {
      uses memory
      on place(args: { name: string }) { playbook "Greet {{args.name}}: print hello." }
    }
    run Desk.place()
"""


def test_an_agent_whose_model_is_told_of_files_is_not_frozen(project: Project) -> None:
    """No run could use its plan; so `koi learn` does not offer one."""
    project.write("p.koi", REMEMBERING)
    for name in ("Ada", "Bo", "Cy"):
        said = [{"batch": [{"intent": "print", "message": f"hello {name}"}, {"intent": "return"}]}]
        project.write("answers.json", json.dumps(said))
        project.koi("run", "p.koi", "--answers", "answers.json", "--args", json.dumps({"name": name}))
    made, learnt = project.koi("freeze", "p.koi", "Desk.place", "--yes"), project.koi("learn")

    assert (1, False) == (made.returncode, (project.folder / PLAN).exists())
    assert "is left out: its agent uses files, such as notes" in made.stderr
    assert "" == learnt.stdout


def test_check_and_test_say_what_has_changed(frozen: Project) -> None:
    """Another agent in the team makes the plan unused, so it does not hold."""
    program = (frozen.folder / "orders.koi").read_text()
    (frozen.folder / "orders.koi").write_text(program.replace("stock: Stock", "stock: Other"))
    check, test = frozen.koi("freeze", "orders.koi", "--check"), frozen.koi("test")

    assert (1, "Desk.place: was made for another team; freeze it again\n") == (check.returncode, check.stdout)
    assert (1, True) == (test.returncode, "was made for another team; freeze it again" in test.stdout)


def test_check_says_where_there_is_no_recording(frozen: Project) -> None:
    """Nothing was held against anything, and this is not called `holds`."""
    for journal in store.journals(frozen.folder):
        journal.unlink()
    check = frozen.koi("freeze", "orders.koi", "--check")

    assert (0, "Desk.place: there is no recording to hold it against\n") == (check.returncode, check.stdout)


WHOLE = """
    role Clerk { can execute }
    type Order = { id: string, sum: number }
    agent Desk : Clerk {
      on place(args: { order: Order }): Order { playbook "Return the order {{args.order}}." }
    }
    run Desk.place()
"""


def test_a_plan_returns_a_whole_value(project: Project) -> None:
    """The result of a handler that only returns may be a value of the payload as it is."""
    project.write("p.koi", WHOLE)
    for order in ({"id": "a1", "sum": 3}, {"id": "b2", "sum": 4}, {"id": "c3", "sum": 9}):
        project.write("answers.json", json.dumps([{"batch": [{"intent": "return", "data": order}]}]))
        project.koi("run", "p.koi", "--answers", "answers.json", "--args", json.dumps({"order": order}))
    project.koi("freeze", "p.koi", "Desk.place", "--yes", "--fixed", "Return the order args.order")
    ran = project.koi("run", "p.koi", "--args", '{"order": {"id": "zz", "sum": 5}}', "--result")

    assert (0, {"id": "zz", "sum": 5}) == (ran.returncode, json.loads(ran.stdout or "{}")), ran.stderr


def test_the_plan_of_another_program_is_not_replaced(frozen: Project) -> None:
    """Two programs in one folder have one folder of plans."""
    (frozen.folder / "other.koi").write_text((frozen.folder / "orders.koi").read_text())
    before = (frozen.folder / PLAN).read_text()
    made = frozen.koi("freeze", "other.koi", "Desk.place", "--yes")

    assert (1, before) == (made.returncode, (frozen.folder / PLAN).read_text())
    assert "`plans/Desk.place.json` is the plan of `orders.koi`" in made.stderr
