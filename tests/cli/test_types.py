"""`koi types`: the declared types of a program in Python and in TypeScript."""

from __future__ import annotations

import shutil
import subprocess
from types import ModuleType
from typing import Any

import pydantic
import pytest

from tests.limits import LIMIT_S
from tests.npm import npm_program
from tests.projects import Project

PARTS = """
/** How sure it is. */
export type Score = number in 0..1
"""
PROGRAM = """
import "./parts.koi"
role Worker { can execute }
/** How good it is; */
type Grade = {
  score: Score,
  name: string in 1..8 matching /^[a-z]+$/, // in "small" */ letters
  tags: (string in 2..)[] in 1..2,
  kind: "bug" | "wish" | 3 | null,
  "class": int in 1..,
  "my-key"?: boolean,
  json: Json,
  meta?: { size: number, parts: { a: int }[] },
  next?: Grade,
  model_name?: string matching /^(?!a)/
}
type Tree = Tree[] | string
type Field = { from: Field | null }
type Names = {
  list?: string[], int?: int, str?: string, float?: number, bool?: boolean, Any?: Json, Literal?: "a" | "b",
  Annotated?: string in 1..2, Field?: number in 0..1, Grade?: Grade, list_?: string
}
agent Judge : Worker { on fix(args: Grade | Tree | Field): Grade { return args } }
run Judge.fix("a")
"""
GOOD: dict[str, Any] = {
    "score": 1, "name": "ab", "tags": ["aa"], "kind": None, "class": 2, "json": [1],
    "meta": {"size": 0.5, "parts": [{"a": 1}]}, "next": {"score": 0, "name": "a", "tags": ["bb"], "kind": 3, "class": 1,
    "json": None, "more": 1},
}  # fmt: skip
WRONG: list[dict[str, Any]] = [
    {"score": 1.5}, {"score": "1"}, {"name": "Ab"}, {"name": ""}, {"tags": []}, {"tags": ["a"]}, {"kind": "odd"},
    {"class": 0}, {"class": 1.5}, {"my-key": 1}, {"meta": {"size": 1, "parts": [{}]}}, {"model_name": "ab"},
    {"next": {}},
]  # fmt: skip


def written(project: Project, language: str) -> str:
    """The module of the program's types."""
    project.write("parts.koi", PARTS)
    project.write("main.koi", PROGRAM)
    done = project.koi("types", "main.koi", f"--{language}")
    assert ("", 0) == (done.stderr, done.returncode)
    return done.stdout


@pytest.fixture
def models(project: Project) -> ModuleType:
    """The written module of Python, which declares what it uses and nothing else."""
    module = ModuleType("grades")
    text = written(project, "pydantic")
    if shutil.which("ruff") is not None:  # which contributors have
        subprocess.run(["ruff", "check", "--select=F", "-"], input=text, text=True, check=True, capture_output=True)
    exec(compile(text, "grades.py", "exec"), module.__dict__)
    __import__("sys").modules["grades"] = module
    return module


def test_models_hold_values_of_the_types(models: ModuleType) -> None:
    """What fits a type is taken, and comes out as it went in."""
    grade = models.Grade.model_validate(GOOD)

    assert (1, 2, None) == (grade.score, grade.class_, grade.kind)
    assert GOOD == grade.model_dump(by_alias=True, exclude_unset=True)
    assert ["a", ["b"]] == pydantic.TypeAdapter(models.Tree).validate_python(["a", ["b"]])
    assert "How good it is;" == models.Grade.__doc__


def test_fields_may_be_called_like_types(models: ModuleType) -> None:
    """They have other names in Python, and their own in data."""
    names: dict[str, Any] = {
        "list": ["a"], "int": 1, "str": "x", "float": 0.5, "bool": True, "Any": [], "Literal": "a", "Annotated": "ab",
        "Field": 0.1, "Grade": GOOD, "list_": "b",
    }  # fmt: skip
    read = models.Names.model_validate(names)

    assert (["a"], "b", 1) == (read.list_, read.list__, read.int_)
    assert names == read.model_dump(by_alias=True, exclude_unset=True)
    with pytest.raises(pydantic.ValidationError):
        models.Names.model_validate({"list": "a"})


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_models_refuse_what_the_types_refuse(wrong: dict[str, Any], models: ModuleType) -> None:
    """Kinds, bounds, literals and fields that are missing."""
    with pytest.raises(pydantic.ValidationError):
        models.Grade.model_validate({**GOOD, **wrong})


def test_types_of_typescript_say_what_the_types_say(project: Project) -> None:
    """Bounds stand in comments, which nothing of a description ends."""
    text = written(project, "typescript")

    assert "/** How sure it is, from 0 to 1 */\nexport type Score = number;" in text
    assert '  /** in "small" *\\/ letters, 1 to 8 characters, matching /^[a-z]+$/ */\n  name: string;' in text
    assert "  /** 1 to 2 items, each at least 2 characters */\n  tags: Array<string>;" in text
    assert "  /** matching /^(?!a)/ */\n  model_name?: string;" in text
    assert '  "my-key"?: boolean;\n  json: unknown;\n  meta?: { size: number; parts: Array<{ a: number; }>; };' in text


@pytest.mark.needs("npm")
def test_typescript_takes_the_types(project: Project) -> None:
    """A value of a type is one, and another is refused."""
    tsc = npm_program("typescript", "7.0.2", "tsc")
    project.write("types.ts", written(project, "typescript"))
    good = '{ score: 1, name: "a", tags: [], kind: "bug", class: 1, json: [] }'
    project.write(
        "main.ts",
        f"""
        import type {{ Grade, Tree }} from "./types";
        export const grade: Grade = {{ ...{good}, next: {good} }};
        export const tree: Tree = ["a", ["b"]];
        // @ts-expect-error
        export const wrong: Grade = {{ ...{good}, kind: "odd" }};
        """,
    )
    words = [str(tsc), "--noEmit", "--strict", "main.ts"]
    done = subprocess.run(words, cwd=project.folder, capture_output=True, text=True, timeout=LIMIT_S, check=False)

    assert ("", 0) == (done.stdout, done.returncode)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("main.koi",), "`koi types` needs a language"),
        (("none.koi", "--pydantic"), "`none.koi` declares no types"),
        (("broken.koi", "--pydantic"), "no value is in 2..1 [E0254]"),
    ],
)
def test_what_cannot_be_written_is_said(words: tuple[str, ...], message: str, project: Project) -> None:
    """A language is missing, there are no types, or the program has errors."""
    project.write("main.koi", "type Score = number in 0..1")
    project.write("none.koi", "role Worker { can execute }")
    project.write("broken.koi", "type Score = number in 2..1")
    done = project.koi("types", *words)

    assert message in done.stderr
    assert "" == done.stdout
    assert 0 != done.returncode
