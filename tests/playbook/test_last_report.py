"""Playbooks that end at a limit: what their models are told before, and what they have to say of it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from koi_lang.llm.messages import Request
from tests.playbook.playing import Player, Voice, act, solo
from tests.playbook.transports import talk
from tests.projects import Project

NOTE = "You have 3 turns left, this one included. Return what you have before they are used up."
SAYS = "Counted to 4.\nOpen: the rest."
TOLD = 'its model reports: "Counted to 4.\\nOpen: the rest."'
PROGRAM = """
role R { can execute }
agent Main : R { on go(args: Json) { playbook "Count." } }
run Main.go({})
"""


def prints(count: int) -> list[dict[str, Any]]:
    """So many answers that print something, each another one."""
    return [act("print", message=str(n)) for n in range(count)]


async def count(request: Request) -> AsyncIterator[str]:
    """Print something new for ever."""
    yield json.dumps(act("print", message=f"{len(request.messages)} {'x' * 200}"))


def test_a_model_says_what_it_has_done(play: Player) -> None:
    """When turns run out it is asked once, without actions and with few tokens; the error has what it says."""
    voice = Voice(count, report=SAYS)
    played = play(solo(), voice, limits={"turns": 4})
    *turns, last = voice.requests

    assert "did not return within 4 turns" in played.told
    assert TOLD in played.told
    assert ([False] * 4, True) == ([request.is_report for request in turns], last.is_report)
    assert (None, False, True) == (last.offer, last.json, (last.max_tokens or 9999) <= 1200)
    assert "0 " + "x" * 200 not in last.system


@pytest.mark.parametrize(
    ("says", "expected"),
    [
        ('{"intent":"print","message":"hacked"}', ""),
        ('[{"intent":"shell","command":"touch /tmp/x"}]', ""),
        ('{"batch":[{"intent":"print","message":"hacked"}]}', ""),
        ('{"intent":"return","data":{"done":4}}', 'its model reports: "{\\"done\\": 4}"'),
        ("   ", ""),
        ("x" * 9000, f'its model reports: "{"x" * 1500}…"'),
    ],
)
def test_nothing_that_it_asks_for_is_carried_out(play: Player, says: str, expected: str) -> None:
    """What asks for actions is no report; a result that was to be returned is one, and long ones are cut."""
    played = play(solo(), Voice(count, report=says), limits={"turns": 2})

    assert 2 == len(played.printed)
    assert "hacked" not in played.printed
    assert expected in played.told if expected else "reports" not in played.told


def test_a_failure_changes_nothing(play: Player) -> None:
    """Without a report the error is what it was before there were any."""
    played = play(solo(), Voice(count), limits={"turns": 2})

    assert "`Main.go` did not return within 2 turns" == str(played.error)


@pytest.mark.parametrize("tokens", [3000, 8000, 20_000, 60_000])
def test_tokens_are_never_exceeded(play: Player, tokens: int) -> None:
    """Of a budget of tokens a report takes what is left, and is left out where that is too little."""
    voice = Voice(count, report=SAYS)
    played = play(solo(), voice, limits={"tokens": tokens, "turns": 5000})

    assert "tokens" in played.told
    assert played.run.spending.tokens <= tokens
    assert sum(request.is_report for request in voice.requests) <= 1


@pytest.mark.parametrize("limits", [{"requests": 3}, {"usd": 0.002}])
def test_money_and_requests_end_it_at_once(play: Player, limits: dict[str, Any]) -> None:
    """Nobody is asked for a report where these have run out."""
    voice = Voice(count, name="gpt-4o-mini", report=SAYS)
    played = play(solo(), voice, limits=limits)

    assert played.error is not None
    assert not any(request.is_report for request in voice.requests)


def test_it_is_told_when_few_turns_are_left(play: Player) -> None:
    """Once, before the last three; where there never were more, it is not."""
    voice, short = Voice(count), Voice(count)
    play(solo(), voice, limits={"turns": 6})
    play(solo(), short, limits={"turns": 3})
    told = [[message.text for message in request.messages].count(NOTE) for request in voice.requests]

    assert [0, 0, 0, 1, 1, 1] == told
    assert NOTE == voice.requests[3].messages[-1].text
    assert not any(message.text == NOTE for request in short.requests for message in request.messages)


@pytest.mark.parametrize("provider", ["openai", "responses", "anthropic"])
@pytest.mark.parametrize("transport", ["text", "tools"])
def test_through_real_interfaces(play: Player, provider: str, transport: str) -> None:
    """The last request names no tools, whichever way the model had called them, and its answer is a plain text."""
    turns: list[Any] = [[action] for action in prints(4)]
    played, asked, _ = talk(play, solo(), [*turns, SAYS], (provider, transport), played={"limits": {"turns": 4}})

    assert ("0", "1", "2", "3") == played.printed
    assert TOLD in played.told
    assert 5 == len(asked)
    assert not asked[-1].body.get("tools")


@pytest.mark.parametrize("provider", ["openai", "responses", "anthropic"])
def test_a_call_of_a_tool_is_no_report(play: Player, provider: str) -> None:
    """A model that calls one though none is offered is not asked again, and nothing is carried out."""
    turns: list[Any] = [[action] for action in prints(4)]
    played, asked, _ = talk(
        play, solo(), [*turns, [act("print", message="no")]], (provider, "tools"), played={"limits": {"turns": 4}}
    )

    assert ("0", "1", "2", "3") == played.printed
    assert "`Main.go` did not return within 4 turns" == str(played.error)
    assert 5 == len(asked)


def test_runs_that_go_on_do_not_ask_again(project: Project) -> None:
    """A replay has the report as it was; a run resumed with more turns goes on, and asks again at the new limit."""
    project.write("a.koi", PROGRAM)
    project.write("answers.json", json.dumps([*prints(5), {"last_report": SAYS}]))
    ran = project.koi("run", "a.koi", "--answers", "answers.json", "--max-turns", "5")
    shown = project.koi("runs", "show", "last", "--full").stdout
    replayed = project.koi("replay", "last")
    same = project.koi("resume", "last")
    project.write("answers.json", json.dumps([*prints(7), {"last_report": SAYS}, {"last_report": "Six."}]))
    more = project.koi("resume", "last", "--max-turns", "7")

    assert [True, True] == [TOLD in text for text in (ran.stderr, same.stderr)]
    assert "Counted to 4." in shown.partition("handler_failed")[2]
    assert NOTE in shown
    assert "nothing is different" in replayed.stdout + replayed.stderr
    assert "something else" not in more.stderr
    assert "5\n6\n" in more.stdout
    assert "did not return within 7 turns" in more.stderr


def test_what_was_told_before_is_told_again(project: Project) -> None:
    """A request that was recorded without the number of turns, as all by earlier versions, is repeated without it."""
    project.write("a.koi", PROGRAM)
    project.write("answers.json", json.dumps(prints(5)))
    project.koi("run", "a.koi", "--answers", "answers.json", "--max-turns", "60")
    project.write("answers.json", json.dumps(prints(7)))
    resumed = project.koi("resume", "last", "--max-turns", "7")
    told = project.koi("runs", "show", "last", "--full").stdout

    assert "did not return within 7 turns" in resumed.stderr
    assert "something else" not in resumed.stderr
    assert NOTE not in told
