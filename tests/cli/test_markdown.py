"""Markdown and other texts as a terminal shows them."""

from __future__ import annotations

import time

import pytest

from koi_lang.cli.ui.markdown import GrowingMarkdown, render_markdown, wrap_text
from koi_lang.cli.ui.text import ASCII, COLOUR, Theme
from tests.cli.chatting import chatting, say
from tests.playbook.playing import done
from tests.projects import Project

PLAIN, COLOURED = Theme(), Theme(colour=True)
TEXT = """\
# Results
Two *ways*, with `code`:
the **second** is shorter.

* one
* two

| a | b |
|---|---|
| 1 | x |

```python
if x:


    return 1
```
"""
SHOWN = """\
Results

Two ways, with code:
the second is shorter.

 • one
 • two

 a  b
 ────
 1  x

 if x:


     return 1"""


def test_markdown_becomes_lines() -> None:
    """Headings, emphasis, lists, tables and code are shown as what they are; a line break stays one."""
    assert SHOWN == "\n".join(render_markdown(TEXT, 60, PLAIN))


def test_colours_change_no_letter() -> None:
    """With colours the same is shown, and code is highlighted."""
    lines = render_markdown(TEXT, 60, COLOURED)

    assert SHOWN == COLOUR.sub("", "\n".join(lines))
    assert "\x1b[" in next(line for line in lines if "return" in line)


def test_words_stay_whole() -> None:
    """A line is broken between words; a word is broken only where it is longer than a line."""
    assert ["one two three four", "x" * 20, "xxx end"] == wrap_text(f"one two three four {'x' * 23} end", 20, PLAIN)
    assert ["* [a](b) one two", "three"] == render_markdown("* [a](b) one two three", 20, ASCII)


@pytest.mark.parametrize("size", [1, 7, 40])
def test_a_text_that_grows_ends_as_the_whole(size: int) -> None:
    """However it arrives, and although the terminal becomes narrower meanwhile, it is shown as the whole text is."""
    whole = "\n".join([TEXT, "1. a", "2. b", "", "> said", "", TEXT])
    growing = GrowingMarkdown(COLOURED)
    for start in range(0, len(whole), size):
        growing.add(whole[start : start + size])
        growing.lines(60 if start < len(whole) / 2 else 40)

    assert render_markdown(whole, 40, COLOURED) == growing.lines(40)


def test_nothing_is_left_out() -> None:
    """HTML is text, addresses of links are shown, and what has no room as Markdown stays as it was written."""
    shown = "".join(
        render_markdown("<b>x</b> [a](https://x.test/1) ![p](https://x.test/2) <https://x.test/3>", 90, PLAIN)
    )
    wide = "|a1|" + "b|" * 40 + "\n|" + "-|" * 41 + "\n|c1|" + "d|" * 40
    deep = "\n".join("  " * level + f"- item{level}" for level in range(40))

    assert all(part in shown for part in ("<b>x</b>", "https://x.test/1", "https://x.test/2", "https://x.test/3"))
    assert 40 == "".join(render_markdown(wide, 80, PLAIN)).count("d")
    assert 40 == "".join(render_markdown(deep, 200, PLAIN)).count("item")


@pytest.mark.parametrize(
    "text", ["\x1b[2J\x1b]0;title\x07hi", "&#27;[31mhi", "[hi](\x1b]8;;x\x07)", "`\x1b[31mhi`", "```\n\x1b[1Ahi\n```"]
)
def test_no_escape_passes(text: str) -> None:
    """Nothing in a text steers the terminal, also not as an entity of HTML."""
    shown = "\n".join(render_markdown(text, 60, PLAIN))

    assert "hi" in shown
    assert "\x1b" not in shown


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "text", ["[" * 20000, "![" * 8000, "_a" * 8000, "> " * 10000, "|a" * 3000 + "\n" + "|-" * 3000, "&#" * 10000]
)
def test_hostile_texts_are_quick(text: str) -> None:
    """What is expensive for some readers of Markdown is not here."""
    start = time.process_time()
    render_markdown(text, 60, COLOURED)

    assert time.process_time() - start < 3


def test_an_answer_in_a_chat_is_rendered(project: Project) -> None:
    """What an agent says is shown as Markdown, its lines broken between words."""
    said = "The **second** one is " + "shorter than the first one, " * 4 + "which `wc` shows."
    shown = chatting(project, say(said), done(), columns=60)
    try:
        shown.until("idle")
        shown.child.send("Which?\r")
        screen = shown.until("wc shows.")
    finally:
        shown.child.close(force=True)

    assert "The second one is shorter than the first one, shorter than\nthe first one," in screen
    assert "**" not in screen
