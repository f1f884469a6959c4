"""The extension for Visual Studio Code: its own tests, its package, and what its files promise."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from lsprotocol.types import SemanticTokenTypes

from editors.generate.files import CHECKOUT
from koi_lang.lsp.semantic_tokens import TYPES
from koi_lang.program.build import check
from tests.limits import LIMIT_S
from tests.npm import locked_packages

EXTENSION = CHECKOUT / "editors" / "vscode"
KOI = Path(sys.executable).with_name("koi")
SNIPPETS = json.loads((EXTENSION / "snippets" / "koi.json").read_text("utf-8"))
WORKER = "role Worker { can execute, can delegate }\n"
HOST = WORKER + 'agent Host : Worker { on start(args: { text: string }) { playbook "Answer." } }\n'
IN_AGENT = WORKER + "agent A : Worker {\n§\n}"
IN_HANDLER = HOST + "team Desk { host: Host }\nagent A : Worker { uses team Desk on go() {\n§\n} }"
# Where a snippet stands, by what calls it; all others need nothing around them.
PLACES = {
    "agent": WORKER + "§",
    "team": HOST + "§",
    "run": HOST + "§",
    **dict.fromkeys(("on", "state", "budget"), IN_AGENT),
    **dict.fromkeys(("playbook", "send"), IN_HANDLER),
    "given": HOST + 'test "x" {\n§\nexpect await Host.start({ text: "" }) == { greeted: "Ada" }\n}',
}
# `$1`, `${1:text}`, and `${1|one,other|}`, which is one of several.
HOLE = re.compile(r"\$(?:(\d)|\{\d(?::((?:[^}\\]|\\.)*)|\|([^|]*)\|)\})")


@pytest.fixture
def extension(tmp_path: Path) -> Path:
    """A copy of the extension with its packages, beside the examples."""
    folder = tmp_path / "editors" / "vscode"
    shutil.copytree(EXTENSION, folder, ignore=shutil.ignore_patterns("node_modules", "dist", "out", "*.vsix"))
    (folder / "node_modules").symlink_to(locked_packages(EXTENSION))
    (tmp_path / "examples").symlink_to(CHECKOUT / "examples")
    return folder


def npm_run(folder: Path, script: str, **environment: str) -> str:
    """The output of a script of the extension, which must succeed."""
    done = subprocess.run(
        ["npm", "run", "--silent", script],
        cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return done.stdout


@pytest.mark.needs("node", "npm")
def test_the_tests_of_the_extension_pass(extension: Path) -> None:
    """Scopes of the grammar, the logic, and the seam to the editor with the tests of a real project."""
    told = npm_run(extension, "test", KOI=str(KOI))

    assert int(re.findall(r"^# pass (\d+)$", told, re.MULTILINE)[0]) > 50
    assert "# fail 0\n# cancelled 0\n# skipped 0\n" in told


@pytest.mark.needs("node", "npm")
@pytest.mark.thorough
def test_the_package_holds_what_an_editor_needs(extension: Path) -> None:
    """One command checks the types and writes the `.vsix`, with every file that `package.json` names."""
    npm_run(extension, "package")
    with zipfile.ZipFile(extension / "koi-lang.vsix") as archive:
        names = {name.removeprefix("extension/") for name in archive.namelist()}

    assert {path.removeprefix("./") for path in files_of(manifest()["contributes"])} | {"dist/extension.js"} <= names
    assert [] == [name for name in names if name.startswith(("test", "src", "node_modules"))]


def test_every_file_that_is_named_is_there() -> None:
    """`package.json` names no file that is missing, and the version is that of the language."""
    missing = [path for path in files_of(manifest()["contributes"]) if not (EXTENSION / path).exists()]

    assert [] == missing
    assert f'__version__ = "{manifest()["version"]}"' in (CHECKOUT / "koi_lang" / "version.py").read_text("utf-8")


def test_what_the_server_sets_apart_has_colours() -> None:
    """Kinds of tokens that are Koi's own are declared, and have scopes that themes know."""
    contributed = json.loads((EXTENSION / "package.json").read_text("utf-8"))["contributes"]
    own = {*TYPES} - {each.value for each in SemanticTokenTypes}

    assert own == {each["id"] for each in contributed["semanticTokenTypes"]}
    assert own == set(contributed["semanticTokenScopes"][0]["scopes"])


def test_packages_come_from_no_named_place() -> None:
    """The lock file holds what each package is, and no address that it is loaded from."""
    packages = json.loads((EXTENSION / "package-lock.json").read_text("utf-8"))["packages"]

    assert [] == [name for name, about in packages.items() if "resolved" in about]
    assert all("integrity" in about for name, about in packages.items() if name)


@pytest.mark.parametrize("title", SNIPPETS)
def test_snippets_compile(title: str, tmp_path: Path) -> None:
    """A snippet that is taken as it stands is no error, whatever is chosen of its choices."""
    snippet = SNIPPETS[title]
    body = snippet["body"]
    for number, text in enumerate(expansions(body if isinstance(body, str) else "\n".join(body))):
        path = tmp_path / f"{number}.test.koi"
        path.write_text(PLACES.get(snippet["prefix"], "§").replace("§", text), "utf-8")

        assert [] == [problem.message for problem in check(str(path)).errors], path.read_text("utf-8")


def expansions(body: str) -> Iterator[str]:
    """A snippet with what its holes begin with, once for each choice."""
    choices = [found[3].split(",") for found in HOLE.finditer(body) if found[3]]
    for number in range(max([1, *map(len, choices)])):
        yield re.sub(r"\\([$}\\])", r"\1", HOLE.sub(lambda hole, n=number: filled(hole, n), body))


def filled(hole: re.Match[str], number: int) -> str:
    """What stands in a hole."""
    return hole[3].split(",")[number] if hole[3] else hole[2] or ""


def manifest() -> dict[str, object]:
    """The `package.json` of the extension."""
    data: dict[str, object] = json.loads((EXTENSION / "package.json").read_text("utf-8"))
    return data


def files_of(data: object) -> Iterator[str]:
    """Every path that a part of `package.json` names."""
    match data:
        case dict():
            yield from (
                value for key, value in data.items() if key in ("path", "configuration") and isinstance(value, str)
            )
            for value in data.values():
                yield from files_of(value)
        case list():
            for value in data:
                yield from files_of(value)
