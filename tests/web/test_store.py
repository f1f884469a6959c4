"""What pages show of a run is what its journal tells: the reducer in Node, against what Python makes of the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from koi_lang.runtime.journal.reader import read
from koi_lang.runtime.journal.summary import summarise
from koi_lang.service.host import SessionHost
from koi_lang.web.run_data import header_data
from tests.journal.commands import Commands
from tests.service.hosting import begin, called, data, play, until_told

SUMMARY = """
import { reduce, summaryOf } from "STATIC/store.js";
import { readFileSync } from "node:fs";
const found = process.argv.slice(1).map((path) => {
  const [header, ...entries] = JSON.parse(readFileSync(path, "utf8"));
  return summaryOf(reduce(header, entries));
});
console.log(JSON.stringify(found));
"""
STATE = """
import { addEntry, emptyState, placesOf, reduce, requestOf, agentState } from "STATIC/store.js";
import { readFileSync } from "node:fs";
const [header, ...entries] = JSON.parse(readFileSync(process.argv[1], "utf8"));
const whole = reduce(header, entries);
const pieces = emptyState(header);
for (const entry of [...entries.slice(0, 9), ...entries.slice(3)]) addEntry(pieces, entry);
const flat = (state) => JSON.stringify(state, (_, value) => (value instanceof Map ? [...value] : value));
const asked = entries.filter((entry) => entry.kind === "model_asked");
console.log(JSON.stringify({
  same: flat(whole) === flat(pieces),
  title: whole.title,
  nodes: whole.nodes.map(({ kind, status, title, agent, row }) => ({ kind, status, title, agent, row })),
  lanes: [...whole.lanes.values()].map(({ agent, rows }) => [agent, rows]),
  places: placesOf(whole).map(({ n, canAnswer }) => [n, canAnswer]),
  request: requestOf(entries, asked[asked.length - 1].n),
  state: agentState(whole, "Editor", whole.last),
  handlers: [...whole.handlers.values()].map(({ name, calls, requests }) => [name, calls, requests]),
}));
"""
ENDS = """
import { reduce } from "STATIC/store.js";
import { readFileSync } from "node:fs";
const [header, ...entries] = JSON.parse(readFileSync(process.argv[1], "utf8"));
const state = reduce(header, entries);
const handlers = state.nodes.filter((node) => node.kind === "handler");
const next = (node) => entries.find((entry) => entry.kind === "call_ended" && entry.n > node.n).ts - state.started;
console.log(JSON.stringify(handlers.map((node) => [node.status, node.t1 <= next(node)])));
"""
MANY = """
role Boss { can delegate, can execute }
role Hand { can execute }
team Crew { hand: Worker }
agent Worker : Hand { on work(args: { n: number }) {
  await new Promise(done => setTimeout(done, 20)); if (args.n == 3) { throw new Error("broken") } return args.n } }
agent Lead : Boss { uses team Crew on start() { playbook "Have all of it done at once." } }
run Lead.start()
"""
CALLS = """
role Worker { can execute }
agent Main : Worker {
  on wait() { await new Promise(done => setTimeout(done, 60000)) }
  on fail() { throw new Error("broken") }
}
"""
PARALLEL = [
    {"parallel": [{"actionType": "delegate", "intent": "hand::work", "data": {"n": n}} for n in range(5)]},
    {"intent": "return"},
]


def written(folder: Path, journal: Path) -> Path:
    """A journal as pages are given it."""
    entries = [entry.as_data() for entry in read(journal).entries]
    target = folder / f"{journal.stem}.json"
    target.write_text(json.dumps([header_data(journal), *entries]))
    return target


def summary_of(journal: Path) -> dict[str, Any]:
    """What Python makes of a journal."""
    found = summarise(journal)
    return {"state": found.state, "seconds": found.seconds, **found.totals.as_data()}


@pytest.fixture
def journals(koi: Commands) -> list[Path]:
    """Runs that ended well, failed, were cut off, went on, and branched."""
    koi.record(MANY, PARALLEL)
    koi.record('role R { can execute } agent A : R { on go() { throw new Error("no") } } run A.go()')
    koi.record(
        'role R { can execute } agent A : R { on go() { playbook "Ask, print, and return." } } run A.go()',
        [
            {"id": "q", "intent": "prompt_user", "question": "Title?"},
            {"intent": "print", "message": "x"},
            {"intent": "return"},
        ],
        stdin="Tea\n",
    )
    model = next(entry.n for entry in koi.entries() if entry.kind == "model_answered")
    assert koi("resume", "last", "--at", str(model)).code == 0
    koi.record(
        'role R { can execute } agent A : R { on go() { playbook "Return." } } run A.go()', [{"intent": "return"}]
    )
    koi.cut_behind("model_answered")
    return koi.journals()


def test_the_reducer_counts_as_python_does(
    koi: Commands, journals: list[Path], tmp_path: Path, node: Callable[..., Any]
) -> None:
    """State, time, requests, tokens and costs of a run are the same on the page and in `koi runs list`."""
    cut = koi.journal
    assert koi("resume", cut.stem).code == 0
    paths = [*journals, *koi.journals()]
    found = node(SUMMARY, *(str(written(tmp_path, path)) for path in paths))
    expected = [summary_of(path) for path in paths]

    assert {"ok", "failed"} <= {each["state"] for each in expected}
    for known, shown in zip(expected, found, strict=True):
        assert known == pytest.approx(shown)


def test_a_session_is_on_the_page_as_in_lists(tmp_path: Path, node: Callable[..., Any]) -> None:
    """It fails with its last call, its sleep takes no time, and a call that was cancelled ends there."""
    (tmp_path / "a.koi").write_text(CALLS)

    async def scenario(host: SessionHost) -> str:
        session = await begin(host, "Main.wait")
        await until_told(session, lambda told: b'"handler_started"' in told)
        await data(session, "abort")
        await called(session, "Main.fail")
        await session.sleep()
        await session.wake()
        return session.id

    journal = tmp_path / ".koi" / "runs" / f"{play(tmp_path, scenario, 'a.koi')}.jsonl"
    (found,) = node(SUMMARY, str(written(tmp_path, journal)))
    nodes = node(ENDS, str(tmp_path / f"{journal.stem}.json"))

    assert "failed" == found["state"]
    assert summary_of(journal) == pytest.approx(found)
    assert [["cut", True], ["failed", True]] == nodes


def test_an_interrupted_run_is_interrupted_on_the_page(
    koi: Commands, journals: list[Path], tmp_path: Path, node: Callable[..., Any]
) -> None:
    """A run that was cut off has no end, and what it was about is under way."""
    (found,) = node(SUMMARY, str(written(tmp_path, koi.journal)))

    assert ("interrupted", summary_of(koi.journal)["state"]) == (found["state"], "interrupted")


def test_the_same_entries_give_the_same_state(desk: Path, tmp_path: Path, node: Callable[..., Any]) -> None:
    """However the entries are cut into pieces, and if some come twice, the page shows the same."""
    found = node(STATE, str(written(tmp_path, desk)))
    actions = [each for each in found["nodes"] if each["kind"] == "action"]

    assert found["same"]
    assert ["counter::count", "prompt_user", "update_state", "return"] == [each["title"] for each in actions]
    assert {"last": "tea"} == found["state"]
    assert {"ok"} == {each["status"] for each in found["nodes"]}
    assert [["Editor.start", 1, 3], ["Counter.count", 1, 0]] == found["handlers"]


def test_what_a_model_was_told_is_put_together(desk: Path, tmp_path: Path, node: Callable[..., Any]) -> None:
    """A request is told by what is new in it; the page shows all of it, and what of it is new."""
    request = node(STATE, str(written(tmp_path, desk)))["request"]

    assert request["system"].startswith("You are the agent `Editor`.")
    assert not request["isNewSystem"]
    assert [False, False, False, False, True, True] == [message["isNew"] for message in request["messages"]]
    assert "uuauau" == "".join(message["role"][0] for message in request["messages"])
    assert '"words":4' in request["messages"][3]["text"]


def test_places_are_those_of_the_tree(koi: Commands, desk: Path, tmp_path: Path, node: Callable[..., Any]) -> None:
    """The page offers the entries that `koi runs tree` shows, and says where another answer can be given."""
    lines = koi("runs", "tree", desk.stem).out.splitlines()[1:]
    places = node(STATE, str(written(tmp_path, desk)))["places"]
    kinds = {entry.n: entry for entry in koi.entries(desk)}

    assert [int(line.split()[0]) for line in lines] == [n for n, _ in places]
    answered = {n for n, can_answer in places if can_answer}
    assert {"model_answered", "done"} == {kinds[n].kind for n in answered}
    assert {"prompt_user"} == {kinds[n].data["intent"] for n in answered if kinds[n].kind == "done"}


def test_what_goes_on_at_a_time_has_rows_of_its_own(
    journals: list[Path], tmp_path: Path, node: Callable[..., Any]
) -> None:
    """Five calls at once stand under each other, and the one that failed is told apart."""
    found = node(STATE, str(written(tmp_path, journals[0])))
    calls = [each for each in found["nodes"] if each["title"] == "Worker.work"]

    assert [["Lead", 5], ["Worker", 5]] == [lane for lane in found["lanes"] if lane[0]]
    assert set(range(5)) == {each["row"] for each in calls}
    assert ["ok", "ok", "ok", "failed", "ok"] == [each["status"] for each in calls]


def test_idle_hours_are_folded(node: Callable[..., Any]) -> None:
    """A stretch of hours takes little room; times before and behind it keep theirs, and places lead back to times."""
    script = """
        import { foldIdle } from "STATIC/dev/lanes.js";
        const nodes = [{ t0: 0, t1: 10 }, { t0: 7210, t1: 7220 }];
        const { gaps, fold, unfold } = foldIdle({ nodes, seconds: 7220 });
        console.log(JSON.stringify([gaps.length, fold(10), fold(7220), unfold(fold(5)), unfold(fold(7215))]));
    """

    assert [1, 10, 21.6, 5, 7215] == [round(number, 6) for number in node(script)]


def test_a_run_that_ends_before_it_is_followed_is_not_at_work(node: Callable[..., Any]) -> None:
    """The first message of a stream tells the state, since what was listed may be over by then."""
    script = """
        import { openRun } from "STATIC/dev/run_store.js";
        const data = {
          run: async () => ({ header: {}, state: "working", hosted: true }),
          entries: async () => ({ entries: [], more: false }),
          follow: (id, since, take) => (take({ type: "rpc_ready", state: "idle" }), () => {}),
        };
        const run = openRun(data, "a");
        setImmediate(() => (console.log(JSON.stringify([run.isLoaded.value, run.status.value])), run.close()));
    """

    assert [True, "idle"] == node(script)


def test_a_problem_and_its_remedy_are_two_sentences(node: Callable[..., Any]) -> None:
    """A message has a full stop before what can be done, unless it ends a sentence already."""
    script = """
        import { Problem } from "STATIC/dev/ui.js";
        const words = (node) => [node.props.children].flat(9).map((each) => each?.props ? words(each) : each).join("");
        const told = [["it exists", "Choose."], ["It is away.", "Wait."], ["it exists", ""]];
        console.log(JSON.stringify(told.map(([message, help]) => words(Problem({ error: { message, help } })))));
    """

    assert ["it exists. Choose.", "It is away. Wait.", "it exists"] == node(script)
