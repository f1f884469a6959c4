"""What may import what, and the tables of the compiler and the runtime that must agree without knowing each other."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator, Mapping
from functools import cache

import pytest
from lark import Lark
from lark.grammar import Rule

from koi_lang.compiler import nodes, scope
from koi_lang.compiler.build import Builder
from koi_lang.compiler.rules import members
from koi_lang.js import arrays, number_object, strings
from koi_lang.js.globals import GLOBALS
from koi_lang.js.properties import names_of
from koi_lang.runtime import prelude
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.registry import KeptRegistry
from koi_lang.system import resources
from tests.package_imports import Imported, imports, targets
from tests.package_trees import PACKAGE, nodes_of, sources, trees

# Layers, each of which may import those before it; parts of one layer do not know each other. Files at the top level
# are ground: they import nothing but each other.
LAYERS = (
    {"ground"},
    {"llm", "js", "highlighting", "schedules"},
    {"compiler"},
    {"setup"},
    {"runtime"},
    {"program"},
    {"std"},
    {"extensions", "freezing", "health", "otel"},
    {"testing"},
    {"sessions", "http_server"},
    {"rpc", "mcp_server", "lsp", "evaluation", "dap"},
    {"service", "acp"},
    {"web", "client"},
    {"cli"},
    # For `koi_lang.run`, which asks at the terminal as `koi run` does.
    {"api"},
    {"jupyter"},
)
GROUND = {
    *("source", "diagnostics", "errors", "front_matter", "lazy", "settings", "redaction", "grants", "system", "events"),
    *("version", "agent_address"),
}
RANKS = {name: rank for rank, names in enumerate(LAYERS) for name in names}
# A compiled program runs without the compiler, and the compiler knows nothing of runs.
STRANGERS = {("runtime", "compiler"), ("std", "compiler"), ("lsp", "runtime"), ("lsp", "program"), ("lsp", "sessions")}
# The start of a process from outside is the command line, by its definition.
ENTRY = ("koi_lang.__main__", "koi_lang.cli")
# What the package itself offers is there for everybody else, and finds what it needs when it is called.
FACADE = {PACKAGE.name, "koi_lang.coverage"}
# Of the command line: the table of commands, options of several, and what two commands do alike.
SHARED_BY_COMMANDS = {
    *("__init__", "command_table", "options"),
    *("connect_server", "running", "rerunning", "watching", "evaluating", "playbook_readings", "lessons"),
}
# The WebSocket carries commands of `koi rpc`, and the document describes them.
RPC_OVER_HTTP = {"koi_lang.web.live", "koi_lang.web.api_schemas"}
# Promises live in a scope of their own, which waits for its tasks as a task group does.
OWN_TASK_GROUP = "koi_lang.js.task_scope"
TASK_MAKERS = {"create_task", "ensure_future", "run_coroutine_threadsafe"}
# Nodes whose grammar rules are called differently: several rules become one node, or one rule is part of another.
OTHER_RULE = {"expose_mcp": "expose", "function_statement": "function", "literal": "number", "update": "prefix_update"}


def part(module: str) -> str:
    """The file or folder of the package that a module belongs to."""
    return [*module.split("."), "__init__"][1]


def layer(module: str) -> str:
    """The layer of a module."""
    name = part(module)
    return "ground" if name in GROUND else name


def goes_down(found: Imported) -> bool:
    """Whether an import stays in its own part, or goes to a layer under it."""
    here, there = layer(found.by), layer(found.target)
    if here == there or (found.by, found.target) == ENTRY or found.by in FACADE:
        return True
    return found.target not in FACADE and (here, there) not in STRANGERS and RANKS[there] < RANKS[here]


def circles(graph: Mapping[str, set[str]]) -> list[set[str]]:
    """The groups of modules of which each reaches all others of its group by imports, the largest first."""
    after = {module: reached(graph, module) for module in graph}
    groups = {frozenset(other for other in after[module] if module in after.get(other, ())) for module in graph}
    return sorted(({*group} for group in groups if group), key=len, reverse=True)


def reached(graph: Mapping[str, set[str]], start: str) -> set[str]:
    """All modules that one imports, and those that they import."""
    found: set[str] = set()
    left = [start]
    while left:
        new = graph.get(left.pop(), set()) - found
        found |= new
        left += new
    return found


def test_imports_go_down() -> None:
    """No module imports from a layer above or beside it, not even types."""
    wrong = {(found.by, found.target) for found in imports() if not goes_down(found)}

    assert set() == wrong


@pytest.mark.parametrize(
    "code",
    [
        'sys.modules["koi_lang"].open(file)',
        'modules["koi_lang"]',
        'sys.modules.get("koi_lang")',
        '__import__("koi_lang")',
        'importlib.import_module("koi_lang")',
        "import koi_lang",
    ],
)
def test_a_module_that_is_looked_up_is_imported(code: str) -> None:
    """No module reaches up to the face of the package by its name, however it gets hold of it."""
    found = [target for node in ast.walk(ast.parse(code)) for target in targets(node)]

    assert ["koi_lang"] == list(dict.fromkeys(found))
    assert not goes_down(Imported("koi_lang.runtime.run", "koi_lang"))


def test_contributors_are_told_the_layers() -> None:
    """The table of layers in CONTRIBUTING is that of this test, for what there is."""
    table = (PACKAGE.parent / "CONTRIBUTING.md").read_text("utf-8").partition("| layer |")[2].partition("\n\n")[0]
    rows = [{*re.findall(r"`(\w+)`", row.split("|")[1])} for row in table.splitlines()[3:]]

    assert [{name for name in layer if (PACKAGE / name).is_dir()} for layer in LAYERS[1:]] == rows


def test_compiler_and_runtime_are_strangers() -> None:
    """Neither core imports the other, and the check would see it if one did."""
    known = {(layer(found.by), layer(found.target)) for found in imports()}

    assert not {("compiler", "runtime"), ("runtime", "compiler")} & known
    assert not goes_down(Imported("koi_lang.runtime.run", "koi_lang.compiler.nodes"))


def test_routes_call_functions() -> None:
    """No route of the service knows messages of `koi rpc`, but the WebSocket that carries them and its description."""
    knowing = {found.by for found in imports() if (layer(found.by), layer(found.target)) == ("web", "rpc")}

    assert RPC_OVER_HTTP == knowing


def test_the_command_line_holds_commands() -> None:
    """A file of `cli` is a command; what several of them share is `options`, or stands in a folder of its own."""
    files = [path.stem for path in (PACKAGE / "cli").glob("*.py")]
    commands = {name for name in files if "command" in vars(importlib.import_module(f"koi_lang.cli.{name}"))}

    assert SHARED_BY_COMMANDS == set(files) - commands


def test_no_module_imports_itself() -> None:
    """There is no circle of imports, however they are written: for types, inside functions, by lazy names."""
    graph: dict[str, set[str]] = {}
    for found in imports():
        graph.setdefault(found.by, set()).add(found.target)

    assert circles(graph) == []


def test_circles_are_found() -> None:
    """A circle is a group in which every module reaches every other one; a module may be one by itself."""
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": {"e"}, "e": {"e"}}

    assert circles(graph) == [{"b", "c"}, {"e"}]


def test_only_settings_reads_the_environment() -> None:
    """`os.environ` and `os.getenv` stand in `settings` and nowhere else."""
    reading = {name for name in trees() if set(names_in(name)) & {"environ", "getenv", "environb"}}

    assert reading == {"koi_lang.settings"}


def test_settings_are_read_by_whoever_prepares_runs() -> None:
    """Nothing below `sessions` reads settings files by a folder, but what works without a run or makes its own."""
    readers = {name for name in trees() if "read_settings" in names_in(name)}
    below = {name for name in readers if RANKS[layer(name)] < RANKS["sessions"]}

    assert below == {"koi_lang.program.build", "koi_lang.std.effects", "koi_lang.testing.blocks"}


def names_in(module: str) -> Iterator[str]:
    """Every attribute and every imported name of a module."""
    yield from (node.attr for node in nodes_of(module, ast.Attribute))
    yield from (alias.name for node in nodes_of(module, ast.ImportFrom) for alias in node.names)


def test_tasks_belong_to_groups() -> None:
    """A task is created by a task group, which waits for it; never by the event loop alone."""
    bare = [
        f"{name}:{call.lineno}"
        for name in trees()
        if name != OWN_TASK_GROUP
        for call in nodes_of(name, ast.Attribute)
        if call.attr in TASK_MAKERS and ast.unparse(call.value) not in groups(name)
    ]

    assert bare == []


def groups(module: str) -> set[str]:
    """The names of task groups: bound by `async with`, or parameters declared as such."""
    items = [item for node in nodes_of(module, ast.AsyncWith) for item in node.items]
    parameters = [node for node in nodes_of(module, ast.arg) if node.annotation is not None]
    return {ast.unparse(item.optional_vars) for item in items if item.optional_vars is not None} | {
        node.arg for node in parameters if node.annotation is not None and "TaskGroup" in ast.unparse(node.annotation)
    }


def test_global_names_have_values() -> None:
    """What the compiler lets code mention is what the runtime provides."""
    assert set(GLOBALS) == scope.GLOBALS


def test_members_of_globals_are_known() -> None:
    """The checks know every member of the objects that programs have, and no other one."""
    values = {name: GLOBALS[name] for name in members.MEMBERS if name != "registry"}
    actual = {name: frozenset(names_of(value)) for name, value in values.items()}

    assert members.MEMBERS == {**actual, "registry": frozenset(KeptRegistry.__koi_members__)}
    assert members.OF_AGENTS == Agent.__koi_members__.keys()
    constructors = {**GLOBALS, **{f"Intl.{name}": value for name, value in GLOBALS["Intl"].items()}}
    made = {name: constructors[name].build for name in members.OF_INSTANCES}
    made["URL"] = lambda: GLOBALS["URL"].build("http://h")
    made["AbortSignal"] = lambda: GLOBALS["AbortController"].build().signal
    assert members.OF_INSTANCES == {
        name: type(build()).__koi_members__.keys() - members.OF_ALL for name, build in made.items()
    }
    assert members.OF_TEXTS == {*strings.METHODS, "length"}
    assert members.OF_LISTS == {*arrays.METHODS, "length"}
    assert {*number_object.METHODS} == members.OF_NUMBERS
    assert not members.OF_TEXTS & members.FOREIGN_OF_TEXTS.keys()
    assert not members.OF_LISTS & members.FOREIGN_OF_LISTS.keys()


def test_generated_names_are_in_the_prelude() -> None:
    """Every `koi.name` that the code generator can write is a name of the prelude."""
    written = {text for name in trees() if name.startswith("koi_lang.compiler.codegen.") for text in written_by(name)}

    assert len(written) > 40
    assert {text for text in written if not hasattr(prelude, text)} == set()


def written_by(module: str) -> set[str]:
    """The texts that a module passes to the two functions that write `koi.name`."""
    found: set[str] = set()
    for function in ast.walk(trees()[module]):
        if isinstance(function, ast.FunctionDef) and function.name not in ("koi", "helper"):
            names = [node.args[0] for node in ast.walk(function) if isinstance(node, ast.Call) and writes(node)]
            found |= {text for name in names for text in texts(name, function, module)}
    return found


def writes(call: ast.Call) -> bool:
    """Whether a call writes `koi.name`."""
    return ast.unparse(call.func) in ("py.koi", "py.helper")


def texts(name: ast.expr, function: ast.FunctionDef, module: str) -> set[str]:
    """What an argument may be: a text, one of two, the values of a table, or what a variable was set to."""
    match name:
        case ast.Constant(value=str(text)):
            return {text}
        case ast.IfExp(body=first, orelse=second):
            return texts(first, function, module) | texts(second, function, module)
        case ast.Subscript(value=ast.Name(id=table)):
            return set(getattr(importlib.import_module(module), table).values())
        case ast.Name(id="name") if function.name == "outer_name":
            return set(scope.GLOBALS)
        case ast.Name(id=variable):
            return set().union(*(texts(value, function, module) for value in assigned(variable, function)))
    raise AssertionError(f"cannot tell what {ast.unparse(name)} in {module} is")


def assigned(variable: str, function: ast.FunctionDef) -> list[ast.expr]:
    """The values a variable is set to; at least one."""
    found = [
        node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and variable in (ast.unparse(target) for target in node.targets)
    ]
    assert found, f"`{variable}` is never set in `{function.name}`"
    return found


@cache
def rules() -> tuple[Rule, ...]:
    """The rules of the grammar, one for each alternative."""
    text = resources.grammar().read_text("utf-8")
    # Earley has the same rules as LALR and makes no table of states of them, which takes most of a second.
    return tuple(
        Lark(text, parser="earley", lexer="basic", start=["program", "expression"], keep_all_tokens=True).rules
    )


def name_of(rule: Rule) -> str:
    """What an alternative is called: by its alias, else by its rule."""
    return str(rule.alias or rule.origin.name)


def test_rules_have_builders() -> None:
    """Every rule and alias of the grammar has a method of the builder, and every method a rule."""
    seen = [rule for rule in rules() if not rule.origin.name.startswith("_")]
    kept = {name_of(rule) for rule in seen if rule.alias or not rule.options.expand1 or len(rule.expansion) > 1}
    methods = {name for name in dir(Builder) if not name.startswith("_")}

    assert kept - methods == set()
    assert methods - set(map(name_of, seen)) == set()


def test_nodes_are_called_as_their_rules() -> None:
    """A class of nodes has the name of its grammar rule or alias."""
    known = {name_of(rule) for rule in rules()} | {rule.origin.name for rule in rules()}
    kinds = [kind for kind in vars(nodes).values() if isinstance(kind, type) and issubclass(kind, nodes.Node)]
    unknown = {kind.__name__ for kind in kinds if kind is not nodes.Node and not rule_names(kind) & known}

    assert unknown == set()


def rule_names(kind: type[nodes.Node]) -> set[str]:
    """What the rule of a class of nodes may be called."""
    word = re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()
    return {OTHER_RULE.get(word, word), f"{word}_statement", f"{word}_expression", f"{word}_"}


def test_links_are_left_unfollowed_in_one_module() -> None:
    """What opens files of a project without following links takes its flags from there."""
    naming = [module for module, text in sources().items() if "O_NOFOLLOW" in text]

    assert ["koi_lang.system.open_folders"] == naming
