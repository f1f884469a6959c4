"""State that agents share with a page over AG-UI."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.service.agui_runs import body_of, run, run_page
from tests.service.serving_process import ServiceProcess

PROGRAM = """
role Worker { can execute }
agent Cook : Worker {
  state { title: string = "Tea", steps: string[] = [], secret: number = 1, note: string = null }
  on chat(args: { message: string }) {
    this.state.steps = [...this.state.steps, args.message]
    return `${this.state.title} ${this.state.secret}`
  }
}
agent Writer : Worker {
  state { document: Json = {} }
  on chat(args: { message: string }) { playbook "Write: {{args.message}}." }
}
"""
SETTINGS = '[serve]\npage_state = ["Cook.title", "Cook.steps", "Cook.note", "Writer"]\n'
ANSWERS = {
    "Write": [
        {"batch": [
            {"intent": "update_state", "updates": {"document": {"text": "Once"}}},
            {"intent": "update_state", "updates": {"document": {"text": "Once upon"}}},
            {"intent": "return", "data": "done"},
        ]},
    ]
}  # fmt: skip


def serve(folder: Path) -> ServiceProcess:
    """A service with agents that have a state, some of which pages may set."""
    (folder / "koi.toml").write_text(SETTINGS)
    (folder / "answers.json").write_text(json.dumps(ANSWERS))
    (folder / "kitchen.koi").write_text(PROGRAM)
    process = ServiceProcess(folder, ("kitchen.koi", "--answers", "answers.json"))
    process.start()
    return process


@pytest.fixture(scope="module")
def kitchen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service that the tests of this file share, each with a thread of its own."""
    process = serve(tmp_path_factory.mktemp("state"))
    yield process
    process.end()


COOK = {"handler": "Cook.chat"}


def deltas_in(events: list[Any]) -> list[tuple[str, Any]]:
    """What the state is changed to, in order."""
    return [(each.path, each.value) for event in events if event.type == "STATE_DELTA" for each in event.delta]


def test_a_page_sets_fields_of_a_state(kitchen: ServiceProcess) -> None:
    """They are changed when the call begins, and told as every change is."""
    events = run(kitchen, "set", state={"Cook": {"title": "Cake", "note": None}}, forwardedProps=COOK)
    again = run(kitchen, "set", "more", state={"Cook": {"title": "Cake", "steps": ["hi"]}}, forwardedProps=COOK)

    assert events[-1].result == "Cake 1"
    assert deltas_in(events) == [("/Cook/title", "Cake"), ("/Cook/steps", ["hi"])]
    assert again[1].snapshot["Cook"] == {"title": "Cake", "steps": ["hi"], "note": None}
    assert deltas_in(again) == [("/Cook/steps", ["hi", "more"])]


def test_what_is_not_listed_stays(kitchen: ServiceProcess) -> None:
    """The settings say which fields are of the page; others are as the service has them."""
    sent = {"Cook": {"secret": 2, "title": "Pie"}, "theme": "dark"}
    events = run(kitchen, "listed", state=sent, forwardedProps=COOK)

    assert events[-1].result == "Pie 1"


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ({"Cook": {"title": 3}}, "the state of `Cook`: `title` must be a text"),
        ({"Cook": {"steps": ["a", 1]}}, "`steps[1]` must be a text"),
        ({"Writer": {"documents": {}}}, "the state of `Writer` has no field `documents`"),
    ],
)
def test_a_state_that_does_not_fit_is_refused(kitchen: ServiceProcess, state: Any, said: str) -> None:
    """Before anything is changed or called."""
    refused = kitchen.request("POST", "agui", body_of("unfit", state=state, forwardedProps=COOK))

    assert refused.status_code == 400
    assert said in refused.json()["message"]


def test_a_state_survives_the_end_of_the_service(tmp_path: Path) -> None:
    """It is recorded with the call, which a session that goes on makes again."""
    service = serve(tmp_path)
    run(service, "killed", state={"Cook": {"title": "Cake"}}, forwardedProps=COOK)
    service.end(9)
    service.start()
    again = run(service, "killed", "more", forwardedProps=COOK)
    service.end()

    assert again[1].snapshot["Cook"] == {"title": "Cake", "steps": ["hi"], "note": None}
    assert again[-1].result == "Cake 1"


def test_a_state_that_is_made_at_random_stays(tmp_path: Path) -> None:
    """To look at a state brings no agent to life, which would be another one when the session goes on."""
    service = serve(tmp_path)
    (tmp_path / "kitchen.koi").write_text(PROGRAM.replace("number = 1", "number = Math.random()"))
    (tmp_path / "koi.toml").write_text('[serve]\npage_state = ["Cook"]\n')
    service.end()
    service.start()
    made = run(service, "random", forwardedProps=COOK)[-1].result
    service.end(9)
    service.start()
    again = run(service, "random", "more", forwardedProps=COOK)
    service.end()

    assert again[-1].result == made
    assert again[1].snapshot["Cook"]["steps"] == ["hi"]


PAGE = """
import { HttpAgent } from "@ag-ui/client"
const [url, token] = process.argv.slice(2)
const agent = new HttpAgent({ url, headers: { Authorization: `Bearer ${token}` }, threadId: "page-1" })
const texts = []
const onStateChanged = ({ state }) => { if (state.Writer?.document) texts.push(state.Writer.document.text) }
agent.state = { Cook: { title: "Cake" } }
agent.messages = [{ id: "m1", role: "user", content: "bake" }]
await agent.runAgent({ forwardedProps: { handler: "Cook.chat" } })
const shared = agent.state
agent.messages.push({ id: "m2", role: "user", content: "a story" })
await agent.runAgent({ forwardedProps: { handler: "Writer.chat" } }, { onStateChanged })
console.log(JSON.stringify({ shared, texts }))
"""


@pytest.mark.needs("node", "npm")
def test_the_official_client_shares_a_state(kitchen: ServiceProcess) -> None:
    """`@ag-ui/client` sends its state, and has what agents change of it while they work."""
    page = run_page(PAGE, f"{kitchen.url}/agui", kitchen.token)

    assert page["shared"]["Cook"] == {"title": "Cake", "steps": ["bake"], "note": None}
    assert page["texts"][-2:] == ["Once", "Once upon"]
