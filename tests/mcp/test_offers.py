"""How much of a prompt the tools of servers take, and how a model finds one of many."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from koi_lang.llm.messages import Request
from koi_lang.runtime.mcp.offers import MOST_IN_FULL, Offer, found, lines
from koi_lang.runtime.mcp.tools import Tool
from tests.mcp.conftest import Shelf, call
from tests.mcp.test_calls import HEADING
from tests.pictures import RED
from tests.playbook.playing import Voice, act

TOKENS = 2000
ABOUT = "Writes a report on one of the many things that can be reported on, in the format that is asked for."


def tools(count: int, name: str = "report") -> list[Tool]:
    """Tools with a name, a description and a parameter each."""
    schema = {"type": "object", "properties": {"title": {"type": "string"}}}
    return [Tool("s", f"{name}_{number}", f"{ABOUT} {number}", schema, {}) for number in range(count)]


def test_few_tools_are_told_in_full() -> None:
    """Up to forty tools stand in the prompt with their parameters."""
    told = lines([Offer("s", tools(MOST_IN_FULL))])

    assert MOST_IN_FULL == len(told)
    assert f'- s.report_7(title?: string) "{ABOUT} 7"' == told[7]


def test_more_tools_are_named() -> None:
    """Of more, the prompt has the names, one line each, and how to ask for the rest."""
    told = lines([Offer("s", tools(MOST_IN_FULL + 1)), Offer("t", problem="gone")])

    assert "### s: 41 tools; get_mcp_tool_info gives the parameters of one, or finds some" == told[0]
    assert f"- report_7: {ABOUT} 7" == told[8]
    assert "- t cannot be used now: gone" == told[-1]


@pytest.mark.parametrize(("count", "name"), [(41, "tool"), (500, "make_report"), (500, "x" * 60), (5000, "tool")])
def test_any_number_of_tools_fits(count: int, name: str) -> None:
    """However many there are and whatever they are called, two thousand tokens hold them, four characters each."""
    told = "\n".join(lines([Offer("a", tools(count, name)), Offer("b", tools(count, name))]))

    assert len(told) / 4 <= TOKENS


def test_five_hundred_tools_in_a_run(shelf: Shelf) -> None:
    """A model that is told five hundred names finds a tool by words, asks for its parameters, and calls it."""
    find, info = (act("get_mcp_tool_info", mcp="files", tool=tool) for tool in ("report 49", "make_report_49"))
    played = shelf(find, info, **shelf.raw("many", "500"))
    section = played.requests[0].system.partition(HEADING)[2]

    assert len(section) / 4 <= TOKENS
    assert "make_report_0, make_report_1, " in section
    assert '"found":15,"tools":["files.make_report_49(title?: string)' in played.feedback[1]
    assert '"parameters":[{"name":"title","type":"string"' in played.feedback[2]


def test_finding_by_words() -> None:
    """All words must fit; names come before descriptions."""
    known = [Tool("s", name, about, {}, {}) for name, about in (("mend", "Read."), ("read_file", "Open a file."))]

    assert [["read_file", "mend"], ["read_file"], []] == [
        [tool.name for tool in found(known, words)] for words in ("READ", "file read", "write")
    ]


def test_documents_are_offered_where_there_are_some(shelf: Shelf) -> None:
    """The actions for documents and prompts are in the prompt if a server has such, and work from a playbook."""
    with_some = shelf(act("mcp_read_resource", mcp="files", uri="shelf://plain"), **shelf.raw())
    prompt = shelf(act("mcp_get_prompt", mcp="files", prompt="greet", input={"who": "Ada"}), **shelf.raw())

    assert "- mcp_read_resource(mcp: string, uri?: string) " in with_some.requests[0].system
    assert '{"uri":"shelf://plain","mimeType":"text/plain","text":"on paper"}' in with_some.feedback[1]
    assert '✅ mcp_get_prompt -> {"text":"Greet Ada."}\nContinue.' == prompt.feedback[1]


def test_a_model_that_sees_is_shown_an_image(shelf: Shelf) -> None:
    """The image of a result is shown in the next message to a model that is known to see, beside the note."""
    given = iter([call("picture", id="x", data=RED.data), act("return", data={})])

    async def speak(request: Request) -> AsyncIterator[str]:
        yield json.dumps(next(given))

    played = shelf.play(shelf.program(**shelf.raw()), Voice(speak, name="gpt-4o"))
    told = played.requests[1].messages[-1]

    assert (True, (RED,)) == (f"[image, image/png, {RED.size} bytes]" in told.text, told.images)


def test_an_image_is_told_not_shown(shelf: Shelf) -> None:
    """A model is told of an image what it is and how large; code has its data."""
    played = shelf({"batch": [act("call_mcp", mcp="files", tool="picture", id="x")]}, **shelf.raw())
    data = shelf.code("return (await files.picture()).content[0].data").result

    assert '✅ [x] call_mcp -> {"content":["[image, image/png, 12 kB]"]}\nContinue.' == played.feedback[1]
    assert "aGk=" * 4000 == data
