"""`koi check --playbook`: what is understood of each sentence, and what is said where there is nothing to explain."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from koi_lang.compiler.rules.program import AnalysedProgram
from koi_lang.compiler.rules.prose.readings import playbook_of, playbooks_in, read_playbook
from koi_lang.program import build
from koi_lang.runtime.actions.lookup import all_actions
from koi_lang.system import resources
from tests.projects import Project

ROOT = resources.PACKAGE.parent
ACTIONS = tuple(kind.name for kind in all_actions())
PLAYBOOKS = sorted(
    path
    for folder in ("examples", "stdlib_skills")
    for path in (ROOT / folder).glob("*.koi")
    if re.search(r"^\s*playbook \"", path.read_text("utf-8"), re.MULTILINE)
)

SHOP = """
role Clerk { can delegate }
role Carrier { can execute }
agent Courier : Carrier { on deliver(args: { address: string }): { day: string } { return { day: "Monday" } } }
team Shop { courier: Courier }
agent Desk : Clerk {
  uses team Shop
  on sell(args: { item: string }) {
    playbook \"\"\"
      You are a clerk.
      Ask the customer for their address.
      Ask courier::deliver with { address: <address> }.
      Repeat 2 times: print "{{args.item}} comes on <day>".
      Store the address in the registry.
      Return { day: <day>, joke: <something funny> }
    \"\"\"
  }
}
run Desk.sell({ item: "tea" })
"""


@pytest.fixture
def shop(project: Project) -> Project:
    """A folder with the program."""
    project.write("shop.koi", SHOP)
    return project


def explain(project: Project, *words: str) -> list[dict[str, Any]]:
    """What the command prints as JSON."""
    found: list[dict[str, Any]] = json.loads(project.koi("check", "--playbook", *words, "--json").stdout)
    return found


def test_each_sentence_is_explained(shop: Project) -> None:
    """A sentence has its line and what the rehearsal does for it, with results of the sentences before it."""
    found = explain(shop, "shop.koi", "Desk.sell")

    assert [(each["line"], [action["intent"] for action in each["actions"]]) for each in found] == [
        (10, ["prompt_user"]),
        (11, ["courier::deliver"]),
        (12, ["print", "print"]),
        (13, []),
        (14, ["return"]),
    ]
    assert found[1]["actions"][0]["data"] == {"address": "⟨answer⟩"}
    assert found[2]["actions"][0]["message"] == "⟨args.item⟩ comes on ⟨deliver.day⟩"
    assert [each["needs_model"] for each in found] == [False, False, False, False, True]
    assert [each["refused"] for each in found] == [[], [], [], ["registry_set"], []]


def test_names_and_permissions_are_told(shop: Project) -> None:
    """Names lead to their declarations; permissions are had or lacking, and what is wrong is said at its sentence."""
    found = explain(shop, "shop.koi")

    assert [(each["name"], each["kind"], each["line"]) for each in found[1]["names"]] == [
        ("courier::deliver", "event", 3),
        ("courier", "member", 3),
    ]
    assert [each["name"] for each in found[2]["names"]] == ["args.item"]
    assert [each["permissions"] for each in found[1:4]] == [{"delegate": True}, {}, {"registry:write": False}]
    assert [warning["code"] for each in found for warning in each["warnings"]] == ["E0623"]


@pytest.mark.parametrize(
    ("name", "help"), [("Desk.sel", "did you mean `Desk.sell`?"), ("Courier.deliver", "Desk.sell")]
)
def test_what_is_no_playbook_is_told(shop: Project, name: str, help: str) -> None:
    """Code and unknown handlers have nothing to explain; known playbooks are named."""
    outcome = shop.koi("check", "--playbook", "shop.koi", name)

    assert (outcome.returncode, outcome.stdout) == (2, "")
    assert f"there is no playbook `{name}`" in outcome.stderr
    assert help in outcome.stderr


def test_a_broken_program_is_explained(shop: Project) -> None:
    """What could be read of a program with an error is explained all the same."""
    shop.write("shop.koi", SHOP.replace("run Desk", "agent {\nrun Desk"))

    assert len(explain(shop, "shop.koi", "Desk.sell")) == 5


@pytest.mark.sampled(7)
@pytest.mark.parametrize("path", PLAYBOOKS, ids=lambda path: path.stem)
def test_every_playbook_can_be_explained(path: Path) -> None:
    """Every sentence of the examples and of the standard library is read, and none has a warning."""
    checked = build.check(str(path))
    program = AnalysedProgram(checked.analysed)
    texts = [text for name in playbooks_in(program) for text in playbook_of(*name.split("."), program)]
    found = [each for text in texts for each in read_playbook(text, program, ACTIONS, checked.diagnostics)]

    assert found
    assert [warning.message for each in found for warning in each.warnings] == []


def test_an_answer_has_no_actions(project: Project) -> None:
    """What a playbook would do is asked of the model there, and takes no permission; a constant result is known."""
    told = 'Print \\"hello\\". Run the command \\"ls\\". Return { mood: \\"good\\" }.'
    for word in ("playbook", "answer"):
        handler = f'on go(args: Json) {{ {word} "{told}" }}'
        project.write(f"{word}.koi", f"role R {{ can rest }}\nagent A : R {{ {handler} }}")

    playbook, answer = (explain(project, f"{word}.koi") for word in ("playbook", "answer"))

    assert ["print", "return"] == [each["actions"][0]["intent"] for each in playbook if each["actions"]]
    assert [False, False, True] == [bool(each["actions"]) for each in answer]
    assert [True, True, False] == [each["needs_model"] for each in answer]
    assert [{}] * 3 == [each["permissions"] for each in answer]
