"""How long a server may take, and how much it may answer: options of each, and no end of its session."""

from __future__ import annotations

import sys
import time

import pytest

from tests import forks
from tests.mcp.conftest import RAW, SERVER, Shelf, call


def test_the_time_for_a_call_is_an_option(shelf: Shelf) -> None:
    """A call that takes longer than `timeout_s` has failed, and the server goes on."""
    command, *words = forks.python(str(SERVER))
    options = {"command": command, "args": words, "env": {"PIDS": str(shelf.pids)}}
    played = shelf(call("hang"), call("read", path="a"), timeout_s=2, **options)

    told = "`files.hang` failed: no answer within 2 s. The option `timeout_s` of the server says how long it may take."
    assert f"❌ call_mcp failed: {told}" in played.feedback[1]
    assert '✅ call_mcp -> {"result":"a 10"}' in played.feedback[2]
    assert 1 == len(shelf.processes())


@pytest.mark.parametrize("option", ["timeout_s", "start_timeout_s", "max_bytes"])
def test_limits_are_numbers(shelf: Shelf, option: str) -> None:
    """A limit that is no number above 0 is named."""
    played = shelf(call("echo", text="a"), **shelf.raw(), **{option: "5m"})

    assert f"`{option}` of the MCP server `files` must be a number above 0, not '5m'" in played.feedback[1]


def test_an_answer_that_is_too_large(shelf: Shelf) -> None:
    """An answer beyond `max_bytes` is the failure of its call; the same process answers the next one."""
    played = shelf(call("big", bytes=2_000_000), call("echo", text="a"), **shelf.raw(), max_bytes=1_000_000)

    assert "❌ call_mcp failed: `files.big` failed: the answer is larger than 1,000,000 bytes" in played.feedback[1]
    assert '✅ call_mcp -> {"result":"a"}' in played.feedback[2]
    assert 1 == len(shelf.processes())


@pytest.mark.parametrize(
    ("limit", "told"),
    [({"max_bytes": 300}, "the answer is larger than 300 bytes"), ({"start_timeout_s": 0.5}, "no answer within 0.5 s")],
)
def test_a_limit_is_told_beside_what_a_server_says(shelf: Shelf, limit: dict[str, float], told: str) -> None:
    """What a server writes to stderr while it starts does not stand in the place of the limit that it broke."""
    wait = "cat > /dev/null; " if "start_timeout_s" in limit else ""
    words = ["-c", f"echo loading >&2; {wait}exec {sys.executable} {RAW}"]
    played = shelf(call("echo", text="a"), command="sh", args=words, **limit)

    assert f"the MCP server `files` cannot be reached: {told}" in played.feedback[1]


def test_a_large_answer_is_read_in_one_go(shelf: Shelf) -> None:
    """Sixty megabytes take seconds; a reader that copies what it has with each piece works half a minute on them."""
    begin = time.process_time()
    size = shelf.code("return (await files.big({ bytes: 60000000 })).result.length").result

    assert 60_000_000 == size
    assert time.process_time() - begin < 12


@pytest.mark.parametrize("way", ["address", "json_address"])
def test_large_answers_over_http(shelf: Shelf, way: str, request: pytest.FixtureRequest) -> None:
    """An answer of three megabytes comes whole, as an event and as JSON; one beyond `max_bytes` fails alone."""
    options = {"type": "http", "url": request.getfixturevalue(way)}
    body = "return (await files.big({ bytes: args.bytes })).result.length"
    source = shelf.program(code=f"on code(args) {{ {body} }}", **options)
    whole = shelf.play(source, [], call="Main.code", payload={"bytes": 3_000_000})
    failed = shelf(call("big", bytes=3_000_000), call("read", path="a"), **options, max_bytes=1_000_000)

    assert 3_000_000 == whole.result, whole.told
    assert "❌ call_mcp failed: `files.big` failed: " in failed.feedback[1]
    assert '✅ call_mcp -> {"result":"a 10"}' in failed.feedback[2]
