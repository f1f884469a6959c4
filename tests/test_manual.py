"""The front page and the manual: their programs do what the pages say, and their links lead somewhere."""

from __future__ import annotations

import pkgutil
import re
import shutil
import sys
import tomllib
from contextlib import suppress
from pathlib import Path

import pytest

from koi_lang.cli.chat.commands import COMMANDS
from koi_lang.llm.providers import PROVIDERS
from koi_lang.program import build
from koi_lang.rpc import commands, dispatcher  # noqa: F401  (the dispatcher fills the table)
from koi_lang.settings.project import LIMITS, MODEL_OPTIONS, ROLES, SECTIONS
from koi_lang.testing import blocks as tested
from koi_lang.version import __version__
from tests import pages, transcripts
from tests.pages import ROOT
from tests.projects import Project

MANUAL = pages.manual()
LINKING = [ROOT / name for name in (*MANUAL, "CONTRIBUTING.md")] + [
    path for folder in ("grammar", "examples", "stdlib_skills") for path in sorted((ROOT / folder).rglob("*.md"))
]
PROGRAMS = ROOT / "examples" / "readme"
DESIGN = [ROOT / "CONTRIBUTING.md", ROOT / "grammar" / "README.md", *sorted((ROOT / "docs" / "design").glob("*.md"))]
PACKAGES = {path.stem for path in (ROOT / "koi_lang").iterdir()} | {"tests"}
FILES = [path.read_text("utf-8") for path in (ROOT / "examples").rglob("*.koi")]
# Pieces of a program that is nowhere as a whole, by what they begin with.
PIECES = ("agent Clerk", "export function slug")
# Programs that show what a check says.
CRITICISED = frozenset({"oops.koi", "wrong.koi"})
CLEAN = sorted(path.name for path in PROGRAMS.glob("*.koi") if path.name not in CRITICISED)
EXAMPLES = [
    pytest.param(each, id=f"{name} line {each.line}") for name, page in MANUAL.items() for each in pages.examples(page)
]
PRINTING = [param for param in EXAMPLES if "\ntest " not in param.values[0].program]
TESTING = [param for param in EXAMPLES if "\ntest " in param.values[0].program]
CONSOLES = [name for name, page in MANUAL.items() if any(block.kind == "console" for block in pages.blocks(page))]
SESSIONS = [name for name, page in MANUAL.items() if any(block.text.startswith(">>>") for block in pages.blocks(page))]


def is_of_a_file(text: str) -> bool:
    """Whether a program stands word for word in an example, or is known to be a piece."""
    return text.startswith(PIECES) or any(text in file for file in FILES)


@pytest.fixture
def programs(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The files of the manual in a folder of their own, which is the current one."""
    shutil.copytree(PROGRAMS, project.folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", ".koi"))
    monkeypatch.chdir(project.folder)
    return project


@pytest.mark.parametrize("path", LINKING, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path: Path) -> None:
    """Every link within the project names a file, and a heading of it where it names one."""
    lost = []
    for link in pages.links(path.read_text("utf-8")):
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        if not target.exists() or (anchor and anchor not in pages.anchors(target.read_text("utf-8"))):
            lost.append(link)

    assert [] == lost


def test_every_page_is_listed() -> None:
    """The page of contents leads to every other page of the manual."""
    listed = {f"docs/{link}" for link in pages.links(MANUAL["docs/README.md"])}

    assert [] == sorted({*MANUAL} - listed - {"README.md", "docs/README.md"})


def test_six_classes_hold_a_run() -> None:
    """The table of the page says which; another one has to replace one of these."""
    page = (ROOT / "docs/design/runs.md").read_text("utf-8")
    names = dict(re.findall(r"^\| `(\w+)`, `([\w/]+\.py)` \|", page, re.MULTILINE))

    assert 2 < len(names) <= 6
    assert all(f"\nclass {name}" in (ROOT / "koi_lang" / file).read_text("utf-8") for name, file in names.items())


@pytest.mark.parametrize("path", DESIGN, ids=lambda path: path.name)
def test_what_is_named_is_there(path: Path) -> None:
    """Files, folders, modules and what is in them, as pages for those who change the code name them, exist."""
    named = pages.CODE.findall(pages.FENCE.sub("", path.read_text("utf-8")))

    assert [] == [name for name in named if not exists(name.strip("`"))]


def exists(name: str) -> bool:
    """Whether a path or a dotted name leads somewhere in this checkout; anything else is no such name."""
    if re.fullmatch(r"[a-z_./]+\.(py|md|lark)|[a-z_]+(/[a-z_]+)+", name):
        return any((folder / name).exists() for folder in (ROOT, ROOT / "koi_lang", ROOT / "grammar"))
    if re.fullmatch(r"[a-z_]+(\.\w+)+", name):
        with suppress(ImportError, AttributeError):
            return pkgutil.resolve_name(name if name.startswith("tests.") else f"koi_lang.{name}") is not None
        return name.partition(".")[0] not in PACKAGES
    return True


@pytest.mark.parametrize("example", PRINTING)
def test_a_program_prints_this(example: pages.Example, project: Project) -> None:
    """A program that is followed by its output prints that, or ends with the error that stands there."""
    assert example.told == pages.shown(example.run(project.folder), project.folder)


@pytest.mark.parametrize("example", TESTING)
def test_tests_pass(example: pages.Example, project: Project) -> None:
    """Tests that are followed by their outcome pass, as many as it says."""
    outcomes = [case.run() for case in tested.collect(example.written(project.folder), False)]

    assert (True, "") == (all(outcome.ok for outcome in outcomes), "".join(outcome.message for outcome in outcomes))
    assert example.told == f"{len(outcomes)} passed\n"


@pytest.mark.parametrize("name", MANUAL)
def test_programs_are_clean(name: str, programs: Project) -> None:
    """No check has anything to say about a program on a page that is not one of the examples."""
    blocks = [block for block in pages.blocks(MANUAL[name]) if block.name or block.kind == "koi"]
    paths = [
        programs.write(block.name or f"line{block.line}.koi", block.text)
        for block in blocks
        if block.name or not is_of_a_file(block.text)
    ]
    checked = [str(path) for path in paths if path.suffix == ".koi" and path.name not in CRITICISED]

    assert [] == [found.message for path in checked for found in build.check(path, strict=True).diagnostics]


@pytest.mark.parametrize("name", CLEAN)
def test_a_program_is_clean(name: str) -> None:
    """No check has anything to say about a program of the manual but the one that shows what a check says."""
    assert () == build.check(str(PROGRAMS / name), strict=True).diagnostics


def prepare(name: str, programs: Project) -> list[pages.Block]:
    """The blocks of a page, with the files and the examples that they need in the current folder."""
    blocks = pages.blocks(MANUAL[name])
    for block in blocks:
        if block.name:
            programs.write(block.name, block.text)
    if any("examples/" in block.text for block in blocks if block.kind in ("console", "python")):
        shutil.copytree(ROOT / "examples", programs.folder / "examples", ignore=shutil.ignore_patterns(".koi"))
    return blocks


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_in_python_says_this(name: str, programs: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python gives the results that a page shows."""
    sessions = [block.text for block in prepare(name, programs) if block.text.startswith(">>>")]
    monkeypatch.syspath_prepend(str(programs.folder))
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.delitem(sys.modules, "mathops", raising=False)

    assert [(0, text.count(">>> ")) for text in sessions] == [tuple(pages.replayed(text)) for text in sessions]


# Pages with many commands, or with pytest and Python started anew, by which people test their own programs.
OWN_TESTS = {"docs/python.md", "docs/runs.md"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.counterpart] * (name in OWN_TESTS)) for name in CONSOLES]
)
def test_a_terminal_says_this(name: str, programs: Project) -> None:
    """The commands of a page, carried out in the order in which they stand, write what is below them."""
    sessions = [block.text for block in prepare(name, programs) if block.kind == "console"]
    terminal = transcripts.Terminal(programs)

    for step in [step for session in sessions for step in transcripts.steps(session)]:
        assert step.told == terminal.run(step), step.command


def test_the_front_page_is_short() -> None:
    """The front page has at most 130 lines, the commands that start and test, and what is true of this version."""
    page = MANUAL["README.md"]

    assert page.count("\n") <= 130
    assert f"[{len(PROVIDERS)} providers]" in page
    assert f"\nVersion {__version__.rpartition('.')[0]}, " in page
    assert "pip install -e '.[dev]' && echo Ada | koi run --rehearse examples/hello-world.koi\n" in page
    assert "\npython -m pytest -W error\n" in page


def test_every_provider_is_named() -> None:
    """The page about models lists the providers in their order, each with the variables of its key."""
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", (ROOT / "docs" / "models.md").read_text("utf-8"), re.MULTILINE)
    listed = [(name, tuple(re.findall("`(.*?)`", variables))) for name, variables in rows]

    assert [(each.name, each.keys) for each in PROVIDERS] == listed


def test_every_command_of_other_surfaces_is_named() -> None:
    """The table of `koi rpc` and the list of `koi chat` hold the commands that there are, and no others."""
    rows = re.findall(r"^\| (?:begin|talk|hold, end|look|change|list) \| (.*) \|$", MANUAL["docs/rpc.md"], re.MULTILINE)
    answers = {"approve", "answer"}
    (chat,) = re.findall(r"^Commands: `(.*?)`", MANUAL["docs/chat.md"], re.MULTILINE | re.DOTALL)

    assert {each.name for each in commands.all_commands()} - answers == {*re.findall(r"`(\w+)`", "".join(rows))}
    assert set(COMMANDS) == set(chat.split())


def test_packages_are_counted() -> None:
    """`koi doctor` counts the packages that the project depends on."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

    assert f"and the {len(project['dependencies'])} packages it needs" in MANUAL["docs/models.md"]


@pytest.mark.parametrize("name", MANUAL)
def test_no_row_stands_twice(name: str) -> None:
    """A table has one row for each thing; merging two changes of a row may leave both."""
    tables = re.findall(r"(?:^\|.*\n)+", MANUAL[name], re.MULTILINE)
    keys = [[re.split(r"(?<!\\)\|", row)[1].strip() for row in table.splitlines()] for table in tables]

    assert [] == [key for column in keys for key in set(column) if key and column.count(key) > 1]


def test_every_command_and_setting_is_named(project: Project) -> None:
    """The page of commands names each, and the page of settings all sections, limits and options of `koi.toml`."""
    listed = project.koi("help", "all").stdout.partition("Begin:\n")[2]
    words = re.findall(r"[\w-]+", MANUAL["docs/commands.md"])
    settings = {*SECTIONS, *LIMITS, *ROLES, *MODEL_OPTIONS}

    assert [] == [name for name in re.findall(r"^  (\w+)", listed, re.MULTILINE) if name not in words]
    assert [] == sorted(name for name in settings if not re.search(rf"[`\[]{name}\b", MANUAL["docs/settings.md"]))
