"""`koi init`: projects that run, pass their test and are clean at once, without a model."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from koi_lang.cli.init import COMMON, NEXT, TEMPLATES, template_files
from koi_lang.program import build
from koi_lang.system.resources import project_templates
from tests import pages
from tests.projects import Project

# What each prints when it is run, and with the command that is named next.
PRINTED = {
    "chat": "Hello, Ada!\n",
    "team": "All tea is one plant\n",
    "coder": "notes.md:3: * TODO say what this project is for\n",
    "mcp": "",
    "batch": "1 question\n2 praise\n3 complaint\nleft for a person: 4\n",
}
FURTHER = {
    "team": "Editor : Lead { delegate }\n  actions    print",
    "mcp": "{ result: [ 'Tea' ] }\n",
    "batch": "labels tickets: 3 cases\n  passed  100.0 %",
}


def begin(project: Project, template: str) -> Project:
    """A new project in the folder `own`."""
    made = project.koi("init", "own", "--template", template)
    assert (0, "") == (made.returncode, made.stderr)
    return Project(project.folder / "own")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("template", TEMPLATES)
def test_a_new_project_runs_and_passes_its_test(template: str, project: Project) -> None:
    """Offline, with nothing to be found by the strictest check, the command that is named next included."""
    own = begin(project, template)

    ran, tested = own.koi("run", "--rehearse", "main.koi"), own.koi("test")

    assert (0, PRINTED[template]) == (ran.returncode, ran.stdout)
    assert (0, "") == (tested.returncode, tested.stderr)
    assert re.fullmatch(r"[2-9] passed in .*\n", tested.stdout)
    assert () == tuple(
        problem for path in own.folder.glob("*[a-z].koi") for problem in build.check(str(path), strict=True).diagnostics
    )
    if template in FURTHER:
        assert FURTHER[template] in own.koi(*NEXT[template][0].split()[1:]).stdout


def test_the_page_for_coding_agents_compiles(project: Project) -> None:
    """Its programs are clean, and the test on it passes with the program above it."""
    page = (project_templates() / COMMON / "AGENTS.md").read_text("utf-8")
    program, skill, test = (block.text for block in pages.blocks(page) if block.kind == "koi")
    project.write("main.koi", program)
    project.write("skill.koi", skill)
    project.write("main.test.koi", test)

    found = [build.check(str(path), strict=True).diagnostics for path in project.folder.glob("*[a-z].koi")]
    tested = project.koi("test")

    assert [(), (), ()] == found
    assert (0, "1 passed") == (tested.returncode, tested.stdout[:8])


def test_the_page_for_coding_agents_is_one_page() -> None:
    """It can be read in one go, and names commands that exist."""
    page = (project_templates() / COMMON / "AGENTS.md").read_text("utf-8")

    assert page.count("\n") < 140


def test_nothing_is_overwritten(project: Project) -> None:
    """Where a file of the project exists, none is written, and the files are named."""
    mine = project.write("main.koi", "role Mine { can sing }\n")

    refused = project.koi("init")

    assert 2 == refused.returncode
    assert "error: `main.koi` would be overwritten\n" in refused.stderr
    assert [mine] == list(project.folder.iterdir())
    assert "role Mine { can sing }\n" == mine.read_text("utf-8")


def test_a_folder_with_other_files_becomes_a_project(project: Project) -> None:
    """Files that the project has no use for stay, and its own come beside them."""
    project.write("README.md", "# Mine\n")

    made = project.koi("init", "--template", "team")

    assert 0 == made.returncode
    assert {"README.md", *template_files("team")} == files_in(project.folder)


def test_a_list_of_ignored_files_stays(project: Project) -> None:
    """A folder that was cloned with a `.gitignore` becomes a project all the same."""
    project.write(".gitignore", "mine\n")

    made = project.koi("init")

    assert (0, "`.gitignore` is left as it is; it should list `.env`\n") == (made.returncode, made.stderr)
    assert "mine\n" == (project.folder / ".gitignore").read_text("utf-8")


@pytest.mark.parametrize("name", ["", " ", "x" * 300])
def test_a_name_that_is_none_is_refused(name: str, project: Project) -> None:
    """With a message, and nothing is written."""
    refused = project.koi("init", name)

    assert (2, []) == (refused.returncode, list(project.folder.iterdir()))
    assert "help: " in refused.stderr


def test_a_link_is_not_followed(project: Project) -> None:
    """A link that leads nowhere is something that exists, so nothing is written through it."""
    (project.folder / "koi.toml").symlink_to(project.folder / "elsewhere.toml")

    refused = project.koi("init")

    assert (2, {"koi.toml"}) == (refused.returncode, {path.name for path in project.folder.iterdir()})


def test_what_cannot_be_written_leaves_nothing_behind(project: Project) -> None:
    """A file where a folder is needed stops it; what was written before is taken away again."""
    project.write(".github", "a file\n")

    refused = project.koi("init")

    assert 2 == refused.returncode
    assert "cannot become a project" in refused.stderr
    assert {".github"} == files_in(project.folder)


def files_in(folder: Path) -> set[str]:
    """The paths of all files in a folder."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.skipif(sys.platform == "win32", reason="folders have no modes there")
def test_settings_stay_with_their_owner(project: Project) -> None:
    """The first project makes the folder of settings, which nobody else may read, as `koi doctor` asks for."""
    folder = project.folder / "settings"

    assert 0 == project.koi("init", "mine", KOI_CONFIG_DIR=str(folder)).returncode
    assert [0o700, 0o700] == [path.stat().st_mode & 0o777 for path in (folder, folder / "trust")]
