"""`koi docs`: the pages of the manual, and the search in them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import click

from koi_lang.cli.ui.markdown import render_markdown
from koi_lang.cli.ui.text import has_colours, look_of, size_of
from koi_lang.diagnostics import nearest
from koi_lang.errors import UsageError
from koi_lang.system import resources

# A row of the contents: a page and its description.
ROW = re.compile(r"^\| \[[^]]+\]\(([^)]+)\.md\) \| (.+) \|$", re.MULTILINE)
# A row of the words of the field: a word, what Koi has for it, and the page, with a section or without.
WORD_ROW = re.compile(r"^\| (.+?) \| .+ \| \[[^]]+\]\(([^)#]+)(?:#([^)]+))?\) \|$", re.MULTILINE)
# What only readers of the source see.
HIDDEN = re.compile(r"<!--.*?-->\n*", re.DOTALL)
LINK = re.compile(r"\[([^\]]+)\]\([^)\s]+\)")
# Headings; blocks of code come first, since a line in them may begin with `#`.
HEADING = re.compile(r"^```.*?^```$|^(#+) ([^\n]+)$", re.DOTALL | re.MULTILINE)
# The ending of a word that has more letters.
ENDING = re.compile(r"(?<=\w\w)(?:ies|y|s)\b")
MAX_RESULTS = 12
# The beginning of the skill for coding agents, and the sections behind the page that `koi init` writes.
SKILL = """---
name: koi
description: Write, check, test and run programs in Koi, a language for programs made of AI agents (`*.koi` files).
---

"""
SKILL_SECTIONS = ("language#imports", "language#what-is-different", "language#what-is-absent")
MAX_COLUMNS = 100


class PageSection(NamedTuple):
    """A heading of a page with the text below it, up to the next heading.

    Attributes:
        level: 1 for the page itself.
        anchor: the heading as links name it.
    """

    level: int
    heading: str
    anchor: str
    text: str


class Hit(NamedTuple):
    """A section that a search finds; the least one is the best.

    Attributes:
        lacking: how many words of the query it lacks.
        rank: 0 for an answer to a word of the field, 1 for a title or a description, 2 for a text.
        place: where it stands in its page.
        anchor: empty for the page itself.
    """

    lacking: int
    rank: int
    place: int
    anchor: str
    title: str


@click.command()
@click.argument("topic", required=False)
@click.option(
    "--search", "query", metavar="WORDS", help="List the sections with these words, or most of them, best first."
)
@click.option("--skill", "is_skill", is_flag=True, help="Print a SKILL.md from which coding agents learn to write Koi.")
def command(topic: str | None, query: str | None, is_skill: bool) -> None:
    """Show the page TOPIC of the manual; without one, list all pages. `std/NAME` is a part of the standard library.

    TOPIC may be a section, as in `language#memory`, or a word of other frameworks, such as `guardrails`.
    The pages belong to the installed version, and nothing is fetched.
    """
    if query is not None:
        click.echo("\n".join(_search(query)))
        return
    if is_skill:
        page = (resources.project_templates() / "common" / "AGENTS.md").read_text("utf-8")
        sections = [_words(_page_text(each)).replace("### ", "## ", 1) for each in SKILL_SECTIONS]
        click.echo(SKILL + "\n\n".join(part.strip() for part in [page, *sections]))
        return
    if topic is None:
        click.echo(_contents())
        return
    text = _page_text(topic)
    if not sys.stdout.isatty():
        click.echo(text.rstrip("\n"))
        return
    look = look_of(sys.stdout)
    lines = render_markdown(_words(text), min(size_of(sys.stdout)[0], MAX_COLUMNS), look)
    click.echo_via_pager("\n".join(lines) + "\n", color=has_colours(sys.stdout))


def topics() -> Mapping[str, Path]:
    """The pages by their names; of two with one name in several folders, the outer one has the short name."""
    folder = resources.manual()
    pages = sorted(folder.rglob("*.md"), key=lambda path: (len(path.parts), path))
    library = {f"std/{path.stem}": path for path in sorted(resources.standard_skills().glob("*.md"))}
    whole = {path.relative_to(folder).with_suffix("").as_posix(): path for path in pages}
    short = {path.stem: path for path in reversed(pages)}
    return {**{name.lower(): path for name, path in {**short, **whole}.items()}, **library}


def _contents() -> str:
    """The topics with their descriptions below the headings of the contents."""
    width = max(map(len, _descriptions()))
    groups = []
    for part in (resources.manual() / "README.md").read_text("utf-8").split("\n## ")[1:]:
        rows = [f"  {name:<{width}}  {_words(about)}" for name, about in ROW.findall(part)]
        groups += ["\n".join([part.partition("\n")[0], *rows])] if rows else []
    return "\n\n".join(groups)


def _descriptions() -> dict[str, str]:
    """The topics with their descriptions, in the order of the contents."""
    text = (resources.manual() / "README.md").read_text("utf-8")
    return {topic: _words(about) for topic, about in ROW.findall(text)}


def _words(text: str) -> str:
    """A text with the words of its links."""
    return LINK.sub(r"\1", text)


def _page_text(topic: str) -> str:
    """The text of a page, of a section of it, or of what answers a word of the field. Raises UsageError."""
    pages = topics()
    anchor = topic.partition("#")[2]
    name = topic.partition("#")[0].lower().removesuffix(".md")
    if name not in pages:
        answers = {_stems(word): target for word, target in _words_of_the_field()}
        if _stems(name) not in answers:
            near = nearest(topic, list(pages))
            help = f"did you mean `{near}`?" if near else f"`koi docs --search '{topic}'` looks for words."
            raise UsageError(f"the manual has no page `{topic}`", help=f"{help} `koi docs` lists them.")
        name, anchor = answers[_stems(name)]
    text = HIDDEN.sub("", pages[name].read_text("utf-8"))
    if not anchor:
        return text
    sections = [*_sections(text)]
    start = next((at for at, each in enumerate(sections) if each.anchor == anchor.lower()), None)
    if start is None:
        near = nearest(anchor, [each.anchor for each in sections])
        help = f"did you mean `{name}#{near}`?" if near else f"`koi docs {name}` shows the whole page."
        raise UsageError(f"the page `{name}` has no section `{anchor}`", help=help)
    level = sections[start].level
    end = next((at for at, each in enumerate(sections) if at > start and each.level <= level), None)
    return "".join(each.text for each in sections[start:end])


def _words_of_the_field() -> Iterator[tuple[str, tuple[str, str]]]:
    """Words of other frameworks, each with the topic and the section that answer it; the section may be empty."""
    page = resources.manual() / "words.md"
    for word, target, anchor in WORD_ROW.findall(page.read_text("utf-8")):
        name = Path(target).with_suffix("").as_posix()
        yield word, (name.replace("../stdlib_skills/", "std/"), anchor)


def _stems(words: str) -> tuple[str, ...]:
    """Words without their endings, in lower case, for comparison: `Retries` is like `retry`."""
    return tuple(re.findall(r"\w+", ENDING.sub("", words.lower())))


def _found_in(text: str, stems: set[str]) -> set[str]:
    """Those of some stems that a text has; it is taken apart only where it holds one at all."""
    lowered = text.lower()
    return stems & {*_stems(lowered)} if any(stem in lowered for stem in stems) else set()


def _sections(text: str) -> Iterator[PageSection]:
    """The sections of a page, in order."""
    headings = [heading for heading in HEADING.finditer(text) if heading[1]]
    ends = [*(heading.start() for heading in headings[1:]), len(text)]
    for heading, end in zip(headings, ends, strict=True):
        anchor = re.sub(r"[^\w\- ]", "", heading[2].lower()).replace(" ", "-")
        yield PageSection(len(heading[1]), heading[2], anchor, text[heading.start() : end])


def _search(query: str) -> list[str]:
    """The best section of each page with the most words of a query, the best page first. Raises UsageError.

    Where no section has all of them, that is said on stderr. What answers a word of the field comes first, then
    titles, descriptions and headings, then texts.
    """
    stems, pages = {*_stems(query)}, topics()
    answers = [target for word, target in _words_of_the_field() if stems <= {*_stems(word)}]
    described = {name: about for name, about in _descriptions().items() if name != "words"}
    hits = []
    for name in [*described, *(name for name in pages if name.startswith("std/"))]:
        anchors = [anchor for topic, anchor in answers if topic == name]
        sections = _hits(pages[name].read_text("utf-8"), described.get(name, ""), stems, anchors) if stems else ()
        if best := min(sections, default=None):
            hits.append((best.lacking, best.rank, f"{name}#{best.anchor}" if best.anchor else name, best.title))
    if not hits:
        raise UsageError(f"no page of the manual has the words `{query}`", help="`koi docs` lists the pages.")
    is_partial = min(hits)[0] > 0
    if is_partial:
        click.echo("no section has all of these words; those with most of them are", err=True)
    best_hits = sorted((hit for hit in hits if is_partial or not hit[0]), key=lambda hit: hit[:2])[:MAX_RESULTS]
    width = max(len(topic) for _, _, topic, _ in best_hits)
    return [f"{topic:<{width}}  {title}" for _, _, topic, title in best_hits]


def _hits(page: str, about: str, stems: set[str], anchors: Sequence[str]) -> Iterator[Hit]:
    """The sections of a page with words of a query.

    Args:
        about: the description of the page in the contents.
        anchors: the sections that answer the words; an empty one is the page.
    """
    for place, section in enumerate(_sections(HIDDEN.sub("", page))):
        anchor = section.anchor if place else ""
        title = section.heading if place else f"{section.heading} {about}"
        found = [stems if anchor in anchors else set(), stems & {*_stems(title)}, _found_in(section.text, stems)]
        counts = [len(each) for each in found]
        if most := max(counts):
            name = _words(section.heading if place or not about else about)
            yield Hit(len(stems) - most, counts.index(most), place, anchor, name)
