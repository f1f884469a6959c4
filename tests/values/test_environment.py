"""The environment that values ask about the world."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from koi_lang.js.call_helpers import invoke
from koi_lang.js.environment import Machine, in_environment
from koi_lang.js.globals import GLOBALS


class Recording(Machine):
    """An environment that notes what it is asked, and gives the same answers every time."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Any] = []
        self.print = lambda text: self.asked.append(text)

    def observe(self, what: str, look: Callable[[], Any]) -> Any:
        """A fixed answer."""
        self.asked.append(what)
        return 1000

    def random_bytes(self, count: int) -> bytes:
        """Zeros."""
        self.asked.append(count)
        return bytes(count)


def test_values_ask_their_environment() -> None:
    """Output, the clock and chance come from there, and from nowhere else."""
    environment = Recording()

    with in_environment(environment):
        invoke(GLOBALS["console"], "log", "a")
        now, clock = invoke(GLOBALS["Date"], "now"), invoke(GLOBALS["performance"], "now")
        chance, name = invoke(GLOBALS["Math"], "random"), invoke(GLOBALS["crypto"], "randomUUID")

    assert environment.asked == ["a", "clock", "clock", 7, 16]
    assert (now, clock, chance, name) == (1000, 1000.0, 0.0, "00000000-0000-4000-8000-000000000000")


def test_an_environment_ends() -> None:
    """Afterwards values ask the one that was there before."""
    environment = Recording()

    with in_environment(environment):
        pass
    invoke(GLOBALS["Math"], "random")

    assert environment.asked == []
