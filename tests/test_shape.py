"""Ceilings for the shape of the package: how many modules, splinters, imports and doubled names it may have."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path
from typing import NamedTuple

from koi_lang.compiler import nodes
from tests.package_imports import imports
from tests.package_trees import PACKAGE, nodes_of, sources, trees

# The most that each figure may be; each is called like the function below that counts it and says what it is.
# `pytest --accept tests/test_shape.py` lowers them to what there is. One goes up by hand alone, with the reason in the
# message of the commit. Shares are whole numbers, rounded up: that is all the room they have.
CEILINGS = {
    "modules": 964,
    "top_level_files": 12,
    "modules_with_one_importer": 222,
    "private_functions_used_once": 2463,
    "short_helpers_used_once": 873,
    "lazy_names": 127,
    "modules_with_lazy_names": 71,
    "homonyms": 53,
    "import_lines_per_1000": 80,
    "functions_per_1000_lines": 76,
    "untyped_mappings_per_10000_lines": 82,
    "names_bound_together": 188,
    "stored_as_told": 19,
    "superlative_limits": 0,
    "leaning_docstrings_percent": 9,
}
# A figure that is lower than its ceiling by more than this share is to be kept where it is now.
SLACK_PERCENT = 2
SHORT_LINES = 5
# Names in one assignment from which on they hide what a class or module has.
MANY_NAMES = 3
SUPERLATIVE = re.compile(r"_*(MOST|LEAST|LONGEST|SHORTEST|LARGEST|SMALLEST|DEEPEST|WIDEST)(_|$)")
# Words that stand for a noun in the first line of a docstring.
LEANING = re.compile(r"\b(what|who|whom|whoever|whatever)\b", re.IGNORECASE)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Helper(NamedTuple):
    """A private function or method that is used once in its module."""

    module: str
    name: str
    lines: int


def modules() -> int:
    """Modules of the package, those of packages themselves included.

    A new module with one reader may be a part of that reader; one that is like another may be joined with it.
    """
    return len(trees())


def top_level_files() -> int:
    """Python files at the top level of the package.

    Put a new one into the package that it belongs to.
    """
    return len([*PACKAGE.glob("*.py")])


def modules_with_one_importer() -> int:
    """Modules that exactly one other module imports, for types, within functions and by lazy names included.

    Join such a module with its importer, unless both together would be too long.
    """
    importers = Counter(found.target for found in imports() if found.by != found.target)
    return sum(count == 1 for count in importers.values())


def private_functions_used_once() -> int:
    """Private functions and methods without decorators whose name is read once in their module.

    Write one where it is used, unless its name says what its lines do not.
    """
    return len(helpers_used_once())


def short_helpers_used_once() -> int:
    """Of the private functions that are used once those of five lines or less, without their docstrings.

    Write one where it is used, unless its name says what its lines do not.
    """
    return sum(helper.lines <= SHORT_LINES for helper in helpers_used_once())


def lazy_names() -> int:
    """Calls of `lazy_module` with the name of a module of the package itself.

    Import the module as usual, or put what needs it where it is loaded anyway: lazy names are for SDKs.
    """
    return sum(lazy_names_by_module().values())


def modules_with_lazy_names() -> int:
    """Modules that load other modules of the package by `lazy_module`.

    Import the module as usual, or put what needs it where it is loaded anyway: lazy names are for SDKs.
    """
    return len(lazy_names_by_module())


def homonyms() -> int:
    """Public names of classes and types that modules bind to different definitions, by imports with `as`, too.

    Nodes of the syntax are called like what they declare, and are not counted. Give one of the two another name.
    """
    return len(definitions_by_homonym())


def import_lines_per_1000() -> int:
    """Lines of import statements in a thousand lines of the package.

    Join modules that share their imports, or import a module in place of many names of it.
    """
    statements = (node for module in trees() for node in nodes_of(module, ast.Import, ast.ImportFrom))
    return per_lines(1000, sum(lines_of(node) for node in statements))


def functions_per_1000_lines() -> int:
    """Functions and methods, inner ones included, in a thousand lines of the package.

    Join functions that are always called one after the other.
    """
    return per_lines(1000, sum(1 for module in trees() for _ in nodes_of(module, *FUNCTIONS)))


def untyped_mappings_per_10000_lines() -> int:
    """Annotations `dict[str, Any]` and `Mapping[str, Any]` in ten thousand lines of the package.

    Declare a record, or a `TypedDict` for what goes over the wire.
    """
    mappings = (
        node.slice
        for module in trees()
        for node in nodes_of(module, ast.Subscript)
        if isinstance(node.value, ast.Name) and node.value.id in ("dict", "Mapping")
    )
    return per_lines(10_000, sum(ast.unparse(each) == "(str, Any)" for each in mappings))


def names_bound_together() -> int:
    """Assignments of three names and more in one statement.

    Bind one name a line, so that a search and the history of a line find each.
    """
    return sum(
        isinstance(target, ast.Tuple) and len(target.elts) >= MANY_NAMES
        for module in trees()
        for node in nodes_of(module, ast.Assign)
        for target in node.targets
    )


def stored_as_told() -> int:
    """Local values, parameters and fields that are called `told`.

    Name the value: message, response, fields, lines.
    """
    return stored_names()["told"] + sum(node.arg == "told" for module in trees() for node in nodes_of(module, ast.arg))


def superlative_limits() -> int:
    """Constants whose name begins with a superlative.

    Limits are `MAX_…` and `MIN_…`, with their unit where the type does not say it.
    """
    return sum(count for name, count in stored_names().items() if SUPERLATIVE.match(name))


@cache
def stored_names() -> Counter[str]:
    """How often each name is bound by an assignment, a loop or a context."""
    return Counter(
        node.id for module in trees() for node in nodes_of(module, ast.Name) if isinstance(node.ctx, ast.Store)
    )


def leaning_docstrings_percent() -> int:
    """Docstrings whose first line leans on what, who, whoever or whatever, in a hundred.

    Write the noun of the field in its place.
    """
    first_lines = [
        text.partition("\n")[0]
        for module in trees()
        for node in nodes_of(module, ast.Module, ast.ClassDef, *FUNCTIONS)
        if (text := ast.get_docstring(node, clean=False)) is not None
    ]
    return -(-100 * sum(LEANING.search(line) is not None for line in first_lines) // len(first_lines))


def per_lines(unit: int, count: int) -> int:
    """A count in so many lines of the package, rounded up."""
    lines = sum(text.count("\n") for text in sources().values())
    return -(-count * unit // lines)


def lines_of(node: ast.stmt) -> int:
    """The lines of a statement; of a function or class without those of its docstring."""
    lines = (node.end_lineno or node.lineno) - node.lineno + 1
    if isinstance(node, FUNCTIONS) and ast.get_docstring(node, clean=False) is not None:
        lines -= lines_of(node.body[0])
    return lines


@cache
def helpers_used_once() -> tuple[Helper, ...]:
    """The private functions and methods whose name is read once in their module."""
    found = []
    for module in trees():
        uses = Counter(node.id for node in nodes_of(module, ast.Name))
        uses.update(node.attr for node in nodes_of(module, ast.Attribute))
        for node in nodes_of(module, *FUNCTIONS):
            is_private = node.name.startswith("_") and not node.name.startswith("__")
            if is_private and not node.decorator_list and uses[node.name] == 1:
                found.append(Helper(module, node.name, lines_of(node)))
    return tuple(found)


@cache
def lazy_names_by_module() -> Counter[str]:
    """How many modules of the package each module loads by `lazy_module`."""
    loading = Counter[str]()
    for module in trees():
        for node in nodes_of(module, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id == "lazy_module":
                loading[module] += ast.literal_eval(node.args[0]).startswith(f"{PACKAGE.name}.")
    return +loading


@cache
def definitions_by_homonym() -> dict[str, set[tuple[str, str]]]:
    """The definitions, as module and name, of each public name that has several."""
    definitions = defaultdict(set)
    for module in trees():
        for name in bindings(module):
            if re.match("[A-Z].*[a-z]", name) and not module.startswith(nodes.__name__):
                definitions[name].add(definition(module, name))
    ours = {name: {place for place in places if place[0] in trees()} for name, places in definitions.items()}
    return {name: places for name, places in ours.items() if len(places) > 1}


@cache
def bindings(module: str) -> dict[str, tuple[str, str]]:
    """What each name of a module is bound to at its top level: a name of another module, or another one of its own."""
    bound: dict[str, tuple[str, str]] = {}
    left: list[ast.stmt] = [*trees()[module].body]
    while left:
        match left.pop(0):
            case ast.If(body=body, orelse=orelse):
                left += [*body, *orelse]
            case ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                bound.setdefault(name, (module, name))
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                bound.setdefault(name, (module, value.id if isinstance(value, ast.Name) else name))
            case ast.ImportFrom(module=str(source), names=names):
                for alias in names:
                    bound.setdefault(alias.asname or alias.name, (source, alias.name))
    return bound


def definition(module: str, name: str) -> tuple[str, str]:
    """The module and the name under which what a module calls by a name is defined."""
    place = bindings(module).get(name, (module, name)) if module in trees() else (module, name)
    return place if place == (module, name) else definition(*place)


@cache
def figures() -> dict[str, int]:
    """What each figure is now."""
    return {name: globals()[name]() for name in CEILINGS}


def advice(name: str) -> str:
    """What a figure counts, and how it gets smaller."""
    return " ".join(str(globals()[name].__doc__).split())


def test_no_figure_rises() -> None:
    """The package gets no more splinters, imports and doubled names than it has."""
    risen = [
        f"{name} rose from {CEILINGS[name]} to {actual}. {advice(name)}"
        for name, actual in figures().items()
        if actual > CEILINGS[name]
    ]

    assert not risen, "\n".join(risen)


def test_what_has_fallen_stays_down(accept: bool) -> None:
    """A ceiling is near to what there is; `--accept` lowers those that may be lower, and raises none."""
    lower = {name: actual for name, actual in figures().items() if actual < CEILINGS[name]}
    if accept:
        lower_ceilings(lower)
        return
    fallen = [
        f"{name} fell from {CEILINGS[name]} to {actual}: keep it there with `pytest --accept tests/test_shape.py`."
        for name, actual in lower.items()
        if actual * 100 < CEILINGS[name] * (100 - SLACK_PERCENT)
    ]

    assert not fallen, "\n".join(fallen)


def lower_ceilings(lower: dict[str, int]) -> None:
    """Write new ceilings into the table of this file."""
    text = Path(__file__).read_text("utf-8")
    for name, ceiling in lower.items():
        text = text.replace(f'    "{name}": {CEILINGS[name]},\n', f'    "{name}": {ceiling},\n')
    Path(__file__).write_text(text, "utf-8")


def test_a_name_is_followed_to_its_definition() -> None:
    """A name of a package that stands for a class of another name counts as that class."""
    assert definition("koi_lang.client", "Client") == ("koi_lang.client.sync_client", "SyncClient")
