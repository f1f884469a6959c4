"""Rubrics: which one counts, what a file has to say, and what is refused."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from koi_lang.errors import AgentError
from koi_lang.std import rubrics
from koi_lang.system import resources
from tests.projects import Project

BUNDLED = {
    "general": {"relevance": 0.4, "quality": 0.35, "completeness": 0.25},
    "code-review": {"correctness": 0.4, "safety": 0.25, "style": 0.15, "completeness": 0.2},
    "prose-quality": {"clarity": 0.3, "accuracy": 0.3, "tone": 0.15, "structure": 0.25},
    "sql-safety": {"correctness": 0.35, "safety": 0.3, "performance": 0.2, "reversibility": 0.15},
    "api-design": {"restfulness": 0.25, "consistency": 0.25, "error_responses": 0.3, "documentation": 0.2},
    "test-quality": {"coverage": 0.3, "assertions": 0.3, "isolation": 0.2, "readability": 0.2},
}
TASTE = """\
---
name: taste
kind: evaluator
description: Judges soup.
dimensions:
  - {name: salt, weight: 0.5, description: "1 when right, 0.5 when bland, 0 when sea."}
  - {name: heat, weight: 0.5, description: "1 when hot, 0.5 when warm, 0 when cold."}
---
Taste twice.
"""


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """The folders of rubrics of a project and of a person; the project is where programs run."""
    project, person = tmp_path / "project", tmp_path / "config"
    project.mkdir()
    monkeypatch.chdir(project)
    monkeypatch.setenv("KOI_CONFIG_DIR", str(person))
    return {"project": project / ".agents" / "evaluators", "person": person / "evaluators"}


def write(folder: Path, text: str = TASTE, name: str = "taste") -> Path:
    """The file of a rubric, written."""
    file = folder / name / "SKILL.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")
    return file


def refusal(name: object = "taste") -> str:
    """What is said when a rubric is asked for, with the advice."""
    with pytest.raises(AgentError) as error:
        asyncio.run(rubrics.find_rubric(name))
    return f"{error.value.message} | {error.value.help}"


@pytest.mark.parametrize("name", BUNDLED)
def test_six_rubrics_are_there(name: str, tmp_path: Path) -> None:
    """Each has its names and weights, and says of each dimension what earns 1, 0.5 and 0."""
    rubric = rubrics.choose_file(name, tmp_path).read(name)

    assert {each.name: each.weight for each in rubric.dimensions} == BUNDLED[name]
    assert rubric.text
    for each in rubric.dimensions:
        assert each.description.startswith("1 when ")
        assert ", 0.5 when " in each.description
        assert ", 0 when " in each.description


def test_there_are_no_others(tmp_path: Path) -> None:
    """What is bundled is what this page knows."""
    assert rubrics.rubric_names(tmp_path) == sorted(BUNDLED)


def test_the_project_counts_before_the_person(places: dict[str, Path]) -> None:
    """And the person before what is bundled; each is found with what it says."""
    code = TASTE.replace("name: taste", "name: general")
    origins = [asyncio.run(rubrics.find_rubric("general"))["origin"]]
    for origin in ("person", "project"):
        write(places[origin], code, "general")
        found = asyncio.run(rubrics.find_rubric("general"))
        origins.append(found["origin"])

    assert origins == ["bundled", "person", "project"]
    assert (found["description"], found["text"]) == ("Judges soup.", "Taste twice.")
    assert found["dimensions"][0] == {
        "name": "salt",
        "weight": 0.5,
        "description": "1 when right, 0.5 when bland, 0 when sea.",
    }


def test_dimensions_may_stand_in_metadata(places: dict[str, Path]) -> None:
    """As in files that were written for other programs, with whatever else these hold."""
    text = """\
        ---
        name: taste
        kind: evaluator
        description: Judges soup.
        license: MIT
        metadata:
          categories: [soup, stew]
          requires_bins: []
          dimensions:
            - name: salt
              weight: 1
              description: How salty.
        ---
        """
    write(places["project"], text.replace("        ", ""))

    assert [each["name"] for each in asyncio.run(rubrics.find_rubric("taste"))["dimensions"]] == ["salt"]


@pytest.mark.parametrize("name", ["../general", "a/b", "", ".", "..", "General", "a" * 65, "-a", "a\n", None, 3, ["a"]])
def test_a_name_is_no_path(name: object, places: dict[str, Path]) -> None:
    """Nothing but a name is looked for."""
    write(places["project"].parent, TASTE, "general")

    assert "is no name of a rubric" in refusal(name)


def test_an_unknown_name_is_answered_with_the_nearest(places: dict[str, Path]) -> None:
    """Rubrics of all places are suggested."""
    write(places["person"])

    assert "there is no rubric `tasty` | did you mean `taste`?" in refusal("tasty")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("weight: 0.5", "weight: 0.4"), "has weights that add up to 0.8, not to 1"),
        (("weight: 0.5", "weight: 0.500001"), "has weights that add up to 1, not to 1"),
        (("name: heat", "name: salt"), "has two dimensions `salt`"),
        (("kind: evaluator", "kind: task"), "is no evaluator"),
        (("name: taste", "name: smell"), "is called `smell` in its front matter"),
        (("description: Judges soup.", "description:"), "has no `description`"),
        (("weight: 0.5", "weight: half"), "has no weight in `dimensions[0]`, `salt`"),
        (("weight: 0.5", "weight: .nan"), "has no weight in `dimensions[0]`, `salt`"),
        (("weight: 0.5", "weight: true"), "has no weight in `dimensions[0]`, `salt`"),
        (("weight: 0.5", "weight: -1"), "has no weight in `dimensions[0]`, `salt`"),
        (("weight: 0.5", "weight: 1e999"), "has no weight in `dimensions[0]`, `salt`"),
        (("name: salt", "name: a b"), "has no name of a dimension in `dimensions[0]`"),
        (("name: salt, ", ""), "has no name of a dimension in `dimensions[0]`"),
        (("{name: heat", "# {name: heat"), "has no name of a dimension in `dimensions[1]`"),
        (("dimensions:", "others:"), "has no dimensions"),
        (("kind: evaluator", "kind: &x evaluator"), "has front matter whose line 3 holds an anchor"),
    ],
)
def test_what_a_file_lacks_is_told(change: tuple[str, str], told: str, places: dict[str, Path]) -> None:
    """A rubric that cannot be used ends in one message with its path; no other one takes its place."""
    write(places["person"])
    write(places["project"], TASTE.replace(*change))
    message = refusal()

    assert message.startswith(f"the rubric `.agents/evaluators/taste/SKILL.md` {told.partition(', not')[0]}")
    assert told in message


def test_weights_may_be_off_by_what_numbers_are(places: dict[str, Path]) -> None:
    """Ten tenths do not add up to exactly 1 in every order."""
    lines = "\n".join(f"  - {{name: d{n}, weight: 0.1, description: x}}" for n in range(10))
    head, _, rest = TASTE.partition("  - ")
    write(places["project"], f"{head}{lines}\n---{rest.partition('---')[2]}")

    assert len(asyncio.run(rubrics.find_rubric("taste"))["dimensions"]) == 10


def make_large(file: Path) -> None:
    """Ten megabytes behind what a rubric says."""
    file.write_text(TASTE + "x" * 10_000_000, "utf-8")


def make_pipe(file: Path) -> None:
    """Something that can be waited for without an end."""
    file.unlink()
    os.mkfifo(file)


def link(file: Path, target: Path) -> None:
    """A link in place of the file."""
    file.unlink()
    file.symlink_to(target)


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda file: file.write_bytes(TASTE.encode("utf-16")), "is not UTF-8 text"),
        (lambda file: file.write_bytes(b"\xff\xfe---"), "is not UTF-8 text"),
        (make_large, "is larger than 100,000 bytes"),
        (make_pipe, "is no file with a text"),
        (lambda file: link(file, file.parents[4] / "outside.md"), "leads out of the project"),
        (lambda file: link(file, Path("/dev/zero")), "leads out of the project"),
        (lambda file: link(file, file), "is a link that leads to itself"),
        (lambda file: link(file, file.parent / "nothing"), "cannot be read: no such file"),
        (lambda file: (file.unlink(), file.mkdir()), "cannot be read: is a directory"),
    ],
    ids=["utf-16", "bytes", "large", "pipe", "outside", "device", "circle", "nowhere", "folder"],
)
def test_what_is_no_text_of_the_project_is_refused(
    spoil: Callable[[Path], object], told: str, places: dict[str, Path]
) -> None:
    """At once, and with the path."""
    (places["project"].parents[1].parent / "outside.md").write_text(TASTE)
    spoil(write(places["project"]))

    assert f"the rubric `.agents/evaluators/taste/SKILL.md` {told}" in refusal()


def test_a_folder_that_leads_out_is_refused(places: dict[str, Path], tmp_path: Path) -> None:
    """Also where `.agents` itself is a link."""
    write(tmp_path / "elsewhere" / "evaluators")
    places["project"].parent.symlink_to(tmp_path / "elsewhere")

    assert "leads out of the project" in refusal()


def test_the_command_says_why(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """`koi list std judge --why` tells which file counts, and instead of which others."""
    monkeypatch.setenv("KOI_CONFIG_DIR", str(project.folder / "mine"))
    mine = TASTE.replace("taste", "general")
    write(project.folder / "mine" / "evaluators", mine, "general")
    write(project.folder / ".agents" / "evaluators", mine, "general")
    told = project.koi("list", "std", "judge", "--why", "general").stdout.splitlines()
    data = json.loads(project.koi("list", "std", "judge", "--why", "general", "--json").stdout)

    assert told[:4] == [
        "general: Judges soup.",
        "  salt 0.5",
        "  heat 0.5",
        "from the project, `.agents/evaluators/general/SKILL.md`",
    ]
    assert told[4] == f"instead of your settings, `{project.folder}/mine/evaluators/general/SKILL.md`"
    assert told[5].startswith("instead of the standard library, `")
    assert (data["origin"], len(data["others"])) == ("project", 2)


def test_the_page_shows_a_rubric_that_can_be_used(project: Project) -> None:
    """The file on the page of `std/judge` is a rubric, and the command below it says so."""
    page = (resources.standard_skills() / "judge.md").read_text("utf-8")
    (text,) = re.findall(r"^```markdown\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    (session,) = re.findall(r"^```console\n\$ (.*?)^```$", page, re.DOTALL | re.MULTILINE)
    command, _, told = session.partition("\n")
    write(project.folder / ".agents" / "evaluators", text, "soup")

    assert told == project.koi(*command.split()[1:]).stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("list", "std", "judge", "--why", "generel"), "did you mean `general`?"),
        (("list", "std", "judge", "--why", "../x"), "is no name of a rubric"),
        (("list", "std", "csv", "--why", "general"), "`--why` is about rubrics"),
        (("list", "std", "--why", "general"), "`--why` is about rubrics"),
    ],
)
def test_the_command_tells_what_is_wrong(words: tuple[str, ...], told: str, project: Project) -> None:
    """One message, and no traceback."""
    ran = project.koi(*words)

    assert ran.returncode in (1, 2)
    assert ran.stdout == ""
    assert told in ran.stderr
    assert "Traceback" not in ran.stderr
