"""Messages to programs and what becomes of them, whichever surface they come by: chat, rpc or web."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

ROLE = "role W { can execute }\n"


@dataclass(frozen=True, slots=True)
class MessageCase:
    """One message.

    Attributes:
        agents: of the program, each with its handlers without their bodies.
        name: whom the message is for.
        call: the handler that gets it, and what it is given; None where it is refused.
        refused: what is told then.
        text: of the message.
    """

    agents: dict[str, tuple[str, ...]]
    name: str
    call: tuple[str, Any] | None
    refused: str = ""
    text: str = " hi "

    @property
    def source(self) -> str:
        """The program; its handlers print what they are given."""
        return ROLE + "\n".join(self._agent(name, heads) for name, heads in self.agents.items())

    def _agent(self, agent: str, heads: tuple[str, ...]) -> str:
        bodies = (f"{head} {{ console.log({json.dumps(agent)}, JSON.stringify(args)) }}" for head in heads)
        return f"agent {agent} : W {{ {' '.join(bodies)} }}"


A_B = {"A": ("on chat(args: string)",), "B": ("on ask(args: { q: string })", "on sum(args: { n: number })")}
TWO = {"A": ("on a(args: string)", "on b(args: Json)", "on c(args: string)", "private on d(args: string)")}
CASES = (
    MessageCase(A_B, "", ("A", "hi")),
    MessageCase(A_B, "A", ("A", "hi")),
    MessageCase(A_B, "B", ("B", {"q": "hi"})),
    MessageCase(A_B, "B.ask", ("B", {"q": "hi"})),
    MessageCase(A_B, ".ask", ("B", {"q": "hi"})),
    MessageCase(TWO, "A.b", ("A", {"message": "hi"})),
    MessageCase(TWO, "A", None, "several handlers take a message"),
    MessageCase(TWO, "A.d", None, "`A` has no handler for `d`"),
    MessageCase(A_B, "B.sum", None, "`B.sum` takes no message"),
    MessageCase(A_B, "C", None, "there is no agent `C`"),
)
