"""Pages of Markdown to the programs on them: what stands beside each, what it is given, and what it prints."""

from __future__ import annotations

import doctest
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from koi_lang.llm.scripted import Answers
from koi_lang.settings import read_settings
from koi_lang.settings.project import allowed_commands
from tests.running import Outcome, run_file

ROOT = Path(__file__).resolve().parent.parent
# A block whose first line names a file, as in ```python tools.py, is that file.
FENCE = re.compile(r"^```(\w*) ?(\S*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


# Links within the text, `[words](target)`, and what is no text.
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`[^`\n]+`")
HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page.

    Attributes:
        kind: its language.
        name: of the file that it is; empty for the others.
        line: where it begins, from 1.
    """

    kind: str
    name: str
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Example:
    """A program on a page, followed by what it prints.

    Attributes:
        files: the files that stand before it on the page, by name.
        answers: those of a model, None where the page gives none.
        told: what the page says comes of it.
        line: where it begins.
    """

    program: str
    files: Mapping[str, str]
    answers: Answers | None
    told: str
    line: int

    def written(self, folder: Path) -> Path:
        """The file of the program, with the files that it needs beside it."""
        for name, text in {**self.files, "example.koi": self.program}.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, "utf-8")
        return folder / "example.koi"

    def run(self, folder: Path) -> Outcome:
        """What comes of the program in a folder; the commands are allowed that a `koi.toml` of the page allows."""
        path = self.written(folder)
        allow = [f"shell:{command}" for command in allowed_commands(read_settings(folder))]
        return run_file(path, folder, answers=self.answers, allow=allow)


def manual() -> dict[str, str]:
    """The pages that people read, by their path: the front page and all of `docs` but what is made from programs."""
    docs = (path for path in sorted((ROOT / "docs").rglob("*.md")) if path.parent.name != "reference")
    paths = [ROOT / "README.md", *docs]
    return {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in paths}


def links(page: str) -> list[str]:
    """Where the links of a page lead, but for those to other sites."""
    text = CODE.sub("code", FENCE.sub("", page))
    return [target for target in LINK.findall(text) if "://" not in target]


def anchors(page: str) -> set[str]:
    """What links may name behind `#`: the headings of a page, as forges spell them."""
    headings = HEADING.findall(FENCE.sub("", page))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page."""
    return [
        Block(found[1], found[2], found[3], page.count("\n", 0, found.start()) + 1) for found in FENCE.finditer(page)
    ]


def examples(page: str) -> Iterator[Example]:
    """The programs of a page that are followed by a block of the kind `text`."""
    files: dict[str, str] = {}
    program: Block | None = None
    answers: Answers | None = None
    for block in blocks(page):
        if block.name:
            files[block.name] = block.text
        elif block.kind == "koi":
            program, answers = block, None
        elif block.kind == "json":
            answers = json.loads(block.text)
        elif block.kind == "text" and program is not None:
            yield Example(program.text, dict(files), answers, block.text, program.line)
            program = None


def shown(outcome: Outcome, folder: Path) -> str:
    """What came of a run as a page shows it: what was printed, then the error that ended it."""
    lines = [*outcome.printed, *filter(None, [outcome.error])]
    return "".join(f"{line}\n" for line in lines).replace(f"{folder.as_posix()}/", "")


def replayed(session: str) -> doctest.TestResults:
    """Python's answers to the lines of an interactive session, held against those that are written there."""
    test = doctest.DocTestParser().get_doctest(session.replace("\n\n", "\n<BLANKLINE>\n"), {}, "session", None, 0)
    return doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE).run(test)
