"""`test` blocks: what their programs find around them, and what fails them."""

from __future__ import annotations

import pytest

from koi_lang.testing.blocks import collect
from tests.projects import Project
from tests.testing.trying import outcome, outcomes

PRINT = '{ "actionType": "direct", "intent": "print", "message": "Hello, Ada!" }'
ASK = '{ "id": "a", "actionType": "direct", "intent": "prompt_user", "question": "Who?", "options": ["Ada", "Bo"] }'
RETURN = '{ "actionType": "direct", "intent": "return", "data": 7 }'


def test_what_holds_passes(project: Project) -> None:
    """A test whose expectations hold passes, and what its program printed is kept."""
    found = outcome(project, 'expect await Clerk.greet({ name: "Ada" }) == { greeted: "Ada" }')

    assert (True, "", ("Hello, Ada!",)) == (found.ok, found.message, found.printed)


def test_a_failure_shows_its_line_and_both_sides(project: Project) -> None:
    """The message has the line of the `expect`, what is on each side, and where they differ first."""
    found = outcome(project, 'expect await Clerk.greet({ name: "Ada" }) == { greeted: "Bo" }')

    lines = found.message.replace(f"{project.folder.as_posix()}/", "").split("\n")
    assert not found.ok
    assert ("error: the two sides are not equal [E0500]", " --> main.test.koi:9:15") == (lines[0], lines[1])
    assert [
        "  left:  { greeted: 'Ada' }",
        "  right: { greeted: 'Bo' }",
        "  they differ at `greeted`: 'Ada' and 'Bo'",
    ] == lines[-3:]


def test_an_error_of_the_program_fails_the_test(project: Project) -> None:
    """An error that the test does not expect is shown with the lines it went through."""
    found = outcome(project, "await Clerk.fail()")

    assert "RangeError: there is no unicorn" in found.message
    assert "in `Clerk.fail`" in found.message
    assert "await Clerk.fail()" in found.message
    assert "koi_tests" not in found.message


def test_every_test_begins_anew(project: Project) -> None:
    """State, registry, output, variables of skills and the clock are those of a program that was just started."""
    body = """{
      expect [await Clerk.count(), await registry.keys(), output, next()] == [1, [], [], 1]
      expect new Date().toISOString() == "2025-01-01T00:00:00.000Z"
      await registry.set("key", 1)
      console.log("printed")
      await new Promise(done => setTimeout(done, 10))
    }
    """
    skill = "skill Numbers { let last = 0\n export function next() { last += 1\n return last } }\n"

    found = outcomes(project, f'{skill}test "first" {body} test "second" {body}')

    assert {"first": "", "second": ""} == {name: each.message for name, each in found.items()}


def test_random_numbers_come_again(project: Project) -> None:
    """A test sees the same random numbers whenever it is run."""
    text = 'test "random" { console.log(Math.random(), crypto.randomUUID()) }'

    assert outcomes(project, text)["random"].printed == outcomes(project, text)["random"].printed


def test_sleeping_takes_no_time(project: Project) -> None:
    """Timers and timeouts of minutes pass at once, in their order, and the date moves with them."""
    found = outcome(
        project,
        """
        const begin = Date.now(), order = []
        setTimeout(() => order.push("late"), 90000)
        await new Promise(done => setTimeout(done, 60000))
        order.push("early")
        await new Promise(done => setTimeout(done, 40000))
        expect [order, Date.now() - begin] == [["early", "late"], 100000]
        """,
    )

    assert (True, "") == (found.ok, found.message)
    assert found.seconds < 30


def test_waiting_for_ever_is_noticed(project: Project) -> None:
    """A promise that nothing can resolve ends the test, with the line that waits for it."""
    found = outcome(project, "await new Promise(() => 0)")

    assert found.message.startswith("error: this test waits for something that never happens")
    assert "main.test.koi:9:15" in found.message


def test_what_is_started_is_waited_for(project: Project) -> None:
    """A failure in the background fails the test, too."""
    found = outcome(project, 'setTimeout(() => { throw new Error("too late") }, 5)')

    assert "too late" in found.message


@pytest.mark.parametrize("answers", [f"[{PRINT}, {RETURN}]", f'{{ "Ask for": [{PRINT}, {RETURN}] }}'])
def test_models_give_the_given_answers(project: Project, answers: str) -> None:
    """Answers come in order, or by a text of the playbook; values become JSON."""
    body = f'given model answers {answers}\nexpect await Clerk.ask() == 7\nexpect output == ["Hello, Ada!"]'

    assert outcome(project, body).message == ""


def test_the_person_gives_the_given_answers(project: Project) -> None:
    """An answer is a text, or the number of an option."""
    model = f"given model answers [{ASK}, {PRINT.replace('Ada', '${a.output.answer}')}, {RETURN}]\n"
    body = 'await Clerk.ask()\nexpect output == ["Hello, Bo!"]'

    found = outcomes(
        project,
        f"""
        test "by number" {{ given person answers [2]\n {model} {body} }}
        test "by text" {{ given person answers ["Bo"]\n {model} {body} }}
        """,
    )

    assert {"by number": "", "by text": ""} == {name: each.message for name, each in found.items()}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("", "a model is asked, and this test gives no answers"),
        (f"given model answers [{PRINT}]", "answer 2 was asked for and the script has 1"),
        ('given model answers ["not json"]', "the script has 1, after the model was told: ❌ Nothing of your answer"),
        ('given model answers [{ intent: "fly" }]', "the model was told: ❌ fly failed: there is no action `fly`"),
        (f"given model answers {{ nowhere_to_be_found: [{PRINT}] }}", "the script has no answers for this request"),
        (f"given model answers [{ASK}, {RETURN}]", "the person is asked `Who?`, and this test gives no answers"),
        ("given model answers 5", "`given model answers` takes a list"),
        ('given person answers "Ada"', "`given person answers` takes a list"),
    ],
)
def test_a_missing_answer_fails_the_test(project: Project, given: str, told: str) -> None:
    """What nobody answers fails the test, also where the program goes on without the answer."""
    found = outcome(project, f'{given}\ntry {{ await Clerk.ask() }} catch (error) {{ console.log("caught") }}')

    assert not found.ok
    assert told in found.message


def test_scripted_agents_keep_their_script(project: Project) -> None:
    """An agent that brings its own answers has them while the test gives none."""
    llm = f'llm default = {{ provider: "scripted", answers: [{RETURN}] }}'
    agent = f'agent Own : Worker {{ {llm} on go() {{ playbook "Go." }} }}'

    found = outcomes(project, f'{agent}\ntest "own" {{ expect await Own.go() == 7 }}')

    assert found["own"].message == ""


def test_a_named_provider_is_not_asked(project: Project) -> None:
    """A model that needs a key and the network is replaced as well."""
    agent = 'agent Own : Worker { llm default = { provider: "openai", model: "gpt-4o" } on go() { playbook "Go." } }'

    found = outcomes(project, f'{agent}\ntest "own" {{ given model answers [{RETURN}]\n expect await Own.go() == 7 }}')

    assert found["own"].message == ""


def test_runs_of_the_file_are_not_carried_out(project: Project) -> None:
    """`run` statements of the file and of what it imports do nothing in a test."""
    agent = 'agent Other : R { on go() { console.log("ran")  return 5 } }'
    project.write("other.koi", f"role R {{ can go }}\n{agent}\nrun Other.go()")
    path = project.write("main.test.koi", 'import "./other.koi"\ntest "other" { expect await Other.go() == 5 }')

    (case,) = collect(path, False)

    assert ("", ("ran",)) == ((found := case.run()).message, found.printed)


def test_what_python_prints_is_output(project: Project) -> None:
    """Lines that imported Python code prints are output of the program."""
    project.write("tools.py", "def say(): print('one'); print('two', end='\\n\\n')\ndef leave(): raise SystemExit(4)")
    text = 'import tools from "./tools.py"\ntest "says" { tools.say()\nexpect output == ["one", "two", ""] }'
    path = project.write("main.test.koi", f'{text}\ntest "leaves" {{ tools.leave() }}')

    says, leaves = (case.run() for case in collect(path, False))

    assert says.message == ""
    assert leaves.message.startswith("error: `leave` has raised `SystemExit: 4`, with which")


def test_a_file_that_does_not_compile_is_one_failure(project: Project) -> None:
    """All its problems are the message of a case without a name."""
    path = project.write("main.test.koi", 'test "a" { expect x == 1 }\ntest "b" { expect await Clerk.go() }')

    (case,) = collect(path, False)

    assert ("", False) == (case.name, case.run().ok)
    assert "nothing here is called `x`" in case.run().message
    assert "nothing here is called `Clerk`" in case.run().message
