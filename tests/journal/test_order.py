"""What a run does follows from the order in which things ended, which is that of its journal, however fast they are."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator

import pytest

from koi_lang.llm.messages import Request
from koi_lang.runtime.journal.history import History
from tests.journal.again import Recorder, Tape
from tests.playbook.playing import Player, Voice, act, ask, done

ROLE = "role R { can execute, can delegate, can registry:write, can registry:read }\n"
MODULE = """
import asyncio, random
async def slow(name, ms):
    await asyncio.sleep(ms * random.random() / 1000)
    return name
async def at_once(name):
    return name
def now(name):
    return name
"""


def code(play: Player, body: str) -> Recorder:
    """The recorder of a program whose `Main.go` has some code, with functions of Python that take their time."""
    (play.folder / "pace.py").write_text(MODULE)
    source = f'import pace from "./pace.py"\n{ROLE}agent Main : R {{ on go(x: Json) {{ {body} }} }}'
    return Recorder(play, source, services={"folder": play.folder})


def replay(recorder: Recorder, whole: Tape) -> Tape:
    """What the same program comes to against what was recorded."""
    return recorder.over(History(whole.entries, "replay"))


RACES = """
    const seen = []
    for (let n = 0; n < 6; n++) {
      seen.push(await Promise.race(["a", "b", "c"].map(name => pace.slow(name + n, 3))))
      console.log(seen.length)
    }
    return seen
"""


def test_an_untouched_race_is_replayed_as_it_was(play: Player) -> None:
    """Sixty recordings of races are replayed, and each comes to the winners that were recorded."""
    recorder = code(play, RACES)
    tapes = [recorder.run() for _ in range(60)]

    assert [tape.played.result for tape in tapes] == [replay(recorder, tape).played.result for tape in tapes]
    assert len({str(tape.played.result) for tape in tapes}) > 1, "chance decided"


def test_a_loop_of_races_is_resumed_wherever_it_was_cut(play: Player) -> None:
    """Behind every entry the races that were decided stay so, though their losers go on."""
    recorder = code(play, RACES)
    whole = recorder.run()
    for n in range(2, len(whole.entries)):
        cut = whole.entries[:n]
        rest = recorder.again(cut, decisions={entry.path: "retry" for entry in cut})
        decided = sum(entry.kind == "printed" for entry in cut)

        assert ("", 6) == (rest.played.told, len(rest.played.result)), cut[-1]
        assert whole.played.result[:decided] == rest.played.result[:decided], cut[-1]


def test_what_is_recalled_does_not_overtake_the_code_around_it(play: Player) -> None:
    """An outcome from the journal is there at once, and is still given later than what the code does meanwhile."""
    body = """
        const seen = []
        const push = async work => { seen.push(await work()) }
        const all = [push(() => pace.slow("slow", 1)), push(() => pace.at_once("at once")), push(() => registry.keys())]
        seen.push("meanwhile")
        await Promise.all(all)
        return seen
    """
    recorder = code(play, body)
    whole = recorder.run()

    assert "meanwhile" == whole.played.result[0]
    assert whole.played.result == replay(recorder, whole).played.result


def test_what_does_not_wait_takes_no_turn(play: Player) -> None:
    """Hundreds of calls that do not wait hold up nothing when they are recalled."""
    recorder = code(
        play, "for (let n = 0; n < 300; n++) { pace.now(n); if (n % 3 == 0) await pace.at_once(n) }; return 1"
    )
    whole = recorder.run()
    slots = recorder.again(whole.entries[:-1]).played.run.recorder.slots

    assert 1 == whole.played.result
    assert 0 == slots.given_up


# ---------------------------------------------------------------- models and playbooks


def in_random_time() -> Voice:
    """A model that says at some time what it was asked about."""

    async def speak(request: Request) -> AsyncIterator[str]:
        await asyncio.sleep(random.random() * 0.003)
        yield request.messages[-1].text

    return Voice(speak)


def test_models_end_in_the_recorded_order(play: Player) -> None:
    """A race of requests has the winner that was recorded, whichever answer is read from the journal first."""
    body = """
        const say = text => this.callAction("call_llm", { instruction: "Say it.", data: text })
        return (await Promise.race(["a", "b", "c", "d"].map(say))).result
    """
    recorder = Recorder(play, f"{ROLE}agent Main : R {{ on go(x: Json) {{ {body} }} }}", in_random_time)
    tapes = [recorder.run() for _ in range(30)]

    assert [tape.played.result for tape in tapes] == [replay(recorder, tape).played.result for tape in tapes]
    assert len({tape.played.result for tape in tapes}) > 1, "chance decided"


MEMBERS = (
    ROLE
    + """
import pace from "./pace.py"
team T { one: One, two: Two }
agent One : R { on go(x: Json) { return await pace.slow("one", 3) } }
agent Two : R { on go(x: Json) { return await pace.slow("two", 3) } }
agent Main : R { uses team T  on go(x: Json) { playbook "Go." } }
"""
)


@pytest.mark.parametrize("members", [[ask("one::go"), ask("two::go")], []])
def test_the_last_result_is_the_one_that_was_last(play: Player, members: list[object]) -> None:
    """`${lastResult}` behind a parallel group is what it was, for delegates as for actions of its own."""
    tools = [act("call_llm", instruction="Say it.", data=name) for name in "ab"]
    answers = [{"batch": [{"parallel": members or tools}, act("print", message="${lastResult}"), done()]}]

    def voice() -> Voice:
        async def speak(request: Request) -> AsyncIterator[str]:
            await asyncio.sleep(random.random() * 0.002)
            yield json.dumps(answers[0]) if request.json else request.messages[-1].text

        return Voice(speak)

    recorder = Recorder(play, MEMBERS, voice, services={"folder": play.folder})
    (play.folder / "pace.py").write_text(MODULE)
    tapes = [recorder.run() for _ in range(20)]

    assert [tape.printed for tape in tapes] == [list(replay(recorder, tape).played.printed) for tape in tapes]
    assert len({str(tape.printed) for tape in tapes}) > 1, "chance decided"
