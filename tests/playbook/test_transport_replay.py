"""Runs that were recorded with one transport and go on, branch or are replayed with another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from koi_lang.runtime.journal.entries import JournalEntry
from koi_lang.runtime.journal.history import RESUMED, History, lasting_entries
from koi_lang.runtime.replay.doubts import Decision
from koi_lang.runtime.replay.policies import Mode
from tests.journal.again import SEED, printed_in, written
from tests.llm.server import Asked
from tests.playbook.conversations import GREET, PROGRAM, batch, shelf, skill, told
from tests.playbook.playing import Player, act, done
from tests.playbook.test_matrix import with_server
from tests.playbook.transports import Talk, Turn, talk

# By the names of tools, and in a plan that refers to them.
NAMED = [
    act("files__count", items=["a", "b"], id="c"),
    act("greeter__greet", name="${c.output.count}", id="g"),
    act("print", message="${g.output.text}", condition="${c.output.count} > 1"),
    act("Weather__forecast", city="Rome"),
]
# One thing after the other, so that an answer that was cut off lacks nothing.
STEPS: Sequence[Turn] = [[told("a")], [skill("forecast", city="Rome")], [GREET], [told("b")], [done(ok=True)]]
SERVED: Sequence[Turn] = [[shelf("read", path="/a")], [batch(*NAMED)], [told("b")], [done(ok=True)]]
SWITCHES = [
    (("openai", "tools"), ("openai", "text")),
    (("openai", "text"), ("openai", "tools")),
    (("anthropic", "tools"), ("anthropic", "text")),
    (("anthropic", "text"), ("anthropic", "tools")),
]
IN_BOTH_DIRECTIONS = pytest.mark.parametrize(("before", "after"), SWITCHES, ids=lambda way: "-".join(way))


def without_server(source: str) -> str:
    """The program with a server that cannot be started."""
    start = source.index("command:")
    return f'{source[:start]}command: "/nowhere", args: []{source[source.index(", env:") :]}'


def entries_of(done: Talk, before: Sequence[JournalEntry] = ()) -> tuple[JournalEntry, ...]:
    """The journal of a run that goes on from some entries."""
    new = [event for event in done.played.events if not event.recalled]
    return (*before, *(written(event, len(before) + n) for n, event in enumerate(new, 1)))


def run(play: Player, source: str, turns: Sequence[Turn], way: tuple[str, str], history: History | None = None) -> Talk:
    """A run whose model answers by how often it has answered in the conversation that it is sent."""

    def answer(asked: Asked) -> Turn:
        said: int = sum(each["role"] == "assistant" for each in asked.body["messages"])
        return turns[min(said, len(turns) - 1)]

    given: dict[str, Any] = {"detailed": True, "seed": SEED, "history": history, "payload": {"task": "it"}}
    return talk(play, source, answer, way, played=given)


def past(entries: Sequence[JournalEntry], mode: Mode) -> History:
    """What is known of a run; what may have happened is done again."""
    return History(lasting_entries(entries), mode, str, lambda doubt: Decision("retry"))


@pytest.mark.sampled(4)
@IN_BOTH_DIRECTIONS
@pytest.mark.parametrize("turns", [STEPS, SERVED], ids=["steps", "served"])
def test_a_run_is_replayed_whatever_the_transport(
    play: Player, turns: Sequence[Turn], before: tuple[str, str], after: tuple[str, str]
) -> None:
    """Nobody is asked, and no server is started: names of tools stand in what was recorded."""
    source = with_server(PROGRAM)
    whole = run(play, source, turns, before)
    again = run(play, without_server(source), turns, after, past(entries_of(whole), "replay"))

    assert ({"ok": True}, None) == (whole.played.result, whole.played.error)
    assert ({"ok": True}, None, []) == (again.played.result, again.played.error, again.asked)
    assert whole.played.printed == again.played.printed
    assert whole.played.did() == again.played.did()


@pytest.mark.sampled(1)
@IN_BOTH_DIRECTIONS
@pytest.mark.parametrize("mode", ["resume", "branch"])
def test_a_run_goes_on_from_any_entry_whatever_the_transport(
    play: Player, mode: Mode, before: tuple[str, str], after: tuple[str, str]
) -> None:
    """Nothing is printed twice or left out, and the same actions are carried out."""
    whole = run(play, PROGRAM, STEPS, before)
    entries = entries_of(whole)
    for n in range(1, len(entries)):
        cut = entries[:n] if mode == "branch" else (*entries[:n], JournalEntry(n + 1, 0.0, RESUMED))
        rest = run(play, PROGRAM, STEPS, after, past(cut, mode))
        printed = printed_in(cut) + list(rest.played.printed)
        assert (["a", "b"], {"ok": True}) == (printed, rest.played.result), (n, cut[-1], rest.played.told)


@pytest.mark.parametrize(("before", "after"), SWITCHES[:2], ids=lambda way: "-".join(way))
def test_a_plan_with_names_of_tools_goes_on(play: Player, before: tuple[str, str], after: tuple[str, str]) -> None:
    """A server that has not told of its tools since the run went on is started for those that are called."""
    source = with_server(PROGRAM)
    entries = entries_of(run(play, source, SERVED, before))
    for n in [n for n, entry in enumerate(entries, 1) if entry.kind.startswith("action_")]:
        rest = run(play, source, SERVED, after, past((*entries[:n], JournalEntry(n + 1, 0.0, RESUMED)), "resume"))
        assert (printed_in(entries[:n]) + list(rest.played.printed), {"ok": True}) == (
            ["Hi 2", "b"],
            rest.played.result,
        ), (n, rest.played.told)
