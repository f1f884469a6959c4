"""What is wrong with the words of a schedule or an event."""

from __future__ import annotations


class ScheduleError(ValueError):
    """Words that mean no time and no event; `help` is one thing to do, a whole sentence."""

    def __init__(self, message: str, help: str) -> None:
        super().__init__(message)
        self.help = help
