"""The call graph: who calls whom, how often, and who decides it."""

from __future__ import annotations

import pytest

from koi_lang.compiler.calls.graph import CallGraph
from koi_lang.compiler.compile import check_program
from tests.support import TextFiles

PROGRAM = """
role Boss { can delegate }
role Quiet { can advise }
skill Words {
  affordance "Counts."
  export function count(text) { return parts(text).length }
  function parts(text) { return text.split(" ") }
}
agent Adder : Boss { private on add(args) { return args.a }  on sum(args) { return args.a } }
agent Helper : Quiet { on add(args) { return 1 } }
team Sums { adder: Adder, helper: Helper }
agent Thinker : Boss { uses team Sums  uses skill Words  on think() { playbook "Think." } }
agent Silent : Quiet { uses team Sums  on think() { playbook "Think." } }
agent Main : Boss {
  uses team Sums
  uses skill Words
  on go(args) {
    CODE
  }
}
run Main.go({})
"""
CALLS = {
    "await Adder.add({})": [("Adder.add", 1)],
    'await Adder.handle("sum", {})': [("Adder.sum", 1)],
    "await Adder.handle(args.event, {})": [("Adder.add Adder.sum", 1)],
    'await send peers.event("add").any()({})': [("Adder.add Helper.add", 1)],
    'await send peers.event("add").role(Quiet).all()({})': [("Helper.add", 1)],
    'await this.callSkill("Words", "count", "x")': [("Words.count", 1)],
    'count("a b")': [("Words.count", 1)],
    "for (const x of [1, 2, 3]) { for (let i = 1; i <= 2; i++) { count(x) } }": [("Words.count", 6)],
    "for (let i = 0; i < 3; i++) { i = 0; count(i) }": [("Words.count", None)],
    "for (const x of args.all) { count(x) }": [("Words.count", None)],
    "while (count(args.text) > 3) { args.text = 1 }": [("Words.count", None)],
    "args.all.map(count)": [("Words.count", None)],
    "args.all.map(x => count(x))": [("Words.count", None)],
    "setTimeout(Adder.add, 3)": [("Adder.add", None)],
    "const known = [Helper]": [("Helper.add", None)],
    "function local() { return count(1) }  local(); local()": [("local", 1), ("local", 1)],
    "const Adder = args.other; Adder.add({})": [],
    'const x = "Adder.add"; console.log(x)': [],
}


def graph(code: str = "") -> CallGraph:
    """The call graph of the program with some code in its last handler."""
    checked = check_program("main.koi", TextFiles({"main.koi": PROGRAM.replace("CODE", code)}))
    assert not checked.errors
    return CallGraph(checked.files)


@pytest.mark.parametrize("code", CALLS)
def test_calls_in_code(code: str) -> None:
    """Each call has those who may be meant, and how often it is made where that is written down."""
    known = graph(code)
    handler = known.handler("Main", "go")
    assert handler is not None

    found = [(" ".join(t.name for t in site.targets), site.often.times) for site in known.calls(handler).sites]

    assert CALLS[code] == found


def test_models_decide_about_delegates() -> None:
    """The model of a playbook may ask its members and functions as often as it likes, where its role permits it."""
    known = graph()
    thinking, silent = (known.handler(name, "think") for name in ("Thinker", "Silent"))
    assert thinking is not None
    assert silent is not None

    asked = [(site.targets[0].name, site.often.times, site.by_model) for site in known.calls(thinking).sites]

    assert [(name, None, True) for name in ("Adder.add", "Adder.sum", "Helper.add", "Words.count")] == asked
    assert () == known.calls(silent).sites


def test_runs_pass_on_what_they_call() -> None:
    """A call in what a `run` statement passes on is made, too, before the handler."""
    text = PROGRAM.replace("run Main.go({})", "run Main.go({ sum: await Adder.sum({}) })").replace("CODE", "")
    found = CallGraph(check_program("main.koi", TextFiles({"main.koi": text})).files).runs()

    assert ["Adder.sum", "Main.go"] == [site.targets[0].name for site in found]


def test_all_that_a_run_leads_to() -> None:
    """What is reachable is found through functions, too, each once."""
    known = graph("await Thinker.think()")
    (run,) = known.runs()

    names = [routine.name for routine in known.reachable(run.targets[0])]

    assert "Main.go Thinker.think Adder.add Adder.sum Helper.add Words.count parts".split() == names
