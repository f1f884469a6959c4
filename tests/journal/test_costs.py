"""What runs of a folder cost, by day, model, program, agent and user: nothing is missing, and nothing counts twice."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from koi_lang.cli.tables.export import csv_of
from koi_lang.events import Event, ModelAnswered
from koi_lang.runtime.journal.cost_tables import GROUPINGS, CostTable, tabulate_costs
from koi_lang.runtime.journal.run_costs import RunCosts, open_costs, read_costs
from koi_lang.runtime.journal.store import path_of
from koi_lang.runtime.journal.summary import summarise
from koi_lang.runtime.journal.writer import Writer
from tests.journal.commands import Commands
from tests.journal.conftest import HEADER
from tests.journal.test_branches import ANSWERS, PROGRAM, entry
from tests.journal.test_summaries import bytes_read, entries, written

DAY_S = 86_400.0
NOON = time.mktime((2026, 11, 24, 12, 0, 0, 0, 0, -1))


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A folder with two runs on two days: of two programs, three agents and two models, one of them without a price."""
    write(tmp_path, "aaaa", "a.koi", ("Ada", "openai/one", 0.25, NOON), ("Bob", "local/two", None, NOON))
    write(tmp_path, "bbbb", "sub/b.koi", ("Ada", "openai/one", 0.5, NOON), ("Cy", "openai/one", 1.0, NOON + DAY_S))
    return tmp_path


def write(folder: Path, run: str, program: str, *answers: tuple[str, str, float | None, float]) -> None:
    """A journal with answers of models: agent, model, price and second of each."""
    header = replace(HEADER, run=run, program=str(folder / program))
    writer = Writer(path_of(folder, run), header, str, print)
    for n, (agent, model, usd, ts) in enumerate(answers, 1):
        answer = ModelAnswered(model, {"input": 10, "output": 3, "cached": 4}, usd)
        writer(Event(n, ts, run, agent, answer, (f"{agent}.go#1", f"model#{n}")))
    writer.close()


def table(folder: Path, by: Any, **more: Any) -> CostTable:
    """The costs of a folder in groups."""
    return tabulate_costs(found(folder), by, **more)


def found(folder: Path) -> Iterator[RunCosts]:
    """What was paid for the runs of a folder."""
    return (costs for costs in open_costs(folder).look().values() if isinstance(costs, RunCosts))


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("day", {"2026-11-24": (2, 3, 39, 0.75, True), "2026-11-25": (1, 1, 13, 1.0, False)}),
        ("model", {"openai/one": (2, 3, 39, 1.75, False), "local/two": (1, 1, 13, 0.0, True)}),
        ("program", {"sub/b.koi": (1, 2, 26, 1.5, False), "a.koi": (1, 2, 26, 0.25, True)}),
        ("agent", {"Cy": (1, 1, 13, 1.0, False), "Ada": (2, 2, 26, 0.75, False), "Bob": (1, 1, 13, 0.0, True)}),
        ("user", {"eve": (1, 2, 26, 1.5, False), "": (1, 2, 26, 0.25, True)}),
    ],
)
def test_costs_are_told_apart(runs: Path, by: Any, expected: dict[str, Any]) -> None:
    """Each group has its runs, requests, tokens and money; days stand in their order, others with the dearest first."""
    groups = {
        group.name: (group.runs, group.usage.requests, group.usage.tokens, group.usage.usd, group.usage.unpriced)
        for group in table(runs, by, owners={"bbbb": "eve"}).groups
    }

    assert expected == groups
    assert [*expected] == [*groups]


def test_what_was_paid_earlier_is_left_out(runs: Path) -> None:
    """Only what was paid since a second counts, also of a run that had begun before it."""
    late = table(runs, "agent", since=NOON + 1)

    assert [("Cy", 1, 1.0)] == [(group.name, group.runs, group.usage.usd) for group in late.groups]
    assert () == late.unpriced


def test_an_unknown_price_is_no_zero(runs: Path) -> None:
    """Money of which nothing is known is null, of which a part is known is marked, and the model is named."""
    data = table(runs, "model").as_data()

    assert [(1.75, False), (None, True)] == [(group["usd"], group["unpriced"]) for group in data["groups"]]
    assert (1.75, True) == (data["total"]["usd"], data["total"]["unpriced"])
    assert ["local/two"] == data["unpriced_models"]


@settings(max_examples=40, deadline=None)
@given(some.lists(some.lists(entries(), min_size=1, max_size=60), min_size=1, max_size=3))
def test_every_table_has_the_same_total(parts: list[list[tuple[str, dict[str, Any], bool]]]) -> None:
    """All groups together are what `koi runs list` says, also of runs that were killed, resumed, or are branches."""
    with TemporaryDirectory() as folder:
        path = path_of(Path(folder), HEADER.run)
        path.parent.mkdir(parents=True)
        written(path, parts)
        expected = summarise(path).totals

        for by in GROUPINGS:
            total = table(Path(folder), by).total.usage
            assert (expected.requests, expected.tokens) == (total.requests, total.tokens)
            assert expected.usd == pytest.approx(total.usd)
            assert expected.unpriced == total.unpriced


def test_what_was_read_is_not_read_again(runs: Path) -> None:
    """A second look reads nothing of what has not changed, and only the new lines of what has grown."""
    write(runs, "cccc", "a.koi", *[("Ada", "openai/" + "x" * 20_000, 0.25, NOON)] * 20)
    costs = open_costs(runs)
    costs.look()
    before = bytes_read()
    costs.look()
    unchanged = bytes_read() - before
    with path_of(runs, "cccc").open("ab") as file:
        file.write(path_of(runs, "aaaa").read_bytes().splitlines(keepends=True)[1])  # of another run: does not count
        file.write(b'{"n":21,"ts":5.0,"kind":"model_answered","path":[],"agent":"Z","model":"m","usd":1}\n{"n":22')
    before = bytes_read()
    grown = costs.look()["cccc"]

    assert isinstance(grown, RunCosts)
    assert (21, "Z") == (len(grown.payments), grown.payments[-1].agent)
    assert unchanged < 5_000
    assert bytes_read() - before < 5_000


def test_a_file_in_the_place_of_another_is_read_anew(runs: Path) -> None:
    """Where a journal was replaced or cut, nothing of what stood there before counts."""
    path = path_of(runs, "bbbb")
    before = read_costs(path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2]))

    assert [2, 1] == [len(before.payments), len(read_costs(path, before).payments)]


def test_a_branch_does_not_count_what_it_took_over(koi: Commands) -> None:
    """The requests of a run and of its branch are those that were sent, each at the run that sent it."""
    koi.record(PROGRAM, ANSWERS, "--allow", "shell", stdin="Ada\n")
    before = json.loads(koi("runs", "costs", "--json").out)["total"]
    koi("resume", "last", "--at", entry(koi, "done", "prompt_user#1"), "--answer", "Eve")
    after = json.loads(koi("runs", "costs", "--by", "agent", "--json").out)
    listed = json.loads(koi("runs", "list", "--json").out)

    assert (1, 8, 2) == (before["runs"], before["requests"], len(listed))
    assert [8, 2] == [run["requests"] for run in listed]
    assert (2, 10) == (after["total"]["runs"], after["total"]["requests"])


def test_costs_at_a_terminal(runs: Path, koi: Commands) -> None:
    """The table has a line for each group and a total; journals that cannot be read and prices are told on stderr."""
    runs.joinpath(".koi").rename(koi.folder / ".koi")
    path_of(koi.folder, "dddd").write_bytes(b"nothing\n")
    done = koi("runs", "costs", "--by", "model")

    assert [
        "model       runs  requests  tokens  cost",
        "openai/one  2     3         39      $1.7500",
        "local/two   1     1         13      unknown",
        "total       2     4         52      $1.7500 or more",
    ] == done.out.splitlines()
    assert [
        "warning: `dddd.jsonl` does not begin as a journal does",
        "warning: the prices of these models are not known: `local/two`",
    ] == done.err.splitlines()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("runs", "costs"), 0, "no model was asked in this folder\n"),
        (("runs", "costs", "--from", "7d"), 0, "no model was asked in that time\n"),
        (("runs", "costs", "--from", "7"), 2, "error: `--from 7` has no unit\n  = help: Write `--from 7d` for"),
        (("runs", "costs", "--from", "soon"), 2, "error: `--from soon` is no time\n"),
        (("runs", "export", "runs", "-o", "known"), 2, "error: `known` exists\n"),
        (
            ("runs", "export", "runs", "-o", "no/where"),
            2,
            "error: `no/where` cannot be written: no such file or directory\n",
        ),
    ],
)
def test_words_that_are_not_understood(koi: Commands, words: tuple[str, ...], code: int, message: str) -> None:
    """Each mistake has a sentence, and an empty folder is none."""
    koi.project.write("known", "")
    done = koi(*words)

    assert (code, "") == (done.code, done.out)
    assert done.err.startswith(message)


def test_exported_tables(runs: Path, koi: Commands) -> None:
    """Both formats hold the same records, one for each run, or for each day, run, agent and model."""
    runs.joinpath(".koi").rename(koi.folder / ".koi")
    for what, count in (("runs", 2), ("costs", 4)):
        records = json.loads(koi("runs", "export", what).out)
        koi("runs", "export", what, "--format", "csv", "-o", f"{what}.csv")
        text = (koi.folder / f"{what}.csv").read_bytes().decode()
        rows = list(csv.DictReader(io.StringIO(text, newline="")))

        assert count == len(records) == len(rows) == text.count("\r\n") - 1
        assert [[*record] for record in records] == [[*row] for row in rows]
        assert [[cell(value) for value in record.values()] for record in records] == [[*row.values()] for row in rows]


def cell(value: Any) -> str:
    """A value of JSON as a cell of CSV."""
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", " =1", "\r=1", "=cmd|' /C calc'!A0", "＝1"])
def test_a_cell_is_no_formula(text: str) -> None:
    """What a spreadsheet would calculate gets an apostrophe; numbers are none of that."""
    rows = list(csv.reader(io.StringIO(csv_of(("a", "b"), [{"a": text, "b": -1.5}]), newline="")))

    assert [["a", "b"], [f"'{text}", "-1.5"]] == rows


@given(some.lists(some.text(), min_size=1, max_size=4))
def test_a_cell_is_what_it_was(texts: list[str]) -> None:
    """Whatever a text holds (quotes, commas, line breaks), a reader of CSV gets it back, but for the apostrophe."""
    columns = [str(n) for n in range(len(texts))]
    (_, row) = csv.reader(io.StringIO(csv_of(columns, [dict(zip(columns, texts, strict=True))]), newline=""))

    assert texts == [
        given[given.startswith("'") and not text.startswith("'") :] for given, text in zip(row, texts, strict=True)
    ]
