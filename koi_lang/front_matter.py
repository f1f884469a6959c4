"""The front matter of a Markdown file to a value: the part of YAML that such files are written in, and nothing else.

Read are mappings and lists, by indentation or in brackets, and texts, plain, quoted or as blocks (`|`, `>`). What would
mean something else than it looks like, such as anchors, tags and names that stand twice, is refused with its line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from koi_lang.errors import AgentError

FENCE = "---"
MAX_DEPTH = 20
MAX_NUMBER_CHARS = 100
# What is taken is not given back, so that a line takes time that grows with its length.
NAME = r"""(?P<key>[A-Za-z_$][\w.$-]*+(?:[ ]++[\w.$-]++)*+|"[^"\\]*"|'[^']*')"""
MEMBER = re.compile(rf"{NAME}\s*+:(?:[ ]+(?P<value>.*))?$")
ITEM = re.compile(r"-(?:(?P<gap> +)(?P<value>.*))?$")
BLOCK = re.compile(r"(?P<style>[|>])(?P<chomp>[+-]?)\s*(?:#.*)?$")
NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?")
QUOTED = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^']|'')*'""")
COMMENT = re.compile(r"\s*(?:#.*)?$")
# A piece of a list or mapping in brackets.
MARK = r"""[\[\]{},]|:(?=[\s\[{"'])"""
PIECE = re.compile(
    rf"\s*(?:(?P<mark>{MARK})|(?P<quoted>{QUOTED.pattern})|(?P<plain>[^\s\[\]{{}},:](?:[^\[\]{{}},:]|:(?=\S))*))"
)
CONSTANTS = {"": None, "~": None, "null": None, "true": True, "false": False}
# What begins something of YAML that is not read.
FOREIGN = {
    "&": "an anchor",
    "*": "an alias",
    "!": "a tag",
    **dict.fromkeys("%@`|>,", "a sign that would need quotation marks"),
    **dict.fromkeys("\"'", "a text in quotation marks without its end"),
}


@dataclass(frozen=True, slots=True)
class Line:
    """A line that says something.

    Attributes:
        indent: blanks before it.
        text: the rest, without a comment behind it where it is one of its own.
    """

    number: int
    indent: int
    text: str


def read_front_matter(text: str) -> tuple[Mapping[str, Any], str]:
    """What stands between the first two lines of `---`, and the text behind them. Raises AgentError."""
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != FENCE:
        raise AgentError("has no front matter", help="It begins with a line `---`, and a second one ends it.")
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == FENCE), 0)
    if not end:
        raise AgentError("has front matter without an end", help="Write a line `---` behind it.")
    value = FrontMatter(lines[:end]).read()
    if not isinstance(value, dict):
        raise AgentError("has front matter without names", help="Write lines such as `name: code-review`.")
    return value, "\n".join(lines[end + 1 :]).strip()


class FrontMatter:
    """Reads the lines of a front matter one after the other.

    Args:
        raw: with the first line of `---`, so that numbers are those of the file.
    """

    def __init__(self, raw: list[str]) -> None:
        self._raw = raw
        self._at = 1
        self._depth = 0

    def read(self) -> Any:
        """The value of all of it. Raises AgentError."""
        line = self._peek()
        value = {} if line is None else self._block(line.indent)
        if (rest := self._peek()) is not None:
            raise _unreadable(rest.number, "stands too far to the left or right")
        return value

    def _peek(self) -> Line | None:
        """The next line that says something."""
        while self._at < len(self._raw):
            raw = self._raw[self._at]
            text = raw.lstrip(" ")
            if text.startswith("\t") and text.strip():
                raise _unreadable(self._at + 1, "is indented with a tab")
            if text.strip() and not text.startswith("#"):
                return Line(self._at + 1, len(raw) - len(text), text.rstrip())
            self._at += 1
        return None

    def _block(self, indent: int) -> Any:
        """A mapping, list or text whose lines begin at a column."""
        line = self._peek()
        if line is None or line.indent < indent:
            return None
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _unreadable(line.number, f"lies more than {MAX_DEPTH} levels deep")
        read = self._list if ITEM.match(line.text) else self._mapping
        value = read(line.indent)
        self._depth -= 1
        return value

    def _list(self, indent: int) -> list[Any]:
        items: list[Any] = []
        while (line := self._peek()) is not None and line.indent == indent and (item := ITEM.match(line.text)):
            text = item["value"] or ""
            if MEMBER.match(text) or ITEM.match(text):
                # The item is a mapping whose first name stands behind the dash, or a list with its first item there.
                column = indent + 1 + len(item["gap"])
                self._raw[self._at] = " " * column + text
                items.append(self._block(column))
            else:
                self._at += 1
                items.append(self._value(text, line))
        return items

    def _mapping(self, indent: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while (line := self._peek()) is not None and line.indent == indent:
            member = MEMBER.match(line.text)
            if member is None:
                raise _unreadable(line.number, "is no `name: value`")
            name = member["key"].strip("\"'")
            if name in found:
                raise _unreadable(line.number, f"says `{name}` a second time")
            self._at += 1
            found[name] = self._value(member["value"] or "", line)
        return found

    def _value(self, text: str, line: Line) -> Any:
        """What stands behind a name or dash, and in the lines that belong to it."""
        if block := BLOCK.match(text):
            return self._text_block(line.indent, is_folded=block["style"] == ">", chomp=block["chomp"])
        if COMMENT.fullmatch(text):
            following = self._peek()
            is_list = following is not None and bool(ITEM.match(following.text)) and not ITEM.match(line.text)
            is_inside = following is not None and following.indent >= line.indent + (not is_list)
            return self._block(following.indent) if following is not None and is_inside else None
        while (more := self._peek()) is not None and more.indent > line.indent:
            text = f"{text} {more.text}"
            self._at += 1
        return _scalar(text.strip(), line.number)

    def _text_block(self, indent: int, *, is_folded: bool, chomp: str) -> str:
        """The lines of a block, without the blanks that all of them begin with."""
        lines: list[str] = []
        while self._at < len(self._raw):
            raw = self._raw[self._at]
            if raw.strip() and len(raw) - len(raw.lstrip(" ")) <= indent:
                break
            lines.append(raw if raw.strip() else "")
            self._at += 1
        margin = min((len(line) - len(line.lstrip(" ")) for line in lines if line), default=0)
        text = "\n".join(line[margin:] for line in lines).rstrip("\n")
        if is_folded:
            if "\n " in text:
                raise _unreadable(self._at, "ends a text behind `>` in which lines are indented; write `|`")
            text = re.sub(r"(?<=\S)\n(?=\S)", " ", text).replace("\n\n", "\n")
        return text if chomp == "-" else f"{text}\n"


def _scalar(text: str, number: int) -> Any:
    """A value on one line."""
    if quoted := QUOTED.match(text):
        if not COMMENT.fullmatch(text, quoted.end()):
            raise _unreadable(number, "goes on behind a text in quotation marks")
        return _unquote(quoted[0], number)
    if text[0] in "[{":
        return _Brackets(text, number).read()
    return _plain(re.split(r"(?<=\S)\s++#", text, maxsplit=1)[0], number)


def _plain(text: str, number: int) -> Any:
    """A text without quotation marks, which may be a number or a constant."""
    if text[:1] in FOREIGN:
        raise _unreadable(number, f"holds {FOREIGN[text[0]]}")
    if re.search(r":(?:\s|$)", text):
        raise _unreadable(number, "has a second `:`")
    if text.lower() in CONSTANTS:
        return CONSTANTS[text.lower()]
    if not NUMBER.fullmatch(text):
        return text
    if len(text) > MAX_NUMBER_CHARS:
        raise _unreadable(number, f"has a number of more than {MAX_NUMBER_CHARS} signs")
    if re.match(r"[-+]?0\d", text):
        raise _unreadable(number, "has a number that begins with 0")
    return float(text) if re.search(r"[.eE]", text) else int(text)


def _unquote(text: str, number: int) -> str:
    if text[0] == "'":
        return text[1:-1].replace("''", "'")
    try:
        return str(json.loads(text, strict=False))
    except ValueError as error:
        raise _unreadable(number, "has an unknown sign behind a backslash") from error


class _Brackets:
    """Reads a list `[a, b]` or a mapping `{a: b}` that stands on one line."""

    def __init__(self, text: str, number: int) -> None:
        self._text = text
        self._number = number
        self._at = 0
        self._depth = 0

    def read(self) -> Any:
        value = self._value()
        if not COMMENT.fullmatch(self._text, self._at):
            raise self._error()
        return value

    def _take(self) -> re.Match[str]:
        found = PIECE.match(self._text, self._at)
        if found is None:
            raise self._error()
        self._at = found.end()
        return found

    def _value(self) -> Any:
        piece = self._take()
        if piece["mark"] in ("[", "{"):
            self._depth += 1
            if self._depth > MAX_DEPTH:
                raise self._error()
            value = self._items() if piece["mark"] == "[" else self._members()
            self._depth -= 1
            return value
        if piece["mark"]:
            raise self._error()
        return (
            _unquote(piece["quoted"], self._number) if piece["quoted"] else _plain(piece["plain"].strip(), self._number)
        )

    def _items(self) -> list[Any]:
        items: list[Any] = []
        while not self._ends("]"):
            items.append(self._value())
            self._end_part("]")
        return items

    def _members(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not self._ends("}"):
            name = self._value()
            if not isinstance(name, str) or name in found or self._take()["mark"] != ":":
                raise self._error()
            found[name] = self._value()
            self._end_part("}")
        return found

    def _ends(self, mark: str) -> bool:
        """Whether a closing bracket comes next, which is then passed."""
        found = PIECE.match(self._text, self._at)
        if found is None or found["mark"] != mark:
            return False
        self._at = found.end()
        return True

    def _end_part(self, mark: str) -> None:
        """Pass the comma behind a part; the last one needs none."""
        found = PIECE.match(self._text, self._at)
        if found is None or found["mark"] not in (",", mark):
            raise self._error()
        self._at = found.end() if found["mark"] == "," else self._at

    def _error(self) -> AgentError:
        return _unreadable(self._number, "has brackets that cannot be read")


def _unreadable(number: int, what: str) -> AgentError:
    help = "Front matter holds lines `name: value`; texts with marks stand in quotation marks."
    return AgentError(f"has front matter whose line {number} {what}", help=help)
