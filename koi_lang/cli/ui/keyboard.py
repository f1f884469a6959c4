"""Keys that are pressed at a terminal to lines, where lines that change below must not be mixed up with typed text."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Callable
from importlib import import_module
from typing import Any

# Cursor keys and the like, which mean nothing here; the beginning of one waits for its end.
SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|[^\[O])", re.DOTALL)
BEGUN = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|O)?$")
LAST_WORD = re.compile(r"\S*\s*$")
MAX_CHARS = 100_000
LOCAL_MODES = 3


class Keyboard:
    """The terminal at standard input, which hands over single keys, or, as usual, whole lines.

    Attributes:
        is_ours: whether it hands over single keys; they are not echoed then.
    """

    def __init__(self) -> None:
        self._usual: list[Any] | None = None

    @property
    def is_captured(self) -> bool:
        """Whether single keys are handed over."""
        return self._usual is not None

    def take(self) -> None:
        """Have single keys handed over; not in the background, and not by a terminal that may be another session's."""
        termios = _terminal_modes_module()
        if self.is_captured or termios is None or not in_foreground():
            return
        try:
            usual = termios.tcgetattr(0)
            modes = [*usual]
            modes[LOCAL_MODES] &= ~(termios.ICANON | termios.ECHO)
            termios.tcsetattr(0, termios.TCSADRAIN, modes)
        except termios.error:  # the terminal is gone
            return
        self._usual = usual

    def give_back(self) -> None:
        """Have whole lines handed over again."""
        if self._usual is None:
            return
        usual, self._usual = self._usual, None
        _set_modes(usual, "TCSADRAIN")


def terminal_modes() -> list[Any] | None:
    """How the terminal at standard input works now; None where there is none, or it has no modes, as on Windows."""
    termios = _terminal_modes_module()
    try:
        return None if termios is None else list(termios.tcgetattr(0))
    except termios.error:
        return None


def set_terminal_modes(modes: list[Any]) -> None:
    """Have the terminal at standard input work as it did before."""
    _set_modes(modes, "TCSANOW")


def _set_modes(modes: list[Any], when: str) -> None:
    termios = _terminal_modes_module()
    if termios is not None and in_foreground():
        try:
            termios.tcsetattr(0, getattr(termios, when), modes)
        except termios.error:  # the terminal is gone, and its modes with it
            return


def _terminal_modes_module() -> Any:
    """`termios`; None where there is none, as on Windows."""
    try:
        return import_module("termios")
    except ImportError:
        return None


def in_foreground() -> bool:
    """Whether the terminal at standard input is the controlling one, and this process in its foreground."""
    foreground = _foreground_group()
    return foreground is not None and foreground == os.getpgrp()


def in_background() -> bool:
    """Whether the system would stop this process for reading from the terminal at standard input.

    Only the controlling terminal does that: another one, or one that is gone, is read as any file.
    """
    foreground = _foreground_group()
    return foreground is not None and foreground != os.getpgrp()


def _foreground_group() -> int | None:
    """The process group in the foreground.

    None where standard input is not the controlling terminal, or groups are unknown, as on Windows.
    """
    if not hasattr(os, "tcgetpgrp"):
        return None
    try:
        return os.tcgetpgrp(0)
    except OSError:
        return None


class LineEditor:
    """A line while it is typed.

    Attributes:
        text: what there is of it.
    """

    def __init__(self) -> None:
        self.text = ""
        self._decode = codecs.getincrementaldecoder("utf-8")("replace")
        self._begun = ""
        self._edits: dict[str, Callable[[str], str]] = {
            "\x7f": lambda text: text[:-1],
            "\b": lambda text: text[:-1],
            "\x15": lambda text: "",
            "\x17": lambda text: LAST_WORD.sub("", text, count=1),
            "\t": lambda text: f"{text} ",
        }

    def take(self, data: bytes) -> list[str | None]:
        """The lines that keys have finished; None stands for the end of input, Ctrl-D in an empty line."""
        typed = SEQUENCE.sub("", self._begun + self._decode.decode(data))
        begun = BEGUN.search(typed)
        self._begun = begun[0] if begun else ""
        lines: list[str | None] = []
        for key in typed.removesuffix(self._begun):
            if key in "\r\n":
                lines.append(self.text)
                self.text = ""
            elif key == "\x04" and not self.text:
                lines.append(None)
            elif key in self._edits:
                self.text = self._edits[key](self.text)
            elif key.isprintable() and len(self.text) < MAX_CHARS:
                self.text += key
        return lines
