"""`koi list std`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from koi_lang.cli.completing.values import complete_part
from koi_lang.diagnostics import suggestion
from koi_lang.errors import UsageError
from koi_lang.lazy import lazy_module
from koi_lang.program import loader
from koi_lang.runtime.agents.declarations import Team
from koi_lang.runtime.agents.skills import Skill
from koi_lang.runtime.schema import of_function, of_result, signature_text, type_text
from koi_lang.system import resources

if TYPE_CHECKING:
    from koi_lang.std import rubrics
else:
    rubrics = lazy_module("koi_lang.std.rubrics")

# Whose a rubric is, as a person is told.
OWNERS = {"project": "the project", "person": "your settings", "bundled": "the standard library"}
HEAD = re.compile(r'// (.+): import "std/\w+"')


@dataclass(frozen=True, slots=True)
class StdEntry:
    """A function of a skill, or an event that a member of a team handles.

    Attributes:
        signature: with parameters, and for functions what they give.
        about: what it says of itself.
        needs: the permission that the role of an agent must have for its model to call it.
    """

    name: str
    signature: str
    about: str
    needs: str | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """A skill or team, as `uses` names it."""

    kind: str
    name: str
    about: str
    entries: tuple[StdEntry, ...]


@dataclass(frozen=True, slots=True)
class StdModule:
    """One file of the standard library, imported as `std/<name>`."""

    name: str
    about: str
    groups: tuple[Group, ...]


@click.command()
@click.argument("name", required=False, shell_complete=complete_part)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--why", "rubric", metavar="NAME", help="With `judge`: say where a rubric comes from, and why.")
def command(name: str | None, as_json: bool, rubric: str | None) -> None:
    """List the parts of the standard library with their functions and teams, or show the page of NAME."""
    if rubric is not None:
        if name is None or name.removeprefix("std/") != "judge":
            raise UsageError("`--why` is about rubrics", help="Write `koi list std judge --why RUBRIC`.")
        _explain_rubric(rubric, as_json)
        return
    if name is not None:
        path = _find_file(name.removeprefix("std/"))
        page = path.with_suffix(".md").read_text("utf-8")
        click.echo(_as_json({**asdict(part(path)), "page": page}) if as_json else page.rstrip("\n"))
        return
    parts = [part(path) for path in files()]
    click.echo(_as_json([asdict(each) for each in parts]) if as_json else "\n\n".join(map(_format_module, parts)))


def files() -> list[Path]:
    """The files of the standard library."""
    return sorted(resources.standard_skills().glob("*.koi"))


def part(path: Path) -> StdModule:
    """What a file of the standard library declares for others."""
    declared = vars(loader.load(f"std/{path.stem}")).values()
    head = HEAD.match(path.read_text("utf-8"))
    skills = (_skill(value) for value in declared if isinstance(value, Skill))
    teams = (_team(value) for value in declared if isinstance(value, Team))
    return StdModule(path.stem, head[1] if head else "", (*skills, *teams))


def _explain_rubric(name: str, as_json: bool) -> None:
    """Print which file a rubric comes from, and which others have its name. Raises KoiError for one that is none."""
    project = Path.cwd()
    chosen = rubrics.choose_file(name, project)
    others = [file for file in rubrics.rubric_files(name, project) if file.is_there and file != chosen]
    rubric = chosen.read(name)
    if as_json:
        found = {"origin": chosen.origin, "path": chosen.path, "others": [file.path for file in others]}
        click.echo(_as_json({**found, **asdict(rubric)}))
        return
    click.echo(f"{name}: {rubric.description}")
    click.echo("\n".join(f"  {each.name} {each.weight:g}" for each in rubric.dimensions))
    click.echo(f"from {OWNERS[chosen.origin]}, `{chosen.path}`")
    for file in others:
        click.echo(f"instead of {OWNERS[file.origin]}, `{file.path}`")
    click.echo("The project counts before your settings, and these before the standard library.")


def _find_file(name: str) -> Path:
    known = {path.stem: path for path in files()}
    if name not in known:
        raise UsageError(f"the standard library has no `{name}`", help=suggestion(name, list(known), "part"))
    return known[name]


def _skill(declared: Skill) -> Group:
    entries = (
        StdEntry(name, _signature(name, function), function.__doc__ or "", declared.permission(name))
        for name, function in declared.functions.items()
    )
    return Group("skill", declared.name, declared.affordance, tuple(entries))


def _signature(name: str, function: Callable[..., Any]) -> str:
    return f"{name}({signature_text(of_function(function))}): {type_text(of_result(function))}"


def _team(declared: Team) -> Group:
    entries = []
    for key, member in declared.members().items():
        if isinstance(member, str):
            continue
        for handler in member.about.handlers.values():
            fields = signature_text(handler.schema) if handler.schema else "data?: object"
            purpose = handler.affordance or member.about.affordance
            gives = "" if handler.result is None else f": {type_text(handler.result.schema)}"
            entries.append(StdEntry(f"{key}::{handler.event}", f"{key}::{handler.event}({fields}){gives}", purpose))
    return Group("team", declared.name, "", tuple(entries))


def _with_needs(line: str, needs: str | None) -> str:
    """A line with the permission that its function, or each of its skill, needs."""
    return line if needs is None else f"{line}  [needs `{needs}`]"


def _as_json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _format_module(described: StdModule) -> str:
    lines = [f"std/{described.name}  {described.about}"]
    for group in described.groups:
        needs = {entry.needs for entry in group.entries}
        common = needs.pop() if len(needs) == 1 else None
        lines.append(_with_needs(f"  uses {group.kind} {group.name}", common))
        lines += [_with_needs(f"    {entry.signature}", None if common else entry.needs) for entry in group.entries]
    return "\n".join(lines)
