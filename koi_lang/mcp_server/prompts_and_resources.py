"""Prompts of a program, and its sources as resources."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mcp import types

from koi_lang.runtime.mcp.safe_text import one_line
from koi_lang.runtime.prompts import Prompt

SCHEME = "koi://source/"


def by_name(prompts: Sequence[Prompt]) -> dict[str, Prompt]:
    """Prompts by their names; of several the first, which is that of the file nearest to the program."""
    return {prompt.name: prompt for prompt in reversed(prompts)}


def prompt_of(prompt: Prompt) -> types.Prompt:
    """A prompt in the protocol, described by its first words; every parameter is required."""
    arguments = [types.PromptArgument(name=name, required=True) for name in prompt.parameters]
    written = prompt.name if prompt.waits else prompt.text
    return types.Prompt(name=prompt.name, description=one_line(written) or prompt.name, arguments=arguments)


def message_of(text: str) -> types.GetPromptResult:
    """A rendered prompt as a message of the person."""
    content = types.TextContent(type="text", text=text)
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])


@dataclass(frozen=True, slots=True)
class Sources:
    """The Koi files of a program, by the address under which clients read them.

    Attributes:
        files: paths by address.
        redact: takes secrets out of a text.
    """

    files: Mapping[str, Path]
    redact: Callable[[str], str]

    def list_resources(self) -> list[types.Resource]:
        """All of them as the protocol describes them."""
        return [
            types.Resource(uri=uri, name=path.name, title=uri.removeprefix(SCHEME), mime_type="text/x-koi")
            for uri, path in self.files.items()
        ]

    def read(self, uri: str) -> types.ReadResourceResult:
        """The text of one, as it is now. Raises OSError, KeyError."""
        text = self.redact(self.files[uri].read_text("utf-8-sig", "replace"))
        content = types.TextResourceContents(uri=uri, mime_type="text/x-koi", text=text)
        return types.ReadResourceResult(contents=[content])


def sources(program: str, files: Sequence[str], redact: Callable[[str], str]) -> Sources:
    """The sources of a program that consists of some files, its own file first.

    Addresses hold the path from the folder of the program; of a file outside of it, the name and that of its folder.
    """
    koi = [file for file in files if file.endswith(".koi")]
    folder = os.path.dirname(program)
    order = sorted(koi, key=lambda file: (file != program, file))
    return Sources({f"{SCHEME}{_name(file, folder)}": Path(file) for file in order}, redact)


def _name(file: str, folder: str) -> str:
    path = Path(file)
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else "/".join(path.parts[-2:])
