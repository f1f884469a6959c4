"""What `std/files` writes does not become code: not in the same run, and not in the next one."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from koi_lang.errors import KoiError, PermissionDeniedError
from koi_lang.runtime.guards.file_names import CODE_ENDINGS, CODE_FOLDERS
from koi_lang.std import files
from tests.projects import Project

CODE = [
    "tool.py", "brotli.py", "./deep/er/Tool.PY", "sitecustomize.py", "conftest.py", "pack/__init__.py", "x.pyc",
    "native.so", "native.abi3.so", "x.pyd", "all.pth", "lib/python3/site-packages/all.pth", "python311._pth",
    "main.koi", "MAIN.Koi", "std/files.koi", "make.bat", "git.cmd", "profile.ps1", "env/pyvenv.cfg", "repository/HEAD",
    "x.dist-info/entry_points.txt", "X.EGG-INFO/entry_points.txt", "__pycache__/x.txt", "tool.py.", "tool.py::$DATA",
    "tool.ｐｙ", "tool.py . .", "deep/a:tool.py",
]  # fmt: skip
DATA = [
    "notes/today.md", "table.csv", "page.html", "data.json", "Makefile", "head.md", "copy", "happy", "x.py.txt", "py",
    "pack/templates/x.txt", "a.koi.md", "requirements.txt", "run.sh", "socksio/notes.txt", "koi.md",
]  # fmt: skip
WRITER = """
    import "std/files"
    role Worker {{ can execute, can write{more} }}
    agent Writer : Worker {{
      uses skill FileChanges
      on start() {{ playbook "Write the file." }}
      on byCode() {{ await writeFile("tool.py", "x = 1") }}
    }}
    run Writer.{event}()
    """
ANSWERS = """[{"intent": "call_skill", "skill": "FileChanges", "function": "writeFile",
    "input": {"path": "brotli.py", "text": "print('executed')"}}, {"intent": "return", "data": "${lastResult}"}]"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a project."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.sampled(12)
@pytest.mark.parametrize("path", CODE)
def test_code_is_neither_written_nor_moved_nor_removed(folder: Path, path: str) -> None:
    """A path of code is refused by every function, whether the file is there or not, and whatever case it has."""
    (folder / "notes.txt").write_text("import os")
    for work in (files.write(path, "x"), files.append(path, "x"), files.move("notes.txt", path)):
        with pytest.raises(PermissionDeniedError, match="is code"):
            asyncio.run(work)  # type: ignore[arg-type]
    for work in (files.remove(path), files.move(path, "notes.md")):
        with pytest.raises(PermissionDeniedError, match="is code"):
            asyncio.run(work)  # type: ignore[arg-type]

    assert os.listdir(folder) == ["notes.txt"]


@pytest.mark.parametrize("path", DATA)
def test_data_is_written(folder: Path, path: str) -> None:
    """What only somebody who asks for it runs is no code, nor is a name that looks a little like one."""
    asyncio.run(files.write(path, "x"))

    assert (folder / path).read_text() == "x"


def test_links_to_code_are_code(folder: Path) -> None:
    """Neither another name for a file of code nor another way to its folder makes it data."""
    (folder / "tool.py").write_text("x = 1")
    (folder / "notes.txt").symlink_to("tool.py")
    (folder / "x.dist-info").mkdir()
    (folder / "about").symlink_to("x.dist-info")

    for path in ("notes.txt", "about/entry_points.txt"):
        with pytest.raises(PermissionDeniedError, match="is code"):
            asyncio.run(files.write(path, "import os"))

    assert (folder / "tool.py").read_text() == "x = 1"


def test_a_script_is_code_and_a_new_file_is_none(folder: Path) -> None:
    """An executable file that begins with `#!` keeps what stands in it; a new text with `#!` is not executable."""
    hook = folder / "hooks" / "pre-commit"
    hook.parent.mkdir()
    hook.write_text("#!/bin/sh\ntrue\n")
    hook.chmod(0o755)

    with pytest.raises(PermissionDeniedError, match="is code"):
        asyncio.run(files.append("hooks/pre-commit", "touch pwned\n"))
    asyncio.run(files.write("hooks/other", "#!/bin/sh\ntouch pwned\n"))

    assert (hook.read_text(), os.access(folder / "hooks" / "other", os.X_OK)) == ("#!/bin/sh\ntrue\n", False)


@pytest.mark.sampled(9)
@pytest.mark.parametrize("name", sorted({*(f"x{end}" for end in CODE_ENDINGS), *(f"x{end}/a" for end in CODE_FOLDERS)}))
def test_every_row_of_the_table_counts(name: str) -> None:
    """Each ending refuses, in whatever letter case."""
    for path in (name, name.upper()):
        with pytest.raises(PermissionDeniedError, match="is code"):
            asyncio.run(files.write(path, "x"))


def test_a_model_writes_no_module_of_the_same_run(project: Project) -> None:
    """A model that wants to write what a library would import is refused, is told so, and nothing is written."""
    project.write("main.koi", WRITER.format(more="", event="start"))
    project.write("answers.json", ANSWERS)

    outcome = project.koi("run", "main.koi", "--answers", "answers.json", "--debug")

    assert "`brotli.py` is code (Python imports), and only an agent with `write_code` may change it" in outcome.stderr
    assert not (project.folder / "brotli.py").exists()


def test_code_of_the_program_needs_the_permission_too(project: Project) -> None:
    """What stands in the way is told with what to do; where a path came from cannot be told from it."""
    project.write("main.koi", WRITER.format(more="", event="byCode"))

    outcome = project.koi("run", "main.koi")

    assert outcome.returncode == 77
    assert "= help: Choose another name, or give `Worker` the permission: `can write_code`." in outcome.stderr


@pytest.mark.sampled(3)
@pytest.mark.parametrize("path", ["main.koi", "koi.toml", ".env", "rules.md", "tool.py"])
def test_an_agent_with_the_permission_writes_other_code(project: Project, path: str) -> None:
    """`write_code` allows code, and neither what the running program consists of nor settings."""
    program = WRITER.format(more=", can write_code", event="byCode").replace('"tool.py"', f'"{path}"')
    project.write("main.koi", 'import Rules : prompt from "./rules.md"\n' + program)
    project.write("rules.md", "Be kind.")

    outcome = project.koi("run", "main.koi")

    assert (path == "tool.py", path == "tool.py") == (outcome.returncode == 0, (project.folder / "tool.py").exists())
    assert (project.folder / "rules.md").read_text() == "Be kind."


def test_names_of_other_kinds_are_refused_as_before(folder: Path) -> None:
    """Hidden files and settings are told as what they are."""
    for path, why in (("koi.toml ", "by the person"), ("KOI.TOML.", "by the person"), (".git/hooks/x", "is hidden")):
        with pytest.raises(KoiError, match=why):
            asyncio.run(files.write(path, "x"))
