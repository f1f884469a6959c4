"""Skills in files: which one counts, what keeps one from being used, and what is read of it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from koi_lang.errors import AgentError, PermissionDeniedError
from koi_lang.runtime.guidance.skill_files import MAX_PART, read_part
from koi_lang.runtime.guidance.skill_folders import SkillEntry, find_skills
from koi_lang.runtime.guidance.skill_places import SkillFolder

GOOD = "---\nname: review\ndescription: Reviews code\n---\nLook twice.\n"


def put(folder: Path, text: str | bytes = GOOD, name: str = "review") -> Path:
    """A skill in one of the places for them."""
    file = folder / name / "SKILL.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def entries(project: Path, name: str = "review") -> list[SkillEntry]:
    """What is found under a name."""
    return [entry for entry in find_skills(project) if entry.place.name == name]


def problem_of(project: Path, name: str = "review") -> str:
    """Why the only skill of a name cannot be used."""
    (entry,) = entries(project, name)
    return entry.problem


def test_the_nearer_skill_counts(project: Path) -> None:
    """That of the project before the person's, and the bundled one behind both."""
    person = project.parent / "person" / "skills"
    for folder in (person, project / ".koi/skills", project / ".agents/skills"):
        put(folder)
    put(person, GOOD.replace("review", "koi-programs"), "koi-programs")

    assert [True, False, False] == [entry.counts for entry in entries(project)]
    assert ".agents/skills/review" == entries(project)[2].winner
    assert ["person", "bundled"] == [entry.place.origin for entry in entries(project, "koi-programs")]
    assert [True, False] == [entry.counts for entry in entries(project, "koi-programs")]


def test_what_cannot_be_used_gives_way(project: Path) -> None:
    """A skill for another system, or that cannot be read, leaves its name to the next one."""
    put(project / ".agents/skills", GOOD.replace("name:", "os: [plan9]\nname:"))
    put(project / ".koi/skills")

    assert [False, True] == [entry.counts for entry in entries(project)]
    assert entries(project)[0].problem.startswith("it is for plan9, and this is ")


NEEDS = {
    "requires_bins: [no-such-program]": "it needs the program `no-such-program`, which is not installed",
    "metadata:\n  requires_env: [NO_SUCH_VARIABLE]": "it needs the variable `NO_SUCH_VARIABLE`, which is not set",
    "requires_bins: sh": "",
    "disable-model-invocation: true": "its author keeps it from models (`disable-model-invocation`)",
    "allowed-tools: [Bash, Write]": "",
}


@pytest.mark.skipif(sys.platform == "win32", reason="a program that every system has")
@pytest.mark.parametrize("line", NEEDS)
def test_what_a_skill_needs_is_looked_for(project: Path, line: str) -> None:
    """Programs, variables and systems, with the reason; tools that it allows itself count for nothing."""
    put(project / ".agents/skills", GOOD.replace("name:", f"{line}\nname:"))

    assert NEEDS[line] == problem_of(project)
    assert line.startswith("allowed") == bool(entries(project)[0].notes)


HERE = "`.agents/skills/review/SKILL.md`"
BROKEN: dict[str, tuple[str | bytes, str]] = {
    "no front matter": ("Look twice.", f"{HERE} has no front matter; it begins with a line `---`"),
    "broken YAML": (GOOD.replace("name: review", "name: &x"), f"{HERE} has front matter whose line 2 holds an anchor"),
    "another name": (GOOD.replace("review", "../../etc"), f"{HERE} is called `../../etc` in its front matter; write"),
    "no description": ("---\nname: review\n---\n", f"{HERE} has no `description`; say in one sentence what"),
    "a rubric": (GOOD.replace("name:", "kind: evaluator\nname:"), f"{HERE} is a rubric, no skill; put it into"),
    "too large": (GOOD + "x" * 5_000_000, f"{HERE} is larger than 100,000 bytes; move parts of it into files"),
    "not UTF-8": (GOOD.encode() + b"\xe9", f"{HERE} is not UTF-8 text; save it as UTF-8"),
    "names of other things": (GOOD.replace("name:", "requires_bins: [a/../b]\nname:"), f"{HERE} has no list of names"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_skill_says_why(project: Path, name: str) -> None:
    """In one sentence, with the file, and with the line where there is one."""
    text, expected = BROKEN[name]
    put(project / ".agents/skills", text)

    assert problem_of(project).startswith(expected)
    assert "\n" not in problem_of(project)


@pytest.mark.parametrize("name", ["Review", "a b", "-x", "x" * 65, "<system>", "\x1b[31mred", "a\nb"])
def test_the_name_of_a_folder_is_plain(project: Path, name: str) -> None:
    """No blanks, capitals, markup or control characters."""
    put(project / ".agents/skills", GOOD, name)

    assert "has no name of a skill" in problem_of(project, name)


@pytest.mark.skipif(sys.platform == "win32", reason="links and pipes")
def test_links_and_pipes_are_no_skills(project: Path) -> None:
    """A link out of the project, a link to a secret, and a pipe, which is not waited for."""
    outside = put(project.parent / "elsewhere")
    (project / ".env").write_text(GOOD)
    skills = project / ".agents" / "skills"
    for name in ("folder", "file", "secret", "pipe"):
        (skills / name).mkdir(parents=True)
    (skills / "folder").rmdir()
    (skills / "folder").symlink_to(outside.parent)
    (skills / "file" / "SKILL.md").symlink_to(outside)
    (skills / "secret" / "SKILL.md").symlink_to(project / ".env")
    os.mkfifo(skills / "pipe" / "SKILL.md")

    assert "leads out of the project" in problem_of(project, "folder")
    assert "leads out of its folder" in problem_of(project, "file")
    assert "leads out of its folder" in problem_of(project, "secret")
    assert "is no file with a text" in problem_of(project, "pipe")


def place_of(file: Path, project: Path) -> SkillFolder:
    """A skill as it is found."""
    return SkillFolder(file.parent.name, "project", file.parent, project, f".agents/skills/{file.parent.name}")


def test_a_long_text_is_read_in_parts(project: Path) -> None:
    """Each says where the next one begins, and together they are the whole text."""
    body = "\n".join(f"line {n} " + "x" * 90 for n in range(800))
    place = place_of(put(project / ".agents/skills", f"{GOOD}{body}"), project)
    texts, offset = [], 1
    while offset:
        part = read_part(place, "", offset)
        texts.append(part["text"])
        offset = part.get("next", 0)

    assert f"Look twice.\n{body}" == "\n".join(texts)
    assert all(len(text) <= MAX_PART for text in texts)


OUT = [
    ".",
    "../other/SKILL.md",
    "/etc/passwd",
    "C:\\x",
    "..\\x",
    "~/x",
    "a/../../x",
    ".env",
    "link",
    "sub/.git/config",
    "a\0b",
]


@pytest.mark.parametrize("path", OUT)
def test_files_beside_a_skill_are_below_its_folder(project: Path, path: str) -> None:
    """Nothing else is read, whichever way its path is written."""
    file = put(project / ".agents/skills")
    put(project / ".agents/skills", GOOD, "other")
    (file.parent / ".env").write_text("KEY=1")
    (file.parent / "link").symlink_to(project.parent)

    with pytest.raises(PermissionDeniedError, match="is no file of the skill `review`"):
        read_part(place_of(file, project), path, 1)


def test_files_beside_a_skill_are_read(project: Path) -> None:
    """Those that are not there, and those that are no text, are told."""
    file = put(project / ".agents/skills")
    (file.parent / "docs").mkdir()
    (file.parent / "docs" / "more.md").write_text("More.")
    (file.parent / "image.png").write_bytes(b"\x89PNG\xff")
    place = place_of(file, project)

    assert {"text": "More."} == read_part(place, "docs/more.md", 1)
    for path, why in (("no.md", "no such file"), ("image.png", "is not UTF-8 text"), ("docs", "is a directory")):
        with pytest.raises(AgentError, match=f"`{path}` of the skill `review` .*{why}"):
            read_part(place, path, 1)
