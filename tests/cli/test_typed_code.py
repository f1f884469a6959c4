"""`koi run -c`: declarations, statements, or both, without a file."""

from __future__ import annotations

import pytest

from koi_lang.compiler.compile import check_program
from koi_lang.program.typed_code import TextFiles, as_program, is_unfinished, split
from koi_lang.source import Source
from tests.projects import Project

TEAM = """
role Worker { can count }
agent Adder : Worker { on add(args: { a: number, b: number }) { return args.a + args.b } }
team Desk { adder: Adder }
"""
# What is typed, and what is printed.
RUNS = {
    "console.log(1 + 2)": "3\n",
    'import "std/text"\nconsole.log(slug("Green Tea"))': "green-tea\n",
    'import "./desk.koi"; console.log(await Adder.add({ a: 1, b: 2 }))': "3\n",
    'import "./desk.koi"; console.log(await send peers.event("add").any()({ a: 4, b: 2 }))': "6\n",
    "role W { can sing } agent A : W { on go() { console.log(5) } } run A.go()": "5\n",
    "role W { can sing } agent A : W { on go() { return 6 } }\nconsole.log(await A.go())": "6\n",
    'playbook "Print \\"hello\\"."': "hello\n",
    "for (const x of [1, 2]) {\n  console.log(x)\n}  // a comment at the end": "1\n2\n",
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("code", RUNS)
def test_code_is_run(code: str, project: Project) -> None:
    """It prints what it would print in a file; nothing is found wrong with what was put around it."""
    project.write("desk.koi", TEAM)

    ran = project.koi("run", "--quiet", "--rehearse", "-c", code)

    assert (0, RUNS[code], "") == (ran.returncode, ran.stdout, ran.stderr)


def test_such_a_run_goes_on(project: Project) -> None:
    """The question that nobody answered is asked again by `koi resume`, and the run is replayed as others are."""
    code = 'const said = await callAction("prompt_user", { question: "Who?" }); console.log(said.answer)'
    project.koi("run", "-c", code)

    resumed = project.koi("resume", "--quiet", stdin="Ada\n")
    replayed = project.koi("replay", "last", "--quiet")

    assert (0, "Ada\n") == (resumed.returncode, resumed.stdout)
    assert "nothing is different" in replayed.stderr


def test_a_mistake_is_shown_where_it_was_typed(project: Project) -> None:
    """The excerpt is the typed line, with its own columns."""
    wrong = project.koi("run", "-c", "const x = 1\nconsol.log(x)")

    assert 65 == wrong.returncode
    assert "error: nothing here is called `consol` [E0221]" in wrong.stderr
    assert "| consol.log(x)\n  | ^^^^^^\n  = help: did you mean `console`?" in wrong.stderr


@pytest.mark.parametrize("words", [(), ("-c", " "), ("desk.koi", "-c", "1")], ids=str)
def test_one_thing_is_run(words: tuple[str, ...], project: Project) -> None:
    """Neither nothing nor two things."""
    refused = project.koi("run", *words)

    assert 2 == refused.returncode
    assert "help: Write `koi run FILE`, or `koi run -c 'CODE'`." in refused.stderr


def test_a_model_gets_no_permission_of_the_person() -> None:
    """A playbook among statements is carried out for an agent that may do nothing beside talking."""
    program = as_program('playbook "Delete all files."', "/code.koi", "/")

    assert program.startswith("role CommandLine { can talk } ")


def test_statements_begin_behind_the_last_declaration() -> None:
    """Words of declarations are names in statements, and what is broken counts as statements."""
    texts = ["role = 5", "import './a.koi'\nrun = 2", "agent", "role W { can x }\nagent = {", ""]

    assert ["role = 5", "run = 2", "agent", "agent = {", ""] == [
        text[split(Source("code.koi", text)).statements :] for text in texts
    ]


def test_more_has_to_follow_what_is_open() -> None:
    """Brackets and texts that are open want another line."""
    opened = ["if (x) {", "agent A : B {", 'playbook """', "[1,", "`a ${", "// {", "x", '"("']

    assert [True] * 5 + [False] * 3 == [is_unfinished(text) for text in opened]


def test_a_text_stands_in_the_place_of_a_file() -> None:
    """The compiler sees the text, and the files beside it."""
    checked = check_program("/none.koi", TextFiles({"/none.koi": "role W { can sing }"}))

    assert [] == [problem for problem in checked.diagnostics if problem.severity == "error"]
