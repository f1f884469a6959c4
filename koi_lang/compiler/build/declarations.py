"""Rules of declarations; the builder as a whole."""

from __future__ import annotations

from dataclasses import replace
from itertools import dropwhile

from lark import Token

from koi_lang.compiler import nodes as n
from koi_lang.compiler.build.helpers import BuildError, Children, cover, name_of, names_of, only, span_between, span_of
from koi_lang.compiler.build.statements import Statements
from koi_lang.compiler.literals import duration_s, number
from koi_lang.source import Span

ENTRIES = ("fragments", "template", "model", "rules")
ONE_PERMISSION = "keep one, and write others on the lines of the `export`s that they are meant for."
NEEDS_PLACE = "write it before all of them, or on the line of the `export` that it is meant for."


class Builder(Statements):
    """Rules of declarations; handed to the parser, which calls a method when its rule is complete."""

    def program(self, children: Children) -> n.Program:
        """All that a file declares, in its order."""
        return n.Program(cover(children), only(children, n.Declaration))

    def import_(self, children: Children) -> n.Import:
        """`import name: type from "path"`; the name and the type may be missing."""
        _, name, _, type, _, path = children
        return n.Import(cover(children), name and name_of(name), type and str(type), path)

    def package(self, children: Children) -> n.Package:
        """`package "name"`, an import that brings no name."""
        return n.Package(cover(children), children[1])

    def type_declaration(self, children: Children) -> n.TypeDeclaration:
        """`type Name = type`; `export` before it has no effect."""
        _, _, name, _, type, _ = children
        return n.TypeDeclaration(cover(children), name_of(name), type)

    def role(self, children: Children) -> n.Role:
        """`role Name { can … }` with its permissions."""
        return n.Role(cover(children), name_of(children[1]), children[3])

    def capabilities(self, children: Children) -> tuple[n.Name, ...]:
        """What stands between the braces of a role."""
        return only(children, n.Name)

    def capability(self, children: Children) -> n.Name:
        """`can permission`."""
        name: n.Name = children[1]
        return name

    def permission(self, children: Children) -> n.Name:
        """`word` or `word:detail`; the name keeps the colon."""
        word, _, detail = children
        return n.Name(cover(children), str(word) if detail is None else f"{word}:{detail}")

    def team(self, children: Children) -> n.Team:
        """`team Name { key: Member, … }`; an `override` before the braces is left out."""
        return n.Team(cover(children), name_of(children[1]), children[4])

    def override(self, children: Children) -> None:
        """`override { … }` of a team, which is read and has no effect."""

    def members(self, children: Children) -> tuple[n.TeamMember, ...]:
        """What stands between the braces of a team."""
        return only(children, n.TeamMember)

    def team_member(self, children: Children) -> n.TeamMember:
        """`key: Agent`, `key: "text"`, `key: mcp://server/tool` or `key: a2a://host/agent`."""
        key, _, value = children
        return n.TeamMember(span_between(key, value), name_of(key), self._member_value(value))

    def a2a_address(self, children: Children) -> n.A2aAddress:
        """`a2a://host/agent`."""
        return n.A2aAddress(span_of(children[0]), str(children[0]))

    def _member_value(self, token: Token | n.A2aAddress) -> n.Name | n.Text | n.McpAddress | n.A2aAddress:
        if isinstance(token, n.A2aAddress):
            return token
        if token.type == "NAME":
            return name_of(token)
        if token.type == "MCP_ADDRESS":
            return n.McpAddress(span_of(token), str(token))
        return self._build_text(token)

    def mcp(self, children: Children) -> n.Mcp:
        """`mcp name = { … }`."""
        return n.Mcp(cover(children), name_of(children[1]), children[3])

    def prompt(self, children: Children) -> n.Prompt:
        """`prompt Name(parameters) = …`, with `export` or without; the value is parts or a composition."""
        exported, _, name, parameters, _, value = children
        return n.Prompt(cover(children), name_of(name), parameters, value, exported is not None)

    def prompt_parameters(self, children: Children) -> tuple[n.PromptParameter, ...]:
        """The parameters of a prompt; none without parentheses."""
        return only(children, n.PromptParameter)

    def prompt_parameter(self, children: Children) -> n.PromptParameter:
        """`name: type`, where the type is kept as it is written."""
        return n.PromptParameter(cover(children), name_of(children[0]), str(children[2]))

    def prompt_parts(self, children: Children) -> tuple[n.Node, ...]:
        """Texts and names of other prompts, without the `+` between them."""
        return tuple(children[::2])

    def compose(self, children: Children) -> n.Compose:
        """`compose(names) { fragments: { … } template: "…" model: "…" }`; of entries of one kind the last counts."""
        entries = dict(
            child for child in children if isinstance(child, tuple) and len(child) == 2 and child[0] in ENTRIES
        )
        names = children[1] if children[1] is not None else ()
        span = span_between(children[0], children[-1])
        texts = (entries.get(entry) for entry in ("template", "model", "rules"))
        return n.Compose(span, names, entries.get("fragments", ()), *texts)

    def compose_names(self, children: Children) -> tuple[n.Name, ...]:
        """The names between the parentheses of `compose`."""
        return names_of(children)

    def fragments(self, children: Children) -> tuple[str, tuple[tuple[n.Name, n.Name], ...]]:
        """The entry `fragments`, as pairs of a name and a prompt."""
        return "fragments", only(children, tuple)

    def fragment(self, children: Children) -> tuple[n.Name, n.Name]:
        """`name: Prompt`."""
        return name_of(children[0]), name_of(children[2])

    def template_entry(self, children: Children) -> tuple[str, n.Text]:
        """The entry `template` with its text."""
        return "template", children[2]

    def rules_entry(self, children: Children) -> tuple[str, n.Text]:
        """The entry `rules` with its text."""
        return "rules", children[2]

    def model_entry(self, children: Children) -> tuple[str, n.Text]:
        """The entry `model` with its text."""
        return "model", children[2]

    def run(self, children: Children) -> n.Run:
        """`run Agent.handler(…)` or `run Agent["handler"](…)`. Raises BuildError for other calls."""
        target = children[1]
        shape = "write `run Agent.handler({ … })`."
        if not isinstance(target, n.Call):
            raise BuildError(target.span, "`run` calls a handler of an agent", shape, "E0176")
        callee = target.callee
        if isinstance(callee, n.Index) and isinstance(callee.index, n.Text):
            callee = n.Member(callee.span, callee.object, callee.index.value, callee.index.span)
        if not isinstance(callee, n.Member) or not isinstance(callee.object, n.Name):
            raise BuildError(target.span, "`run` calls a handler of an agent", shape, "E0176")
        handler = n.Name(callee.name_span, callee.name)
        return n.Run(cover(children), callee.object, handler, target.arguments, children[2])

    def job(self, children: Children) -> n.Job:
        """`every "words" { … }` or `when "words" { … }`."""
        trigger, words, *_ = children
        return n.Job(cover(children), str(trigger), words, only(children, tuple))

    def job_option(self, children: Children) -> tuple[n.Name, n.Text | n.Literal]:
        """`name: "text"`, `name: number` or a duration, which becomes seconds."""
        name, _, value = children
        if isinstance(value, n.Text):
            return name_of(name), value
        given = duration_s(value) if value.type == "DURATION" else number(value)
        return name_of(name), n.Literal(span_of(value), given)

    def test(self, children: Children) -> n.Test:
        """`test "name" { … }`."""
        return n.Test(cover(children), children[1], children[2])

    def eval(self, children: Children) -> n.Eval:
        """`eval "name" over SOURCE times N pass P { … }`."""
        _, name, _, source, _, times, _, accept, body = children
        return n.Eval(cover(children), name, source, times, accept, body)

    def eval_number(self, children: Children) -> n.Literal:
        """A number, which may be negative so that a rule can tell what is wrong with it."""
        sign, token = children
        return n.Literal(cover(children), -number(token) if sign else number(token))

    # ------------------------------------------------------------ agents and skills

    def agent(self, children: Children) -> n.Agent:
        """`agent Name : Role { … }`."""
        _, name, _, role, _, items, _ = children
        return n.Agent(cover(children), name_of(name), name_of(role), items)

    def agent_items(self, children: Children) -> tuple[n.Node, ...]:
        """What stands between the braces of an agent; the guards of a handler stand beside it."""
        items = (child if isinstance(child, tuple) else (child,) for child in only(children, n.Node, tuple))
        return tuple(item for each in items for item in each)

    def uses(self, children: Children) -> n.Uses:
        """`uses team A, B`, likewise of skills and servers, or `uses memory`; the kind is in small letters."""
        used = [child for child in children[2:] if isinstance(child, n.GrantedTools) or child.type == "NAME"]
        names = (each.server if isinstance(each, n.GrantedTools) else name_of(each) for each in used)
        return n.Uses(cover(children), children[1].lower(), tuple(names), only(used, n.GrantedTools))

    def granted_tools(self, children: Children) -> n.GrantedTools:
        """`server(pattern, pattern)`."""
        return n.GrantedTools(cover(children), name_of(children[0]), only(children, n.Text))

    def tool_pattern(self, children: Children) -> n.Text:
        """`read_*`, without quotation marks."""
        return n.Text(span_of(children[0]), str(children[0]), None)

    def expose(self, children: Children) -> n.ExposeMcp:
        """`expose mcp`, or `expose mcp { … }`."""
        return n.ExposeMcp(cover(children), only(children, n.Exposed))

    def expose_a2a(self, children: Children) -> n.ExposeA2a:
        """`expose a2a`."""
        return n.ExposeA2a(cover(children))

    def exposed(self, children: Children) -> n.Exposed:
        """`resource "address" = handler` or `prompt name = handler`. Raises BuildError for anything else."""
        kind, target, _, handler = children
        shape = 'write `resource "notes://today" = handler` or `prompt name = handler`.'
        if kind not in ("resource", "prompt"):
            raise BuildError(span_of(kind), f"an agent exposes resources and prompts, not `{kind}`", shape)
        if isinstance(target, n.Text):
            return n.Exposed(cover(children), str(kind), n.Name(target.span, target.value), name_of(handler))
        if kind == "resource":
            raise BuildError(span_of(target), "the address of a resource stands in quotation marks", shape)
        return n.Exposed(cover(children), str(kind), name_of(target), name_of(handler))

    def llm(self, children: Children) -> n.Llm:
        """`llm default = { … }`, or for another purpose."""
        return n.Llm(cover(children), str(children[1]), children[3])

    def examples(self, children: Children) -> n.Examples:
        """`examples "text", "text"`."""
        return n.Examples(cover(children), only(children, n.Text))

    def amnesia(self, children: Children) -> n.Amnesia:
        """`amnesia = true`, in capitals or not."""
        return n.Amnesia(cover(children), children[2].lower() == "true")

    def handler(self, children: Children) -> tuple[n.Handler, ...]:
        """`on event(parameters): type { … }`, with `private`, `async` and a type or without; then its guards."""
        private, _, name, _, parameters, _, is_async, _, returns, (body, *guards) = children
        is_private, runs_async = private is not None, is_async is not None
        span = span_between(next(child for child in children if child is not None), body)
        own = [
            replace(guard, name=replace(guard.name, name=f"{guard.name.name} of {name}"), guarded=str(name))
            for guard in guards
        ]
        return n.Handler(span, name_of(name), parameters, body, is_private, runs_async, returns), *own

    def handler_body(self, children: Children) -> tuple[n.Node, ...]:
        """`{ … }` of a handler: its block without the guards that it begins with, and these."""
        return n.Block(span_between(children[0], children[-1]), children[-2]), *only(children, n.Handler)

    def guard(self, children: Children) -> n.Handler:
        """`guard input { … }`, `guard output { … }` or `guard action { … }`, a handler that gives a verdict.

        A playbook in it is asked for the verdict alone, as with `answer`.
        """
        kind, body = children[1:]
        names = [n.Binding(span_of(kind), name) for name in dict.fromkeys(("input", str(kind)))]
        pattern = n.ObjectPattern(span_of(kind), tuple(n.Element(each.span, each, each.name) for each in names))
        steps = tuple(replace(step, answers=True) if isinstance(step, n.Playbook) else step for step in body.statements)
        return n.Handler(
            cover(children),
            n.Name(span_of(kind), f"{kind} guard"),
            (n.Parameter(pattern.span, pattern),),
            replace(body, statements=steps),
            private=True,
            is_async=False,
            returns=_verdict(span_of(kind), is_plain=not any(isinstance(step, n.Playbook) for step in steps)),
            guard=str(kind),
        )

    def state(self, children: Children) -> n.State:
        """`state { … }` with its fields."""
        return n.State(cover(children), only(children, n.Field))

    def field(self, children: Children) -> n.Field:
        """`name: type = value`; the type or the value may be missing. Raises BuildError for a list behind `:`."""
        name, _, type, _, value = children
        if type is not None and value is None and type.text.startswith("["):
            message = f"`{name}` gets its value with `=`"
            raise BuildError(span_of(children[1]), message, f"write `{name} = {type.one_line}`.", "E0146")
        return n.Field(cover(children), name_of(name), type, value)

    def named_playbook(self, children: Children) -> n.NamedPlaybook:
        """`playbook "name" "text"` in an agent, which handlers use by its name."""
        return n.NamedPlaybook(cover(children), children[1], children[2])

    def resilience(self, children: Children) -> n.Resilience:
        """`resilience "handler" { … }` with a pair for each property."""
        return n.Resilience(cover(children), children[1], only(children, tuple))

    def resilience_property(self, children: Children) -> tuple[n.Name, n.Expression]:
        """`name = value`, of whatever name."""
        return name_of(children[0]), children[2]

    def phases(self, children: Children) -> n.Phases:
        """`phases { … }` with its phases."""
        return n.Phases(cover(children), only(children, n.Phase))

    def phase(self, children: Children) -> n.Phase:
        """`name { can a, cannot b, effort: low }`."""
        parts = children[2:]
        denied = tuple(part[0] for part in parts if isinstance(part, tuple) and len(part) == 1)
        settings = tuple(part for part in parts if isinstance(part, tuple) and len(part) > 1)
        return n.Phase(cover(children), name_of(children[0]), only(parts, n.Name), denied, settings)

    def phase_denial(self, children: Children) -> tuple[n.Name]:
        """`cannot permission`."""
        return (children[1],)

    def phase_setting(self, children: Children) -> tuple[n.Name, n.Name]:
        """`effort: low`."""
        return name_of(children[0]), name_of(children[2])

    def transitions(self, children: Children) -> n.Transitions:
        """`transitions { … }` with its clauses."""
        return n.Transitions(cover(children), only(children, n.Transition))

    def transition(self, children: Children) -> n.Transition:
        """`when event, event { … }`; several `when`s may stand before the braces."""
        events = tuple(event for child in children if isinstance(child, list) for event in child)
        return n.Transition(cover(children), events, only(children, n.TransitionCall, n.TransitionChoice))

    def transition_events(self, children: Children) -> list[n.TransitionEvent]:
        """`when event, event`."""
        return list(only(children, n.TransitionEvent))

    def transition_event(self, children: Children) -> n.TransitionEvent:
        """`word(argument).word`; the argument may be missing."""
        argument = next(iter(only(children, n.Name)), None)
        return n.TransitionEvent(cover(children), names_of(children), argument)

    def transition_argument(self, children: Children) -> n.Name:
        """The name in parentheses, in quotes or not."""
        return n.Name(span_of(children[1]), str(children[1]).strip("\"'"))

    def transition_call(self, children: Children) -> n.TransitionCall:
        """`phase("building").start()` or `effort(low)`."""
        method = name_of(children[5]) if children[5] is not None else None
        return n.TransitionCall(cover(children), name_of(children[0]), self.transition_argument(children[1:3]), method)

    def transition_steps(self, children: Children) -> tuple[n.Node, ...]:
        """What stands between the braces of a choice."""
        return only(children, n.TransitionCall, n.TransitionChoice)

    def transition_choice(self, children: Children) -> n.TransitionChoice:
        """`if (condition) { … } else { … }`."""
        blocks = only(children, tuple)
        nested = only(children[5:], n.TransitionChoice)
        otherwise = blocks[1] if len(blocks) > 1 else nested
        return n.TransitionChoice(cover(children), children[2].span, blocks[0], otherwise)

    def skill(self, children: Children) -> n.Skill:
        """`skill Name { … }`. Raises BuildError for two permissions, or one behind functions."""
        _, name, _, items, _ = children
        needs = only(items, n.Needs)
        if len(needs) > 1:
            raise BuildError(needs[1].span, "a skill needs one permission", ONE_PERMISSION, "E0608")
        behind = dropwhile(lambda item: not isinstance(item, n.Function), items)
        late = next((item for item in behind if isinstance(item, n.Needs)), None)
        if late is not None:
            message = f"`needs {late.permission.name}` stands behind functions of its skill"
            raise BuildError(late.span, message, NEEDS_PLACE, "E0608")
        return n.Skill(cover(children), name_of(name), items)

    def needs(self, children: Children) -> n.Needs:
        """`needs permission`."""
        return n.Needs(span_between(*children), children[1])

    def skill_items(self, children: Children) -> tuple[n.Node, ...]:
        """What stands between the braces of a skill."""
        return only(children, n.Node)


def _verdict(span: Span, *, is_plain: bool) -> n.Type:
    """The type of a verdict; code may give `true` or `false` in its place."""
    allow = n.TypeField(span, "allow", n.Type(span, "boolean", "boolean"), optional=False)
    reason = n.TypeField(span, "reason", n.Type(span, "string", "string"), optional=True)
    verdict = n.Type(span, "object", "{ allow: boolean, reason?: string }", (), (allow, reason))
    if not is_plain:
        return verdict
    return n.Type(span, "union", f"boolean | {verdict.text}", (allow.type, verdict))
