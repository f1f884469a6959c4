"""Rubrics by name: those of the project before the person's, and these before the ones that Koi brings."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import fsum, isfinite
from pathlib import Path
from typing import Any

from koi_lang import settings
from koi_lang.diagnostics import suggestion
from koi_lang.errors import AgentError, KoiError, UnreadableFileError, reason
from koi_lang.front_matter import read_front_matter
from koi_lang.runtime.guidance.skill_places import tell_path
from koi_lang.runtime.replay.calls import Effect
from koi_lang.std.effects import perform_effect, project_settings
from koi_lang.system import open_folders, resources

FILE = "SKILL.md"
KIND = "evaluator"
NAME = re.compile(r"[a-z0-9]+(?:[-_][a-z0-9]+)*")
DIMENSION = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
MAX_NAME_CHARS = 64
MAX_BYTES = 100_000
MAX_DIMENSIONS = 20
# How far the sum of weights may be from 1.
TOLERANCE = 1e-6
# Whose rubric counts, the first before the others.
ORIGINS = ("project", "person", "bundled")


@dataclass(frozen=True, slots=True)
class Dimension:
    """A dimension of judging; the weights of a rubric add up to 1."""

    name: str
    weight: float
    description: str


@dataclass(frozen=True, slots=True)
class Rubric:
    """The criteria of a judge.

    Attributes:
        text: what the file says behind its front matter.
    """

    name: str
    description: str
    dimensions: tuple[Dimension, ...]
    text: str


@dataclass(frozen=True, slots=True)
class RubricFile:
    """Where a rubric may stand.

    Attributes:
        origin: one of `ORIGINS`.
        root: the folder that its links do not leave; None for any.
        path: as a person is told.
    """

    origin: str
    file: Path
    root: Path | None
    path: str

    @property
    def is_there(self) -> bool:
        """Whether there is something with that name, even if it cannot be read."""
        return os.path.lexists(self.file)

    def read(self, name: str) -> Rubric:
        """The rubric. Raises AgentError for an invalid one."""
        try:
            return parse_rubric(_read_text(self), name)
        except KoiError as error:
            raise AgentError(f"the rubric `{self.path}` {error.message}", help=error.help) from error
        except OSError as error:
            raise UnreadableFileError(f"the rubric `{self.path}` cannot be read: {reason(error)}") from error


async def find_rubric(name: Any) -> dict[str, Any]:
    """A rubric as data, with its `origin`. Raises AgentError where there is none, or one that cannot be used."""

    async def look() -> dict[str, Any]:
        file = choose_file(name, project_settings().folder)
        return {**asdict(file.read(name)), "origin": file.origin}

    return dict(await perform_effect(Effect("judge.rubric", {"name": name}, safe=True), look))


def choose_file(name: Any, project: Path) -> RubricFile:
    """The first file of a rubric. Raises AgentError for an invalid name, and where there is none."""
    found = next((file for file in rubric_files(name, project) if file.is_there), None)
    if found is None:
        raise AgentError(f"there is no rubric `{name}`", help=suggestion(name, rubric_names(project), "rubric"))
    return found


def rubric_files(name: Any, project: Path) -> list[RubricFile]:
    """The possible files of a rubric, in their order. Raises AgentError for an invalid name."""
    if not isinstance(name, str) or len(name) > MAX_NAME_CHARS or not NAME.fullmatch(name):
        help = "A name has small letters, digits and hyphens, such as `code-review`."
        raise AgentError(f"{str(name)[:MAX_NAME_CHARS]!r} is no name of a rubric", help=help)
    files = []
    for origin, base, shown in _folders(project):
        root = project if origin == "project" else None
        files.append(RubricFile(origin, base / name / FILE, root, f"{shown}/{name}/{FILE}"))
    return files


def rubric_names(project: Path) -> list[str]:
    """The names of all rubrics, sorted."""
    return sorted({path.parent.name for _, base, _ in _folders(project) for path in base.glob(f"*/{FILE}")})


def _folders(project: Path) -> Iterator[tuple[str, Path, str]]:
    """The origin of rubrics, the folder with a folder for each, and how that is told."""
    person = settings.config_folder() / "evaluators"
    yield "project", project / ".agents" / "evaluators", ".agents/evaluators"
    yield "person", person, tell_path(person)
    bundled = resources.standard_skills() / "evaluators"
    yield "bundled", bundled, tell_path(bundled)


def _read_text(place: RubricFile) -> str:
    """The text of a file, which is looked at without waiting, in case it is a pipe. Raises AgentError or OSError."""
    try:
        file = open_folders.resolve_links(place.file)
    except RuntimeError as error:
        raise AgentError("is a link that leads to itself", help="Write a file in its place.") from error
    if place.root is not None and not file.is_relative_to(place.root.resolve()):
        raise AgentError("leads out of the project", help="Copy it into the project instead of a link.")
    with open(os.open(file, open_folders.FILE), "rb") as opened:
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            raise AgentError("is no file with a text")
        data = opened.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise AgentError(f"is larger than {MAX_BYTES:,} bytes", help="Judges are told all of it, so keep it short.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise AgentError("is not UTF-8 text", help="Save it as UTF-8.") from error


# ---------------------------------------------------------------- what a file says


def parse_rubric(text: str, name: str) -> Rubric:
    """The rubric that a file holds; messages go on behind `the rubric …`. Raises AgentError."""
    front, body = read_front_matter(text)
    if front.get("kind") != KIND:
        raise AgentError("is no evaluator", help=f"Write `kind: {KIND}` into its front matter.")
    if front.get("name", name) != name:
        raise AgentError(f"is called {_quote(front['name'])} in its front matter", help=f"Write `name: {name}`.")
    description = front.get("description")
    if not isinstance(description, str) or not description.strip():
        raise AgentError("has no `description`", help="Say in one sentence what it judges.")
    return Rubric(name, description.strip(), _dimensions(front), body)


def _dimensions(front: Mapping[str, Any]) -> tuple[Dimension, ...]:
    """The dimensions, which stand at the top or in `metadata`. Raises AgentError."""
    metadata = front.get("metadata")
    inside = metadata.get("dimensions") if isinstance(metadata, dict) else None
    given = front.get("dimensions", inside)
    if not isinstance(given, list) or not given:
        help = "List under `dimensions:` what it judges, each with `name`, `weight` and `description`."
        raise AgentError("has no dimensions", help=help)
    if len(given) > MAX_DIMENSIONS:
        raise AgentError(f"has {len(given)} dimensions", help=f"At most {MAX_DIMENSIONS} are judged.")
    dimensions = tuple(_dimension(each, f"`dimensions[{index}]`") for index, each in enumerate(given))
    _require_distinct([each.name for each in dimensions])
    total = fsum(each.weight for each in dimensions)
    if abs(total - 1) > TOLERANCE:
        raise AgentError(f"has weights that add up to {round(total, 6):g}, not to 1", help="Change its weights.")
    return dimensions


def _dimension(given: Any, where: str) -> Dimension:
    given = given if isinstance(given, dict) else {}
    name, weight, about = (given.get(key) for key in ("name", "weight", "description"))
    if not isinstance(name, str) or len(name) > MAX_NAME_CHARS or not DIMENSION.fullmatch(name):
        help = "A name has letters, digits, `-` and `_`, such as `correctness`."
        raise AgentError(f"has no name of a dimension in {where}", help=help)
    if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not isfinite(weight) or not 0 < weight <= 1:
        help = "A weight is a number above 0, and all of them add up to 1."
        raise AgentError(f"has no weight in {where}, `{name}`", help=help)
    if not isinstance(about, str) or not about.strip():
        help = "Say in a sentence what earns 1, 0.5 and 0."
        raise AgentError(f"has no description in {where}, `{name}`", help=help)
    return Dimension(name, float(weight), about.strip())


def _require_distinct(names: Sequence[str]) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise AgentError(f"has two dimensions `{twice}`", help="Give one of them another name.")


def _quote(value: Any) -> str:
    return f"`{str(value)[:MAX_NAME_CHARS]}`"
