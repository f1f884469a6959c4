"""What a program declares or imports and never uses. Only the file that starts the program is looked at."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.imports import Imported, Unit
from koi_lang.compiler.rules.program import AnalysedProgram, prompts_in, prompts_of
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.compiler.symbols import own_symbols
from koi_lang.diagnostics import nearest

WORD = re.compile(r"\w+")


@rule("E0241", "warning")
def unused_import(file: Analysis, report: Report) -> None:
    """A file is imported, and nothing that it brings is used.

    An import brings everything that the file declares or imports in turn. A Python module that is imported without a
    name, or by another file that does not use the name, is never reported: importing it may be all it is for, as it is
    with an extension.

    Wrong:

        import "./first.koi"
        role Clerk { can execute }
        agent Greeter : Clerk { on hello(args) { return args } }
        run Greeter.hello({})

    Right:

        import "./first.koi"
        agent Greeter : Worker { on hello(args) { return args } }
        run Greeter.hello({})
    """
    if not report.program.is_complete(file):
        return
    used = _names_used(file)
    for imported in file.unit.imports:
        if imported.kind == "python" and imported.statement.name is None:
            continue
        units = _files_behind(imported, file.unit)
        if _brought(imported, units).isdisjoint(used) and not any(map(_has_effect, units)):
            path = imported.statement.path
            help = "remove the import."
            if imported.kind == "python":
                help = f'write `import "{path.value}"` if it is an extension; else remove the import.'
            report.add(path.span, f"nothing that `{path.value}` brings is used here", help=help)


@rule("E0242", "warning")
def unused_role(file: Analysis, report: Report) -> None:
    """A role is declared that no agent has.

    It is left over, or an agent has the wrong role. Files without a `run` are not checked, because others may use
    their roles.

    Wrong:

        role Worker { can execute }
        role Lead { can delegate }
        agent Greeter : Worker { on hello(args) { return args } }
        run Greeter.hello({})

    Right:

        role Worker { can execute }
        agent Greeter : Worker { on hello(args) { return args } }
        run Greeter.hello({})
    """
    if report.program.is_complete(file):
        given = [agent.role.name for agent, _ in file.index.of(n.Agent)]
        given += [name.name for send, _ in file.index.of(n.Send) for name in send.roles]
        meant = {nearest(name, file.table.names("role")) for name in given if file.table.find("role", name) is None}
        used = report.program.for_file(_roles_used, file) | meant
        for role, _ in file.index.of(n.Role):
            if role.name.name not in used:
                help = "give it to an agent, or remove it."
                report.add(role.name.span, f"no agent has the role `{role.name.name}`", help=help)


@rule("E0243", "warning")
def unused_prompt(file: Analysis, report: Report) -> None:
    """A prompt is declared that nothing refers to.

    It is left over, or a playbook names another one. Exported prompts and files without a `run` are not checked,
    because others may use them.

    Wrong:

        role Worker { can execute }
        prompt Rules = "Be brief."
        agent Greeter : Worker { on hello(args) { playbook "Greet." } }
        run Greeter.hello({})

    Right:

        role Worker { can execute }
        prompt Rules = "Be brief."
        agent Greeter : Worker { on hello(args) { playbook Rules + "Greet." } }
        run Greeter.hello({})
    """
    if report.program.is_complete(file):
        used = _names_used(file)
        for prompt, _ in file.index.of(n.Prompt):
            if not prompt.exported and prompt.name.name not in used:
                help = "use it in a playbook, or remove it."
                report.add(prompt.name.span, f"nothing uses the prompt `{prompt.name.name}`", help=help)


@rule("E0246", "warning")
def unused_variable(file: Analysis, report: Report) -> None:
    """A variable or local function is declared and never read.

    It is left over, or another name is used where this one was meant. A name that begins with `_` says that nobody is
    to read it; parameters, loops and values that are taken apart are not looked at.

    Wrong:

        in handler: const total = args.a + args.b  return args.a

    Right:

        in handler: const total = args.a + args.b  return total
    """
    names = {declarator.pattern for declarator, _ in file.index.of(n.Declarator)}
    heads = [loop.first for loop, _ in file.index.of(n.For) if isinstance(loop.first, n.Variable)]
    names -= {each.pattern for head in heads for each in head.declarators}
    functions = {statement.function for statement, _ in file.index.of(n.FunctionStatement)}
    # `count += 1` may be there for its value.
    changed: set[n.Node] = {update.target for update, _ in file.index.of(n.Update)}
    changed |= {assignment.target for assignment, _ in file.index.of(n.Assignment) if assignment.operator}
    # A name in the braces of a text was meant to be read there, which another rule tells.
    mentioned = {word for text, _ in file.index.of(n.Text) if "{" in text.value for word in WORD.findall(text.value)}
    for resolution in file.code.values():
        variables = resolution.variables
        read = {variable for node, variable in variables.items() if node in changed}
        # Of two variables of one name the other one may have been meant.
        known = mentioned.union(variable.name for variable in variables.values() if variable.used)
        for node, variable in variables.items():
            if variable.used or variable in read or variable.name in known:
                continue
            is_declared = (node in names and isinstance(node, n.Binding)) or node in functions
            if is_declared and not variable.name.startswith("_"):
                report.add(variable.span, f"nothing reads `{variable.name}`", help="use it, or remove it.")


def _roles_used(_: Analysis, program: AnalysedProgram) -> set[str]:
    """The names of roles that agents have or code mentions, in the whole program."""
    used = set()
    for file in program.files:
        used |= {agent.role.name for agent, _ in file.index.of(n.Agent)}
        used |= {name.name for send, _ in file.index.of(n.Send) for name in send.roles}
        used.update(*(resolution.outer for resolution in file.code.values()))
    return used


def _names_used(file: Analysis) -> set[str]:
    """Every name in a file that may stand for a declaration."""
    used = {name for resolution in file.code.values() for name in resolution.outer}
    used |= {agent.role.name for agent, _ in file.index.of(n.Agent)}
    used |= {name.name for send, _ in file.index.of(n.Send) for name in send.roles}
    used |= {run.agent.name for run, _ in file.index.of(n.Run)}
    used |= {name.name for uses, _ in file.index.of(n.Uses) for name in uses.names}
    used |= set(_members(file))
    used |= {type.name for type, _ in file.index.of(n.Type)}
    used |= {name.name for playbook, _ in file.index.of(n.Playbook) for name in prompts_in(playbook.parts)}
    used |= {name.name for prompt, _ in file.index.of(n.Prompt) for name in prompts_of(prompt)}
    # `this.callSkill("Sums", …)` and similar: a name in quotes may be meant too.
    texts = (text.value for text, _ in file.index.of(n.Text))
    return used | {text for text in texts if len(text) < 80 and WORD.fullmatch(text)}


def _members(file: Analysis) -> Iterator[str]:
    for member, _ in file.index.of(n.TeamMember):
        if isinstance(member.value, n.Name):
            yield member.value.name


def _files_behind(imported: Imported, importer: Unit) -> list[Unit]:
    """The files that an import statement brings, at any distance."""
    waiting = [unit for unit in importer.reached if unit.path == imported.target]
    found: dict[str, Unit] = {}
    while waiting:
        unit = waiting.pop()
        if unit is not importer and unit.path not in found:
            found[unit.path] = unit
            waiting += unit.reached
    return list(found.values())


def _has_effect(unit: Unit) -> bool:
    """Whether a file imports a Python module only to have it imported, such as one that adds actions."""
    modules = [imported for imported in unit.imports if imported.kind == "python"]
    words = WORD.findall(unit.source.text)
    return any(imported.name is None or words.count(imported.name) == 1 for imported in modules)


def _brought(imported: Imported, units: Sequence[Unit]) -> set[str]:
    """The names that an import statement brings by files, or the one that a Python module has."""
    if imported.kind != "koi":
        return {imported.name or ""}
    return {symbol.name for unit in units for symbol in own_symbols(unit) if symbol.kind not in ("mcp", "module")}
