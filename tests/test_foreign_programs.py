"""Small faulty programs of people who know another language or framework, and the first thing that each is told.

`data/foreign_programs.txt` has a title, what is wrong, and the first message: its code, its line and what to write.
Where nothing is said the last line is `none`. `pytest --accept tests/test_foreign_programs.py` writes the messages.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.support import HERE, diagnostics_of

PROGRAMS = HERE / "data" / "foreign_programs.txt"
AGENT = "role W { can execute }\nagent A : W {\n%s\n}\nrun A.go({})\n"
FORMS = {"file": "%s", "agent": AGENT, "body": AGENT.replace("%s", "on go(args: Json) {\n%s\n}")}
ENTRY = re.compile(
    r"^== (?P<title>[^\n]*) \[(?P<form>\w+)\]\n(?P<text>.*?)\n=> (?P<told>[^\n]*)$", re.MULTILINE | re.DOTALL
)
# Of the programs in the file those of which nothing is said; the number only falls.
MAX_SILENT = 6


def first_message(form: str, text: str, folder: Path) -> str:
    """The code and line of the first problem of a program, and what its help says; `none` where there is none."""
    path = folder / "main.koi"
    path.write_text(FORMS[form].replace("%s", text), "utf-8")
    problems = diagnostics_of(path)
    if not problems:
        return "none"
    place = problems[0].place
    return f"{problems[0].code} {place.source.position(place.span.start).line}: {problems[0].help}"


def test_each_is_told_what_to_write(tmp_path: Path, accept: bool) -> None:
    """The first message is the one that somebody has read and found to name the fault."""
    entries = [*ENTRY.finditer(PROGRAMS.read_text("utf-8"))]
    told = {entry["title"]: first_message(entry["form"], entry["text"], tmp_path) for entry in entries}
    if accept:
        shown = (f"== {each['title']} [{each['form']}]\n{each['text']}\n=> {told[each['title']]}\n" for each in entries)
        PROGRAMS.write_text("".join(shown), "utf-8")

    assert len(told) == len(entries) > 200
    assert {entry["title"]: entry["told"] for entry in entries} == told
    assert sum(each == "none" for each in told.values()) <= MAX_SILENT
