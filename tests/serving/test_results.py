"""What handlers give, as clients get it: media as such, everything else as text and data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from koi_lang.mcp_server.results import result_of
from tests.pictures import RED
from tests.serving.conftest import Place, over_stdio

IMAGE = {"type": "image", "mimeType": "image/png", "data": RED.data}
AUDIO = {"type": "audio", "mimeType": "audio/wav", "data": "UklGRg=="}
FILE = {"type": "resource", "resource": {"uri": "notes://a", "mimeType": "text/plain", "text": "on paper"}}
LINK = {"type": "resource_link", "uri": "notes://b", "name": "b"}
TEXT = {"type": "text", "text": "seen"}


def told(value: Any) -> tuple[list[dict[str, Any]], Any]:
    """The content and the structured content of a result."""
    result = result_of(value).model_dump(mode="json", by_alias=True, exclude_none=True)
    return result["content"], result.get("structuredContent")


@pytest.mark.parametrize("value", [IMAGE, AUDIO, FILE, LINK])
def test_media(value: dict[str, Any]) -> None:
    """A value that is an image, a sound, a document or a link to one comes as that."""
    assert ([value], None) == told(value)


def test_several_pieces() -> None:
    """A list of media and texts comes in its order."""
    assert ([TEXT, IMAGE, TEXT, FILE], None) == told(["seen", IMAGE, TEXT, FILE])


def test_large_numbers_are_exact() -> None:
    """An identifier beyond what doubles hold has all digits, as text and as data."""
    content, structured = told({"id": 725653563933458433})

    assert ("725653563933458433" in content[0]["text"], {"id": 725653563933458433}) == (True, structured)


def test_a_result_is_passed_on() -> None:
    """What a tool of another server gave can be returned as it is."""
    value = {"content": [TEXT, AUDIO], "structuredContent": {"loud": True}}

    assert ([TEXT, AUDIO], {"loud": True}) == told(value)


@pytest.mark.parametrize(
    "value",
    [
        {**IMAGE, "data": "not base64!"},
        {"type": "image", "mimeType": "image/png"},
        {"type": "image", "data": 5},
        {"type": ["image"]},
        {"type": "resource", "resource": "notes://a"},
        {"content": ["a", "b"]},
        {"content": []},
        {"content": [TEXT], "pages": 2},
        TEXT,
        [TEXT],
        [1, IMAGE],
    ],
)
def test_what_only_looks_like_media(value: Any) -> None:
    """Data that is no content, or broken, stays data."""
    content, structured = told(value)

    assert (1, "text") == (len(content), content[0]["type"])
    assert structured == (value if isinstance(value, dict) else None)


PROGRAM = """
role Painter { can execute }
agent Easel : Painter {
  expose mcp
  on paint() { return ["A red dot:", { type: "image", mimeType: "image/png", data: "%s" }] }
}
"""


def test_a_client_gets_an_image(place: Place, tmp_path: Path) -> None:
    """A client of a served program gets the text and the image of a handler."""
    program = tmp_path / "easel.koi"
    program.write_text(PROGRAM % RED.data, "utf-8")

    async def paint(client: Client) -> Any:
        return (await client.call_tool("paint")).content

    words, image = over_stdio(place, paint, str(program))

    assert ("A red dot:", "image/png", RED.data) == (words.text, image.mime_type, image.data)
