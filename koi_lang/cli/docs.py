"""`koi docs`."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

import click

from koi_lang.cli.ui.colours import colour_option
from koi_lang.cli.ui.markdown import render_markdown
from koi_lang.cli.ui.text import has_colours, look_of, size_of
from koi_lang.diagnostics import suggestion
from koi_lang.errors import UsageError
from koi_lang.system import resources

# A row of the contents: a page and what it is about.
ROW = re.compile(r"^\| \[[^]]+\]\(([^)]+)\.md\) \| (.+) \|$", re.MULTILINE)
# What only readers of the source see.
HIDDEN = re.compile(r"<!--.*?-->\n*", re.DOTALL)
LINK = re.compile(r"\[([^\]\n]+)\]\([^)\s]+\)")


@click.command()
@click.argument("topic", required=False)
@colour_option
def command(topic: str | None) -> None:
    """Show the page TOPIC of the manual; without one, list all pages. `std/NAME` is a part of the standard library.

    The pages belong to the installed version, and nothing is fetched.
    """
    if topic is None:
        click.echo("\n".join(_contents()))
        return
    text = HIDDEN.sub("", _page(topic).read_text("utf-8"))
    if not sys.stdout.isatty():
        click.echo(text.rstrip("\n"))
        return
    look = look_of(sys.stdout)
    lines = render_markdown(_words(text), min(size_of(sys.stdout)[0], 100), look)
    click.echo_via_pager("\n".join(lines) + "\n", color=has_colours(sys.stdout))


def _contents() -> list[str]:
    """The topics with what they are about, as the contents of the manual list them."""
    rows = ROW.findall((resources.manual() / "README.md").read_text("utf-8"))
    width = max(len(topic) for topic, _ in rows)
    return [f"{topic:<{width}}  {_words(about)}" for topic, about in rows]


def _words(text: str) -> str:
    """A text with the words of its links."""
    return LINK.sub(r"\1", text)


def _page(topic: str) -> Path:
    """The file of a topic. Raises UsageError."""
    known = topics()
    found = known.get(topic.lower().removesuffix(".md"))
    if found is None:
        help = suggestion(topic, list(known), "page")
        raise UsageError(f"the manual has no page `{topic}`", help=f"{help} `koi docs` lists them.")
    return found


def topics() -> Mapping[str, Path]:
    """The pages by their names; of two with one name in several folders, the outer one has the short name."""
    folder = resources.manual()
    pages = sorted(folder.rglob("*.md"), key=lambda path: (len(path.parts), path))
    library = {f"std/{path.stem}": path for path in sorted(resources.standard_skills().glob("*.md"))}
    whole = {path.relative_to(folder).with_suffix("").as_posix(): path for path in pages}
    short = {path.stem: path for path in reversed(pages)}
    return {**{name.lower(): path for name, path in {**short, **whole}.items()}, **library}
