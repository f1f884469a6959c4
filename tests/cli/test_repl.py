"""`koi repl`: declarations and statements, entry by entry."""

from __future__ import annotations

from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from koi_lang.cli.repl.line_editor import NameCompleter
from koi_lang.diagnostics import CompileError
from koi_lang.program.interactive import InteractiveProgram
from tests.cli.screens import Shown
from tests.projects import Project

ECHO = (
    "role Talker { can talk }\nagent Echo : Talker { on chat(args: { message: string }) { return args.message + '!' } }"
)


def typed(project: Project, *entries: str) -> list[str]:
    """What is shown of entries, errors too, a line each."""
    told = project.koi("repl", "--quiet", stdin="".join(f"{entry}\n" for entry in entries))
    return [*told.stdout.splitlines(), *told.stderr.splitlines()]


def test_values_are_shown(project: Project) -> None:
    """Of expressions, as `console.log` shows texts within objects; statements without a value show nothing."""
    assert ["3", "'a'", "{ a: [ 1, 2 ] }"] == typed(project, "1 + 2", "'a'", "const o = { a: [1, 2] }", "o")


def test_entries_share_variables_with_closures(project: Project) -> None:
    """A closure of an earlier entry sees what later ones assign, and they see what it does."""
    entries = [
        "let n = 0",
        "const inc = () => ++n",
        "inc(); inc()",
        "n",
        "n += 10",
        "inc()",
        "function f() { return n }",
        "f()",
    ]

    assert ["2", "2", "13", "13"] == typed(project, *entries)


def test_numbers_stay_whole(project: Project) -> None:
    """What arithmetic leaves as a float is a whole number in the next entry, as it is in one program."""
    assert ["2", "[ 2 ]"] == typed(project, "let x = 4 / 2", "x", "[x]")


def test_an_entry_has_as_many_lines_as_it_needs(project: Project) -> None:
    """It goes on while a bracket or a text is open; what is open at the end is told."""
    entries = ["const sum = [1, 2]", "  .map(x => {", "    return x * 2", "  })", "sum"]

    assert ["[ 1, 2 ]"] == typed(project, *entries)[:1]
    assert ["[ 2, 4 ]"] == typed(project, "const sum = [1, 2].map(x => {", "  return x * 2", "})", "sum")


def test_state_of_agents_lasts(project: Project) -> None:
    """Agents live as long as the session; one that is declared again begins anew, and teams know the new one."""
    agent = "agent A : W { state { k = 0 } on go() { return ++this.state.k } }"
    entries = [
        "role W { can sing }",
        agent,
        "team T { a: A }",
        "await A.go()",
        "await send peers.event('go').any()({})",
    ]

    told = typed(project, *entries, agent.replace("++this", "10 + ++this"), "await send peers.event('go').any()({})")

    assert ["1", "2", "11", "declared again; all agents begin anew"] == told


def test_what_imports_bring_stays(project: Project) -> None:
    """Koi files, Python modules, prompts and types of earlier entries can be used in later ones."""
    project.write("echo.koi", ECHO)
    project.write("tools.py", "FACTOR = 3\n")
    entries = ['import "./echo.koi"', 'import tools from "./tools.py"', 'prompt Hi = "hello"', "type N = { n: int }"]
    later = "role W { can sing } agent A : W { on go(args: N): N { return { n: args.n * tools.FACTOR } } }"

    told = typed(project, *entries, later, "await A.go({ n: 2 })", "Hi", "await Echo.chat({ message: 'a' })")

    assert ["{ n: 6 }", "'hello'", "'a!'"] == told


def test_run_statements_are_carried_out(project: Project) -> None:
    """Right where they are typed."""
    assert ["5"] == typed(
        project, "role W { can sing } agent A : W { on go(args) { console.log(args.n) } }", "run A.go({ n: 5 })"
    )


def test_mistakes_are_shown_where_they_were_typed(project: Project) -> None:
    """Errors of checks and of running code have the line and the column of the entry, and nothing else ends."""
    told = typed(project, "let ok = 1", "const y = {\n  a: missing\n}", "\nthrow new Error('no')", "ok", "y")

    assert "1" == told[0]
    assert ["error: nothing here is called `missing` [E0221]", " --> <2.2>.koi:2:6"] == told[1:3]
    assert "error: no [E0500]" in told
    assert "error: nothing here is called `y` [E0221]" in told


def test_constants_stay_constants(project: Project) -> None:
    """Assigning to one is refused, declaring it again is not."""
    told = typed(project, "const x = 1", "x = 2", "x", "let x = 3", "x = 4; x")

    assert ["1", "4", "error: `x` is a constant"] == told[:3]


def test_types_are_told_without_computing(project: Project) -> None:
    """Signatures of agents, shapes of variables, kinds of expressions."""
    entries = [*ECHO.splitlines(), "const o = { a: 1, b: ['x'], c: [{ d: null }] }"]
    asked = [":type Echo", ":type Echo.chat", ":type o", ":type o.a > 1", ":type `${o}`", ":type Echo.nothing"]

    told = typed(project, *entries, *asked)

    assert ["agent Echo : Talker", "  on chat(message: string)", "Echo.chat(message: string)"] == told[:3]
    assert ["{ a: number, b: string[], c: { d: null }[] }", "boolean", "string"] == told[3:6]


def test_messages_go_to_agents(project: Project) -> None:
    """`@Agent text` is what `koi chat` would give it."""
    project.write("echo.koi", ECHO)

    assert ["hello!"] == typed(project, ":load echo.koi", "@Echo hello")[:1]


def test_questions_are_answered_by_the_next_line(project: Project) -> None:
    """As by a person at a terminal."""
    asked = "const said = await callAction('prompt_user', { question: 'Who?' })"

    assert ["'Ada'"] == typed(project, asked, "Ada", "said.answer")


def test_what_was_declared_again_is_there_once(project: Project) -> None:
    """Neither `:names` nor `:audit` tells of what is gone."""
    entries = [
        "role W { can sing }",
        "agent B : W { }",
        "agent B : W { }",
        "role W { can delegate }",
        ":names",
        ":audit",
    ]

    told = typed(project, *entries)

    assert "agents: B" == told[0]
    assert ["B : W { delegate }"] == [line for line in told if line.startswith("B : ")]


def test_declarations_are_shown_by_type(project: Project) -> None:
    """Types and skills as they were typed; a variable goes before an agent of its name, as in code."""
    entries = ["type Q = { a: number }", ":type Q", "role W { can sing }", "agent v : W { }", "const v = 2", ":type v"]

    assert ["type Q = { a: number }", "number"] == typed(project, *entries)


def test_an_operator_wants_more(project: Project) -> None:
    """A line that ends with one goes on in the next."""
    assert ["3"] == typed(project, "let s = 1 +", "2", "s")


def test_files_are_named_with_quotes_or_without(project: Project) -> None:
    """A path with blanks, too."""
    project.write("my echo.koi", ECHO)

    assert ["Echo.chat(message: string)"] * 2 == typed(
        project, ':load "my echo.koi"', ":type Echo.chat", ":load my echo.koi", ":type Echo.chat"
    )


def test_a_message_names_a_handler_where_there_are_several(project: Project) -> None:
    """`@Agent.event text`; an empty message is none."""
    project.write("echo.koi", ECHO)

    told = typed(project, ":load echo.koi", "@Echo.chat hi", "@Echo")

    assert ["hi!", "error: the message is empty"] == [line.strip("'") for line in told[:2]]


def test_commands_are_listed_and_guessed(project: Project) -> None:
    """`:help` names each; one that does not exist gets a suggestion; `:quit` ends before what follows."""
    told = typed(project, ":help", ":tpye", ":quit", "1")

    assert ":help   this list" == told[0]
    assert "1" not in told
    assert "  = help: Did you mean `:type`?" in told


def test_piped_entries_tell_failure_by_the_exit_code(project: Project) -> None:
    """As any command does, while all entries are carried out."""
    failed = project.koi("repl", stdin="nothing\n1\n")

    assert (1, "1\n") == (failed.returncode, failed.stdout)
    assert 0 == project.koi("repl", stdin="1\n").returncode


def test_an_entry_that_fails_changes_nothing(tmp_path: Path) -> None:
    """Neither declarations beside wrong statements count, nor a declaration that breaks others."""
    program = InteractiveProgram(tmp_path)
    program.enter("role W { can sing }\nagent A : W { on go() { return 1 } }\nteam T { a: A }")

    for wrong in ("role V { can sing }\nnothing()", "agent B : V { }", "agent A : Missing { }"):
        with pytest.raises(CompileError):
            program.enter(wrong)

    assert ["A"] == list(program.enter("agent A : W { on go() { return 2 } }").declared)


@pytest.mark.parametrize("text", ["}", "} } agent X : W {", "'", "`${", "/*", "{{{{", "import", "\0", "agent"])
def test_broken_entries_get_a_message(text: str, tmp_path: Path) -> None:
    """Never anything but errors of the compiler, with places inside of what was typed."""
    program = InteractiveProgram(tmp_path)
    with pytest.raises(CompileError) as raised:
        program.enter(text)

    sources = [(each.place.source.text, each.place.span.start) for each in raised.value.diagnostics]
    assert [] == [source for source, start in sources if source != text or not 0 <= start <= len(text)]


def test_keys_of_a_terminal(project: Project) -> None:
    """Several lines, Ctrl-C for an entry that computes, the end by Ctrl-D, and a history."""
    shown = Shown(project.folder, ["repl"], 80, 24)
    shown.until("Ctrl-D ends\n>")
    shown.child.send("[\r'many'\r]\r")
    shown.until("[ 'many' ]\n>")
    shown.child.send("console.log('on'); while (true) {}\r")
    shown.until("\non\n")
    shown.child.sendintr()
    shown.until("interrupted\n>")
    shown.child.send("40 + 2\r")
    shown.until("42\n>")
    shown.child.send("\x04")
    shown.end()

    assert 0 == shown.child.exitstatus
    assert "+40 + 2" in (project.folder / ".koi" / "repl-history").read_text("utf-8")


def test_names_are_completed(tmp_path: Path) -> None:
    """Names of the program, members of agents and values, commands; what stands there already is none."""
    program = InteractiveProgram(tmp_path)
    program.enter(ECHO)

    def completed(text: str) -> list[str]:
        document = Document(text)
        return [each.text for each in NameCompleter(program).get_completions(document, CompleteEvent())]

    assert ["Echo"] == completed("await Ech")
    assert ["chat"] == completed("Echo.ch")
    assert ["@Echo"] == completed("@")
    assert [":type"] == completed(":t")
    assert [] == completed("Nobody.x")
