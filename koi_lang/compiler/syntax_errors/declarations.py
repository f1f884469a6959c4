"""Mistakes in roles, teams, prompts, servers and `run`, and in the first line of an agent."""

from __future__ import annotations

from koi_lang.compiler.syntax_errors.context import Failure, Hint, SyntaxHelp, hint
from koi_lang.diagnostics import nearest
from koi_lang.source import Source, Span

HINTS: list[Hint] = []
# Those of what stands behind a `run`, which are asked first.
JOB_HINTS: list[Hint] = []
SAMPLES = {"every": "15m", "when": "hook /github"}
QUOTES = 'write it in quotes, `"…"` or `"""…"""`, with `{{args.name}}` where a value is inserted.'
NAMED = {"AGENT": "agent", "ROLE": "role", "TEAM": "team", "SKILL": "skill", "PROMPT": "prompt", "MCP": "mcp server"}
ROLE_FORM = "write `role Worker { can execute }`."


@hint(HINTS, "E0142")
def quoted_name(failure: Failure) -> SyntaxHelp | None:
    """The name of a declaration stands in quotes.

    Wrong:

        role "Worker" { can execute }

    Right:

        role Worker { can execute }
    """
    piece, kind = failure.piece(), failure.tail[-1:] and failure.tail[-1]
    if piece.kind not in ("text", "triple") or kind not in (*NAMED, "ON") or len(failure.tail) > 2:
        return None
    what = NAMED.get(str(kind), "handler")
    name = "".join(character for character in piece.text.title() if character.isascii() and character.isalnum())
    help = f"write `{name}`." if name[:1].isalpha() and what != "handler" else "leave the quotes out."
    return SyntaxHelp(f"the name of {'an' if what == 'agent' else 'a'} {what} cannot stand in quotes", piece.span, help)


@hint(HINTS, "E0136")
def empty_role(failure: Failure) -> SyntaxHelp | None:
    """A role has no capability.

    Wrong:

        role Worker { }

    Right:

        role Worker { can execute }
    """
    if failure.frame.word != "role" or failure.tail or failure.word() != "}":
        return None
    return SyntaxHelp("this role has no capability", failure.span, ROLE_FORM)


@hint(HINTS, "E0137")
def capability(failure: Failure) -> SyntaxHelp | None:
    """A capability is written without `can`.

    Wrong:

        role Worker { execute, delegate }

    Right:

        role Worker { can execute, can delegate }
    """
    if failure.frame.word == "role" and failure.tail[-1:] == ("CAN",) and failure.piece().kind == "text":
        text = failure.piece().text.strip("\"'")
        return SyntaxHelp("a permission stands without quotes", failure.span, f"write `can {text}`.")
    if failure.frame.word == "role" and failure.tail[-1:] == ("CAN",) and failure.word() in (":", "=", "["):
        names = _bare_names(failure, 0 if failure.word() == "[" else 1) or ["execute"]
        help = f"write `{', '.join(f'can {name}' for name in names)}`."
        return SyntaxHelp(f"{failure.excerpt} cannot stand after `can`", failure.span, help)
    if failure.frame.word != "role" or "CAN" not in failure.expected or failure.piece().kind != "word":
        return None
    if failure.word(1) in (":", "=") and failure.piece(2).kind in ("text", "triple"):
        help = "leave it out; what an agent is for is its `affordance`."
        return SyntaxHelp("a role holds nothing but permissions", failure.span, help)
    name = failure.piece(1) if failure.word() in ("cannot", "cant") and failure.piece(1).kind == "word" else None
    if name is not None:
        return SyntaxHelp("a role lists only what it allows", failure.span, "leave out what the role may not do.")
    if failure.piece(1).kind == "word" and not failure.piece(1).fresh and nearest(failure.word(), ("can",), alike=0.66):
        return SyntaxHelp(f"{failure.excerpt} is not a keyword", failure.span, "did you mean `can`?", meant="can")
    pieces = failure.scan.pieces[failure.index : failure.scan.partners.get(failure.at(failure.frame.start), 0)]
    shown = ", ".join(f"can {piece.text}" for piece in pieces if piece.kind == "word" and piece.text != "can")
    is_plain = all(piece.kind == "word" or piece.text == "," for piece in pieces)
    help = f"write `{shown if is_plain and shown else f'can {failure.piece().text}'}`."
    return SyntaxHelp(f"`can` is missing before {failure.excerpt}", failure.span, help)


@hint(HINTS, "E0138")
def role_form(failure: Failure) -> SyntaxHelp | None:
    """The capabilities of a role do not stand in braces.

    Wrong:

        role Worker : execute

    Right:

        role Worker { can execute }
    """
    if failure.tail != ("ROLE", "NAME"):
        return None
    return SyntaxHelp("the capabilities of a role must stand in braces", failure.span, ROLE_FORM)


@hint(HINTS, "E0140")
def role_missing(failure: Failure) -> SyntaxHelp | None:
    """An agent has no role.

    Every agent has exactly one role, which says what it is allowed to do.

    Wrong:

        agent Ada { }

    Right:

        agent Ada : Worker { }
    """
    if (
        failure.tail[:2] != ("AGENT", "NAME")
        or failure.tail[2:] not in ((), ("COLON",))
        or failure.word() not in ("{", "")
    ):
        return None
    name = failure.piece(-len(failure.tail) + 1)
    role = failure.around.role or "Worker"
    more = "" if failure.around.role else " and, before it, `role Worker { can execute }`"
    help = f"write `agent {name.text} : {role}`{more}."
    return SyntaxHelp(f"the agent `{name.text}` has no role", name.span, help)


@hint(HINTS, "E0139")
def role_colon(failure: Failure) -> SyntaxHelp | None:
    """There is no `:` between an agent and its role.

    Wrong:

        agent Ada Worker { }

    Right:

        agent Ada : Worker { }
    """
    if failure.tail != ("AGENT", "NAME"):
        return None
    words = [failure.piece(offset).text for offset in range(3) if failure.piece(offset).kind == "word"]
    role = next(
        (word for word in words if word.lower() not in ("extends", "implements", "is", "with", "role", "as")), "Worker"
    )
    help = f"write `agent {failure.piece(-1).text} : {role} {{`."
    return SyntaxHelp(f"a `:` is missing before the role of `{failure.piece(-1).text}`", failure.span, help)


@hint(HINTS, "E0141")
def second_role(failure: Failure) -> SyntaxHelp | None:
    """An agent has more than one role.

    Wrong:

        agent Ada : Worker, Lead { }

    Right:

        role Both { can execute, can delegate }
        agent Ada : Both { }
    """
    if failure.tail != ("AGENT", "NAME", "COLON", "NAME") or failure.word() not in (",", "+", "&", "and"):
        return None
    return SyntaxHelp("an agent has one role", failure.span, "declare a role that has the capabilities of both.")


@hint(HINTS, "E0128")
def team_member(failure: Failure) -> SyntaxHelp | None:
    """A team is empty, or a member of it is written in a way that does not name one agent.

    A member has a name of its own and is an agent, another team or an MCP address.

    Wrong:

        team Crew { Ada }

    Right:

        team Crew { ada: Ada }
    """
    if failure.tail == ("TEAM", "NAME"):
        names = _bare_names(failure, 1) if failure.word() in ("[", "(", "=", ":") else []
        help = f"write `team {failure.piece(-1).text} {{ {_members(names or ['Ada'])} }}`."
        return SyntaxHelp("the members of a team must stand in braces", failure.span, help)
    if failure.frame.word not in ("team", "override"):
        return None
    if not failure.tail and failure.word() == "}":
        return SyntaxHelp("this team has no member", failure.span, "write `ada: Ada` with the name of an agent.")
    if failure.tail[-1:] == ("NAME",) and failure.expected == {"COLON", "EQUAL"}:
        name = failure.piece(-1)
        help = f"write `{_members(_bare_names(failure, -1) or [name.text])}`."
        return SyntaxHelp(f"the member `{name.text}` does not say which agent it is", name.span, help)
    if failure.tail[-1:] in (("COLON",), ("EQUAL",)):
        names = _bare_names(failure, 1) if failure.word() == "[" else []
        help = (
            f"write `{_members(names)}` instead of the list."
            if names
            else "write `ada: Ada`, one member after the other."
        )
        return SyntaxHelp("a member is one agent, team or MCP address", failure.span, help)
    return None


def _bare_names(failure: Failure, offset: int) -> list[str]:
    """The names from an offset on that stand in a list, up to the end of their brackets."""
    names = []
    while failure.piece(offset).kind == "word" or failure.word(offset) in (",", "["):
        if failure.piece(offset).kind == "word":
            names.append(failure.piece(offset).text)
        offset += 1
    return names if failure.word(offset) in ("}", "]", ")") else []


def _members(names: list[str]) -> str:
    return ", ".join(f"{name[0].lower()}{name[1:]}: {name}" for name in names)


@hint(HINTS, "E0158")
def prompt_parameter(failure: Failure) -> SyntaxHelp | None:
    """A parameter of a prompt, or a field of a type, has no type, or that of a parameter is not one word.

    A prompt inserts its parameters into its text, and only readers learn from their types.

    Wrong:

        prompt Greeting(name) = "Say hello to {{name}}."

    Right:

        prompt Greeting(name: string) = "Say hello to {{name}}."
    """
    is_field = "COLON" in failure.expected and "OPTIONAL" in failure.expected and failure.word() in (",", "}", ";")
    if is_field and failure.piece(-1).kind == "word":
        name = failure.piece(-1)
        return SyntaxHelp(
            f"the field `{name.text}` has no type", name.span, f"write `{name.text}: string`, or `{name.text}: any`."
        )
    is_long = failure.word(-2) == ":" and failure.word() in ("[", "|", "<", "&", ".")
    if failure.frame.word == "prompt" and (is_long or (failure.word(-1) == ":" and "WORD" in failure.expected)):
        help = f"write `{failure.piece(-3 if is_long else -2).text}: any`."
        return SyntaxHelp("the type of a prompt's parameter is one word", failure.span, help)
    if failure.frame.word != "prompt" or failure.frame.bracket != "(" or "COLON" not in failure.expected:
        return None
    name = failure.piece(-1)
    return SyntaxHelp(f"the parameter `{name.text}` has no type", name.span, f"write `{name.text}: string`.")


@hint(HINTS, "E0159")
def backticks(failure: Failure) -> SyntaxHelp | None:
    """A text in backticks, or another value, stands where a fixed text is needed.

    Texts of playbooks, answers, prompts and affordances stand in quotes, or in triple quotes where they have several
    lines; `{{…}}` inserts values when they are used.

    Wrong:

        playbook `Greet ${args.name}.`

    Right:

        playbook "Greet {{args.name}}."
    """
    if failure.word() != "`" or "TRIPLE" not in failure.expected or "BACKTICK" in failure.expected:
        return None
    return SyntaxHelp("a text in backticks cannot stand here", failure.span, QUOTES)


def answer_beside(source: Source, first: Span, second: Span) -> SyntaxHelp | None:
    """The same behind `answer`, which is a name where no quote follows it."""
    if source.text[first.start : first.end] != "answer":
        return None
    is_template = source.text[second.start] == "`"
    message = "a text in backticks cannot stand here" if is_template else "`answer` takes a text in double quotes"
    return SyntaxHelp(message, second, QUOTES)


@hint(HINTS, "E0160")
def bare_text(failure: Failure) -> SyntaxHelp | None:
    """The text of a playbook, prompt or affordance stands without quotes, or something stands before it.

    Wrong:

        affordance: "greets people"

    Right:

        affordance "greets people"
    """
    keyword = failure.word(-1)
    is_given = failure.word() in (":", "=") and failure.piece(1).kind in ("text", "triple")
    is_needed = "TRIPLE" in failure.expected and "BACKTICK" not in failure.expected
    if not is_needed and not (is_given and keyword == "playbook" and failure.piece(-1).fresh):
        return _bare_playbook(failure)
    if is_given:
        return SyntaxHelp(f"{failure.excerpt} cannot stand after `{keyword}`", failure.span, f'write `{keyword} "…"`.')
    if "USE" in failure.tail or failure.tail[-1:] not in (
        ("PLAYBOOK",),
        ("AFFORDANCE",),
        ("EQUAL",),
        ("COLON",),
        ("PACKAGE",),
    ):
        return None
    quotes = '"""…"""' if failure.word() == "{" else '"…"'
    keyword = f"{failure.piece(-2).text}:" if keyword == ":" else keyword
    return SyntaxHelp(f"the text after `{keyword}` must stand in quotes", failure.span, f"write `{keyword} {quotes}`.")


def _bare_playbook(failure: Failure) -> SyntaxHelp | None:
    """A playbook in bare words is read as a name and statements, and fails somewhere behind."""
    for offset in range(-1, -40, -1):
        if failure.word(offset) != "playbook" or failure.piece(offset + 1).kind != "word" or not failure.is_code:
            continue
        words = failure.piece(offset + 1), failure.piece(offset + 2)
        if words[1].kind == "word" and not words[1].fresh:
            span = Span(words[0].span.start, words[0].span.end)
            return SyntaxHelp("the text after `playbook` must stand in quotes", span, 'write `playbook "…"`.')
    return None


@hint(HINTS, "E0161")
def compose_entry(failure: Failure) -> SyntaxHelp | None:
    """A `compose` holds something other than `fragments`, `template`, `rules` and `model`.

    Wrong:

        prompt P = compose { parts: Rules }

    Right:

        prompt P = compose { fragments: { rules: Rules } template: "{{rules}}" }
    """
    if "FRAGMENTS" not in failure.expected or failure.frame.word != "compose":
        return None
    message = f"{failure.excerpt} is not a part of `compose`"
    return SyntaxHelp(
        message, failure.span, 'its parts are `fragments: { … }`, `template: "…"`, `rules: "…"` and `model: "…"`.'
    )


@hint(HINTS, "E0176")
def run_form(failure: Failure) -> SyntaxHelp | None:
    """A `run` does not call a handler of an agent.

    Wrong:

        run Ada start({})

    Right:

        run Ada.start({})
    """
    if failure.tail[:1] != ("RUN",) or failure.frames or failure.word(-1) == ")":
        return None
    help = "write `run Agent.handler({ … })`."
    last = failure.piece(-1)
    return SyntaxHelp("`run` calls a handler of an agent", failure.span if failure.word() else last.span, help)


@hint(JOB_HINTS, "E0468")
def job_form(failure: Failure) -> SyntaxHelp | None:
    """What stands behind a `run` is not of the form `every "…"` or `when "…"`.

    The words of a schedule or an event stand in quotes, options in braces behind them.

    Wrong:

        role Worker { can execute }
        agent Reporter : Worker { on daily(args) { return args } }
        run Reporter.daily({}) every 15m

    Right:

        role Worker { can execute }
        agent Reporter : Worker { on daily(args) { return args } }
        run Reporter.daily({}) every "15m" { jitter: 30s }
    """
    if "RUN" not in failure.tail or failure.frames:
        return None
    match failure.tail[-1:]:
        case ("EVERY",) | ("WHEN",):
            word = failure.piece(-1).text
            help = f'write `{word} "{SAMPLES[word]}"`.'
            return SyntaxHelp(f"the words behind `{word}` stand in quotes", failure.span, help)
        case ("Text",) if failure.word(1) in (":", "="):
            help = f"write `{{ {failure.word()}: … }}`."
            return SyntaxHelp("the options of a job stand in braces", failure.span, help)
    near = nearest(failure.word(), SAMPLES) if failure.word(-1) == ")" else None
    is_meant = near is not None and failure.piece(1).kind in ("text", "triple")
    if not is_meant:
        return None
    return SyntaxHelp(f"{failure.excerpt} begins no job", failure.span, f"did you mean `{near}`?", meant=near)
