"""What stands outside of every declaration, and files that are no Koi programs."""

from __future__ import annotations

import re

from koi_lang.compiler.syntax_errors.context import Failure, Hint, SyntaxHelp, hint
from koi_lang.diagnostics import nearest
from koi_lang.source import Span

FIRST: list[Hint] = []
HINTS: list[Hint] = []
DECLARATIONS = ("import", "type", "role", "team", "agent", "skill", "mcp", "prompt", "run", "test", "eval")
# A call, the class of something that is made, and an object of types, at the top of a file.
CALL = re.compile(r"\b([A-Z]\w*)\.\w+(?=\()")
MADE = re.compile(r"(?:(?:const|let|var) )?(\w+) = (?:new )?(?:\w+\.)?(Agent|Team|Skill|Crew)\(", re.IGNORECASE)
EDGES = re.compile(
    r"\w+\.(?:add_?(?:conditional_?)?(?:edges?|node)|set_?(?:entry|finish)_?point|compile)\(", re.IGNORECASE
)
RECORD = re.compile(r"(?:(?:const|let|var) )?([A-Z]\w*) = \{ *\w+\??: *(?:string|number|int|boolean|str|bool|float)\b")
DECLARED = {
    "agent": "write `agent Name : Role { … }`.",
    "skill": "write `skill Name { … }`.",
    "role": "write `role Name { can execute }`.",
    "prompt": 'write `prompt Name = "…"`.',
    **dict.fromkeys(("team", "crew"), "write `team Name { ada: Ada }`."),
}
CALLER = "write a handler that calls the others: `on start() { await Name.handler({ … }) }`."
# What Koi has instead of packages that programs of Node import most.
_GLOBAL = "leave the import out: `{}` is there without one."
_CHECKED = "leave it out: types behind `:` are checked, as in `on start(args: { name: string })`."
_ASKED = 'leave it out: a playbook asks the model, `on start() { playbook "…" }`.'
OF_NODE = {
    **dict.fromkeys(("fs", "fs/promises"), 'write `import "std/files"`.'),
    **dict.fromkeys(("axios", "node-fetch", "http", "https"), _GLOBAL.format("fetch")),
    **dict.fromkeys(("uuid", "crypto"), _GLOBAL.format("crypto.randomUUID()")),
    "url": _GLOBAL.format("URL"),
    **dict.fromkeys(("openai", "@anthropic-ai/sdk", "langchain", "ai"), _ASKED),
    **dict.fromkeys(("zod", "yup", "ajv"), _CHECKED),
    "path": 'write `import path from "python:os.path"`.',
    "os": 'write `import os from "python:os"`.',
    "child_process": 'write `callAction("shell", { command: "…", description: "…" })`.',
    "dotenv": "leave it out: `.env` is read, and `process.env.NAME` is there.",
    "lodash": "leave it out: lists have `map`, `filter`, `toSorted`, and there is `Object.groupBy`.",
}
# Declarations of other languages and frameworks.
INSTEAD = {
    **dict.fromkeys(("client", "model", "llm"), 'name the model in an agent: `llm default = { model: "…" }`.'),
    **dict.fromkeys(
        ("tool", "tools", "action"), "write a function of a skill: `skill Tools { export function name(…) { … } }`."
    ),
    **dict.fromkeys(("task", "step"), "write a handler of an agent: `on research(args) { … }`."),
    **dict.fromkeys(("workflow", "flow", "graph", "pipeline", "chain", "process"), CALLER),
    **dict.fromkeys(("crew", "swarm", "group"), "write `team Name { ada: Ada }`."),
    **dict.fromkeys(("schema", "record", "model_schema"), "write `type Name = { … }`."),
    **dict.fromkeys(("main", "entrypoint"), "write `run Agent.handler({ … })`."),
    **dict.fromkeys(("node", "edge", "stage"), "write a handler of an agent, and call it: `await Agent.event({ … })`."),
    **dict.fromkeys(("groupchat", "room", "squad"), "write `team Name { ada: Ada }`."),
    **dict.fromkeys(
        ("namespace", "module", "library"), "write `skill Name { export function … }`, or a file to import."
    ),
    "declare": "leave it out: what is not declared here is imported.",
    **dict.fromkeys(("every", "schedule", "at"), 'write `run Agent.handler({ … }) every "1h"`.'),
    **dict.fromkeys(("cron", "crontab"), 'write `run Agent.handler({ … }) every "0 9 * * 1-5"`.'),
    **dict.fromkeys(("start", "execute", "call", "launch", "invoke"), "write `run Agent.handler({ … })`."),
    "generator": "leave it out: a program is a Python module as it is.",
    "retry_policy": 'write `resilience "event" { retry_max_attempts = 3 }` in an agent.',
}
LISTED = "a program consists of `import`, `role`, `team`, `agent`, `skill`, `mcp`, `prompt`, `run` and `test`."
ITEMS = frozenset(
    (
        "on",
        "private",
        "affordance",
        "examples",
        "uses",
        "llm",
        "amnesia",
        "state",
        "expose",
        "resilience",
        "playbook",
        "phases",
        "budget",
    )
)
STATEMENTS = frozenset(
    ("const", "let", "var", "if", "else", "for", "while", "return", "try", "throw", "await", "send", "use", "break")
)
FROM = re.compile(r"from\s+([\w.]+)\s+import\s+(\w+)")
FORMATS = {"{": "JSON", "[": "JSON", "<": "HTML or XML", "`": "Markdown", "--": "YAML"}


@hint(FIRST, "E0122")
def not_koi(failure: Failure) -> SyntaxHelp | None:
    """The file is written in another language.

    Programs usually have the ending `.koi`; other files are imported or read by a program.
    """
    if not failure.around.begins_file:
        return None
    is_yaml = failure.piece(1 - failure.index).text == ":" and failure.piece(-failure.index).kind == "word"
    if failure.index <= 1 and not failure.frames and is_yaml:
        return _other_format("YAML", failure)
    if failure.index or failure.frames:
        return None
    first = failure.word()
    name = FORMATS.get(first)
    if first == "#" and failure.source.text.startswith("# "):
        name = "Markdown or Python"
    if name is None:
        return None
    return _other_format(name, failure)


def _other_format(name: str, failure: Failure) -> SyntaxHelp:
    help = "begin with `role Worker { can execute }` and `agent Name : Worker { … }`."
    return SyntaxHelp(f"this looks like {name}, not like a Koi program", failure.piece(-failure.index).span, help)


@hint(HINTS, "E0124")
def function_outside(failure: Failure) -> SyntaxHelp | None:
    """A function stands outside of a skill.

    Wrong:

        function double(x: number): number { return x * 2 }

    Right:

        skill Numbers {
          affordance "works with numbers"
          export function double(x: number): number { return x * 2 }
        }
    """
    words = (failure.word(), failure.word(1))
    is_exported = failure.tail == ("EXPORT",) and not failure.frames
    if not (failure.is_top or is_exported) or ("function" not in words and words[0] != "def"):
        return None
    help = "put it into a skill: `skill Name { export function … }`."
    return SyntaxHelp("a function cannot stand outside of a skill", failure.span, help)


@hint(HINTS, "E0125")
def item_outside(failure: Failure) -> SyntaxHelp | None:
    """A part of an agent stands outside of every agent.

    Often the agent was closed by a `}` too early.

    Wrong:

        agent Ada : Worker {
          on start() { console.log("go") }
        }
          on stop() { console.log("stop") }
        }

    Right:

        agent Ada : Worker {
          on start() { console.log("go") }
          on stop() { console.log("stop") }
        }
    """
    is_item = failure.word() in ITEMS or (failure.word() == "async" and failure.word(1) == "on")
    if not failure.is_top or not is_item:
        return None
    message = f"{failure.excerpt} belongs into the body of an agent"
    closer = failure.piece(-1)
    if closer.text == "}" and _begins_with(failure, "agent"):
        others = ((closer.span, "the agent ends here"),)
        return SyntaxHelp(message, failure.span, "delete the `}` that ends the agent too early.", "", others)
    return SyntaxHelp(message, failure.span, "put it into `agent Name : Role { … }`.")


@hint(HINTS, "E0123")
def statement_outside(failure: Failure) -> SyntaxHelp | None:
    """A statement stands outside of every handler and function.

    Wrong:

        console.log("hello")

    Right:

        role Worker { can execute }
        agent Greeter : Worker {
          on start() { console.log("hello") }
        }
        run Greeter.start()
    """
    piece = failure.piece()
    if failure.tail == ("MCP",) and failure.word() == "{":
        help = 'write `mcp files = { command: "…" }`, one for each server.'
        return SyntaxHelp("this `mcp` has no name", failure.piece(-1).span, help)
    if failure.tail in (("AGENT",), ("TEAM",), ("SKILL",), ("ROLE",), ("PROMPT",)) and failure.word() == ":":
        name = failure.piece(1).text if failure.piece(1).kind == "word" else "Name"
        message = f"the name of a declaration stands directly behind `{failure.word(-1)}`"
        return SyntaxHelp(message, failure.span, DECLARED[failure.word(-1)].replace("Name", name))
    if failure.tail in (("AGENT",), ("TEAM",), ("SKILL",), ("PROMPT",)) and failure.word() == "=":
        kind = failure.word(-1)
        help = DECLARED[kind]
        return SyntaxHelp(
            f"{'an' if kind == 'agent' else 'a'} {kind} is declared, not assigned", failure.piece(-1).span, help
        )
    if failure.tail == ("EXPORT",) and not failure.frames and failure.word() in ("const", "let", "var"):
        form = f"skill Name {{ {failure.word()} {failure.piece(1).text} = … }}"
        help = f"put it into a skill, whose functions use it: `{form}`."
        return SyntaxHelp("a value cannot stand outside of a skill", failure.span, help)
    if not failure.is_top or piece.kind != "word":
        return None
    is_call = failure.word(1) in ("(", ".", "=", ":=", "[") and failure.piece(1).span.start - piece.span.end < 2
    if failure.word() not in STATEMENTS and not is_call:
        return None
    text = failure.source.text
    line = text[piece.span.start :].split("\n", 1)[0]
    help = "put it into a handler of an agent: `on start() { … }`."
    calls = CALL.finditer(text if "__name__" in line else line, piece.span.start if "__name__" in line else 0)
    called = next((found for found in calls if re.search(rf"\bagent\s+{found[1]}\b", text)), None)
    made = MADE.match(line)
    if EDGES.match(line):
        help = "write a handler that calls the agents one after the other, with `if` and `while`."
    if "__name__" in line or called is not None:
        help = f"write `run {'Agent.handler' if called is None else called[0]}({{ … }})`."
    elif made is not None:
        help = DECLARED[made[2].lower()].replace("Name", made[1].title() if made[1].islower() else made[1])
    elif (record := RECORD.match(line)) is not None:
        help = f"write `type {record[1]} = {{ … }}`."
    return SyntaxHelp("a statement cannot stand outside of a handler or function", failure.span, help)


@hint(HINTS, "E0126")
def unknown_declaration(failure: Failure) -> SyntaxHelp | None:
    """Something stands between the declarations that does not begin one.

    Wrong:

        agnet Ada : Worker { }

    Right:

        agent Ada : Worker { }
    """
    if not failure.is_top or not failure.word() or failure.word() in (")", "]", "}"):
        return None
    near = nearest(failure.word(), DECLARATIONS) if failure.piece().kind == "word" else None
    help = LISTED if near is None else f"did you mean `{near}`?"
    message = f"{failure.excerpt} does not begin a declaration"
    instead = INSTEAD.get(failure.word())
    if failure.piece().kind in ("text", "triple"):
        instead = "write `// …` or `/* … */` for a comment."
    elif (failure.word(), failure.word(2), failure.piece(3).kind) == ("{", ":", "word") or (
        failure.word(1) == ":" and failure.piece().text[0].isupper()
    ):
        instead = f"write `type {'Name' if failure.word() == '{' else failure.piece().text} = {{ … }}`."
    elif failure.word(1) == ":" and near in DECLARED:
        instead = DECLARED[near]
    if instead is not None:
        help, near = instead, None
    return SyntaxHelp(message, failure.span, help, meant=near)


@hint(FIRST, "E0127")
def import_form(failure: Failure) -> SyntaxHelp | None:
    """An import is written as in another language.

    An import names a file and brings everything that it declares.

    Wrong:

        import { Ada } from "./ada.koi"

    Right:

        import "./ada.koi"
    """
    if failure.is_top and failure.word() == "from" and failure.piece(1).kind == "word":
        help, line = 'write `import "./file.koi"`.', FROM.match(failure.source.text, failure.span.start)
        if line is not None:
            module, name = line.groups()
            path = f"std/{name}" if module == "std" else module.replace(".", "/") if module[:4] == "std." else ""
            name = module.rpartition(".")[2]
            help = f'write `import "{path}"`.' if path else f'write `import {name} from "python:{module}"`.'
        return SyntaxHelp("an import does not begin with `from`", failure.span, help)
    if failure.tail == ("IMPORT",) or (failure.word(-1) == "type" and failure.word() == "{"):
        return _import_of_parts(failure)
    if failure.tail != ("IMPORT", "NAME"):
        return None
    name = failure.piece(-1)
    own = failure.piece(1).text if failure.word() == "as" and failure.piece(1).kind == "word" else name.text
    help = f'write `import "./{name.text}.koi"`, or `import {own} from "python:{name.text}"`.'
    return SyntaxHelp("this import names no file", name.span, help)


def _import_of_parts(failure: Failure) -> SyntaxHelp:
    if failure.word() in ("{", "*"):
        path = next((piece.text for piece in map(failure.piece, range(1, 12)) if piece.kind == "text"), '"./file.koi"')
        message = "an import brings everything that a file declares"
        package = path.strip("'\"").removeprefix("node:")
        if package in OF_NODE:
            return SyntaxHelp(f"`{package}` is a package of Node", failure.span, OF_NODE[package])
        if path.strip("'\"").endswith(".py"):
            name = re.sub(r"\W", "_", path.strip("'\"").rpartition("/")[2].removesuffix(".py"))
            used = failure.piece(1).text if failure.word() == "{" and failure.piece(1).kind == "word" else "name"
            help = f"write `import {name} from {path}`, and `{name}.{used}` in code."
            return SyntaxHelp("a Python module is imported as a whole", failure.span, help)
        return SyntaxHelp(message, failure.span, f"write `import {path}` without {failure.excerpt}.")
    if not failure.word():
        return SyntaxHelp("this import names no file", failure.piece(-1).span, 'write `import "./file.koi"`.')
    line = failure.source.line(failure.source.position(failure.span.start).line)
    start = failure.span.start
    column = failure.source.position(start).column - 1
    path = line[column:].split(";")[0].split("//")[0].strip()
    return SyntaxHelp(
        "the file of an import must stand in quotes",
        Span(start, start + max(1, len(path))),
        f'write `import "{path}"`.',
    )


def _begins_with(failure: Failure, word: str) -> bool:
    """Whether the `}` before the failure belongs to a declaration that begins with a word."""
    openers = {closer: opener for opener, closer in failure.scan.partners.items()}
    opener = openers.get(failure.index - 1, 0)
    return any(piece.text.lower() == word for piece in failure.scan.pieces[max(0, opener - 4) : opener])
