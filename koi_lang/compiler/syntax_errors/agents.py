"""Mistakes in the bodies of agents and skills."""

from __future__ import annotations

import re

from koi_lang.compiler.build import RESERVED
from koi_lang.compiler.syntax_errors.context import Failure, Hint, SyntaxHelp, hint
from koi_lang.compiler.syntax_errors.files import DECLARATIONS, STATEMENTS
from koi_lang.diagnostics import nearest
from koi_lang.source import Source, Span

HINTS: list[Hint] = []
# The head of a method of another language, its result before its name.
METHOD = re.compile(r"(?:\w+\s+)*\w+(?:<[^<>\n]*>)?\s+(\w+)\s*\(")
SKILL_ITEMS = ("affordance", "needs", "const", "let", "agent", "team", "function", "export")
ITEMS = (
    "on",
    "private",
    "affordance",
    "examples",
    "uses",
    "llm",
    "amnesia",
    "guard",
    "state",
    "expose",
    "resilience",
    "budget",
    "phases",
    "transitions",
    "playbook",
    "export",
)
HEAD = ("ON", "WORD", "OPEN", "RPAR")
# The name of a model without quotes.
MODEL = re.compile(r"\w[\w.:/-]*")
INSTRUCTIONS = "put it into the handlers that need it: `on start() {{ playbook {value} }}`."
AFFORDANCE = "write `affordance {value}`, which says what the agent is for."
RESULT = "the type of a result stands behind the parameters: `on start(args): {value} {{ … }}`."
GUARD_FORM = (
    "write `guard input {{ return true }}`, or `output` or `action` in place of `input`; these are names in its block."
)
TEXT = '"…"'
# What people write as parts of an agent, in small letters without `_`; what to write, and the value if none is given.
INSTEAD = {
    **dict.fromkeys(("model", "provider", "client"), ("write `llm default = {{ model: {value} }}`.", TEXT)),
    "temperature": ("write `llm default = {{ temperature: {value} }}`.", "0.2"),
    "topp": ("write `llm default = {{ top_p: {value} }}`.", "0.9"),
    "maxtokens": ("write `llm default = {{ max_tokens: {value} }}`.", "2000"),
    **dict.fromkeys(
        ("tool", "tools", "functions"), ("write `uses skill …` or `uses mcp …` with names of declarations.", "")
    ),
    **dict.fromkeys(
        ("handoff", "handoffs", "agents", "subagents", "members"),
        ("declare `team Crew {{ … }}` outside of the agent, and write `uses team Crew`.", ""),
    ),
    **dict.fromkeys(("description", "goal", "backstory", "name", "purpose", "persona"), (AFFORDANCE, TEXT)),
    "role": ("write `affordance {value}`; the role of an agent stands behind its name and `:`.", TEXT),
    **dict.fromkeys(("system", "instruction", "instructions", "systemprompt", "prompt"), (INSTRUCTIONS, TEXT)),
    **dict.fromkeys(("context", "variables"), ("write `state {{ name = value }}`.", "")),
    "memory": ("leave it out: agents remember. Values of their own stand in `state {{ name = value }}`.", ""),
    **dict.fromkeys(
        ("can", "needs", "permissions"), ("permissions stand in the role: `role Worker {{ can execute }}`.", "")
    ),
    **dict.fromkeys(
        ("maxiter", "maxiterations", "maxturns", "maxsteps"), ("write `budget {{ turns: {value} }}`.", "40")
    ),
    **dict.fromkeys(
        ("outputtype", "outputschema", "resulttype", "responsemodel", "responseformat"), (RESULT, "Review")
    ),
    **dict.fromkeys(
        ("allowdelegation", "candelegate", "allowdelegate"),
        ("permissions stand in the role: `role Lead {{ can delegate }}`.", ""),
    ),
    **dict.fromkeys(
        ("humaninput", "humanintheloop", "requireapproval", "interruptbefore"),
        ("write what to ask in the playbook; actions that need approval ask by themselves.", ""),
    ),
    **dict.fromkeys(("expectedoutput", "outputjson", "outputpydantic", "returntype"), (RESULT, "Review")),
    **dict.fromkeys(
        ("maxrpm", "maxexecutiontime", "timeout", "maxtime"), ("write `budget {{ time: {value} }}`.", "60s")
    ),
    **dict.fromkeys(
        ("retry", "retries", "maxretries"), ('write `resilience "start" {{ retry_max_attempts = {value} }}`.', "3")
    ),
    **dict.fromkeys(
        ("guard", "guards", "guardrail", "guardrails", "inputguardrails", "outputguardrails"), (GUARD_FORM, "")
    ),
    **dict.fromkeys(("verbose", "debug"), ("leave it out: `koi run --verbose` shows every event.", "")),
}
OWN_MODEL = "a handler cannot choose its own model"
LLM_FORM = 'write `llm default = { provider: "openai", model: "…" }` in the body of the agent.'


@hint(HINTS, "E0146")
def state_equals(failure: Failure) -> SyntaxHelp | None:
    """The state of an agent is given with `=`, or a field of it with `:`.

    Wrong:

        state = { count: 0 }

    Right:

        state { count: number = 0 }
    """
    if failure.frame.word == "state" and failure.word(-1) == ":" and failure.piece(-2).kind == "word":
        last = failure.scan.partners.get(failure.index, failure.index)
        value = failure.source.text[failure.span.start : failure.scan.pieces[last].span.end]
        shown = value if len(value) <= 30 and "\n" not in value else "…"
        name = failure.piece(-2).text
        return SyntaxHelp(f"`{name}` gets its value with `=`", failure.piece(-1).span, f"write `{name} = {shown}`.")
    if failure.tail != ("STATE",) or failure.word() not in ("=", ":"):
        return None
    return SyntaxHelp(
        f"{failure.excerpt} cannot stand after `state`", failure.span, "write `state { count: number = 0 }`."
    )


@hint(HINTS, "E0148")
def async_first(failure: Failure) -> SyntaxHelp | None:
    """A handler begins with `async`.

    Handlers always run asynchronously; `async` is allowed behind the parameters and means nothing more.

    Wrong:

        async on start() { console.log("go") }

    Right:

        on start() { console.log("go") }
    """
    if failure.word() != "async" or failure.word(1) != "on":
        return None
    return SyntaxHelp(
        "a handler does not begin with `async`", failure.span, "leave it out: every handler may use `await`."
    )


@hint(HINTS, "E0147")
def no_parameters(failure: Failure) -> SyntaxHelp | None:
    """A handler has no parentheses behind its name.

    Wrong:

        on start { console.log("go") }

    Right:

        on start() { console.log("go") }
    """
    if failure.tail[-2:] != ("ON", "WORD"):
        return None
    name = failure.piece(-1)
    help = f"write `on {name.text}(args) {{ … }}`." if failure.word() in ("=", ":") else f"write `on {name.text}()`."
    return SyntaxHelp(f"the handler `{name.text}` has no parentheses", name.span, help)


@hint(HINTS, "E0151")
def handler_form(failure: Failure) -> SyntaxHelp | None:
    """A handler has no name or no body.

    Wrong:

        on start() => { console.log("go") }

    Right:

        on start() { console.log("go") }
    """
    if failure.tail[-1:] == ("ON",):
        return SyntaxHelp("this handler has no name", failure.span, "write `on start(args: Json) { … }`.")
    if failure.tail[-4:] != HEAD:
        return None
    if failure.word() == "=>":
        return SyntaxHelp("`=>` cannot stand before the body of a handler", failure.span, "leave it out.")
    return SyntaxHelp("this handler has no body", failure.piece(-1).span, "write `{ … }` behind its parameters.")


@hint(HINTS, "E0150")
def llm_form(failure: Failure) -> SyntaxHelp | None:
    """The model is chosen in a handler, or without `=`.

    Wrong:

        llm { model: "gpt-4o" }

    Right:

        llm default = { model: "gpt-4o" }
    """
    if failure.tail[-1:] == ("LLM",) and failure.frame.word == "agent":
        return SyntaxHelp("`default =` is missing after `llm`", failure.span, LLM_FORM)
    if failure.tail[-3:-1] == ("LLM", "DEFAULT") and failure.piece().kind in ("text", "word", "number"):
        name = MODEL.match(failure.source.text, failure.span.start)
        written = f'"{name[0]}"' if name else failure.piece().text
        return SyntaxHelp("a model stands in braces", failure.span, f"write `llm default = {{ model: {written} }}`.")
    opener = failure.at(failure.frame.start) if failure.frames else 0
    words = [failure.piece(), failure.scan.pieces[opener - 1]] if opener else []
    found = next((word for word in words if word.text == "llm" and word.fresh), None) if failure.is_code else None
    return None if found is None else SyntaxHelp(OWN_MODEL, found.span, LLM_FORM)


@hint(HINTS, "E0606")
def limit_form(failure: Failure) -> SyntaxHelp | None:
    """A limit of a budget is no number.

    Wrong:

        budget { tokens: most }

    Right:

        budget { tokens: 50000 }
    """
    if failure.frame.word != "budget" or failure.tail[-1:] not in (("COLON",), ("EQUAL",)):
        return None
    name = failure.piece(-2).text
    example = {"time": "2m", "usd": "0.5", "turns": "40"}.get(name, "50000")
    return SyntaxHelp(f"the limit `{name}` is a number", failure.span, f"write `{name}: {example}`, for example.")


@hint(HINTS, "E0154")
def uses_form(failure: Failure) -> SyntaxHelp | None:
    """An agent does not say what kind of thing it uses.

    Wrong:

        uses Crew

    Right:

        uses team Crew
    """
    if failure.tail[-2:] == ("USES", "SKILLS") and failure.piece().text.isidentifier():
        help = f"write `uses skill {failure.piece().text}`, or `uses skills` alone for those of the project."
        return SyntaxHelp(f"{failure.excerpt} does not belong here", failure.span, help)
    if failure.word() == "use" and failure.frame.word == "agent" and failure.word(2) == "-":
        return SyntaxHelp("`use` names no model", failure.span, LLM_FORM)
    if failure.tail[-1:] != ("USES",) and not (failure.frame.word == "agent" and failure.word() == "use"):
        return None
    kind = failure.word(1) if failure.word() == "use" else failure.word().removesuffix("s")
    rest = failure.piece(2 if failure.word() == "use" else 1).text
    if kind in ("team", "skill", "mcp") and rest.isidentifier():
        return SyntaxHelp(f"{failure.excerpt} does not belong here", failure.span, f"write `uses {kind} {rest}`.")
    if word := {"instruction": "instructions", "memories": "memory", "notes": "memory"}.get(failure.word()):
        return SyntaxHelp(f"{failure.excerpt} does not belong here", failure.span, f"write `uses {word}`.")
    if kind in ("tool", "function", "plugin") and rest.isidentifier():
        help = f"write `uses skill {rest}`, or `uses mcp {rest}` for the tools of a server."
        return SyntaxHelp(f"nothing is declared as a {kind}", failure.span, help)
    named = failure.piece(1) if failure.word() == "[" else failure.piece()
    name = named.text if named.kind == "word" else "…"
    help = f"write `uses team {name}`, `uses skill …` or `uses mcp …`."
    return SyntaxHelp("`uses` does not say what kind of thing follows", failure.span, help)


@hint(HINTS, "E0186")
def list_of_tools(failure: Failure) -> SyntaxHelp | None:
    """What is used is followed by a list that is empty, or that only MCP servers have.

    Wrong:

        uses mcp files()

    Right:

        uses mcp files(read_text_file, list_*)
    """
    is_of_server = failure.frame.word == "mcp" and failure.word(-3) in ("mcp", ",", ")")
    if is_of_server and (failure.word(-1), failure.word()) == ("(", ")"):
        help = "name tools, as in `uses mcp files(read_*)`, or leave the parentheses out to grant all of them."
        return SyntaxHelp("no tool is granted", failure.span, help)
    if failure.tail[-3:] in (("USES", "SKILL", "NAME"), ("USES", "TEAM", "NAME")) and failure.word() == "(":
        kind, name = failure.word(-2), failure.piece(-1).text
        return SyntaxHelp(f"a {kind} is used whole", failure.span, f"write `uses {kind} {name}`.")
    return None


@hint(HINTS, "E0152")
def local_function(failure: Failure) -> SyntaxHelp | None:
    """A function stands in an agent.

    What agents do are handlers, which take one payload. A function that other code calls belongs into a skill.

    Wrong:

        function double(x: number): number { return x * 2 }

    Right:

        private on double(x: number) { return x * 2 }
    """
    if failure.frame.word != "agent" or "function" not in (failure.word(), failure.word(1)):
        return None
    name = failure.piece(1 if failure.word() == "function" else 2).text
    help = f"write `private on {name}(args) {{ … }}`, and call `await this.{name}({{ … }})`; or put it into a skill."
    return SyntaxHelp("an agent has handlers and no functions", failure.span, help)


@hint(HINTS, "E0153")
def statement(failure: Failure) -> SyntaxHelp | None:
    """A statement stands in the body of an agent or skill instead of in a handler or function.

    Wrong:

        const limit = 3

    Right:

        on start() { const limit = 3 }
    """
    if failure.frame.word not in ("agent", "skill") or "AFFORDANCE" not in failure.expected:
        return None
    follows = failure.word(1) in (".", "=") and failure.piece().kind == "word"
    if failure.word(1) == "=" and failure.frame.word == "agent":
        return None  # a part as other frameworks have it
    if failure.word() not in STATEMENTS and not follows:
        return None
    place = (
        "handler: `on start() { … }`" if failure.frame.word == "agent" else "function: `export function name() { … }`"
    )
    return SyntaxHelp(
        f"a statement cannot stand directly in the {failure.frame.word}", failure.span, f"put it into a {place}."
    )


@hint(HINTS, "E0149")
def guard(failure: Failure) -> SyntaxHelp | None:
    """A guard says neither `input`, `output` nor `action`, or has no block.

    Wrong:

        guard input(args) { return args.text.length < 100 }

    Right:

        guard input { return input.text.length < 100 }
    """
    if failure.frame.word != "agent" or failure.word() != "guard" or "AFFORDANCE" not in failure.expected:
        return None
    return SyntaxHelp("this is not how a guard is written", failure.span, GUARD_FORM.format())


@hint(HINTS, "E0155")
def unknown_item(failure: Failure) -> SyntaxHelp | None:
    """The body of an agent or skill holds something that does not belong there.

    Wrong:

        start(args: Json) { console.log("go") }

    Right:

        on start(args: Json) { console.log("go") }
    """
    if failure.frame.word not in ("agent", "skill") or "AFFORDANCE" not in failure.expected or not failure.word():
        return None
    kind = failure.frame.word
    listed = ITEMS if kind == "agent" else SKILL_ITEMS
    near = nearest(failure.word(), listed) if failure.piece().kind == "word" else None
    help = (
        f"its parts begin with {', '.join(f'`{item}`' for item in listed)}."
        if near is None
        else f"did you mean `{near}`?"
    )
    suggested, name = help, failure.piece().text
    part = INSTEAD.get(name.replace("_", "").lower()) if kind == "agent" and failure.word(1) != "(" else None
    if part is not None and (failure.piece(1).kind != "word" or failure.word() not in DECLARATIONS):
        written, (form, value) = failure.piece(2), part
        is_value = written.kind == {TEXT: "text", "Review": "word"}.get(value, "number")
        help = form.format(value=written.text if is_value else value)
    elif failure.piece().kind in ("text", "triple"):
        shown = name if failure.piece().kind == "text" and "\n" not in name else '"""…"""'
        help = f"write `affordance {shown}`."
    elif kind == "agent" and failure.word(1) == "=" and failure.word(2) in ("async", "(", "function"):
        help = f"write `on {name}(args) {{ … }}`."
    elif kind == "agent" and near == name == "playbook":
        help = 'put it into a handler: `on start() { playbook "…" }`.'
    elif near is None and kind == "agent" and failure.word(1) == "=":
        help = f"a value that the agent keeps stands in its state: `state {{ {name} = … }}`."
    elif failure.word() in DECLARATIONS:
        help = f"move it out of the {failure.frame.word}, before it or behind it."
    elif kind == "skill" and failure.word() in ITEMS:
        help = "put it into an agent, or write `export function name(…) { … }`."
    elif kind == "agent" and failure.word(1) == "(":
        is_registered = failure.piece(2).kind == "text"
        help = f"write `on {failure.piece(2).text[1:-1] if is_registered else name}(…)`."
    elif kind == "agent" and failure.word(1) in ("on", "private"):
        help = "leave it out: a handler begins with `on` or `private on`."
    elif kind == "agent" and (method := METHOD.match(failure.source.text, failure.span.start)) is not None:
        help = f"write `on {method[1]}(…)`."
    article = "an" if kind == "agent" else "a"
    message, meant = f"{failure.excerpt} does not begin a part of {article} {kind}", near if help is suggested else None
    return SyntaxHelp(message, failure.span, help, meant=meant)


@hint(HINTS, "E0156")
def amnesia(failure: Failure) -> SyntaxHelp | None:
    """`amnesia` is neither `true` nor `false`.

    Wrong:

        amnesia = "yes"

    Right:

        amnesia = true
    """
    if "AMNESIA" not in failure.tail:
        return None
    return SyntaxHelp("`amnesia` is `true` or `false`", failure.span, "write `amnesia = true`.")


@hint(HINTS, "E0165")
def send_form(failure: Failure) -> SyntaxHelp | None:
    """A `send` stands without `await`.

    `start` in place of `await send` begins a call and gives a handle for it; the code goes on.

    Wrong:

        send peers.event("greet").any()({})

    Right:

        await send peers.event("greet").any()({})
    """
    if failure.word() != "send" or not failure.is_code or (failure.piece(1).kind != "word" and failure.word(1) != "("):
        return None
    return SyntaxHelp(
        "`send` stands without `await`", failure.span, "write `await send …`, or `start …` to go on beside it."
    )


@hint(HINTS, "E0143")
def reserved_word(failure: Failure) -> SyntaxHelp | None:
    """A reserved word is used as a name.

    JavaScript reserves them, too. They may be keys of objects and stand after a dot, but name nothing.

    Wrong:

        const default = 1

    Right:

        const count = 1
    """
    word = failure.word()
    if word not in RESERVED or "NAME" not in failure.expected or (failure.is_code and _begins_statement(failure)):
        return None
    if word == "import" and failure.word(1) == "(":
        help = 'begin the file with `import name from "…"`.'
        return SyntaxHelp("files are imported at the top of a file only", failure.span, help)
    better = f"{word}Value" if failure.is_code or failure.frames else f"My{word.title()}"
    return SyntaxHelp(
        f"{failure.excerpt} is a reserved word and cannot be a name",
        failure.span,
        f"choose another name, such as `{better}`.",
    )


@hint(HINTS, "E0130")
def item_in_code(failure: Failure) -> SyntaxHelp | None:
    """A part of an agent or of the program stands in the code of a handler.

    Wrong:

        on start() {
          uses team Crew
        }

    Right:

        uses team Crew
        on start() { console.log("go") }
    """
    word = failure.word()
    if not failure.is_code or word not in (*ITEMS, "role", "team", "agent", "skill", "prompt", "mcp", "import", "run"):
        return None
    if word == "export" and failure.word(1) in ("const", "let", "var"):
        help = "leave `export` out: a variable is seen by the code behind it, and others get what a handler returns."
        return SyntaxHelp("`export` cannot stand in code", failure.span, help)
    if word == "prompt" and failure.piece(1).kind in ("text", "triple"):
        help = "write `playbook` in place of `prompt`: a model carries it out."
        return SyntaxHelp("`prompt` does not begin a playbook", failure.span, help, meant="playbook")
    outside = f"out of the {failure.frames[0].word}, before it or behind it"
    place = "to the body of the agent" if word in ITEMS else outside
    return SyntaxHelp(
        f"{failure.excerpt} cannot stand in code", failure.span, f"move it {place}, or choose another name."
    )


def item_beside(source: Source, first: Span, second: Span) -> SyntaxHelp | None:
    """A part of an agent that reads like a name with a block behind it."""
    word = source.text[first.start : first.end]
    if word == "guard" and source.text.startswith(("input", "output", "action"), second.start):
        return SyntaxHelp("a guard stands at the beginning of its handler", first, "move it before all statements.")
    if word not in ("llm", "state") or source.text[second.start] != "{":
        return None
    if word == "llm":
        return SyntaxHelp(OWN_MODEL, first, LLM_FORM)
    return SyntaxHelp(f"`{word}` cannot stand in code", first, "move it to the body of the agent.")


def _begins_statement(failure: Failure) -> bool:
    return failure.piece().fresh or "VARIABLE" in failure.expected
