"""The same conversations through every transport and SDK: one stream of actions, one journal."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest

from tests import forks
from tests.journal.again import SEED
from tests.mcp.conftest import SERVER
from tests.playbook.conversations import CLOSED, CONVERSATIONS, PROGRAM, Conversation
from tests.playbook.playing import Played, Player
from tests.playbook.tellers import told
from tests.playbook.transports import WAYS, Talk, requests_in, story, talk
from tests.running import RecordingHost

# What an answer that was cut ends with, quoted.
OWN_WORDS = re.compile(r"in the middle of '[^']*'")


def with_server(source: str) -> str:
    """The program with a server for its `Main`."""
    command, *words = forks.python(str(SERVER))
    declared = f"mcp files = {{ command: {command!r}, args: {words!r}, env: {{ SHELF: 'oak', EMPTY: '' }} }}\n"
    agent = "agent Main : Keeper {\n  uses mcp files\n"
    roles = "role Keeper { can execute, can delegate, can call_mcp }\n"
    return roles + declared.replace("'", '"') + source.replace("agent Main : Lead {\n", agent)


def held(play: Player, conversation: Conversation, way: tuple[str, str]) -> Talk:
    """A conversation in one way."""
    source = with_server(PROGRAM) if conversation.uses_server else PROGRAM
    host = RecordingHost(answers=list(conversation.person))
    given = {"host": host, "detailed": True, "seed": SEED, "limits": conversation.limits}
    return talk(
        play, source, conversation.script, way, calls=conversation.calls, played=given, meanwhile=conversation.meanwhile
    )


def heard_by(played: Played) -> list[str]:
    """What models were told in the end, apart from their own answers."""
    *_, last = (request for request in played.requests if not request.is_report)  # which tells these, too
    messages = (message.text for message in last.messages if message.role == "user")
    return [OWN_WORDS.sub("", text) for text in messages]


def sample(index: int, conversation: Conversation) -> list[tuple[str, str]]:
    """Two of the nine ways, with an SDK and a transport of its own each; those of the next conversation are others."""
    ways = usable((WAYS[3 * n + (n + index) % 3] for n in range(3)), conversation)
    return [ways[index // 3 % len(ways)], ways[index // 3 % len(ways) - 1]]


def usable(ways: Iterable[tuple[str, str]], conversation: Conversation) -> list[tuple[str, str]]:
    """Those that a conversation may take: tools of servers are asked for in text, they leave a schema too open."""
    return [way for way in ways if way[1] != "schema" or not conversation.uses_server]


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.thorough)], ids=["two", "every"])
@pytest.mark.parametrize(("index", "name"), list(enumerate(CONVERSATIONS)), ids=CONVERSATIONS)
def test_a_conversation_is_the_same_in_all_ways(play: Player, index: int, name: str, every: bool) -> None:
    """Actions with their fields, places, results and errors, what is printed, and what is asked of models."""
    conversation = CONVERSATIONS[name]
    ways = usable(WAYS, conversation) if every else sample(index, conversation)
    played = {way: held(play, conversation, way).played for way in ways}
    last, in_order = played[ways[0]], not conversation.is_parallel

    assert (list(conversation.printed), conversation.result) == (list(last.printed), last.result), last.told
    assert conversation.error in last.told
    assert bool(conversation.error) == bool(last.told)
    for way, again in played.items():
        assert (last.printed, last.result, last.told) == (again.printed, again.result, again.told), way
        assert story(last.events, in_order=in_order) == story(again.events, in_order=in_order), way
        assert requests_in(last.events) == requests_in(again.events), way
        assert heard_by(last) == heard_by(again), way
        heard = told(again.requests[-1])
        assert [] == [text for text in conversation.fed_back if text not in heard], (way, heard)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("way", [way for way in WAYS if way[1] == "schema"], ids="-".join)
@pytest.mark.parametrize("name", CLOSED)
def test_closed_agents_are_held_to_a_schema(play: Player, name: str, way: tuple[str, str]) -> None:
    """So that the matrix goes through schemas at all: in other agents something is open."""
    assert all('"$defs"' in asked.sent.decode() for asked in held(play, CONVERSATIONS[name], way).asked)
