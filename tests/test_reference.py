"""Pages of the manual that are made from the program, the site, and `koi docs`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from posixpath import normpath
from typing import Any

import pytest

from docs import generate, site
from docs.client_modules import operations_by_class
from koi_lang.cli.docs import topics
from koi_lang.llm.usage import tokens_of
from koi_lang.runtime.guidance.skill_files import parse_skill
from koi_lang.system.resources import project_templates
from tests.in_process import exit_code_of
from tests.pages import FENCE, ROOT, anchors
from tests.projects import Project

HREF = re.compile(r'(?:href|src)="(?!https?:|data:|mailto:)([^"#?]*)(?:#([^"]*))?"')
ID = re.compile(r'\bid="([^"]+)"')
# The order of the sidebar, from what a newcomer reads to how the code works.
GROUPS = [
    "Start", "Write agents", "Run and watch", "Keep it safe", "Test and measure", "Serve", "Python", "Editors",
    "Reference", "How it works",
]  # fmt: skip
WORD = re.compile(r"^\| (.+?) \| .+ \| \[[^]]+\]\(([^)#]+)(?:#([^)]+))?\) \|$", re.MULTILINE)


@pytest.mark.parametrize("name", sorted(generate.pages()))
def test_generated_pages_are_not_stale(name: str, accept: bool) -> None:
    """They say what the program says now; `pytest --accept` writes them anew."""
    wanted = generate.pages()[name]
    path = generate.FOLDER / name
    if accept:
        path.write_text(wanted, "utf-8")

    assert wanted == path.read_text("utf-8"), "run `python -m docs.generate`"


def test_the_manual_names_all_methods_of_the_javascript_client() -> None:
    """Its table has what is made of the operations."""
    page = (generate.FOLDER.parent / "client.md").read_text("utf-8")
    methods = [method for made in operations_by_class().values() for method, _ in made]

    assert [] == [name for name in methods if not re.search(rf"`{name}\b", page)]


def test_every_page_has_its_place_on_the_site() -> None:
    """The navigation lists each page once, and nothing else."""
    listed = leaves(site.navigation())
    groups = [name for entry in site.navigation() for name in entry]

    assert sorted(place for place in site.sources() if place.endswith(".md")) == sorted(listed)
    assert {"Models": "models.md"} in next(entry["Start"] for entry in site.navigation() if "Start" in entry)
    assert GROUPS == groups[2 : 2 + len(GROUPS)]


def leaves(nav: Any) -> list[str]:
    """The pages of a navigation."""
    if isinstance(nav, str):
        return [nav]
    inner = nav.values() if isinstance(nav, dict) else nav
    return [leaf for each in inner for leaf in leaves(each)]


def test_links_to_what_is_no_page_are_words(tmp_path: Path) -> None:
    """Links between folders of the repository lead to pages of the site; those to other files are words; code stays."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("# Front\n")
    page = tmp_path / "docs" / "a.md"
    page.write_text(
        "[front](../README.md#install) [file](../x.py) [web](https://example.org) [here](#a)\n```\n[b](../x.py)\n```\n"
    )
    places = {(tmp_path / "README.md").resolve(): "overview.md", page.resolve(): "a.md"}

    told = site.site_page(page, "a.md", places)

    assert "[front](overview.md#install) file [web](https://example.org) [here](#a)\n```\n[b](../x.py)\n```\n" == told


def test_the_site_has_no_dead_links(tmp_path: Path) -> None:
    """It is built without a warning, and every link within it leads to a file, and to a place of it."""
    pytest.importorskip("zensical")
    built = subprocess.run([sys.executable, "-m", "docs.site", str(tmp_path)], cwd=ROOT, capture_output=True, text=True)
    assert 0 == built.returncode, built.stdout + built.stderr
    pages = {path: path.read_text("utf-8") for path in (tmp_path / "site").rglob("*.html") if path.name != "404.html"}
    ids = {str(path): {*ID.findall(text)} for path, text in pages.items()}

    # Most links are those of the sidebar, which many pages share.
    links = {
        (path.parent, target or path.name, anchor)
        for path, text in pages.items()
        for target, anchor in HREF.findall(text)
    }
    dead = [
        (folder.name, target, anchor)
        for folder, target, anchor in links
        if ((there := normpath(f"{folder}/{target}")) not in ids and not Path(there).exists())
        or (anchor and there in ids and anchor not in ids[there])
    ]

    assert [] == dead
    assert "\n- [Budgets](budgets.md): limits of tokens" in (tmp_path / "site" / "llms.txt").read_text("utf-8")
    full = (tmp_path / "site" / "llms-full.txt").read_text("utf-8")
    assert [] == [name for name in ("# A tour", "# Budgets", "# Settings") if f"\n{name}" not in full]
    index = json.loads((tmp_path / "site" / "search.json").read_text("utf-8"))["items"]
    assert [] == [word for word, page, _ in words() if not is_indexed(word, page, index)]


def is_indexed(word: str, page: str, index: list[dict[str, str]]) -> bool:
    """Whether the search of the site knows a page by a word, in one of its sections."""
    place = page.replace("../stdlib_skills/", "library/").replace(".md", ".html")
    sections = (f"{item['title']} {item['text']}" for item in index if item["location"].partition("#")[0] == place)
    return any(
        all(re.search(rf"\b{each}", text, re.IGNORECASE) for each in re.findall(r"\w+", word)) for text in sections
    )


def test_docs_lists_and_shows_pages(project: Project) -> None:
    """Every topic below the headings can be shown; a page is printed as it is where nobody reads it at a terminal."""
    lines = project.koi("docs").stdout.splitlines()
    listed = [line for line in lines if line.startswith("  ")]
    shown = project.koi("docs", "Budgets").stdout
    part = project.koi("docs", "std/csv").stdout

    assert GROUPS == [line for line in lines if line and line not in listed]
    assert [] == [line for line in listed if line.split()[0] not in topics()]
    assert (ROOT / "docs" / "budgets.md").read_text("utf-8") == shown
    assert part.startswith("# std/csv\n")


def test_an_unknown_topic_gets_a_suggestion(project: Project) -> None:
    """The nearest page is named."""
    refused = project.koi("docs", "budgtes")

    assert (2, "") == (refused.returncode, refused.stdout)
    assert "error: the manual has no page `budgtes`\n  = help: did you mean `budgets`?" in refused.stderr


def test_pages_for_models_hold_programs_as_they_are() -> None:
    """The text of all pages has their programs word for word."""
    full = site.llms_full()
    tour = (ROOT / "docs" / "tour.md").read_text("utf-8")

    assert [] == [block[2] for block in FENCE.findall(tour) if block[2] not in full]


def test_coding_agents_learn_koi_from_a_skill(project: Project) -> None:
    """It has the form of a skill, is small enough to be read whole, and has the whole page of new projects in it."""
    text = project.koi("docs", "--skill").stdout
    page = (project_templates() / "common" / "AGENTS.md").read_text("utf-8")
    skill = parse_skill(text, "koi")

    assert ((), True) == (skill.obstacles, skill.description.startswith("Write, check, test and run programs"))
    assert page in text
    assert {"## Imports", "## What is different", "## What is absent"} <= set(text.splitlines())
    assert tokens_of((), text) <= 4000


def words() -> list[tuple[str, str, str]]:
    """The words of the field, each with the page and the section that answer it; the section may be empty."""
    page = (ROOT / "docs" / "words.md").read_text("utf-8")
    return WORD.findall(page)


def topic_of(page: str) -> str:
    """What `koi docs` calls a page that a link of the manual leads to."""
    return page.removesuffix(".md").replace("../stdlib_skills/", "std/")


def test_there_are_many_words_of_the_field() -> None:
    """They stand in alphabetical order, 35 and more."""
    listed = [word.lower() for word, *_ in words()]

    assert listed == sorted(listed)
    assert len(listed) >= 35


@pytest.mark.parametrize(("word", "page", "anchor"), words())
def test_a_word_of_the_field_leads_to_its_page(
    capsys: pytest.CaptureFixture[str], word: str, page: str, anchor: str
) -> None:
    """Its page says the word in a heading, a description or a first paragraph; a search finds it."""
    contents = (ROOT / "docs" / "README.md").read_text("utf-8")
    text = FENCE.sub("", (ROOT / "docs" / page).read_text("utf-8"))
    described = re.findall(rf"^\| \[.*\]\({re.escape(page)}\) \| (.+) \|$", contents, re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    first = re.findall(r"^#+ (.+)\n\n((?:[^#|\n].*\n)*)", text, re.MULTILINE)
    begun = [said for heading, said in first if not anchor or anchor in anchors(f"# {heading}")][:1]

    assert exit_code_of("docs", "--search", word) == 0
    hits = [line.split()[0] for line in capsys.readouterr().out.splitlines()]

    assert word.removesuffix("y").lower() in " ".join((*described, *headings, *begun)).replace("\n", " ").lower()
    assert (topic_of(page) + f"#{anchor}".rstrip("#")) in hits[:3]


def test_docs_show_sections_without_colours(project: Project) -> None:
    """A section ends before the next one of its level, words lead to theirs; nothing is coloured without a terminal."""
    section = project.koi("docs", "language#memory", FORCE_COLOR="1").stdout
    shown = [project.koi("docs", word).stdout.partition("\n")[0] for word in ("tools", "Human-in-the-loop", "RAG")]
    refused = project.koi("docs", "language#memroy")

    assert ["## Skills: tools of your own", "# Steering a run: a human in the loop", "## Retrieval"] == shown
    assert section.startswith("### Memory\n")
    assert ("### The model" in section, "\x1b" in section) == (False, False)
    assert "  = help: did you mean `language#memory`?" in refused.stderr


def test_a_search_with_a_word_too_many_finds_the_others(project: Project) -> None:
    """Where nothing has all words of a query, what has most of them is listed, and that is said."""
    whole = project.koi("docs", "--search", "guardrails memory")
    more = project.koi("docs", "--search", "guardrails xyzzy memory")

    assert (0, "", 0) == (whole.returncode, whole.stderr, more.returncode)
    assert more.stdout.split()[0] == whole.stdout.split()[0]
    assert "no section has all of these words; those with most of them are\n" == more.stderr


def test_a_search_without_hits_says_so(project: Project) -> None:
    """Words that stand nowhere are an error of usage, and so is a query without words."""
    for query in ("xyzzy", "!"):
        refused = project.koi("docs", "--search", query)

        assert (2, "") == (refused.returncode, refused.stdout)
        assert f"error: no page of the manual has the words `{query}`\n" in refused.stderr
