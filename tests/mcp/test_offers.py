"""How much of a prompt the tools of servers take, and how a model finds one of many."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from koi_lang.llm.messages import Request
from koi_lang.runtime.mcp.tool_catalog import MemberTool, ServerCatalog, as_data, lines, search_tools
from koi_lang.runtime.mcp.tools import Tool
from tests.mcp.conftest import Shelf, call
from tests.mcp.test_calls import HEADING
from tests.pictures import RED
from tests.playbook.playing import Voice, act

TOKENS = 5000
ABOUT = "Writes a report on one of the many things that can be reported on, in the format that is asked for."


def tools(count: int, name: str = "report", about: str = ABOUT, server: str = "s") -> list[Tool]:
    """Tools with a name, a description and a parameter each."""
    schema = {"type": "object", "properties": {"title": {"type": "string"}}}
    return [Tool(server, f"{name}_{number}", f"{about} {number}", schema, {}) for number in range(count)]


def test_few_tools_are_told_in_full() -> None:
    """While there is room, every tool stands in the prompt with its schema and its whole description."""
    told = lines([ServerCatalog("s", tools(4, about="long " * 900 + "end"))])

    assert [f"- s.report_{n}(title?: string) " for n in range(4)] == [line.partition('"')[0] for line in told]
    assert all(line.endswith(f'end {n}"') for n, line in enumerate(told))


def test_of_more_the_shortest_are_told_in_full() -> None:
    """Of more, the shortest have their schemas, the others their names; the prompt says how to ask for the rest."""
    wide = {"type": "object", "properties": {f"field_{n}": {"type": "string"} for n in range(1000)}}
    told = lines([ServerCatalog("s", [*tools(80), *(Tool("s", f"wide_{n}", "Wide.", wide, {}) for n in range(20))])])

    assert "### s: 100 tools; get_mcp_tool_info gives the schema of one, or finds some" == told[0]
    assert [f"- s.report_{n}(title?: string) " for n in range(80)] == [line.partition('"')[0] for line in told[1:81]]
    assert [f"- wide_{n}: Wide." for n in range(20)] == told[81:]


def test_servers_share_the_room() -> None:
    """A server with thousands of tools takes no room from one that needs little."""
    few = [
        ServerCatalog("a", tools(5000)),
        ServerCatalog("b", tools(3, "long", "x" * 1500, "b")),
        ServerCatalog("c", problem="gone"),
    ]
    told = lines(few)

    assert [f'- b.long_{n}(title?: string) "{"x" * 1500} {n}"' for n in range(3)] == told[-4:-1]
    assert "- c cannot be used now: gone" == told[-1]


def test_members_are_told_whole() -> None:
    """Tools that are members of teams share room of their own; one that has gone says why."""
    tool, told = tools(1)[0], 150 * "long "
    members = {"a": MemberTool(replace(tool, description=told)), "b": MemberTool(None, "gone"), "c": MemberTool(None)}
    about = as_data([], members)["members"].values()

    assert [f'(title?: string) "{told.strip()}"', '() "gone"', '() "the server has no such tool"'] == list(about)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("count", "name"), [(41, "tool"), (500, "make_report"), (500, "x" * 60), (5000, "tool")])
def test_any_number_of_tools_fits(count: int, name: str) -> None:
    """However many there are and whatever they are called, five thousand tokens hold them, four characters each."""
    told = "\n".join(lines([ServerCatalog("a", tools(count, name)), ServerCatalog("b", tools(count, name))]))

    assert len(told) / 4 <= TOKENS


def test_five_hundred_tools_in_a_run(shelf: Shelf) -> None:
    """A model that is told five hundred names finds a tool by words, asks for its schema, and calls it."""
    find, info = (act("get_mcp_tool_info", mcp="files", tool=tool) for tool in ("report 49", "make_report_49"))
    played = shelf(find, info, **shelf.raw("many", "500"))
    section = played.requests[0].system.partition(HEADING)[2]

    assert len(section.partition("\n\n## ")[0]) / 4 <= TOKENS
    assert "make_report_498, make_report_499" in section
    assert '"found":15,"tools":["files.make_report_49(title?: string)' in played.feedback[1]
    schema = '"inputSchema":{"type":"object","properties":{"title":{"type":"string"}}}'
    assert schema in played.feedback[2]


def test_finding_by_words() -> None:
    """All words must fit; names come before descriptions."""
    known = [Tool("s", name, about, {}, {}) for name, about in (("mend", "Read."), ("read_file", "Open a file."))]

    assert [["read_file", "mend"], ["read_file"], []] == [
        [tool.name for tool in search_tools(known, words)] for words in ("READ", "file read", "write")
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
