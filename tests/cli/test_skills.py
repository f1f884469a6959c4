"""`koi list skills`, and what `koi audit` says of agents that use texts of a project."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.guidance.conftest import project as project
from tests.guidance.test_skill_files import GOOD, put
from tests.projects import Project


@pytest.fixture
def here(project: Path) -> Project:
    """A project with three skills of one name, and one that cannot be used."""
    put(project / ".agents/skills", GOOD.replace("name:", "requires_bins: no-such-program\nname:"))
    put(project / ".koi/skills", GOOD.replace("name:", "allowed-tools: [Bash]\nname:"))
    put(project.parent / "person/skills")
    put(project / ".agents/skills", "no front matter", "a\x1b[2Jb")
    return Project(project)


def test_skills_are_listed(here: Project) -> None:
    """Those that are offered, and why others are not; nothing in a name moves the cursor."""
    done = here.koi("list", "skills")

    assert 0 == done.returncode, done.stderr
    assert "review  (.koi/skills/review)\n  Reviews code\n" in done.stdout
    assert "koi-programs  (" in done.stdout
    assert "review (.agents/skills/review): it needs the program `no-such-program`, which is not" in done.stdout
    assert "\\x1b[2Jb" in done.stdout
    assert "\x1b" not in done.stdout


def test_why_one_counts_is_told(here: Project) -> None:
    """The winner with its notes, and of each other one why it lost."""
    done = here.koi("list", "skills", "--why", "review")
    lines = done.stdout.splitlines()

    assert (0, "review: Reviews code") == (done.returncode, lines[0])
    assert "from the project, `.koi/skills/review`" == lines[1]
    assert lines[2].startswith("note: `allowed-tools` counts for nothing here")
    assert lines[3].startswith("not from the project, `.agents/skills/review`: it needs the program")
    assert lines[4].startswith("instead of your settings, `")
    assert lines[5].startswith("Of one name the nearest that can be used counts")


def test_a_skill_that_cannot_be_used_is_no_success(here: Project) -> None:
    """Exit code 1 with the reason; for a name that there is not, 2 with the one that was meant."""
    put(here.folder / ".agents/skills", "---\nname: x: y\n---\n", "broken")
    broken, unknown = here.koi("list", "skills", "--why", "broken"), here.koi("list", "skills", "--why", "revew")

    assert 1 == broken.returncode
    assert "`.agents/skills/broken/SKILL.md` has front matter whose line 2 has a second `:`" in broken.stdout
    assert (2, "did you mean `review`?") == (unknown.returncode, unknown.stderr.strip().splitlines()[-1][-22:])


def test_skills_are_data(here: Project) -> None:
    """One list, for other programs."""
    found = json.loads(here.koi("list", "skills", "--why", "review", "--json").stdout)

    assert [("project", False), ("project", True), ("person", False)] == [(s["origin"], s["counts"]) for s in found]
    assert {"name", "origin", "path", "description", "problem", "notes", "counts"} == set(found[0])


PROGRAM = """
import Own : skill from "./.koi/skills/review"
role R { can think }
agent Plain : R { on go(args) { playbook "Do it." } }
agent Main : R { uses instructions uses skills uses skill Own on go(args) { playbook "Do it." } }
agent Bare : R { uses instructions on go(args) { playbook "Do it." } }
"""


@pytest.mark.skipif(os.name == "nt", reason="paths")
def test_an_audit_tells_which_texts_are_used(here: Project) -> None:
    """Of agents that use some; `read_skill` is an action of those that have skills to read."""
    here.write("a.koi", PROGRAM)
    here.write("AGENTS.md", "Be brief.")
    plain, main, bare, _ = here.koi("audit", "a.koi").stdout.split("\n\n")

    assert "texts" not in plain
    assert "read_skill" not in plain + bare
    assert "read_skill" in main
    assert "instructions: AGENTS.md\n" in bare
    assert "review (program), review (project), koi-programs (bundled)" in main
