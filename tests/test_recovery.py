"""After a syntax error reading goes on: all problems are reported, and what could be read is kept and checked."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from random import Random

import pytest

from koi_lang.compiler import nodes as n
from koi_lang.compiler.compile import check_program
from koi_lang.compiler.parser import MAX_PROBLEMS, parse
from koi_lang.compiler.syntax_errors import explanations
from koi_lang.compiler.syntax_errors.scanner import scan
from koi_lang.diagnostics import Diagnostic
from koi_lang.source import Source, Span
from tests.support import HERE, FolderFiles, diagnostics_of_text, must_not_compile

BROKEN = {
    "role": "role Worker { execute }",
    "agent": "agent Ada Worker { }",
    "handler": "agent Ada : Worker {\n  on start {\n    playbook 'go'\n  }\n}",
    "code": "agent Ada : Worker {\n  on start() { const a = 1 + }\n}",
    "brace": "agent Ada : Worker {\n  on start() {\n    if (true) {\n  }\n}",
    "text": 'agent Ada : Worker {\n  on start() { playbook """Greet. }\n}',
    "quote": "agent Ada : Worker {\n  on start() { console.log('go) }\n}",
    "backtick": "agent Ada : Worker {\n  on start() { console.log(`go) }\n}",
    "team": "team Crew { Ada }",
    "prompt": "prompt Rules 'Be brief.'",
    "statement": "console.log('go')",
}
# A program into which somebody types, cut off where an editor would look at it.
TYPING = HERE / "messages" / "typing"
HEAD = "role Worker { can execute, can delegate }\n"
CLEAN = sorted((HERE / "data" / "clean").glob("*.koi"))
# What people and models put where it has no place.
JUNK = ["=", ")", "@", "foo bar", "class X {}", "def f():", "1 +", "else", "=>", "elif", "::", ",", "let", "import os"]
DECLARATIONS = [kind for kind in BROKEN if kind != "statement"]


def names(text: str) -> list[str]:
    """The names of the declarations that could be read."""
    program, _ = parse(Source("test.koi", text))
    return [declaration.name.name for declaration in program.declarations]  # type: ignore[attr-defined]


def syntax_problems(text: str) -> list[Diagnostic]:
    """What is wrong with the spelling of a program."""
    return [found for found in must_not_compile(text) if is_syntax_error(found.code)]


def is_syntax_error(code: str) -> bool:
    """Whether the parser, or the loader of imports, reports a code; some of these stand among the codes of checks."""
    return code < "E0200" or code in explanations()


def codes(text: str) -> list[str]:
    """The codes of everything that is wrong with a program, in order."""
    return [found.code for found in diagnostics_of_text(text)]


class _Changed(FolderFiles):
    """The files of a folder, one of them with another text."""

    def __init__(self, folder: Path, name: str, text: str) -> None:
        super().__init__(folder)
        self.name, self.text = name, text

    def read(self, path: str) -> bytes:
        """The content of a file."""
        return self.text.encode() if path == self.name else super().read(path)


def test_three_broken_declarations_give_three_messages() -> None:
    """Every broken declaration has a message of its own."""
    found = must_not_compile("role A { run }\n\nagent B C { }\n\nrole D { can go }\n\nteam E { F }\n")

    assert [diagnostic.code for diagnostic in found] == ["E0137", "E0139", "E0128"]


@pytest.mark.sampled(40)
@pytest.mark.parametrize(("first", "second"), list(product(BROKEN, DECLARATIONS)))
def test_a_broken_declaration_does_not_hide_the_next(first: str, second: str) -> None:
    """Whatever is wrong with a declaration, what is wrong with the next one is reported too."""
    alone = syntax_problems(BROKEN[second])

    found = syntax_problems(f"{BROKEN[first]}\n\n{BROKEN[second]}\n")

    assert len(found) == 2
    assert found[1].code == alone[0].code


@pytest.mark.parametrize("kind", BROKEN)
def test_good_declarations_are_kept(kind: str) -> None:
    """A broken declaration takes nothing with it, neither before nor behind."""
    text = f"role First {{ can go }}\n\n{BROKEN[kind]}\n\nrole Last {{ can go }}\n"

    assert [name for name in names(text) if name != "Ada"] == ["First", "Last"]


def test_a_misplaced_form_keeps_the_others() -> None:
    """What only shows after reading (parentheses without a value) is reported at its place, the rest is kept."""
    text = "role A { can go }\n\nagent B : A { on go() { const a = (1, 2) } }\n\nrole C { can go }\n"

    assert names(text) == ["A", "B", "C"]


def test_the_number_of_messages_is_limited() -> None:
    """A hopeless file does not flood the terminal."""
    assert len(must_not_compile("role A { go }\n" * 50)) == MAX_PROBLEMS


def test_all_problems_of_a_handler_are_told_at_once() -> None:
    """Each step that cannot be read has its message, and the steps beside it are checked."""
    text = f"""{HEAD}agent Ada : Worker {{
  on start(args) {{
    const first = [x for x in args.list]
    let second = 1 +
    console.log(first, second)
    if (args.a == None) {{ return unknown }}
    items = args.items is string
    for item of args.items {{ console.log(item) }}
    return args.b and args.c
  }}
}}
"""
    lines = [found.place.source.position(found.place.span.start).line for found in must_not_compile(text)]

    assert lines == [4, 7, 7, 8, 9, 10]


def test_all_problems_of_an_agent_are_told_at_once() -> None:
    """A part of an agent that cannot be read takes none of the others along."""
    text = f"""{HEAD}agent Ada : Worker {{
  state {{
    count: 0
    names = []
  }}
  def hello(self): return 1
  on start {{ return 1 }}
  on second(args) {{ return this.state.nmaes }}
  on third(args) {{ return later }}
}}
run Ada.start({{}})
run Ada.fourth({{}})
"""
    assert [found.code for found in must_not_compile(text)][-1:] == ["E0221"]
    assert len(syntax_problems(text)) == 2


@pytest.mark.parametrize(
    ("broken", "rest"),
    [
        ("const total = 1 +", "return total"),
        ("const { total, other = } = args", "return [total, other]"),
        ("const = args.n", "return n"),
        ("let [a, b = args", "return a"),
        ("function total(x) -> int { return x }", "return total(1)"),
        ("const f = x => => x", "return f(1)"),
        ("for (const x f args) { console.log(x) }", "return x"),
        ("const sum = this.add(first: 1)", "return sum"),
    ],
)
def test_what_a_gap_may_declare_is_not_missed(broken: str, rest: str) -> None:
    """A name that a step which could not be read declares is no second problem."""
    found = codes(f"{HEAD}agent A : Worker {{\n on go(args) {{\n {broken}\n {rest}\n }}\n}}\n")

    assert len(found) == 1
    assert is_syntax_error(found[0])


@pytest.mark.parametrize(
    ("broken", "rest"),
    [
        ("role Clerk { execute }", "agent A : Clerk { }"),
        ("role { can execute }", "agent A : Clerk { }"),
        ("agent B : Worker { on hi() { return 1 + } }", "run B.hi({})"),
        ("agent B : Worker { on hi { return 1 } }", "run B.hi({})"),
        ("agent B Worker { on hi() { return 1 } }", "team T { b: B } agent A : Worker { uses team T }"),
        ("agent B : Worker { on (args) { return 1 } }", "run B.hi({})"),
        ("team Crew { A }", "agent A : Worker { uses team Crew on go() { await send peers.event('x').any()({}) } }"),
        (
            "skill Sums { export function add(a) -> a }",
            "agent A : Worker { uses skill Sums on go() { return add(1) } }",
        ),
        ("prompt Rules 'Be brief.'", "agent A : Worker { on go() { playbook Rules } }"),
        ("import { add } from './sums.koi'", "agent A : Worker { on go() { return add(other) } }"),
        ("import './missing.koi'", "agent A : Clerk { uses skill Sums on go() { return add(other) } }"),
        ("agent A : Worker { uses team on go() { return peers } }", "run A.go({})"),
    ],
)
def test_what_a_broken_declaration_brings_is_not_missed(broken: str, rest: str) -> None:
    """What a declaration that could not be read names, and what a missing file may bring, is no second problem."""
    found = codes(f"{HEAD}{broken}\n\n{rest}\n")

    assert len(found) == 1
    assert is_syntax_error(found[0])


@pytest.mark.parametrize("rest", ["{{\n} }", "[1, 2].map(String)"])
def test_a_bracket_at_the_margin_stands_in_what_is_open(rest: str) -> None:
    """A line that begins with a bracket is no declaration, so a block without an end is the only problem."""
    assert codes(f"{HEAD}agent Ada : Worker {{ on go() {{\n{rest}\n") == ["E0131"]


def test_checks_work_beside_a_broken_declaration() -> None:
    """A syntax error switches no check off for what has nothing to do with it."""
    text = f"""{HEAD}
role Clerk {{ execute }}

agent Ada : Wroker {{
  on start(args) {{ const sum = 0  sum += 1  return args.a.lenght + nothing }}
}}

agent Bo : Clerk {{ uses skill Sums  on go() {{ return 1 }} }}

run Bo.gone({{}})
"""
    assert codes(text) == ["E0137", "E0201", "E0224", "E0221", "E0204", "E0207"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("path", CLEAN, ids=lambda path: path.stem)
def test_one_slip_gives_syntax_errors_only(path: Path, seed: int) -> None:
    """Whatever is put, doubled or left out somewhere in a good program, nothing else about it is criticised."""
    random, folder, name = Random(seed), path.parent, path.name
    text = path.read_text("utf-8")
    pieces = scan(text, Span(0, len(text))).pieces
    for _ in range(12):
        piece = random.choice(pieces)
        put = random.choice(["", f"{piece.text} {piece.text}", f"{random.choice(JUNK)} {piece.text}"])
        slipped = text[: piece.span.start] + put + text[piece.span.end :]
        found = check_program(name, _Changed(folder, name, slipped)).diagnostics

        assert len({is_syntax_error(item.code) for item in found}) <= 1, (slipped[piece.span.start :][:60], found)


def test_what_could_be_read_of_a_broken_program_is_analysed(tmp_path: Path) -> None:
    """Tools work on the rest of a file with errors, and on the files that it imports."""
    (tmp_path / "roles.koi").write_text("role Worker { can execute }\n")
    broken = f'import "./roles.koi"\nagent Bob : Worker {{ on go() {{ return 1 }} }}\n{BROKEN["code"]}\n'
    (tmp_path / "main.koi").write_text(broken)

    checked = check_program("main.koi", FolderFiles(tmp_path))

    assert checked.files == ()
    assert [file.table.names("agent") for file in checked.analysed] == [["Bob", "Ada"], []]
    assert list(checked.analysed[1].table.roles) == ["Worker"]


def handlers(text: str) -> dict[str, list[str]]:
    """The kinds of the steps of each handler of the agent `Lead`."""
    program, _ = parse(Source("test.koi", text))
    lead = next(node for node in program.declarations if isinstance(node, n.Agent) and node.name.name == "Lead")
    found = (item for item in lead.items if isinstance(item, n.Handler))
    return {handler.name.name: [type(step).__name__ for step in handler.body.statements] for handler in found}


@pytest.mark.parametrize("path", sorted(TYPING.glob("statement_*.koi")), ids=lambda path: path.stem)
def test_a_half_typed_step_keeps_what_stands_around_it(path: Path) -> None:
    """While a step is typed, the steps before it and all other handlers are there for tools to work with."""
    kept = handlers(path.read_text("utf-8"))

    assert list(kept) == ["start", "second", "third"]
    assert kept["start"][0] == "Variable"
    assert (kept["second"], kept["third"]) == (["Playbook"], ["Variable", "Return"])


@pytest.mark.parametrize("path", sorted(TYPING.glob("part_*.koi")), ids=lambda path: path.stem)
def test_a_half_typed_part_keeps_the_other_parts(path: Path) -> None:
    """While a part of an agent is typed, the others are there for tools to work with."""
    kept = handlers(path.read_text("utf-8"))

    assert kept.pop("hello", []) in ([], ["Variable"])
    assert {name: len(steps) for name, steps in kept.items()} == {"start": 2, "second": 1, "third": 2}


@pytest.mark.parametrize("path", sorted(TYPING.glob("top_*.koi")), ids=lambda path: path.stem)
def test_a_half_typed_declaration_keeps_the_others(path: Path) -> None:
    """While a declaration is typed, those before and behind it are there for tools to work with."""
    program, _ = parse(Source("test.koi", path.read_text("utf-8")))

    kept = {node.name.name for node in program.declarations if isinstance(node, n.Role | n.Agent | n.Team)}
    assert kept >= {"Worker", "Adder", "Crew", "Lead", "Last"}
