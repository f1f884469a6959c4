"""Pages to what people read on them, also those that were made to keep a reader busy."""

from __future__ import annotations

import time

import pytest

from koi_lang.std.html_text import readable


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<p>One <b>two</b><p>three", "One two\nthree"),
        ("a &lt; b &amp;amp; c < d <3", "a < b &amp; c < d <3"),
        ("<p title='a > b' data-x=\"'>\" alt = it's>shown", "shown"),
        ("<script>if (a<b) '</p>'</script>x<style>y</style>", "x"),
        ("<head><meta a><title>t</title><body>x", "x"),
        ("a<svg><svg></svg>hidden</svg>b<!-- <p>no -->c<!DOCTYPE html><?x?>d", "abcd"),
        ("<textarea><p>raw</textarea> x", "<p>raw x"),
        ("<ul><li>1<li>2</ul>\n\n  <br/>3", "1\n2\n3"),
        ("x<b title='never closed>y", "xy"),
        ("x<b never closed", "x"),
        ("x<!-- never closed", "x"),
        ("x<script>never closed", "x"),
        ("&#x41;&#" + "9" * 5000, "&#x41;&#" + "9" * 5000),
    ],
)
def test_the_text_of_a_page(page: str, text: str) -> None:
    """Text is what a browser shows; elements that begin a paragraph begin a line."""
    assert readable(page, "https://example.org/")["text"] == text


def test_title_and_links() -> None:
    """Links are absolute, each once, and lead to the web only."""
    page = """<title> A
    &amp; B </title><a href="/x#top">one <i>more</i></a><a HREF='y?a=1&amp;b=2'>two</a><a href=/x>again</a>
    <a href="javascript:1">no</a><a href="http://[">no</a><a>no</a>"""
    found = readable(page, "https://example.org/a/b")

    assert found["title"] == "A & B"
    assert found["links"] == [
        {"url": "https://example.org/x", "text": "one more again"},
        {"url": "https://example.org/a/y?a=1&b=2", "text": "two"},
    ]


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "unit",
    [
        "<",
        "<a ",
        "<a '",
        '<a b="',
        "<a =",
        "<!--",
        "<!",
        "</x ",
        "&#",
        "<svg>",
        "<a href='/x'>t",
        "<title>t",
        "<a href ",
    ],
)
def test_no_page_keeps_a_reader_busy(unit: str) -> None:
    """A page of 200,000 characters takes well under a second, whatever it repeats."""
    page = unit * (200_000 // len(unit))
    begun = time.process_time()
    readable(page, "https://example.org/")

    assert time.process_time() - begun < 2
