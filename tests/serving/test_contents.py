"""Prompts and sources of a program, as clients get them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from koi_lang.mcp_server.prompts_and_resources import sources
from tests.serving.conftest import PROGRAM, Listening, Place, over_http


def test_prompts_with_their_arguments(place: Place, server: Listening) -> None:
    """Every prompt of the program, also of files it imports, is offered; its parameters have to be given."""

    async def listed(client: Client) -> Any:
        prompts = (await client.list_prompts()).prompts
        return {prompt.name: [(each.name, each.required) for each in prompt.arguments or ()] for prompt in prompts}

    assert {"Letter": [("name", True), ("tone", True)], "Rules": []} == over_http(place, server, listed)


def test_prompts_are_described(place: Place, server: Listening) -> None:
    """A client that lets a person choose a prompt can show how it begins, holes included."""

    async def described(client: Client) -> Any:
        return {prompt.name: prompt.description for prompt in (await client.list_prompts()).prompts}

    assert "Write to ${name} in a ${tone} tone." == over_http(place, server, described)["Letter"]


def test_a_prompt_is_filled_in(place: Place, server: Listening) -> None:
    """Arguments stand where the text names them; it is what a person would say."""

    async def get(client: Client) -> Any:
        return (await client.get_prompt("Letter", {"name": "Ada", "tone": "dry"})).messages

    (message,) = over_http(place, server, get)

    assert ("user", "Write to Ada in a dry tone.") == (message.role, message.content.text)


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("Leter", {}, "there is no prompt `Leter`: did you mean `Letter`?"),
        ("Letter", {"name": "Ada"}, "the prompt `Letter` needs the argument `tone`"),
    ],
)
def test_prompts_that_cannot_be_had(place: Place, server: Listening, name: str, arguments: Any, told: str) -> None:
    """An unknown prompt and a missing argument are named."""

    async def get(client: Client) -> Any:
        with pytest.raises(Exception, match="prompt") as raised:
            await client.get_prompt(name, arguments)
        return str(raised.value)

    assert told == over_http(place, server, get)


def test_sources_are_resources(place: Place, server: Listening) -> None:
    """The files of the program can be read as they stand, its own file first; modules of Python are left out."""

    async def read(client: Client) -> Any:
        listed = (await client.list_resources()).resources
        contents = [(await client.read_resource(each.uri)).contents[0] for each in listed]
        return [(each.uri, content.text) for each, content in zip(listed, contents, strict=True)]

    files = [PROGRAM, PROGRAM.with_name("served-prompts.koi")]
    assert [(f"koi://source/{file.name}", file.read_text("utf-8")) for file in files] == over_http(place, server, read)


def test_only_sources_can_be_read(place: Place, server: Listening) -> None:
    """Other files of the machine have no address."""

    async def read(client: Client) -> Any:
        for uri in ("koi://source/../conftest.py", "koi://source/marks.py", "file:///etc/passwd"):
            with pytest.raises(Exception, match="there is no resource"):
                await client.read_resource(uri)
        return "refused"

    assert "refused" == over_http(place, server, read)


def test_addresses_do_not_tell_where_files_are(tmp_path: Path) -> None:
    """An address holds the path from the folder of the program; of other files two names."""
    files = ["/a/b/main.koi", "/a/b/sub/part.koi", "/elsewhere/std/text.koi", "/a/b/helper.py"]
    found = sources("/a/b/main.koi", files, str)

    assert ["main.koi", "std/text.koi", "sub/part.koi"] == sorted(
        uri.removeprefix("koi://source/") for uri in found.files
    )


def test_secrets_in_sources_are_not_shown(tmp_path: Path) -> None:
    """What is kept out of journals is kept out of resources, too."""
    file = tmp_path / "a.koi"
    file.write_text("// the word is sesame", "utf-8")
    found = sources(str(file), [str(file)], lambda text: text.replace("sesame", "[redacted]"))

    assert "// the word is [redacted]" == found.read("koi://source/a.koi").contents[0].text  # type: ignore[union-attr]
