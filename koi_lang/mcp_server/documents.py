"""Documents and prompts that handlers of a program make: `expose mcp { resource "notes://{day}" = note }`."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp import types
from mcp.shared.uri_template import UriTemplate

from koi_lang.errors import UsageError
from koi_lang.mcp_server.results import blocks_of, plain_of
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.agents.declarations import Handler

Payload = dict[str, Any]
ROLES = ("user", "assistant")


@dataclass(frozen=True, slots=True)
class ExposedDocument:
    """A document that a handler of an exposed agent makes.

    Attributes:
        name: the address of a document, which may have holes, or the name of a prompt.
    """

    name: str
    agent: type[Agent]
    handler: Handler

    @property
    def about(self) -> str:
        """Its description, by the handler."""
        return self.handler.affordance or f"`{self.handler.event}` of `{self.agent.about.name}`"

    @property
    def fields(self) -> Mapping[str, Any]:
        """The schemas of the handler's payload, by name."""
        found = self.handler.schema.get("properties", {})
        return found if isinstance(found, dict) else {}

    @property
    def parameters(self) -> list[str]:
        """The names of the required parameters."""
        required = self.handler.schema.get("required", [])
        return list(required) if isinstance(required, list) else []


# ---------------------------------------------------------------- documents


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents that handlers make; an address without holes goes before one with."""

    made: Sequence[tuple[UriTemplate, ExposedDocument]]

    def list_resources(self) -> list[types.Resource]:
        """Those with one address, as the protocol describes them."""
        plain = [made for template, made in self.made if not template.variable_names]
        return [types.Resource(uri=one.name, name=one.handler.event, description=one.about) for one in plain]

    def templates(self) -> list[types.ResourceTemplate]:
        """Those with holes in their address, likewise."""
        return [
            types.ResourceTemplate(uri_template=made.name, name=made.handler.event, description=made.about)
            for template, made in self.made
            if template.variable_names
        ]

    def find_declared(self, address: str) -> ExposedDocument | None:
        """The maker of the documents at an address as it is declared, holes included."""
        return next((made for _, made in self.made if made.name == address), None)

    def find(self, uri: str) -> tuple[ExposedDocument, Payload] | None:
        """The maker of the document at an address, with the handler's payload; None for none."""
        for template, made in self.made:
            values = template.match(uri)
            if values is not None:
                return made, dict(values)
        return None


def documents(agents: Sequence[type[Agent]]) -> Documents:
    """All documents of some agents. Raises UsageError for an address that is none, or is there twice."""
    found = _exposed_documents(agents, "resources")
    try:
        parsed = [(UriTemplate.parse(made.name), made) for made in found.values()]
    except ValueError as error:
        raise UsageError(f"a resource has an address that cannot be read: {error}") from error
    return Documents(sorted(parsed, key=lambda pair: bool(pair[0].variable_names)))


def contents_of(uri: str, value: Any) -> types.ReadResourceResult:
    """The result of a handler as the content of a document: a text, media as bytes, everything else as JSON."""
    if isinstance(value, str):
        content: Any = types.TextResourceContents(uri=uri, mime_type="text/plain", text=value)
        return types.ReadResourceResult(contents=[content])
    plain = plain_of(value)
    blocks = blocks_of(plain) or ()
    contents = [one for block in blocks if (one := _content(uri, block)) is not None]
    if not contents or len(contents) < len(blocks):
        text = json.dumps(plain, ensure_ascii=False)
        contents = [types.TextResourceContents(uri=uri, mime_type="application/json", text=text)]
    return types.ReadResourceResult(contents=list(contents))


def _content(uri: str, block: types.ContentBlock) -> types.TextResourceContents | types.BlobResourceContents | None:
    match block:
        case types.TextContent(text=text):
            return types.TextResourceContents(uri=uri, mime_type="text/plain", text=text)
        case types.ImageContent() | types.AudioContent():
            assert base64.b64decode(block.data, validate=True) is not None
            return types.BlobResourceContents(uri=uri, mime_type=block.mime_type, blob=block.data)
        case types.EmbeddedResource(resource=resource):
            return resource
    return None


# ---------------------------------------------------------------- prompts


def made_prompts(agents: Sequence[type[Agent]]) -> dict[str, ExposedDocument]:
    """All prompts that handlers of some agents make. Raises UsageError for a name that is there twice."""
    return _exposed_documents(agents, "prompts")


def made_prompt(made: ExposedDocument) -> types.Prompt:
    """A prompt as the protocol describes it; its arguments are the fields that its handler takes."""
    arguments = [types.PromptArgument(name=name, required=name in made.parameters) for name in made.fields]
    return types.Prompt(name=made.name, description=made.about, arguments=arguments)


def messages_of(value: Any) -> types.GetPromptResult:
    """The result of a handler as messages: texts and media of a person, or `{ role, content }`; the rest as JSON."""
    plain = value if isinstance(value, str) else plain_of(value)
    items = plain if isinstance(plain, list) else [plain]
    messages = [message for item in items for message in _messages(item)]
    return types.GetPromptResult(messages=messages)


def _messages(item: Any) -> list[types.PromptMessage]:
    role: Any = item.get("role") if isinstance(item, dict) and "content" in item else None
    said = item["content"] if role in ROLES else item
    blocks = blocks_of(said if isinstance(said, list) else [said]) or _as_text(said)
    return [types.PromptMessage(role=role if role in ROLES else "user", content=block) for block in blocks]


def _as_text(said: Any) -> list[types.ContentBlock]:
    is_text = isinstance(said, dict) and said.get("type") == "text" and isinstance(said.get("text"), str)
    text = said["text"] if is_text else said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
    return [types.TextContent(type="text", text=text)]


def _exposed_documents(agents: Sequence[type[Agent]], kind: str) -> dict[str, ExposedDocument]:
    found: dict[str, ExposedDocument] = {}
    for agent in agents:
        for name, event in getattr(agent.about, kind).items():
            if name in found:
                raise UsageError(f"`{name}` is exposed twice", help="Rename one of the two.")
            found[name] = ExposedDocument(name, agent, agent.about.handlers[event])
    return found
