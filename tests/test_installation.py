"""How Koi says that it is installed: nowhere by a name that an index may give to somebody else's package."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from koi_lang.system import installation
from koi_lang.system.installation import EXTRAS, Installation, this_installation
from tests.package_trees import sources
from tests.projects import Project
from tests.test_packaging import CHECKOUT, PROJECT, packages_in

BY_NAME = re.compile(r"(?:pip|pipx|uv tool) install [^`\n]*?(?<![\w/.-])koi-lang(?!\[?\S* @)|\"koi-lang\"\]")
EXTRA = re.compile(r"install (?:-e )?'\.\[([\w,]+)\]'")
PLACES = ("*.md", "*.py", "*.yml", "*.toml", "*.ts", "*.koi", "*.json")
# What only a surface, an adapter or an extra needs is imported there alone, by the packages of `koi_lang`.
SURFACES = {
    "openai": {"llm", "lazy"},
    "anthropic": {"llm"},
    "starlette": {"http_server", "web", "mcp_server"},
    "uvicorn": {"http_server"},
    "prompt_toolkit": {"cli"},
    "rich": {"cli"},
    "markdown_it": {"cli"},
    "pygls": {"lsp"},
    "lsprotocol": {"lsp"},
    "IPython": {"jupyter"},
    "a2a": {"web"},
    "ag_ui": {"web"},
    "opentelemetry": {"otel"},
}


def tracked(*patterns: str) -> list[Path]:
    """The files of the repository, without the history of releases."""
    listed = subprocess.run(["git", "ls-files", *patterns], cwd=CHECKOUT, capture_output=True, text=True, check=True)
    return [CHECKOUT / name for name in listed.stdout.splitlines() if name != "CHANGELOG.md"]


@pytest.mark.needs("git")
@pytest.mark.skipif(not (CHECKOUT / ".git").exists(), reason="this is no clone")
def test_no_place_installs_by_name() -> None:
    """Documentation, messages, templates and workflows install from a clone or from where Koi came from."""
    texts = {path: path.read_text("utf-8") for path in tracked(*PLACES) if path != Path(__file__).resolve()}

    assert [] == [str(path) for path, text in texts.items() if path.is_file() and BY_NAME.search(text)]


def test_every_extra_that_is_named_exists() -> None:
    """Pages name extras that the project has, and the table of missing packages, too."""
    named = {
        extra
        for path in [CHECKOUT / "README.md", CHECKOUT / "CONTRIBUTING.md", *(CHECKOUT / "docs").rglob("*.md")]
        for found in EXTRA.findall(path.read_text("utf-8"))
        for extra in found.split(",")
    }
    extras = PROJECT["optional-dependencies"]

    assert len(named) >= 4
    assert set() == (named | {*EXTRAS.values()}) - extras.keys()
    assert dict.fromkeys(EXTRAS, True) == {name: name in packages_in(extras[extra]) for name, extra in EXTRAS.items()}
    assert {*EXTRAS.values()} == {*re.findall(r"\w+", extras["all"][0].partition("[")[2])}


def test_dependencies_of_surfaces_stay_there() -> None:
    """The core imports nothing that one surface alone needs, at its top, inside functions or by a lazy name."""
    names = "|".join(map(re.escape, SURFACES))
    importing = defaultdict(set)
    for module, text in sources().items():
        for found in re.finditer(rf"^ *(?:import|from) ({names})\b|lazy_module\(\"({names})[\".]", text, re.MULTILINE):
            importing[found[1] or found[2]].add([*module.split("."), "koi_lang"][1])

    assert {} == {name: found - SURFACES[name] for name, found in importing.items() if found - SURFACES[name]}


@pytest.mark.parametrize(
    ("installed", "extra", "update"),
    [
        (
            Installation("/src/koi", is_editable=True),
            "pip install --editable '/src/koi[otel]'",
            "pip install --editable /src/koi",
        ),
        (
            Installation("git+https://example.org/koi.git", installer="pipx"),
            "pipx install --force 'koi-lang[otel] @ git+https://example.org/koi.git'",
            "pipx install --force 'koi-lang @ git+https://example.org/koi.git'",
        ),
        (
            Installation("", installer="uv tool"),
            "uv tool install --force 'koi-lang[otel]==VERSION'",
            "uv tool upgrade koi-lang",
        ),
        (
            Installation("", installer="uv pip"),
            "uv pip install 'koi-lang[otel]==VERSION'",
            "uv pip install --upgrade koi-lang",
        ),
    ],
)
def test_commands_fit_what_installed_it(installed: Installation, extra: str, update: str) -> None:
    """The program that installed it installs extras and updates, from where it came from."""
    commands = (installed.install_command("otel"), installed.update_command())

    assert (extra.replace("VERSION", installation.__version__), update) == commands


@pytest.mark.parametrize(
    ("origin", "source"),
    [
        ({"url": "file:///my%20src/koi", "dir_info": {"editable": True}}, "/my src/koi"),
        (
            {"url": "https://example.org/k.git", "vcs_info": {"vcs": "git", "commit_id": "a"}},
            "git+https://example.org/k.git",
        ),
        ({"url": "https://example.org/k.whl", "archive_info": {}}, "https://example.org/k.whl"),
        (None, ""),
    ],
)
def test_the_origin_is_read(monkeypatch: pytest.MonkeyPatch, origin: object, source: str) -> None:
    """Installers note where a distribution came from."""
    texts = {"INSTALLER": "pip\n", "direct_url.json": None if origin is None else json.dumps(origin)}

    class Distribution:
        read_text = staticmethod(texts.get)

    monkeypatch.setattr(installation.metadata, "distribution", lambda name: Distribution)

    assert source == this_installation().source


def test_a_clone_is_updated_by_git(tmp_path: Path, project: Project) -> None:
    """`koi update` shows the command, and runs nothing where nobody can agree."""
    (tmp_path / ".git").mkdir()
    shown = project.koi("update")

    assert Installation(str(tmp_path)).update_command().startswith(f"git -C {tmp_path} pull && pip install ")
    assert (0, this_installation().update_command() + "\n") == (shown.returncode, shown.stdout)


def test_the_environment_that_runs_is_updated(project: Project, tmp_path: Path) -> None:
    """Where the first `pip` on PATH belongs to another Python, the one that runs Koi is named."""
    other = tmp_path / "pip"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    shown = project.koi("update", PATH=os.pathsep.join([str(tmp_path), os.environ["PATH"]]))
    words = shlex.split(shown.stdout)
    called = words[words.index("-m") - 1 : words.index("install")]

    assert [sys.executable, "-m", "pip"] == called
    assert 0 == subprocess.run([*called, "--version"], capture_output=True).returncode


def test_a_new_project_installs_what_made_it(project: Project) -> None:
    """The workflow of `koi init` installs Koi from where it was installed itself."""
    assert 0 == project.koi("init", "mine").returncode
    workflow = (project.folder / "mine/.github/workflows/koi.yml").read_text("utf-8")

    assert f"- run: pip install {this_installation().requirement()}\n" in workflow
