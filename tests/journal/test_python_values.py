"""What functions and objects of Python give comes back as it was, or is in doubt: no call is made twice unasked."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from koi_lang.errors import JournalError
from koi_lang.runtime.journal.entries import JournalEntry
from koi_lang.runtime.journal.history import History
from koi_lang.runtime.replay.doubts import Choice
from tests.journal.again import Recorder, Tape
from tests.playbook.playing import Player

MODULE = """
import datetime, decimal, sqlite3
def noted(log, name, value):
    with open(log, "a") as file:
        file.write(f"{name}\\n")
    return value
def pair(log): return noted(log, "pair", (1, [2, (3,)]))
def raw(log): return noted(log, "raw", b"\\xff\\x00text")
def day(log): return noted(log, "day", datetime.date(2026, 1, 2))
def some(log): return noted(log, "some", {3})
def table(log): return noted(log, "table", {1: "one", (2, 3): "two"})
def endless(log): return noted(log, "endless", float("inf"))
def price(log): return noted(log, "price", decimal.Decimal("1.10"))
async def later(log): return noted(log, "later", (1,))
def repeated(value): return repr(value)
def fill(log, items, table):
    items.append(noted(log, "fill", (1, 2)))
    table["n"] = len(items)
class Box:
    def __init__(self): self.items = []
    def add(self, n):
        self.items.append(n)
        return sum(self.items)
    async def add_later(self, n): return self.add(n)
    def leave(self, log): return noted(log, "leave", None)
def box(log): return noted(log, "box", Box())
def total(box): return sum(box.items)
def put(box, n): box.add(n)
def database(log): return sqlite3.connect(noted(log, "database", log + ".db"), isolation_level=None)
"""
ROLE = "role R { can execute }\n"
RESULTS = """
    console.log(py.repeated(py.pair(x.log)), py.repeated(py.raw(x.log)), py.repeated(py.day(x.log)))
    console.log(py.repeated(py.some(x.log)), py.repeated(py.table(x.log)), py.repeated(py.endless(x.log)))
    console.log(py.repeated(py.price(x.log)), py.repeated(await py.later(x.log)))
    const items = [], table = { a: 1 }, same = items
    py.fill(x.log, items, table)
    console.log(same.length, table.a, table.n, py.repeated(items))
    return 1
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """What functions of Python leave outside."""
    return tmp_path / "log"


def code(play: Player, body: str) -> Recorder:
    """The recorder of a program whose `Main.go` has some code, with the Python module above."""
    (play.folder / "py.py").write_text(MODULE)
    source = f'import py from "./py.py"\n{ROLE}agent Main : R {{ on go(x: Json) {{ {body} }} }}'
    return Recorder(play, source, services={"folder": play.folder})


def stopped(
    recorder: Recorder, cut: Sequence[JournalEntry], payload: Any, given: Mapping[tuple[str, ...], Choice]
) -> str:
    """What a run that goes on ends with when nobody decides."""
    with pytest.raises(JournalError) as error:
        recorder.again(cut, payload, given)
    return error.value.message


def is_call(tape_entry: Any, name: str) -> bool:
    """Whether an entry is the end of a function of the module."""
    return tape_entry.kind == "done" and tape_entry.data["intent"] == f"py.{name}"


def test_calls_with_any_result_are_made_once(play: Player, log: Path) -> None:
    """Cut anywhere, what had ended is not called again, and gives the same: results as well as changed arguments."""
    recorder, payload = code(play, RESULTS), {"log": str(log)}
    whole = recorder.run(payload)
    names = log.read_text().split()
    assert (9, "") == (len(names), whole.played.told)
    for n in range(2, len(whole.entries)):
        cut = whole.entries[:n]
        log.unlink(missing_ok=True)
        rest = recorder.again(cut, payload, {entry.path: "retry" for entry in cut if entry.kind == "begun"})
        ended = sum(is_call(entry, name) for entry in cut for name in names)

        assert whole.outcome == rest.outcome, cut[-1]
        assert names[ended:] == (log.read_text().split() if log.exists() else []), cut[-1]


# ---------------------------------------------------------------- globals of modules

STATE = """
import itertools
from collections import Counter
count, seen, told = 0, [], Counter()
ids = itertools.count(1)
large = list(range(600))
client = None
class Made:
    number = 0
def change(n):
    global count, client
    count += n
    seen.append({"n": n})
    told["all"] += 1
    Made.number += 1
    client = client or object()
    return n
def next_id(): return next(ids)
def enlarge(): large.append(1)
def all_of_it(): return (count, seen, dict(told), Made.number)
def refuse():
    global count
    count = -1
    raise ValueError("no")
"""


def test_globals_that_another_module_assigns(play: Player) -> None:
    """A variable of a module beside it, which was imported before the call or by it, is as it was or in doubt."""
    (play.folder / "beside.py").write_text("number = 0\n")
    (play.folder / "other.py").write_text(
        "def count():\n    import beside\n    beside.number += 1\n    return beside.number\n"
    )
    body = "other.count(); console.log(other.count())"
    source = f'import other from "./other.py"\n{ROLE}agent Main : R {{ on go(x: Json) {{ {body} }} }}'
    recorder = Recorder(play, source, services={"folder": play.folder})
    whole = recorder.run({})
    cut = cut_behind(whole, "other.count")
    sys.modules["beside"].__dict__["number"] = 0
    rest = recorder.again(cut, {})
    sys.modules.pop("beside")

    assert (["2"], ["2"]) == (whole.printed, rest.printed)
    assert "(`other.count`)" in stopped(recorder, cut, {}, {})


def stateful(play: Player, body: str) -> Recorder:
    """The recorder of a program whose Python module has a state of its own, which is new in each run."""
    (play.folder / "st.py").write_text(STATE)
    source = f'import st from "./st.py"\n{ROLE}agent Main : R {{ on go(x: Json) {{ {body} }} }}'

    def anew() -> tuple[()]:
        module = sys.modules.get(f"koi_python:{play.folder / 'st.py'}")
        if module is not None:
            exec(STATE, vars(module))
        return ()

    return Recorder(play, source, anew, services={"folder": play.folder})


def test_globals_of_modules_are_as_they_were(play: Player) -> None:
    """Cut anywhere, variables that calls had assigned or changed have their content again."""
    body = """
        console.log(st.change(2), st.count, st.change(5), st.seen.length)
        try { st.refuse() } catch (e) { console.log(e.message, st.count) }
        console.log(st.change(1), st.count, st.all_of_it())
    """
    recorder = stateful(play, body)
    whole = recorder.run({})
    told = "1 0 [ 0, [ { n: 2 }, { n: 5 }, { n: 1 } ], { all: 3 }, 3 ]"
    assert (["2 2 5 2", "no -1", told], "") == (whole.printed, whole.played.told)
    for n in range(2, len(whole.entries)):
        cut = whole.entries[:n]
        rest = recorder.again(cut, {}, {entry.path: "retry" for entry in cut if entry.kind == "begun"})

        assert whole.outcome == rest.outcome, cut[-1]


@pytest.mark.parametrize(
    ("name", "then"),
    [("next_id", "st.next_id()"), ("enlarge", "st.enlarge()"), ("enlarge", "st.large.length"), ("next_id", "st.count")],
)
def test_globals_that_cannot_be_kept_are_in_doubt(play: Player, name: str, then: str) -> None:
    """A call that changed what is too large, or has no form, is lost; nothing is used before somebody says so."""
    recorder = stateful(play, f"st.{name}(); console.log({then})")
    whole = recorder.run({})
    cut = cut_behind(whole, f"st.{name}")
    told = stopped(recorder, cut, {}, {})
    again = recorder.again(cut, {}, dict.fromkeys(paths(whole), "retry"))

    assert f"are known and are not made again (`st.{name}`)" in told
    assert whole.printed == list(again.played.printed), again.played.told


# ---------------------------------------------------------------- objects


def cut_behind(whole: Tape, name: str, nth: int = 1) -> tuple[JournalEntry, ...]:
    """The entries up to the end of the n-th call of a name."""
    ends = [entry.n for entry in whole.entries if entry.kind == "done" and entry.data["intent"] == name]
    return whole.entries[: ends[nth - 1]]


USES = {
    "a call": ("console.log(box.add(3))", "box.add(2)", "5"),
    "an attribute": ("console.log(box.items.length)", "box.add(2)", "1"),
    "an argument": ("console.log(py.total(box))", "box.add(2)", "2"),
    "an argument inside": ("console.log(py.total([box][0]))", "py.put(box, 2)", "2"),
    "what waits": ("console.log(await box.add_later(3))", "await box.add_later(2)", "5"),
}


@pytest.mark.parametrize("use", USES)
def test_the_state_of_an_object_is_in_doubt(play: Player, log: Path, use: str) -> None:
    """An object that lacks calls is used no more before somebody says so; made again, it has the state it had."""
    (then, before, expected), payload = USES[use], {"log": str(log)}
    recorder = code(play, f"const box = py.box(x.log); {before}; {then}")
    whole = recorder.run(payload)
    call = before.removeprefix("await ").partition("(")[0].replace("box.", "Box.")
    cut = cut_behind(whole, call)
    made = {entry.path: "retry" for entry in cut if entry.data.get("intent") == "py.box"}
    told = stopped(recorder, cut, payload, made)
    again = recorder.again(cut, payload, dict.fromkeys(paths(whole), "retry"))

    assert ([expected], "") == (whole.printed, whole.played.told)
    assert f"state is lost: calls that changed it are known and are not made again (`{call}`)" in told
    assert [expected] == list(again.played.printed), again.played.told


def paths(tape: Tape) -> list[tuple[str, ...]]:
    """Where anything happened in a run."""
    return [entry.path for entry in tape.entries]


def test_an_object_is_made_again_only_when_somebody_says_so(play: Player, log: Path) -> None:
    """A function whose object cannot be kept is in doubt: done again, left out, or with a result that is given."""
    recorder, payload = code(play, "const box = py.box(x.log); console.log(1); return 2"), {"log": str(log)}
    whole = recorder.run(payload)
    cut = whole.entries[: next(entry.n for entry in whole.entries if entry.kind == "printed")]
    path = next(entry.path for entry in cut if entry.kind == "done")
    told = stopped(recorder, cut, payload, {})
    skipped, again = (recorder.again(cut, payload, {path: choice}).played for choice in ("skip", "retry"))

    assert "`py.box` had ended, and what it gave cannot be kept in a journal (`Box`)" in told
    assert "it was not done again" in skipped.told
    assert (2, "") == (again.result, again.told)
    assert ["box", "box"] == log.read_text().split()


DATABASE = """
    const db = py.database(x.log)
    db.execute("create table if not exists t (n)")
    db.execute("insert into t values (1)")
    console.log("inserted")
    return 1
"""


def test_methods_of_builtin_classes_are_called_once(play: Player, log: Path) -> None:
    """A row that was inserted is not inserted again, unless somebody says so."""
    recorder, payload = code(play, DATABASE), {"log": str(log)}
    whole = recorder.run(payload)
    cut = cut_behind(whole, "Connection.execute", 2)
    made = {entry.path: "retry" for entry in cut if entry.data.get("intent") == "py.database"}
    told = stopped(recorder, cut, payload, made)
    again = recorder.again(cut, payload, dict.fromkeys(paths(whole), "retry")).played

    assert ("", True) == (whole.played.told, told.startswith("`Connection.execute` had ended"))
    assert (1, ["inserted"]) == (again.result, list(again.printed))


def test_values_that_hold_themselves_are_passed_on(play: Player, log: Path) -> None:
    """A list in itself is no reason to fail, and what a function makes of it is kept."""
    recorder = code(play, "const list = [1]; list.push(list); return py.repeated(list)")
    whole = recorder.run({"log": str(log)})
    again = recorder.again(whole.entries[:-1], {"log": str(log)})

    assert "[1, [...]]" == whole.played.result == again.played.result


def test_a_replay_calls_only_what_gives_objects(play: Player, log: Path) -> None:
    """What a journal cannot hold is made again, so that the program goes on; everything else is recalled."""
    recorder, payload = code(play, "const box = py.box(x.log); py.pair(x.log); return box.add(2)"), {"log": str(log)}
    whole = recorder.run(payload)
    again = recorder.over(History(whole.entries, "replay"), payload)

    assert (2, 2) == (whole.played.result, again.played.result)
    assert ["box", "pair", "box"] == log.read_text().split()
