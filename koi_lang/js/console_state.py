"""What the console of a run remembers between calls: open groups, counts, and when clocks were started."""

from __future__ import annotations

from dataclasses import dataclass, field

from koi_lang.js.number_format import number_text

STEP = "  "


@dataclass(slots=True)
class ConsoleState:
    """What was begun with `console.group`, `count` and `time`, by label.

    Attributes:
        started_ms: of the clock that only grows.
        has_rounded: whether the person was told that a number is rounded.
    """

    margin: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    started_ms: dict[str, float] = field(default_factory=dict)
    has_rounded: bool = False

    def begin(self) -> None:
        """Indent what follows one step more."""
        self.margin += STEP

    def end(self) -> None:
        """Indent what follows one step less."""
        self.margin = self.margin.removesuffix(STEP)

    def indent(self, text: str) -> str:
        """Lines with the margin of the open groups."""
        return self.margin + text.replace("\n", f"\n{self.margin}") if self.margin else text


def duration(ms: float) -> str:
    """A time as Node tells it: `1.5ms`, `2.000s`, `1:02.345 (m:ss.mmm)`, `1:00:02.345 (h:mm:ss.mmm)`."""
    if ms < 1000:
        return f"{number_text(round(ms, 3))}ms"
    minutes, seconds = divmod(ms / 1000, 60)
    if not minutes:
        return f"{seconds:.3f}s"
    hours, minutes = divmod(int(minutes), 60)
    if hours:
        return f"{hours}:{minutes:02}:{seconds:06.3f} (h:mm:ss.mmm)"
    return f"{minutes}:{seconds:06.3f} (m:ss.mmm)"
