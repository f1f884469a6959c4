"""Prompts and playbook texts: from parts with values filled in to one text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from koi_lang.runtime.context import current_run
from koi_lang.runtime.values.json_text import stringify
from koi_lang.runtime.values.operators import text
from koi_lang.runtime.values.promises import settle
from koi_lang.runtime.values.undefined import undefined

if TYPE_CHECKING:
    from koi_lang.runtime.agents.agent import Agent


@dataclass(frozen=True, slots=True)
class Scope:
    """What the names in a playbook or prompt stand for while it is rendered."""

    agent: Agent
    args: Any
    user_message: str = ""

    @property
    def state(self) -> dict[str, Any]:
        """The state of the agent."""
        return self.agent.state

    @property
    def agent_name(self) -> str:
        """The name of the agent."""
        return self.agent.name

    async def call_action(self, intent: str, data: Any = undefined) -> Any:
        """Run an action for the agent."""
        return await self.agent.call_action(intent, data)


class Prompt:
    """A reusable text; as a string in code it is `text`, in a playbook it is rendered for a scope.

    Attributes:
        name: as declared.
        parameters: names of its parameters.
    """

    __koi_members__: Mapping[str, str] = {"text": "text", "name": "name"}

    def __init__(
        self,
        name: str,
        raw: Callable[[], list[str | Prompt]],
        parts: Callable[..., Any] | None = None,
        parameters: Sequence[str] = (),
        composed: bool = False,
    ) -> None:
        self.name, self.parameters = name, tuple(parameters)
        self._raw, self._parts = raw, parts or (lambda scope, *given: raw())
        self._separator = "\n" if composed else "\n\n"

    @property
    def text(self) -> str:
        """The text as written, holes included."""
        return "\n\n".join(part if isinstance(part, str) else part.text for part in self._raw())

    def __str__(self) -> str:
        return self.text

    async def render(self, scope: Scope, *arguments: Any) -> str:
        """The text for a scope. Too few arguments are taken from the scope's args and state, in this order."""
        given = [*arguments, *(scope.args, scope.state)[len(arguments) :]][: len(self.parameters)]
        given += [undefined] * (len(self.parameters) - len(given))
        return await joined(await settle(self._parts(scope, *given)), scope, self._separator)

    async def __call__(self, *arguments: Any) -> str:
        """The text of a parameterised prompt, called from code."""
        return await self.render(current_run().bare_scope(), *arguments)


async def joined(parts: Sequence[Any], scope: Scope, separator: str) -> str:
    """Parts (texts, prompts, coroutines of texts) as one text; empty ones vanish."""
    rendered = [await (part.render(scope) if isinstance(part, Prompt) else settle(part)) for part in parts]
    return separator.join(part for part in rendered if part)


def fill(*parts: Any) -> str:
    """Pieces of a text and values between them; objects become JSON, what is missing becomes nothing."""
    return "".join(part if isinstance(part, str) else _filling(part) for part in parts)


def _filling(value: Any) -> str:
    if value is None or value is undefined:
        return ""
    if isinstance(value, (dict, list, tuple)):
        return str(stringify(value))
    return str(text(value))
