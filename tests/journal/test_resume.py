"""`koi resume`: an interrupted run goes on where it stopped, and does nothing twice."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pexpect
import pytest

import koi_lang
from koi_lang.runtime.journal import store
from tests import forks
from tests.cli.test_models import KEY, started
from tests.journal.commands import Commands, Done
from tests.journal.killing import RUN
from tests.journal.test_kills import ANSWERS, EFFECTS, PROGRAM, in_doubt
from tests.llm.server import Answer, ModelServer
from tests.projects import LIMIT_S, Project

ROLE = "role R { can execute, can delegate, can registry:write, can registry:read }\n"
ONE = (
    ROLE
    + '''
agent Main : R { state { total = 1 }
  on go(args: Json) { playbook """Do the work, total {{state.total}}.""" }
}
run Main.go({ n: 1 })
'''
)


def shell(command: str) -> dict[str, Any]:
    """An action that may not be done twice."""
    return {"intent": "shell", "command": command, "description": "work"}


def say(message: str) -> dict[str, Any]:
    """An action that shows something."""
    return {"intent": "print", "message": message}


DONE = {"intent": "return", "data": {"ok": True}}
STEPS = [
    {"batch": [shell("echo one >> effects"), say("one")]},
    {"batch": [say("two"), shell("echo two >> effects; exit 3")]},
    {"batch": [say("three"), DONE]},
]


# ---------------------------------------------------------------- with a model that answers over the network


class Machine:
    """A project whose runs ask a server of this process."""

    def __init__(self, project: Project, server: ModelServer) -> None:
        self.project, self.server = project, server

    async def start(self, *words: str) -> asyncio.subprocess.Process:
        """A command that runs."""
        url = f"{self.server.url}/v1"
        return await started(self.project, *words, OPENAI_API_KEY=KEY, OPENAI_BASE_URL=url)

    async def koi(self, *words: str) -> Done:
        """The outcome of a command."""
        return await ended(await self.start(*words))

    async def ended_after(self, entry: bytes, how: signal.Signals, *words: str) -> Done:
        """The outcome of a command that got a signal when some bytes were in its journal."""
        process, folder = await self.start(*words), self.project.folder
        while not any(entry in path.read_bytes() for path in store.journals(folder)):
            assert process.returncode is None
            await asyncio.sleep(0.005)
        process.send_signal(how)
        return await ended(process)


async def ended(process: asyncio.subprocess.Process) -> Done:
    """The outcome of a command that runs."""
    out, err = await asyncio.wait_for(process.communicate(), LIMIT_S)
    assert process.returncode is not None
    return Done(process.returncode, out.decode(), err.decode())


ASKING = ONE.replace("state {", 'llm default = { provider: "openai", model: "gpt-4o-mini" }\n  state {')
# The first action closes in the first piece; the second one never arrives.
FIRST = json.dumps(shell("echo half >> effects"))
HALF = Answer(pieces=(f'{{"batch": [{FIRST}, {{"intent"', ' "never" }'), pause=True)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_half_an_answer_counts(project: Project, how: signal.Signals) -> None:
    """Ended in the middle of an answer, its actions are not repeated, and the model is told that it broke off."""
    project.write("main.koi", ASKING)
    rest = json.dumps({"batch": [say("the rest"), DONE]})

    async def run() -> tuple[list[Done], list[Any]]:
        async with ModelServer([HALF, rest]) as server:
            machine = Machine(project, server)
            first = await machine.ended_after(b'"kind":"done"', how, "run", "--allow", "shell", "main.koi")
            later = [await machine.koi("resume", "--on-doubt", "retry"), await machine.koi("replay", "last")]
            return [first, *later], [request.body["messages"] for request in server.requests]

    (first, resumed, replayed), asked = asyncio.run(run())

    assert (-9 if how == signal.SIGKILL else 130, 0, 0) == (first.code, resumed.code, replayed.code), resumed.err
    assert ("the rest\n", ["half"]) == (resumed.out, (project.folder / "effects").read_text().split())
    assert (2, asked[0]) == (len(asked), asked[1][: len(asked[0])])
    assert "echo half" in asked[1][-2]["content"]
    assert "the run was interrupted" in asked[1][-1]["content"]


BOTH = (
    ROLE
    + '''
team T { a: A, b: B }
agent A : R { LLM on go(x: Json) { playbook """Side A.""" } }
agent B : R { LLM on go(x: Json) { playbook """Side B.""" } }
agent Main : R { uses team T
  on go(x: Json) {
    const answers = await Promise.all([this.ask(A), this.ask(B)])
    console.log("both")
  }
}
run Main.go({})
'''.replace("LLM", 'llm default = { provider: "openai", model: "gpt-4o-mini" }').replace(
        "[this.ask(A), this.ask(B)]", '["a", "b"].map(async name => await send peers.event("go").all()({}))'
    )
)


def test_a_model_that_failed_is_asked_again(project: Project) -> None:
    """A run that ended because a provider refused, while other answers were under way, can be gone on with."""
    project.write("main.koi", BOTH)
    refused, good = Answer(status=400, error={"message": "not today"}), json.dumps(DONE)

    async def run() -> tuple[list[Done], int]:
        async with ModelServer([good, refused, Answer(pieces=("{",), pause=True), good]) as server:
            machine = Machine(project, server)
            return [await machine.koi(*words) for words in (("run", "main.koi"), ("resume",))], len(server.requests)

    (failed, resumed), asked = asyncio.run(run())

    assert (69, True) == (failed.code, "not today" in failed.err)
    assert (0, "both\n") == (resumed.code, resumed.out), resumed.err
    assert asked <= 7, "the answer that had come is not asked for again"


# ---------------------------------------------------------------- cut anywhere


@pytest.mark.sampled(1)
@pytest.mark.parametrize("first", range(2, 5))
def test_a_failed_action_has_ended(koi: Commands, first: int) -> None:
    """Cut behind any entry, also where an action had failed, the run goes on; what ended is not done again."""
    whole = koi.record(ONE, STEPS, "--allow", "shell")
    lines, content = len(koi.entries()), koi.journal.read_bytes()
    assert "one\ntwo\nthree\n" == whole.out
    for n in range(first, lines, 3):
        (koi.folder / "effects").unlink()
        koi.journal.write_bytes(content)
        koi.cut(n)
        begun = sum(entry.kind == "begun" and entry.data["intent"] == "shell" for entry in koi.entries())
        ended = sum(entry.kind == "done" and entry.data["intent"] == "shell" for entry in koi.entries())
        (koi.folder / "effects").write_text("".join(["one\n", "two\n"][:ended]))
        resumed = koi("resume", "--on-doubt", "retry")

        assert (0, ["one", "two"]) == (resumed.code, koi.lines("effects")), (n, resumed.err)
        assert (begun > ended) == ("its end is not known" in resumed.err)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(10))
def test_a_run_can_be_killed_while_it_is_resumed(project: Project, seed: int) -> None:
    """Killed after a few entries again and again, it comes to what it should in the end."""
    for name, text in (("main.koi", PROGRAM), ("effects.py", EFFECTS), ("answers.json", json.dumps(ANSWERS))):
        project.write(name, text)
    whole = project.koi(*RUN)
    effects = Counter((project.folder / "effects").read_text().split("\n"))
    done = project.fork("-m", "tests.journal.rounds", str(seed))
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]

    assert 1 == len(outcomes), done.stderr
    for outcome in outcomes:
        told = (outcome["seed"], outcome["kills"], outcome["err"])
        # Killed behind its very last entry, a run has ended well.
        assert outcome["code"] == 0 or "has ended well" in outcome["err"], told
        assert outcome["kills"] > 1, told
        assert sorted(whole.stdout.splitlines()) == sorted(outcome["out"].splitlines()), told
        twice = Counter(outcome["effects"].split("\n")) - effects
        assert Counter() == effects - Counter(outcome["effects"].split("\n")), told
        assert all(in_doubt(effect, outcome["err"]) for effect in twice), told


def test_state_and_conversation_are_as_they_were(koi: Commands) -> None:
    """The state that an earlier call left and what its model was told are there for the call that goes on."""
    twice = ONE + "run Main.go({ n: 2 })\n"
    answers = [{"intent": "return", "data": {"state_updates": {"total": 5}}}, say("second"), DONE]
    whole = koi.record(twice, answers)
    told = [e.data["request"] for e in koi.entries() if e.kind == "model_asked"]
    koi.cut(next(e.n for e in koi.entries() if e.path == ("Main.go#2",)))
    resumed = koi("resume", "last")
    asked = [e for e in koi.entries() if e.kind == "model_asked"]

    assert (0, "second\n") == (resumed.code, resumed.out) == (whole.code, whole.out)
    assert told == [entry.data["request"] for entry in asked]
    assert [False, True] == ['"total":5' in str(entry.data["messages"]) for entry in asked[:2]]


def test_a_lost_registry_entry_is_not_written_again(koi: Commands) -> None:
    """What was set before the cut is not set again, though somebody has removed it since."""
    body = 'await registry.set("k", 1); console.log("set"); console.log(await registry.get("k"))'
    koi.record(f"{ROLE}agent Main : R {{ on go(a: Json) {{ {body} }} }}\nrun Main.go({{}})")
    koi.cut_behind("printed")
    koi("registry", "clear", "--yes")

    assert "null\n" == koi("resume", "last").out


# ---------------------------------------------------------------- in doubt


@pytest.fixture
def doubtful(koi: Commands) -> Commands:
    """A run that was killed while its first shell command was carried out."""
    koi.record(ONE, STEPS, "--allow", "shell")
    koi.cut_behind("begun", "shell#1")
    (koi.folder / "effects").unlink()
    return koi


TOLD = '`shell` had begun and its end is not known: {"command": "echo one >> effects", "description": "work"}'


def test_nobody_decides_about_an_action_in_doubt(doubtful: Commands) -> None:
    """Without a terminal the action is shown and nothing is changed; one sentence says what to do."""
    before = doubtful.journal.read_bytes()
    for words in (("resume", "last"), ("resume", "last", "--on-doubt", "stop")):
        done = doubtful(*words)

        assert (1, "", []) == (done.code, done.out, doubtful.lines("effects"))
        assert before == doubtful.journal.read_bytes()
        assert done.err.startswith(f"{TOLD} at Main.go#1 / shell#1\n")
        assert "`koi resume` with the options as before and `--on-doubt retry`" in done.err


def test_an_action_in_doubt_is_left_out(doubtful: Commands) -> None:
    """With `skip` it is not done; the model is told that nobody knows, and a later resume asks nothing."""
    done = doubtful("resume", "last", "--on-doubt", "skip")
    told = [text for e in doubtful.entries() if e.kind == "model_asked" for _, text in e.data["messages"]]
    doubtful.cut(len(doubtful.entries()) - 1)

    assert (0, ["two"]) == (done.code, doubtful.lines("effects")), done.err
    assert "it was not done again" in "".join(told)
    assert (0, "") == ((again := doubtful("resume", "last")).code, again.out), again.err


@pytest.mark.parametrize(("answer", "effects"), [("retry", ["one", "two"]), ("skip", ["two"]), ("stop", [])])
def test_the_person_decides_in_a_terminal(doubtful: Commands, answer: str, effects: list[str]) -> None:
    """At a terminal the person is asked, with stopping as the answer to an empty line."""
    environment = {**os.environ, "PYTHONPATH": str(Path(koi_lang.__file__).parents[1]), "TERM": "xterm"}
    (python, *words), folder = forks.koi("resume", "last"), str(doubtful.folder)
    with pexpect.spawn(python, words, cwd=folder, env=environment, encoding="utf-8", timeout=LIMIT_S) as child:
        child.expect("Do it again, leave it out, tell what it gave, or stop.*: ")
        child.sendline("" if answer == "stop" else answer)
        child.expect(pexpect.EOF)

    assert (int(answer == "stop"), effects) == (child.exitstatus, doubtful.lines("effects")), child.before


# ---------------------------------------------------------------- journals and programs in bad shape


@pytest.fixture
def cut(koi: Commands) -> Commands:
    """A run that was killed behind its first print."""
    koi.record(ONE, STEPS, "--allow", "shell")
    koi.cut_behind("printed")
    return koi


def test_a_torn_line_is_cut_off(cut: Commands) -> None:
    """The bytes of a line that was not written to its end are kept beside the journal, and the run goes on."""
    whole = cut.journal.read_bytes()
    cut.journal.write_bytes(whole + b'{"n":99,"ts')
    done = cut("resume", "last")

    assert (0, "two\nthree\n") == (done.code, done.out)
    assert done.err.startswith(f"11 bytes of a torn line were cut off and kept in {cut.journal.stem}.torn\n")
    assert b'{"n":99,"ts' == cut.journal.with_suffix(store.TORN).read_bytes()
    assert cut.journal.read_bytes().startswith(whole)


def test_a_damaged_line_is_told(cut: Commands) -> None:
    """A line in the middle that cannot be read is told, and what stood on it is done again."""
    lines = cut.journal.read_bytes().splitlines(keepends=True)
    number = next(n for n, line in enumerate(lines) if b'"kind":"printed"' in line)
    cut.journal.write_bytes(b"".join([*lines[:number], b"\0\0rubbish\n", *lines[number + 1 :]]))
    refused = cut("resume", "last")
    assert (1, "") == (refused.code, refused.out)
    assert f"was changed behind line {number}, or others have added to it, so it is not gone on with" in refused.err
    done = cut("resume", "last", "--trust")

    assert (0, "one\ntwo\nthree\n") == (done.code, done.out)
    assert done.err.startswith(f"warning: line {number + 1} is damaged: it holds no entry; ")


def test_a_run_that_goes_on_is_not_resumed(cut: Commands) -> None:
    """While somebody writes the journal, a run or another resume, there is one message and nothing is changed."""
    before = cut.journal.read_bytes()
    with cut.journal.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = cut("resume", "last")

    assert (1, before) == (done.code, cut.journal.read_bytes())
    told = f"error: the run `{cut.journal.stem}` goes on\n  = help: Wait until it has ended, or end it first.\n"
    assert told == done.err


def test_a_run_is_resumed_once(cut: Commands) -> None:
    """Of two resumes at the same time one is refused, and every action is done once."""
    words = forks.koi("resume", "last")
    program = cut.folder / "answers.json"
    program.write_text(json.dumps([*STEPS[:1], {"batch": [shell("sleep 1"), shell("echo two >> effects")]}, DONE]))

    async def both() -> list[int | None]:
        started = [await asyncio.create_subprocess_exec(*words, cwd=cut.folder, env=environment()) for _ in range(2)]
        return [await process.wait() for process in started]

    assert [0, 1] == sorted(code for code in asyncio.run(both()) if code is not None)
    assert ["one", "two", "two"] == cut.lines("effects"), "one, two of the first run, two of the one resume"


def environment() -> dict[str, str]:
    """What a process needs to find the package."""
    return {**os.environ, "PYTHONPATH": str(Path(koi_lang.__file__).parents[1])}


@pytest.mark.parametrize(
    ("spoil", "code", "told"),
    [
        (lambda path: path.unlink(), 2, "main.koi` cannot be read: no such file or directory"),
        (lambda path: path.write_text("agent {"), 65, "error: "),
        (lambda path: path.write_text("role R { can execute }"), 2, "runs nothing"),
    ],
)
def test_the_program_of_a_run_is_gone(cut: Commands, spoil: Any, code: int, told: str) -> None:
    """A program that is missing, broken or empty by now is told in one message; no journal is written or changed."""
    before = cut.journal.read_bytes()
    spoil(cut.folder / "main.koi")
    done = cut("resume", "last")

    assert (code, "", True) == (done.code, done.out, told in done.err), done.err
    assert ([before], False) == ([path.read_bytes() for path in cut.journals()], "Traceback" in done.err)


def test_an_ended_run_is_not_resumed(koi: Commands) -> None:
    """There is nothing to go on with; without an id it is said that no run was interrupted."""
    koi.record(ONE, [DONE])
    named, last, unknown = koi("resume", "last"), koi("resume"), koi("resume", "zz")

    assert f"error: the run `{koi.journal.stem}` has ended well, so there is nothing to go on with\n" in named.err
    assert last.err.startswith("error: no run of this folder was interrupted\n")
    assert unknown.err.startswith("error: there is no run `zz`\n")
    assert [1, 1, 1] == [done.code for done in (named, last, unknown)]


SECRET = f"{ROLE}agent Main : R {{ on go(a: Json) {{ console.log('a'); console.log(a.password) }} }}\nrun Main.go({{}})"


def test_a_secret_is_given_again(koi: Commands) -> None:
    """A field that was not written down must be given again; with it the run goes on, and it is written nowhere."""
    first = koi.record(SECRET, None, "--arg", "password=very-secret-word")
    koi.cut_behind("printed")
    without, given = koi("resume", "last"), koi("resume", "last", "--arg", "password=very-secret-word")

    assert ("a\nvery-secret-word\n", 0, "very-secret-word\n") == (first.out, given.code, given.out)
    assert 2 == without.code
    assert f"help: Give it again: koi resume {koi.journal.stem} --arg password=…" in without.err
    assert b"very-secret" not in koi.journal.read_bytes()


def test_secrets_of_the_environment_stay_out(koi: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a tool gave away is in no journal and in no output of `koi`; the run can be resumed and replayed."""
    monkeypatch.setenv("MARKED_API_KEY", "marked-0123456789")
    step = {**shell("echo $MARKED_API_KEY sk-0123456789abcdefghij"), "id": "s"}
    program = ONE.replace("Do the work", "Do it with marked-0123456789")
    koi.record(program, [{"batch": [step]}, say("told"), DONE], "--allow", "shell")
    koi.cut_behind("model_asked", "model#2")
    resumed = koi("resume", "last", "--on-doubt", "retry")
    shown = [resumed, *(koi(*words) for words in (("runs", "tree", "last"), ("replay", "last")))]
    shown += [koi("runs", "show", "--full", "last"), koi("resume", "last", "--at", "5", "--on-doubt", "retry")]

    assert "`shell` had ended, and what it gave held a secret, which is not in the journal" in resumed.err
    assert [0, 0, 0, 0, 0] == [done.code for done in shown], [done.err for done in shown]
    written = "".join([path.read_text() for path in koi.journals()] + [done.out + done.err for done in shown])
    assert [] == [secret for secret in ("marked-0123456789", "sk-0123456789abcdefghij") if secret in written]


def test_list_shows_what_became_of_a_run(cut: Commands) -> None:
    """A run that was interrupted and resumed is listed once, with how it ended; a branch says what it goes on from."""
    before = cut("runs", "list").out.split("\n")[1].split()
    cut("resume", "last")
    parent = cut.journal.stem
    cut("resume", "last", "--branch")
    head, *rows = [row.split() for row in cut("runs", "list").out.splitlines()]
    first, second = json.loads(cut("runs", "list", "--json").out)

    assert ("interrupted", ["ok", "ok"]) == (before[4], [row[4] for row in rows])
    assert (parent, 2, ["branch", "of"]) == (rows[0][0], len(rows), head[8:])
    assert ([], [parent, "from", "entry", str(second["entry"])]) == (rows[0][9:], rows[1][9:])
    assert (parent, None, parent, rows[1][0]) == (first["run"], first["parent"], second["parent"], second["run"])
    assert f"\nparent    {parent} from entry " in cut("runs", "show", "last").out


CHAT = """
role R { can execute }
agent Main : R {
  on chat(args: { text: string }) { playbook "Answer {{args.text}}." }
  on go(args) { for (let n = 0; n < 30; n++) await this.handle("chat", { text: "message " + n }) }
}
run Main.go({})
"""


def test_a_conversation_is_written_once(koi: Commands) -> None:
    """The journal of a chat grows with what is said, also where a run goes on in the middle of it."""
    answers = [{"intent": "return", "data": {"n": n}} for n in range(30)]
    koi.record(CHAT, answers, "--record")
    koi.cut_behind("model_answered", nth=20)
    done = koi("resume", "last")
    told = [text for entry in koi.entries() if entry.kind == "model_asked" for _, text in entry.data["messages"]]

    assert (0, 1) == (done.code, sum("system" in entry.data for entry in koi.entries())), done.err
    assert [1] * 30 == [sum(f'"message {n}"' in text for text in told) for n in range(30)]
