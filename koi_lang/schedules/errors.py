"""What is wrong with the words of a schedule or an event."""

from __future__ import annotations


class ScheduleError(ValueError):
    """Words that mean no time and no event.

    Attributes:
        help: one thing to do, a whole sentence.
        wrong: the piece of the words that was probably misspelt; empty where that is not known.
        meant: what was probably meant by it.
    """

    def __init__(self, message: str, help: str, wrong: str = "", meant: str | None = None) -> None:
        super().__init__(message)
        self.help = f"did you mean `{meant}`?" if meant else help
        self.wrong, self.meant = wrong, meant
