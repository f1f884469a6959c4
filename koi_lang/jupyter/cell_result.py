"""What came of a cell, as a notebook shows it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from html import escape
from typing import Any

from koi_lang.api.program import ProgramUsage


@dataclass(frozen=True, slots=True, repr=False)
class CellResult:
    """What came of a program in a cell.

    Attributes:
        value: the result of its last `run` statement; None where it has none.
        output: the lines that it printed.
        usage: what its models have taken.
        run: id of the run, which `koi runs show` takes; empty where it was not recorded.
    """

    value: Any
    output: tuple[str, ...]
    usage: ProgramUsage
    run: str = ""

    def __repr__(self) -> str:
        return f"{self._text}\n{self._about}" if self._text else self._about

    def _repr_html_(self) -> str:
        """The same for a notebook; whatever a model wrote stands there as text."""
        shown = f"<pre>{escape(self._text)}</pre>" if self._text else ""
        return f"<div>{shown}<small>{escape(self._about)}</small></div>"

    @property
    def _text(self) -> str:
        if self.value is None or isinstance(self.value, str):
            return self.value or ""
        return json.dumps(self.value, indent=2, ensure_ascii=False, default=str)

    @property
    def _about(self) -> str:
        usage = self.usage
        tokens = usage.input_tokens + usage.output_tokens
        cost = f"${usage.cost_usd:.4f}{'' if usage.is_cost_known else ' or more'}"
        run = f"run {self.run}: " if self.run else ""
        return f"{run}{usage.requests:,} request{'' if usage.requests == 1 else 's'}, {tokens:,} tokens, {cost}"
