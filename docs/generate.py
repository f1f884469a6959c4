"""The pages of the manual that are made from the program itself: `python -m docs.generate` writes them.

The modules of the JavaScript client, too, are made here, from the OpenAPI document of a service.

The grammar, the actions, the messages, the help of commands, the parts of the standard library and the keys of
`koi.toml` are described where they are defined; `tests/test_reference.py` fails when a page is stale.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields
from pathlib import Path

import click

from benchmarks.security.results import dojo_table, read_dojo_results, read_results, table
from benchmarks.test262 import KNOWN
from docs.client_modules import client_modules
from koi_lang.cli import koi
from koi_lang.cli.list import std
from koi_lang.compiler.rules import explanations
from koi_lang.llm import providers
from koi_lang.runtime.actions.lookup import all_actions
from koi_lang.runtime.actions.registered import ActionKind
from koi_lang.runtime.agents import call_options
from koi_lang.runtime.guards.policy import describe_sources
from koi_lang.settings.project import SECTIONS
from koi_lang.settings.service import ServiceLimits, ServiceSettings, UserSettings
from koi_lang.system import resources

FOLDER = Path(__file__).resolve().parent / "reference"
COLUMNS = 100
# Types of keys as a person writes their values.
TYPES = {
    "bool": "true or false",
    "int": "whole number",
    "float": "number",
    "str": "text",
    "Sequence[str]": "list of texts",
    "dict[str, Any]": "table",
    "Mapping[str, UserSettings]": "table",
    "ServiceLimits": "table",
    "Mapping[str, Sequence[str]]": "table of texts or lists",
    "Mapping[str, str]": "table of texts",
}
# The section of the service, and the tables in it.
SERVICE = {"serve": ServiceSettings, "serve.users.NAME": UserSettings, "serve.limits": ServiceLimits}
# A heading of the grammar: a comment of dashes that ends with its words.
SECTION = re.compile(r"^// -{20,} (.+)$", re.MULTILINE)

# Pages in which some tables are generated.
WITH_TABLES = ("security.md", "benchmarks.md")
# Where a table stands in a page that is not generated as a whole, between comments with its name.
TABLE = re.compile(r"(<!-- table (\w+): .+? -->\n).*?(<!-- table end -->)", re.DOTALL)


def pages() -> Mapping[str, str]:
    """All generated pages by the path of their file from the folder of references."""
    return {
        "grammar.md": grammar_page(resources.grammar().read_text("utf-8")),
        "actions.md": actions_page(),
        "messages.md": messages_page(),
        "commands.md": commands_page(),
        "library.md": library_page(),
        "settings.md": settings_page(),
        "permissions.md": permissions_page(),
        "../../koi_lang/compiler/runtime_facts.py": runtime_facts_module(),
        **{f"../../koi_lang/web/static/client/{name}": text for name, text in client_modules().items()},
        **{f"../{name}": page_with_tables((FOLDER.parent / name).read_text("utf-8")) for name in WITH_TABLES},
    }


def grammar_page(text: str) -> str:
    """The grammar, a heading for each of its parts."""
    about, *parts = SECTION.split(text)
    words = " ".join(line.removeprefix("//").strip() for line in about.strip().splitlines())
    sections = [f"## {name.capitalize()}\n\n```lark\n{body.strip()}\n```" for name, body in _pairs(parts)]
    return _page("The grammar", words, sections)


def _pairs(parts: list[str]) -> Iterator[tuple[str, str]]:
    return zip(parts[::2], parts[1::2], strict=True)


def actions_page() -> str:
    """Every built-in action with its fields, below the permission that it needs."""
    kinds = sorted(all_actions(), key=lambda kind: (kind.needs or "", kind.name))
    needs = list(dict.fromkeys(kind.needs or "" for kind in kinds))
    sections = []
    for need in needs:
        rows = [
            f"### `{kind.name}`\n\n`{kind.signature}`\n\n{kind.description}"
            for kind in kinds
            if (kind.needs or "") == need
        ]
        sections.append("\n\n".join([f"## Needs `{need}`" if need else "## Needs nothing", *rows]))
    about = "The actions of playbooks. `koi list actions FILE` also lists those that a program and its extensions add."
    return _page("Actions", about, sections)


def messages_page() -> str:
    """Every code of a message with its explanation."""
    sections = [f"## {code}\n\n{text.strip()}" for code, text in sorted(explanations().items())]
    return _page("Messages", "Every code that a message may have; `koi check --explain CODE` shows the same.", sections)


def commands_page() -> str:
    """The help of every command and of those below it."""
    context = click.Context(koi, info_name="koi", terminal_width=COLUMNS, max_content_width=COLUMNS)
    sections = []
    for words, command in sorted(_commands(koi, context)):
        own = click.Context(command, info_name=words, parent=context, terminal_width=COLUMNS)
        sections.append(f"## koi {words}\n\n```text\n{command.get_help(own)}\n```")
    return _page("Commands, option by option", "The help of each command, as `koi COMMAND --help` prints it.", sections)


def _commands(group: click.Group, context: click.Context, before: str = "") -> Iterator[tuple[str, click.Command]]:
    """The commands of a group and those within them, by their words."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name
        yield f"{before}{name}", command
        if isinstance(command, click.Group):
            yield from _commands(command, context, f"{before}{name} ")


def library_page() -> str:
    """The skills and teams of the standard library with what they offer."""
    sections = []
    for part in map(std.part, std.files()):
        lines = [f"## std/{part.name}\n\n{part.about}. [Its page](../../stdlib_skills/{part.name}.md) has an example."]
        for group in part.groups:
            head = f"### {group.kind} `{group.name}`" + (f"\n\n{group.about}" if group.about else "")
            rows = [
                f"| `{_cell(each.signature)}` | {_cell(each.about)} | {each.needs or ''} |" for each in group.entries
            ]
            lines += [head, "\n".join(["| function or event | what | needs |", "|---|---|---|", *rows])]
        sections.append("\n\n".join(lines))
    about = 'Every skill and team that `import "std/…"` brings; `koi list std NAME` shows the page of one part.'
    return _page("The standard library, function by function", about, sections)


def settings_page() -> str:
    """The sections and keys of `koi.toml`."""
    sections = []
    for name, section in sorted({**SECTIONS, **SERVICE}.items()):
        about = " ".join((section.__doc__ or "").split("Attributes:")[0].split())
        rows = [f"| `{each.name}` | {_type_words(str(each.type))} | {_default(each)} |" for each in fields(section)]
        table = "\n".join(["| key | type | without it |", "|---|---|---|", *rows]) if rows else ""
        sections.append("\n\n".join(filter(None, [f"## {name}", about, table])))
    return _page("Keys of `koi.toml`", "Every section and key; [Settings](../settings.md) describes each.", sections)


def permissions_page() -> str:
    """Who says whether something may be done, in their order."""
    rows = [f"| {name} | {_cell(words)} |" for name, words in describe_sources()]
    about = (
        "Before an agent acts, these sources are checked from the top; the first that decides counts. Where none does,"
        " actions that are open to everybody are allowed, and you are asked about the rest: commands, changes of files,"
        " pages. A hook or a debugger may still refuse what is allowed, and the sandbox bounds what a command can do."
        " See [Permissions](../permissions.md) and [Projects](../projects.md)."
    )
    table = "\n".join(["| who | what it says |", "|---|---|", *rows])
    return _page("Order of permissions", about, [table])


def page_with_tables(text: str) -> str:
    """A page with the results of attacks as they were saved last, and what is known to differ from JavaScript."""
    tables = {
        "attacks": table(read_results().values()),
        "agentdojo": dojo_table(read_dojo_results()),
        "differences": differences_table(),
    }
    return TABLE.sub(lambda found: f"{found[1]}\n{tables[found[2]]}\n\n{found[3]}", text)


def differences_table() -> str:
    """Why tests of ECMAScript fail, and in how many of them an error says so; the most frequent reasons first."""
    rows = [
        f"| {each.reason} | {each.most} | {'an error' if each.is_refusal else 'another value'} |"
        for each in sorted(KNOWN, key=lambda each: -each.most)
    ]
    return "\n".join(["| difference | tests at most | what a program gets |", "|---|---|---|", *rows])


def _type_words(type: str) -> str:
    return " or ".join(TYPES[part] for part in type.split(" | ") if part != "None")


def _default(each: Field[object]) -> str:
    if each.default_factory is not MISSING:
        return "none"
    if each.default is MISSING or each.default is None:
        return ""
    return f"`{json.dumps(each.default)}`" if each.default != () else "none"


def runtime_facts_module() -> str:
    """The module by which the compiler, which imports neither actions nor providers, knows the names of all."""
    about = [
        '"""Names of actions, providers and options for the compiler, made from them by `python -m docs.generate`.',
        "",
        "An optional field has `?` behind its name; the kind of its value follows where it takes only one.",
        '"""',
    ]
    rows = [f'    "{kind.name}": "{" ".join(_field_words(kind))}",' for kind in all_actions()]
    names = {
        "PROVIDERS": (*(row.name for row in providers.PROVIDERS), *providers.STAND_INS),
        "MAKERS": providers.MAKERS,
        "WITHOUT_SEED": tuple(row.name for row in providers.PROVIDERS if not row.seed),
        "CALL_OPTIONS": call_options.NAMES,
    }
    tuples = [line for name, words in names.items() for line in (f"{name} = (", *(f'    "{w}",' for w in words), ")")]
    return "\n".join([*about, "", "ACTION_FIELDS = {", *rows, "}", *tuples, ""])


def _field_words(kind: ActionKind) -> Iterator[str]:
    for name, field in kind.schema["properties"].items():
        type_name = field.get("type", "").replace("integer", "number")
        yield name + ("" if name in kind.schema["required"] else "?") + (f":{type_name}" if type_name else "")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _page(title: str, about: str, sections: list[str]) -> str:
    note = "<!-- made by `python -m docs.generate`; what it says stands in the program -->"
    return "\n\n".join([f"# {title}", note, about, *sections]) + "\n"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, "utf-8")
