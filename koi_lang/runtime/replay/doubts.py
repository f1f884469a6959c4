"""Effects in doubt: they cannot be recalled, and may not be repeated without asking; and the decisions about them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from koi_lang.runtime.replay.location import Path

Why = Literal["begun", "opaque", "redacted", "unknown", "lost", "again"]
Choice = Literal["retry", "skip", "done", "stop"]

MAX_CHARS = 200
# What there is to say about an effect in doubt, behind its name.
REASONS: Mapping[Why, str] = {
    "begun": "had begun and its end is not known",
    "opaque": "had ended, and what it gave cannot be kept in a journal",
    "redacted": "had ended, and what it gave held a secret, which is not in the journal",
    "unknown": "is given `[redacted]` for a secret that a model or a caller had said, which is not in the journal",
    "lost": "works on a Python object whose state is lost: calls that changed it are known and are not made again",
    "again": "was done in the run that this is a branch of",
}
HOW_TO_DECIDE = (
    "Find out whether it took place, then write `koi resume` with the options as before and `--on-doubt retry`, which"
    " does it again; `skip` lets it fail, and `result=JSON` tells what it gave."
)


@dataclass(frozen=True, slots=True)
class Doubt:
    """An effect of which somebody has to say whether it is to be done, or done again.

    Attributes:
        name: what it is, such as `shell` or `fetch`.
        path: where in the run.
        why: what is in doubt.
        fields: what it is given.
        detail: what more there is to say, such as the calls that are lost.
    """

    name: str
    path: Path
    why: Why
    fields: Mapping[str, Any] = field(default_factory=dict)
    agent: str = ""
    detail: str = ""

    @property
    def reason(self) -> str:
        """The doubt as a sentence."""
        detail = f" ({self.detail})" if self.detail else ""
        return f"`{self.name}` {REASONS[self.why]}{detail}"

    @property
    def text(self) -> str:
        """The doubt with the inputs and the place of the effect."""
        return f"{self.reason}: {_shorten_fields(self.fields)} at {' / '.join(self.path)}"

    @property
    def name_and_fields(self) -> str:
        """The name and the inputs of the effect."""
        return f"`{self.name}` {_shorten_fields(self.fields)}"


def _shorten_fields(fields: Mapping[str, Any]) -> str:
    text = json.dumps(fields, ensure_ascii=False, default=str)
    return text if len(text) <= MAX_CHARS else f"{text[:MAX_CHARS]}…"


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision about an effect in doubt: `retry` repeats it, `skip` fails it, `done` supplies its result."""

    choice: Choice
    result: Any = None


RETRY = Decision("retry")
SKIP = Decision("skip")
STOP = Decision("stop")
Decide = Callable[[Doubt], Decision]


def stop_always(doubt: Doubt) -> Decision:
    """Decide nothing: the run ends where it meets the doubt."""
    return STOP
