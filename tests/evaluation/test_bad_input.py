"""Cases that cannot be read: one message with the line, before anything is carried out."""

from __future__ import annotations

import pytest

from tests.evaluation.evaluating import GREETER, evaluated
from tests.projects import Project

LINE = '{"name": "Ada"}\n'
FILES = {
    "no JSON": ("c.jsonl", LINE * 39 + "{name: Ada}\n" + LINE, "`./c.jsonl` is no JSON in line 40: "),
    "half an object": ("c.jsonl", LINE * 39 + '{"name": "Ada"', "`./c.jsonl` is no JSON in line 40: "),
    "NaN": ("c.jsonl", LINE + '{"n": NaN}\n', "`./c.jsonl` is no JSON in line 2: NaN is no JSON"),
    "too deep": ("c.jsonl", LINE + "[" * 200_000 + "\n", "`./c.jsonl` is no JSON in line 2: it is nested too deeply"),
    "empty lines": ("c.jsonl", "\n \n", "there are no cases in `./c.jsonl`"),
    "empty": ("c.json", "", "there are no cases in `./c.json`"),
    "an empty list": ("c.json", "[]", "there are no cases in `./c.json`"),
    "no list": ("c.json", LINE, "`./c.json` holds no list of cases"),
    "JSON broken in line 40": ("c.json", "[\n" + "1,\n" * 38 + "2 3]", "`./c.json` is no JSON in line 40: "),
    "a header alone": ("c.csv", "name,size\n", "there are no cases in `./c.csv`"),
    "a field too many": ("c.csv", "name,size\nAda,3\nBo,2,1\n", "`./c.csv` has 3 fields in line 3, and line 1 names 2"),
    "a column twice": ("c.csv", "name,name\nAda,3\n", "`./c.csv` does not name every column once in line 1"),
    "an open quote": ("c.csv", 'name\n"Ada\n', "`./c.csv` is no CSV in line 2: "),
    "another format": ("c.txt", LINE, "`./c.txt` is no file of cases"),
}


def refused(project: Project, name: str, *words: str) -> str:
    """What is said of an eval whose cases cannot be read; nothing is recorded, and no Python is shown."""
    project.write(
        "main.eval.koi", f'{GREETER}eval "greets" over "./{name}" {{ await Host.write({{ name: case.name }}) }}'
    )

    done = evaluated(project, *words)

    assert (2, "", False) == (done.returncode, done.stdout, (project.folder / ".koi").exists())
    assert "Traceback" not in done.stderr
    assert 1 == done.stderr.count("error: ")
    return done.stderr


@pytest.mark.sampled(6)
@pytest.mark.parametrize("what", FILES)
def test_a_file_of_cases_that_cannot_be_read(project: Project, what: str) -> None:
    """The message names the file and the line."""
    name, text, told = FILES[what]
    (project.folder / name).write_text(text, "utf-8", newline="")

    assert told in refused(project, name)


def test_a_file_of_cases_that_is_not_there(project: Project) -> None:
    """A missing file, and a folder, are told with where it is looked for."""
    (project.folder / "folder.jsonl").mkdir()

    assert "the cases in `./c.jsonl` cannot be read: no such file or directory" in refused(project, "c.jsonl")
    assert "the cases in `./folder.jsonl` cannot be read: is a directory" in refused(project, "folder.jsonl")


def test_a_file_of_200_mb_is_not_read(project: Project) -> None:
    """Its size is told, and what to do."""
    with (project.folder / "c.jsonl").open("wb") as file:
        file.truncate(200_000_000)

    assert "`./c.jsonl` has 200 MB, and a file of cases at most 64 MB" in refused(project, "c.jsonl")


def test_bytes_that_are_no_text(project: Project) -> None:
    """The line of the first of them is told."""
    (project.folder / "c.jsonl").write_bytes(LINE.encode() * 2 + b'{"name": "\xff"}\n')

    assert "`./c.jsonl` is no UTF-8 in line 3" in refused(project, "c.jsonl")


def test_a_hostile_name_does_not_steer_the_terminal(project: Project) -> None:
    """What cases are called, and what fails with their words, is shown without what a terminal would obey."""
    project.write(
        "main.eval.koi", r'eval "shows" over "./c.jsonl" { expect case.id == "" score n = 1 throw new Error(case.id) }'
    )
    (project.folder / "c.jsonl").write_text('{"id": "\\u001b]0;owned\\u0007\\u001b[2J\\nx"}\n')

    done = evaluated(project)

    assert (0, 0) == (done.stdout.count("\x1b"), done.stderr.count("\x1b"))
    assert "1 case\n" in done.stdout


@pytest.mark.parametrize("words", ["-n 0", "-j 0", "--max-usd 0", "--max-time 0", "--since nothing"])
def test_words_that_mean_nothing(project: Project, words: str) -> None:
    """They are refused before anything is carried out."""
    project.write("main.eval.koi", 'eval "passes" { }')

    done = evaluated(project, *words.split())

    assert (True, "") == (done.returncode in (1, 2), done.stdout)
    assert not (project.folder / ".koi").exists()
