"""Completion: what may stand at the place that is marked in a program."""

from __future__ import annotations

from pathlib import Path

import pytest

from koi_lang.lsp.completer import Completer
from koi_lang.lsp.completion import complete
from koi_lang.lsp.cursor import cursor_at
from tests.lsp.programs import opened

PROGRAM = """import "./parts.koi"
role Lead { can delegate }
type Note = { text: string }
type Ticket = { note: Note, tags: string[] }
prompt Tone = "Be brief."
skill Sums { export function total(a: number): number { return a } }
agent Adder : Lead {
  on add(args: { left: number, right: number }): { sum: number } { return { sum: args.left + args.right } }
}
team Office { plus: Adder }
agent Boss : Lead {
  uses team Office
  state { count: number = 0 }
  on start(args: { name: string }) {
    playbook "Greet {{args.name}}."
  }
  on file(args: Ticket) {
    const first = args.note
    return first.text
  }
}
run Boss.start({ name: "Ada" })
"""


def offered(line: str, at: str) -> set[str]:
    """What is offered at the end of a line that is written behind some text of the program."""
    programs, snapshot = opened(Path("/nowhere/main.koi"), PROGRAM)
    place = PROGRAM.index(at) + len(at)
    text = PROGRAM[:place] + line + PROGRAM[place:]
    cursor = cursor_at(text, place + len(line))
    return {item.label for item in complete(Completer(snapshot, cursor, programs.files))}


AT_END = 'run Boss.start({ name: "Ada" })'
IN_FILE = "on file(args: Ticket) {\n"
IN_CODE = "on start(args: { name: string }) {\n"


@pytest.mark.parametrize(
    ("line", "at", "expected"),
    [
        ('await send peers.event("', IN_CODE, {"add"}),
        ('await send Office.event("a', IN_CODE, {"add"}),
        ("await Adder.", IN_CODE, {"add", "state", "callSkill"}),
        ("this.state.", IN_CODE, {"count"}),
        ("args.", IN_CODE, {"name"}),
        ('await callAction("', IN_CODE, {"print", "shell", "registry_set"}),
        ('await callAction("print", { ', IN_CODE, {"message"}),
        ("const r = await Adder.add({ left: 1, right: 2 })\n r.", IN_CODE, {"sum"}),
        ("Math.", IN_CODE, {"floor", "max"}),
        ("\n tot", IN_CODE, {"total", "Adder", "registry", "return"}),
        ('this.handle("', IN_CODE, {"start"}),
        ("playbook ", IN_CODE, {"Tone"}),
        ("\nrun Boss.start({ name: f() }) ", AT_END, {"every", "when"}),
        ('\nrun Boss.start({}) every "w', AT_END, {"weekdays", "mondays", "last"}),
        ('\nrun Boss.start() when "', AT_END, {"file", "hook"}),
        ('\nrun Boss.start({}) every "15m" { jitter: 3s, ', AT_END, {"name", "missed", "overlap", "jitter"}),
        ('\nrun Boss.start({}) every "15m" { missed: "', AT_END, {"once", "never"}),
        ('playbook """\n{"intent": "', IN_CODE, {"print", "add"}),
        ('playbook """\n{"intent": "print", "', IN_CODE, {"message"}),
        ('playbook """\n{{', IN_CODE, {"args.name", "state.count", "agentName"}),
        ('playbook """\n{{args.', IN_FILE, {"note", "tags"}),
        ('playbook """\n{{args.note.', IN_FILE, {"text"}),
        ("args.note.", IN_FILE, {"text"}),
        ("args.tags[0].", IN_FILE, {"toUpperCase"}),
        ("args.tags.", IN_FILE, {"map", "length"}),
        ("first.", "const first = args.note\n", {"text"}),
        ("first.text.", "const first = args.note\n", {"trim"}),
        ('playbook """\nAsk Adder::', IN_CODE, {"add"}),
        ('playbook """\nAsk plus::', IN_CODE, {"add"}),
        (", can ", "role Lead { can delegate", {"call_mcp", "execute"}),
        ("\nagent New : ", "team Office { plus: Adder }", {"Lead"}),
        ("  uses ", "agent Boss : Lead {\n", {"skill", "team", "mcp"}),
        ("  uses skill ", "agent Boss : Lead {\n", {"Sums"}),
        ("  o", "agent Boss : Lead {\n", {"on", "uses", "state"}),
        ("\nrun Boss.", "team Office { plus: Adder }", {"start"}),
        ("\nimport \"std/", "prompt Tone = \"Be brief.\"", {"std/files", "std/tasks"}),
        ("\n", 'prompt Tone = "Be brief."', {"agent", "role", "import"}),
        ("  on more(args: ", "agent Boss : Lead {\n", {"Json", "Note", "string"}),
    ],
)  # fmt: skip
def test_what_may_stand_there_is_offered(line: str, at: str, expected: set[str]) -> None:
    """At each kind of place the names that belong there are offered."""
    assert expected <= offered(line, at)


@pytest.mark.parametrize("line", ['await send peers.event("', "this.state.", 'await callAction("'])
def test_nothing_else_is_offered(line: str) -> None:
    """Where only some names can stand no other name is offered."""
    assert offered(line, IN_CODE).isdisjoint({"Adder", "Math"})
