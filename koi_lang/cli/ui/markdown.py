"""Markdown and other texts to lines of a terminal, broken between words."""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, ClassVar

from koi_lang.cli.ui.text import COLOUR, Theme, harmless
from koi_lang.lazy import lazy_module

if TYPE_CHECKING:
    import markdown_it
    import rich.console as console
    import rich.markdown as markdown
    import rich.text as rich_text
else:
    markdown_it = lazy_module("markdown_it")
    console = lazy_module("rich.console")
    markdown = lazy_module("rich.markdown")
    rich_text = lazy_module("rich.text")

MIN_COLUMNS = 20
# Lines of a block that is rendered anew whenever it grows.
MAX_OPEN = 200
# Of a table.
MIN_CELL = 6
# The parser leaves out what is nested deeper; a list and each of its items are a level.
MAX_DEPTH = 12
# Highlights code in the sixteen colours of the terminal, whose background stays.
CODE_THEME = "ansi_dark"


def wrap_text(text: str, columns: int, look: Theme) -> list[str]:
    """The lines of a text, those that are too long broken between words where they can be; colours stay."""
    shown = _console(columns, look)
    return [
        line
        for part in harmless(text).split("\n")
        for line in _to_lines(shown, rich_text.Text.from_ansi(part, overflow="fold", no_wrap=False))
    ]


def render_markdown(text: str, columns: int, look: Theme) -> list[str]:
    """The lines of a Markdown text. A line break is one, HTML is text, and addresses of links and images are shown.

    Where the terminal can only show ASCII the text stays as it was written, its lines broken between words.
    """
    growing = GrowingMarkdown(look)
    growing.add(text)
    return growing.lines(columns)


class GrowingMarkdown:
    """A Markdown text that is being written. When it grows, only its last block is rendered anew."""

    def __init__(self, look: Theme) -> None:
        self._look = look
        self._text = ""
        self._columns = self._last_start = 0
        self._before_last: list[str] = []

    def add(self, text: str) -> None:
        """Take in what follows."""
        self._text += COLOUR.sub("", harmless(text))

    def last_lines(self, columns: int, most: int) -> list[str]:
        """The last lines of what there is so far, rendered; of a long block that is not complete, as it was written."""
        if self._text.count("\n", self._last_start) > MAX_OPEN:
            return wrap_text("\n".join(self._text.rsplit("\n", most)[1:]), columns, self._look)[-most:]
        return self.lines(columns)[-most:]

    def lines(self, columns: int) -> list[str]:
        """What there is so far, rendered."""
        if self._look.at_work.isascii():
            return wrap_text(self._text, columns, self._look)
        if columns != self._columns:
            self._columns = columns
            self._last_start = 0
            self._before_last = []
        source = self._text[self._last_start :]
        *closed, last = list(_blocks(source)) or [[]]
        for block in closed:
            self._before_last = [*self._before_last, *self._render(block, source), ""]
        if closed and last[0].map is not None:
            self._last_start += sum(len(line) + 1 for line in source.split("\n")[: last[0].map[0]])
        return [*self._before_last, *self._render(last, source)]

    def _render(self, block: list[markdown_it.token.Token], source: str) -> list[str]:
        """The lines of a block, without blank ones around it."""
        if _has_no_room(block, self._columns):
            start, end = block[0].map or (0, None)
            return wrap_text("\n".join(source.split("\n")[start:end]), self._columns, self._look)
        document = _document_type()("", code_theme=CODE_THEME, hyperlinks=False)
        document.parsed = block
        lines = _to_lines(_console(self._columns, self._look), document)
        shown = [number for number, line in enumerate(lines) if line]
        return lines[shown[0] : shown[-1] + 1] if shown else []


def _blocks(source: str) -> Iterator[list[markdown_it.token.Token]]:
    """The tokens of each paragraph, list, table and so on at the top of a text, in which a line break stays one."""
    block: list[markdown_it.token.Token] = []
    for token in _parser().parse(source):
        for child in token.children or ():
            if child.type == "softbreak":
                child.type = "hardbreak"
        block.append(token)
        if token.level == 0 and token.nesting <= 0:
            yield block
            block = []


def _has_no_room(block: list[markdown_it.token.Token], columns: int) -> bool:
    """Whether a part of a block would not be seen: a table has too many columns, or lists are nested too deep."""
    cells = sum(token.type == "th_open" for token in block)
    return cells * MIN_CELL > columns or any(token.level >= MAX_DEPTH for token in block)


@cache
def _parser() -> markdown_it.MarkdownIt:
    return markdown_it.MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("image")


@cache
def _document_type() -> type[markdown.Markdown]:
    """Markdown whose headings all begin at the left."""

    class Heading(markdown.Heading):
        LEVEL_ALIGN = dict.fromkeys(markdown.Heading.LEVEL_ALIGN, "left")

    class Document(markdown.Markdown):
        elements: ClassVar = {**markdown.Markdown.elements, "heading_open": Heading}

    return Document


def _console(columns: int, look: Theme) -> console.Console:
    return console.Console(
        file=io.StringIO(),
        width=max(columns, MIN_COLUMNS),
        color_system="standard" if look.colour else None,
        force_terminal=look.colour,
        legacy_windows=False,
        emoji=False,
        markup=False,
        highlight=False,
        _environ={},
    )


def _to_lines(shown: console.Console, content: console.RenderableType) -> list[str]:
    """What a console shows, without blanks at the ends of lines."""
    lines = []
    for segments in shown.render_lines(content, pad=False):
        parts = [(segment.text, segment.style) for segment in segments if not segment.control]
        while parts and not parts[-1][0].strip():
            parts.pop()
        if parts:
            parts[-1] = (parts[-1][0].rstrip(), parts[-1][1])
        lines.append(
            "".join(style.render(text, color_system=shown._color_system) if style else text for text, style in parts)
        )
    return lines
