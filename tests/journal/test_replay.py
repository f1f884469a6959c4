"""`koi replay`: a recorded run as a test, with no network and no key."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from dataclasses import replace
from typing import Any

import pytest

from koi_lang.runtime.journal.entries import line_of
from koi_lang.testing import recorded as repeating
from tests.cli.test_models import KEY
from tests.cli.test_models import koi as outcome_of
from tests.journal.commands import Commands, Done
from tests.llm.server import ModelServer
from tests.projects import Project

PROGRAM = '''
role R { can execute, can delegate }
team T { worker: Worker }
agent Worker : R { on double(x: { n: number }) { return x.n * 2 } }
agent Writer : R { on go(args: Json) { playbook """Say hi.""" } }
agent Main : R {
  uses team T
  on go(args: Json) {
    console.log("hello")
    console.log(await send peers.event("double").any()({ n: 4 }))
    await this.callAction("print", { message: "action" })
    return 1
  }
}
run Main.go({})
run Writer.go({})
'''
STEP = {"id": "s", "intent": "shell", "command": "echo hi >> effects; echo hi", "description": "say hi"}
ANSWERS = [
    {"batch": [STEP, {"intent": "print", "message": "said ${s.output.stdout}"}]},
    {"intent": "return", "data": {}},
]
PRINTED = "hello\n8\naction\nsaid hi\n\n"
SAME = "replayed: 3 actions, 2 model answers, nothing is different\n"


@pytest.fixture
def recorded(koi: Commands) -> Commands:
    """A run that ended well."""
    assert PRINTED == koi.record(PROGRAM, ANSWERS, "--allow", "shell").out
    return koi


def test_a_recorded_run_is_replayed(recorded: Commands) -> None:
    """The same program prints the same; nothing is done outside, and the journal stays as it is."""
    before = recorded.journal.read_bytes()
    done, quiet = recorded("replay", "last"), recorded("replay", "last", "--quiet")

    assert (0, PRINTED, SAME) == (done.code, done.out, done.err)
    assert (0, "", SAME) == (quiet.code, quiet.out, quiet.err)
    assert (["hi"], [before]) == (recorded.lines("effects"), [path.read_bytes() for path in recorded.journals()])


def changed(koi: Commands, before: str, after: str) -> Done:
    """The outcome of a replay after a change of the program."""
    assert before in PROGRAM
    koi.project.write("main.koi", PROGRAM.replace(before, after))
    return koi("replay", "last", "--quiet")


def test_another_print_is_a_difference(recorded: Commands) -> None:
    """The diff names the line of the handler and shows both sides."""
    done = changed(recorded, '"hello"', '"hullo"')

    expected = """\
        --- recorded
        +++ now
        @@ main.koi:7  Main.go#1 / printed#1
        - message: "hello"
        + message: "hullo"
        replayed: 3 actions, 2 model answers, 1 difference
        """
    assert (1, expected.replace(" " * 8, "")) == (done.code, done.err)


def test_a_damaged_recording_is_noted(recorded: Commands) -> None:
    """Whoever replays reads what is wrong with the recording; what it does not hold is a difference."""
    text = recorded.journal.read_bytes()
    recorded.journal.write_bytes(text.replace(b'"message":"hello"', b'"message":"hullo"'))
    done = recorded("replay", "last", "--quiet")

    assert 1 == done.code
    assert "note: line 4 was changed: it does not fit its checksum\n" in done.err


def test_other_code_is_a_difference(recorded: Commands) -> None:
    """What follows from another result is shown, too, each with its own line."""
    done = changed(recorded, "x.n * 2", "x.n * 3")

    expected = """\
        --- recorded
        +++ now
        @@ main.koi:3  Main.go#1 / Worker.double#1
        - result: 8
        + result: 12
        @@ main.koi:7  Main.go#1 / printed#2
        - message: "8"
        + message: "12"
        replayed: 3 actions, 2 model answers, 2 differences
        """
    assert (1, expected.replace(" " * 8, "")) == (done.code, done.err)


ACTION = '    await this.callAction("print", { message: "action" })\n'


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        (ACTION, "", '@@ main.koi:7  Main.go#1 / printed#3\n- message: "action"\nreplayed:'),
        (ACTION, ACTION * 2, '@@ main.koi:7  Main.go#1 / printed#4\n+ message: "action"\nreplayed:'),
        ("can execute, ", "can think, ", '+ error: "`shell` needs the permission `execute`, which the role `R` lacks"'),
        ("return 1", "return 2", "@@ main.koi:7  Main.go#1\n- result: 1\n+ result: 2\n"),
        ("n: 4", "n: 5", '@@ main.koi:3  Main.go#1 / Worker.double#1\n- args: {"n": 4}\n+ args: {"n": 5}\n'),
        ("run Main.go({})\n", "", "@@ main.koi:7  Main.go#1\n- args: {}\n"),
    ],
)
def test_every_change_of_what_is_done_is_a_difference(recorded: Commands, before: str, after: str, shown: str) -> None:
    """Actions removed or added, other permissions, results, inputs and runs: each is shown, and the exit code is 1."""
    done = changed(recorded, before, after)

    assert (1, True) == (done.code, shown in done.err), done.err
    assert ["hi"] == recorded.lines("effects")


def test_another_prompt_is_a_note(recorded: Commands) -> None:
    """A model that is told something else would answer something else; that alone is no difference."""
    done = changed(recorded, "Say hi.", "Say hi politely.")

    notes = "".join(f"note: a model is told something else than before, in Writer.go#1 / model#{n}\n" for n in (1, 2))
    assert (0, notes + SAME) == (done.code, done.err)


MODEL = PROGRAM.replace(
    "agent Writer : R {", 'agent Writer : R { llm default = { provider: "openai", model: "gpt-4o" }'
)


def test_no_network_and_no_key(project: Project) -> None:
    """A run whose model answered over the network is replayed without a request and without a key."""
    project.write("main.koi", MODEL)
    answers = [json.dumps(answer) for answer in ANSWERS]

    async def run() -> tuple[Any, Any, int]:
        async with ModelServer(answers) as server:
            at = {"OPENAI_BASE_URL": f"{server.url}/v1"}
            first = await outcome_of(project, "run", "--allow", "shell", "main.koi", OPENAI_API_KEY=KEY, **at)
            again = await outcome_of(project, "replay", "last", OPENAI_API_KEY="", **at)
            return first, again, len(server.requests)

    first, again, asked = asyncio.run(run())

    assert (0, PRINTED) == first[:2], first[2]
    assert ((0, PRINTED, SAME), 2) == (again, asked)


def test_an_interrupted_recording(recorded: Commands) -> None:
    """Cut behind any entry, what there is of it is replayed; what would have followed is no difference."""
    content, count = recorded.journal.read_bytes(), len(recorded.entries())
    for n in range(count - 1):
        recorded.journal.write_bytes(content)
        recorded.cut(n)
        done = recorded("replay", "last")

        assert (0, "") == (done.code, done.err.partition("replayed: ")[0]), (n, done.err)
    assert ["hi"] == recorded.lines("effects")


def test_a_failed_recording(koi: Commands) -> None:
    """A run that failed fails in the same way, which is no difference; one that does not fail any more is one."""
    text = (
        'role R { can think }\nagent A : R { on go(x: Json) { console.log("a"); throw new Error("no") } }\nrun A.go({})'
    )
    first = koi.record(text)
    same = koi("replay", "last")
    koi.project.write("main.koi", text.replace('throw new Error("no")', "return 1"))
    other = koi("replay", "last")

    assert (1, 0, "a\n") == (first.code, same.code, same.out), same.err
    assert (1, True) == (other.code, '- error: "Error: no"' in other.err), other.err


ENDLESS = """
role R { can execute, can delegate }
team T { worker: Worker }
agent Worker : R {
  on wait(args: Json) {
    console.log("tick")
    await new Promise(resolve => setTimeout(resolve, 20))
    for (let turn = 0; turn < 1000; turn++) await null
  }
}
agent Main : R {
  uses team T
  on go(args: Json) {
    setInterval(() => console.log("beside"), 7)
    while (true) await Promise.all([this.both(args), this.both(args)])
  }
  private on both(args: Json) { await send peers.event("wait").any()({}) }
}
run Main.go({})
"""
ENDED = re.compile("replayed: .*, nothing is different up to where the run was ended\n")


def test_a_run_that_its_limit_of_time_has_ended(koi: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    """The replay ends where the limit has ended the run, however slow it is, and says so."""
    first = koi.record(ENDLESS, None, "--max-time", "0.3")
    monkeypatch.setattr(repeating, "_limits", lambda journal: {"time": 0.001})
    same = koi("replay", "last")

    assert (4, 0, first.out) == (first.code, same.code, same.out), same.err
    assert ENDED.fullmatch(same.err), same.err


@pytest.mark.parametrize("end", [[], [{"ok": False, "interrupted": True}]])
def test_a_run_that_somebody_has_ended(koi: Commands, end: list[dict[str, Any]]) -> None:
    """A signal leaves a last entry, a kill does not; the replay ends there, and what it does not do is a difference."""
    koi.record(ENDLESS, None, "--max-time", "0.3")
    last = koi.entries()[-1]
    koi.cut(last.n - 1, b"".join(line_of(replace(last, data=data), str) for data in end))
    same = koi("replay", "last", "--json")
    koi.project.write("main.koi", ENDLESS.replace('console.log("tick")', ""))
    other = koi("replay", "last", "--quiet")

    assert (0, True, True) == (same.code, json.loads(same.out)["same"], json.loads(same.out)["early"]), same.out
    assert (1, True, False) == (other.code, '- message: "tick"' in other.err, "+ message" in other.err), other.err


LIMITED = """
role R { can execute, can delegate }
team T { worker: Worker }
agent Worker : R {
  resilience "wait" { retry_max_attempts = 1, timeout = 60000 }
  on wait(args: Json) {
    console.log("in time")
    for (let turn = 0; turn < 1000000; turn++) args = turn
    await null
  }
}
agent Main : R {
  uses team T
  budget { time: 60s }
  on go(args: Json) { await send peers.event("wait").any()({}) timeout 60s }
}
run Main.go({})
"""


@pytest.mark.parametrize("limit", ["timeout = 60000", "time: 60s", "timeout 60s"])
def test_a_slow_replay_is_not_late(koi: Commands, limit: str) -> None:
    """What took too long is in the record, however slow the machine of the replay is, or whoever looks at it."""
    koi.record(LIMITED)
    koi.project.write("main.koi", LIMITED.replace(limit, limit.replace("60000", "1").replace("60s", "1ms")))
    same = koi("replay", "last")

    assert (0, "in time\n") == (same.code, same.out), same.err


def test_nothing_is_printed_that_was_not_when_the_run_ended(koi: Commands) -> None:
    """Its time was up between two steps of code that waits for nothing there."""
    koi.record(ENDLESS, None, "--max-time", "0.3")
    last = koi.entries()[-1]
    both = koi.cut_behind("handler_ended", "Main.both#1", nth=4)
    koi.cut(both.n, line_of(replace(last, n=both.n + 1), str))
    printed = [entry.data["message"] for entry in koi.entries() if entry.kind == "printed"]
    same = koi("replay", "last")

    assert (0, printed) == (same.code, same.out.splitlines()), same.err
    assert ENDED.search(same.err), same.err


def test_an_exported_recording_is_replayed_elsewhere(recorded: Commands) -> None:
    """A recording that was exported goes with its program, into another folder."""
    recorded("runs", "export", "last", "-o", "tests/hi.jsonl")
    other = recorded.folder.parent / "other"
    (other / "tests").mkdir(parents=True)
    for name in ("main.koi", "tests/hi.jsonl"):
        shutil.move(recorded.folder / name, other / name)
    elsewhere = Commands(Project(other))

    assert (0, PRINTED, SAME) == ((done := elsewhere("replay", "tests/hi.jsonl")).code, done.out, done.err)
    gone = recorded("replay", "last")
    assert (1, True) == (gone.code, "of the recording does not exist" in gone.err)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "the run of `hi.jsonl` was broken off before it began"),
        (b"\x00\xff\n", "`hi.jsonl` does not begin as a journal does"),
        (b'{"journal":99}\n', "`hi.jsonl` has the journal format 99, not 2 or less"),
        (b'{"journal":1,"run":[]}\n', "the header of `hi.jsonl` is damaged"),
    ],
)
def test_a_broken_recording(koi: Commands, content: bytes, told: str) -> None:
    """One message, whatever the file holds."""
    (koi.folder / "hi.jsonl").write_bytes(content)
    done = koi("replay", "hi.jsonl")

    assert (1, "", f"error: {told}") == (done.code, done.out, done.err.splitlines()[0])


def test_a_program_that_ends_the_process(koi: Commands) -> None:
    """Where Python code calls `sys.exit` now, the replay tells what is different instead of ending silently."""
    koi.project.write("leave.py", "import sys\ndef go() -> None: sys.exit(3)\n")
    text = """
        import leave from "./leave.py"
        role R { can execute }
        agent Main : R { on go(args: Json) { BODY console.log("after") } }
        run Main.go({})
        """
    koi.project.write("b.koi", text.replace("BODY", ""))
    koi("run", "--record", "b.koi")
    koi.project.write("b.koi", text.replace("BODY", "leave.go()"))

    done = koi("replay", "last")

    assert (done.code, "difference" in done.err.splitlines()[-1]) == (1, True)


INPUTS = """
role R { can registry:read, can registry:write, can execute }
agent Main : R { on go(x: Json) {
  await registry.set("key", { n: 1 })
  await registry.search({ n: 1 })
  const headers = { Accept: "text/plain", "X-Pass-Phrase": "one two three" }
  try { await fetch("http://127.0.0.1:9/a?q=1", { headers }) } catch (e) { console.log("no answer") }
} }
run Main.go({})
"""


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ('"key"', '"kex"', '- fields: {"args": ["key", {"n": 1}]}\n- result: null\n+ intent: "registry.set"'),
        (
            "{ n: 1 })\n  await registry.search",
            "{ n: 2 })\n  await registry.search",
            '+ fields: {"args": ["key", {"n": 2}]}',
        ),
        ("search({ n: 1 })", "search({ n: 2 })", '+ fields: {"args": [{"n": 2}]}'),
        ("?q=1", "?q=2", '"url": "http://127.0.0.1:9/a?q=2"'),
        ("text/plain", "text/html", '"header_values": {"accept": "text/html", "x-pass-phrase": null}'),
        ("X-Pass-Phrase", "X-Phrase", '"x-phrase": null'),
    ],
)
def test_what_safe_effects_are_given_is_compared(koi: Commands, before: str, after: str, shown: str) -> None:
    """Another key, value, query, address or header is a difference; such a run goes on as a branch.

    Of headers that may be secret only the names are known.
    """
    koi.record(INPUTS)
    assert 0 == koi("replay", "last").code
    assert "one two" not in koi.journals()[0].read_text()
    koi.project.write("main.koi", INPUTS.replace(before, after, 1))
    replayed, branch = koi("replay", "last", "--quiet"), koi("resume", "last", "--quiet")

    assert (1, True) == (replayed.code, shown in replayed.err), replayed.err
    assert (0, 2) == (branch.code, len(koi.journals()))
