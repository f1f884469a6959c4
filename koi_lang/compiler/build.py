"""What the parser has recognised to nodes: one method a rule of the grammar, called while parsing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal

from lark import Token

from koi_lang.compiler import nodes as n
from koi_lang.compiler.literals import duration_s, number, text_of_string, text_of_triple, unescape
from koi_lang.compiler.operators import operation
from koi_lang.compiler.patterns import CoverError, ParameterList, parameters_of, pattern_of, target_of
from koi_lang.source import Span

Children = Sequence[Any]


class BuildError(Exception):
    """A construct has a shape that the grammar cannot rule out; `span` and `message` say which."""

    def __init__(self, span: Span, message: str, help: str | None = None, code: str = "E0102") -> None:
        super().__init__(message)
        self.span, self.message, self.help, self.code = span, message, help, code


def span_of(item: Any) -> Span:
    """The place of a token or a node."""
    if isinstance(item, Token):
        return Span(item.start_pos or 0, item.end_pos or 0)
    span: Span = item.span
    return span


def _cover(children: Children) -> Span:
    """The span from the first to the last child that is there."""
    present = [child for child in children if child is not None and not isinstance(child, (tuple, list))]
    if not present:
        return Span(0, 0)
    return Span(span_of(present[0]).start, span_of(present[-1]).end)


def _between(first: Any, last: Any) -> Span:
    return Span(span_of(first).start, span_of(last).end)


def _name(token: Token) -> n.Name:
    return n.Name(span_of(token), str(token))


def _names(children: Children) -> tuple[n.Name, ...]:
    return tuple(_name(child) for child in children if isinstance(child, Token) and child.type in ("NAME", "WORD"))


def _only(children: Children, *kinds: type) -> tuple[Any, ...]:
    return tuple(child for child in children if isinstance(child, kinds))


LONGEST_TYPE = 2000
SEND_FORM = 'write `await send peers.event("name").any()({ … })`.'


def _not_assignable(span: Span, message: str = "this cannot be assigned to") -> BuildError:
    return BuildError(span, message, "assign to a name, a field or an index.", "E0183")


def _default_in_object(property: n.Property) -> BuildError:
    message = f"the value of `{property.key}` is given with `=`"
    return BuildError(property.span, message, f"write `{property.key}: …`.", "E0135")


def _is_filter(callee: n.Expression) -> bool:
    """Whether a call is one of the selections of a `send` and not the one with the payload."""
    return isinstance(callee, n.Member) and callee.name.lower() in ("event", "role", "any", "all")


class Expressions:
    """Rules of expressions."""

    def __init__(self) -> None:
        # Forms that are only right as part of something else; what is left at the end was misplaced.
        self.pending: dict[Any, BuildError] = {}
        # Statements in a row of which the first means nothing alone; wrong where both stand on one line.
        self.neighbours: list[tuple[Span, Span]] = []

    def name(self, children: Children) -> n.Name:
        token = children[0]
        return n.Name(Span(token.start_pos, token.end_pos), str(token))

    def number(self, children: Children) -> n.Literal:
        return n.Literal(span_of(children[0]), number(children[0]))

    def boolean(self, children: Children) -> n.Literal:
        return n.Literal(span_of(children[0]), children[0].lower() == "true")

    def null(self, children: Children) -> n.Literal:
        return n.Literal(span_of(children[0]), None)

    def text(self, children: Children) -> n.Text:
        return self._quoted(children[0])

    def _quoted(self, token: Token) -> n.Text:
        span = span_of(token)
        if token.type == "TRIPLE":
            value, offset = text_of_triple(token)
            return n.Text(span, value, span.start + offset)
        return n.Text(span, text_of_string(token), None)

    def regex(self, children: Children) -> n.Regex:
        pattern, _, flags = children[0][1:].rpartition("/")
        return n.Regex(span_of(children[0]), pattern, flags)

    def mcp_address(self, children: Children) -> n.McpAddress:
        return n.McpAddress(span_of(children[0]), str(children[0]))

    def template(self, children: Children) -> n.Template:
        parts: list[str | n.Expression] = []
        for child in children[1:-1]:
            if not isinstance(child, Token):
                parts.append(child)
            elif child.type == "TEMPLATE_TEXT":
                parts.append(unescape(child))
        return n.Template(_between(children[0], children[-1]), tuple(parts))

    def spread(self, children: Children) -> n.Spread:
        return n.Spread(_cover(children), children[1])

    def arguments(self, children: Children) -> tuple[n.Expression, ...]:
        return _only(children, n.Expression)

    def array(self, children: Children) -> n.Array:
        return n.Array(_between(children[0], children[-1]), children[1])

    def object(self, children: Children) -> n.Object:
        result = n.Object(_between(children[0], children[-1]), _only(children, n.Property, n.Spread))
        for property in result.properties:
            if isinstance(property, n.Property) and property.default is not None:
                self.pending.setdefault(result, _default_in_object(property))
        return result

    def property(self, children: Children) -> n.Property | n.Spread:
        if isinstance(children[0], n.Spread):
            return children[0]
        key = children[0]
        text = text_of_string(key) if key.type == "STRING" else str(key)
        return n.Property(_between(key, children[2]), text, children[2])

    def computed_property(self, children: Children) -> n.Property:
        return n.Property(_between(children[0], children[4]), children[1], children[4])

    def shorthand(self, children: Children) -> n.Property:
        token, _, default = children
        name = _name(token)
        self._check_reserved(token)
        return n.Property(name.span if default is None else _between(token, default), str(token), name, True, default)

    def _check_reserved(self, token: Token) -> None:
        if str(token) in RESERVED:
            message = f"`{token}` is a reserved word and cannot be a name"
            raise BuildError(span_of(token), message, f"write `{token}: value`, or choose another name.", "E0143")

    def member(self, children: Children) -> n.Member:
        target, _, word = children
        return n.Member(_between(target, word), target, str(word), span_of(word))

    def optional_member(self, children: Children) -> n.Member:
        target, _, word = children
        return n.Member(_between(target, word), target, str(word), span_of(word), True)

    def index(self, children: Children) -> n.Index:
        return n.Index(_between(children[0], children[3]), children[0], children[2])

    def optional_index(self, children: Children) -> n.Index:
        return n.Index(_between(children[0], children[4]), children[0], children[3], True)

    def call(self, children: Children) -> n.Call:
        return n.Call(_between(children[0], children[3]), children[0], children[2])

    def optional_call(self, children: Children) -> n.Call:
        return n.Call(_between(children[0], children[4]), children[0], children[3], True)

    def new(self, children: Children) -> n.New:
        return n.New(_between(children[0], children[4]), children[1], children[3])

    def prefix(self, children: Children) -> n.Prefix:
        return n.Prefix(_between(*children), str(children[0]), children[1])

    def prefix_update(self, children: Children) -> n.Update:
        return n.Update(_between(*children), str(children[0]), self._assignable(children[1]), True)

    def postfix_update(self, children: Children) -> n.Update:
        return n.Update(_between(*children), str(children[1]), self._assignable(children[0]), False)

    def await_expression(self, children: Children) -> n.Await:
        return n.Await(_between(*children), children[1])

    def operation(self, children: Children) -> n.Expression:
        return operation(children[::2], [str(token) for token in children[1::2]])

    def conditional(self, children: Children) -> n.Conditional:
        return n.Conditional(_between(children[0], children[4]), children[0], children[2], children[4])

    def assignment(self, children: Children) -> n.Assignment:
        target, mark, value = children
        checked = self._target(target) if mark == "=" else self._assignable(target)
        return n.Assignment(_between(target, value), checked, mark[:-1], value)

    def _target(self, target: n.Expression) -> n.Expression | n.Pattern:
        self.pending.pop(target, None)
        try:
            return target_of(target, self.pending)
        except CoverError as problem:
            raise _not_assignable(problem.span, problem.message) from None

    def _assignable(self, target: n.Expression) -> n.Expression:
        while isinstance(target, n.Parenthesized):
            target = target.value
        if isinstance(target, (n.Name, n.Member, n.Index)):
            return target
        raise _not_assignable(target.span)

    def parenthesized(self, children: Children) -> n.Parenthesized | ParameterList:
        span = _between(children[0], children[-1])
        items = _only(children, n.Expression, n.Parameter)
        if len(items) == 1 and not isinstance(items[0], (n.Spread, n.Parameter)):
            return n.Parenthesized(span, items[0])
        result = ParameterList(span, items)
        help = "write `[…]` for a list, or `(…) => …` for a function."
        self.pending[result] = BuildError(span, "these parentheses hold no single value", help, "E0182")
        return result

    def typed_item(self, children: Children) -> n.Parameter:
        target, optional, _, type, _, default = children
        pattern = self._pattern(target)
        return n.Parameter(_cover(children), pattern, type, default, optional=optional is not None)

    def _pattern(self, expression: n.Expression) -> n.Pattern:
        try:
            return pattern_of(expression, self.pending)
        except CoverError as problem:
            raise BuildError(problem.span, problem.message) from None

    def arrow(self, children: Children) -> n.Function:
        is_async, items, _, _ = children
        self.pending.pop(items, None)
        try:
            parameters = parameters_of(items, self.pending)
        except CoverError as problem:
            raise BuildError(problem.span, problem.message) from None
        return self._arrow(children, parameters, is_async)

    def arrow_of_name(self, children: Children) -> n.Function:
        is_async, name, _, _ = children
        binding = n.Binding(span_of(name), str(name))
        return self._arrow(children, (n.Parameter(binding.span, binding),), is_async)

    def _arrow(self, children: Children, parameters: tuple[n.Parameter, ...], is_async: Token | None) -> n.Function:
        body = children[-1]
        if isinstance(body, n.Object) and not body.properties:
            body = n.Block(body.span, ())
        return n.Function(_cover(children), None, parameters, body, is_async is not None, True)

    def send(self, children: Children) -> n.Send:
        target, duration = children[2], children[4]
        if not isinstance(target, n.Call) or _is_filter(target.callee):
            raise BuildError(target.span, "this `send` carries no payload", SEND_FORM, "E0184")
        base, filters = self._filters(target.callee)
        event, event_span = filters.get("event", ("", target.span))
        if not event:
            raise BuildError(base.span, "this `send` does not name its event", SEND_FORM, "E0185")
        select: Literal["any", "all", ""] = "any" if "any" in filters else "all" if "all" in filters else ""
        timeout_s = None if duration is None else duration_s(duration)
        span = _cover(children)
        return n.Send(span, base, event, event_span, filters.get("role"), select, target.arguments, timeout_s)

    def _filters(self, target: n.Expression) -> tuple[n.Expression, dict[str, Any]]:
        """The base of a send and its filters by name: `event` → (text, span), `role` → name, `any`/`all` → True."""
        filters: dict[str, Any] = {}
        while isinstance(target, n.Call) and isinstance(target.callee, n.Member):
            name, arguments = target.callee.name.lower(), target.arguments
            if name not in ("event", "role", "any", "all"):
                break
            filters[name] = self._filter(name, arguments, target.span)
            target = target.callee.object
        return target, filters

    def _filter(self, name: str, arguments: tuple[n.Expression, ...], span: Span) -> Any:
        if name in ("any", "all") and not arguments:
            return True
        if name == "event" and len(arguments) == 1 and isinstance(arguments[0], n.Text):
            return arguments[0].value, arguments[0].span
        if name == "role" and len(arguments) == 1 and isinstance(arguments[0], n.Name):
            return arguments[0]
        expected = {"event": "one text", "role": "the name of a role"}
        message = f"`.{name}` takes {expected.get(name, 'no arguments')}"
        raise BuildError(span, message, SEND_FORM, "E0186")

    def function_expression(self, children: Children) -> n.Function:
        function: n.Function = children[0]
        return function

    # ------------------------------------------------------------ functions, patterns and types

    def function(self, children: Children) -> n.Function:
        is_async, _, name, _, parameters, _, _, returns, body = children
        return n.Function(_cover(children), name and str(name), parameters, body, is_async is not None, False, returns)

    def export_function(self, children: Children) -> n.Function:
        f: n.Function = children[1]
        span = _between(children[0], f)
        if f.name is None:
            raise BuildError(span, "an exported function needs a name", "write `export function name(…) { … }`.")
        return n.Function(span, f.name, f.parameters, f.body, f.is_async, False, f.returns, True)

    def parameters(self, children: Children) -> tuple[n.Parameter, ...]:
        return _only(children, n.Parameter)

    def parameter(self, children: Children) -> n.Parameter:
        pattern, optional, _, type, _, default = children
        return n.Parameter(_cover(children), pattern, type, default, optional=optional is not None)

    def rest_parameter(self, children: Children) -> n.Parameter:
        name = children[1]
        return n.Parameter(_cover(children), n.Binding(span_of(name), str(name)), children[3], rest=True)

    def binding(self, children: Children) -> n.Binding:
        return n.Binding(span_of(children[0]), str(children[0]))

    def array_pattern(self, children: Children) -> n.ArrayPattern:
        return n.ArrayPattern(_between(children[0], children[-1]), _only(children, n.Element))

    def object_pattern(self, children: Children) -> n.ObjectPattern:
        return n.ObjectPattern(_between(children[0], children[-1]), _only(children, n.Element))

    def element(self, children: Children) -> n.Element:
        pattern, _, default = children
        return n.Element(_cover(children), pattern, None, default)

    def entry(self, children: Children) -> n.Element:
        key, _, pattern, _, default = children
        if pattern is None:
            self._check_reserved(key)
            pattern = n.Binding(span_of(key), str(key))
        return n.Element(_cover(children), pattern, str(key), default)

    def rest_element(self, children: Children) -> n.Element:
        return n.Element(_cover(children), n.Binding(span_of(children[1]), str(children[1])), rest=True)

    def type(self, children: Children) -> n.Type:
        parts = _only(children, n.Type)
        if len(parts) == 1:
            return parts[0]  # type: ignore[no-any-return]
        return n.Type(_cover(children), "union", _clip(" | ".join(part.text for part in parts)), parts)

    def named_type(self, children: Children) -> n.Type:
        return n.Type(span_of(children[0]), str(children[0]), str(children[0]))

    def literal_type(self, children: Children) -> n.Type:
        token = children[0]
        return n.Type(span_of(token), "null" if token.type == "NULL" else "literal", str(token))

    def generic_type(self, children: Children) -> n.Type:
        arguments = _only(children, n.Type)
        listed = ", ".join(argument.text for argument in arguments)
        return n.Type(_cover(children), str(children[0]), _clip(f"{children[0]}<{listed}>"), arguments)

    def array_type(self, children: Children) -> n.Type:
        return n.Type(_cover(children), "Array", _clip(f"{children[0].text}[]"), (children[0],))

    def object_type(self, children: Children) -> n.Type:
        fields = _only(children, n.TypeField)
        listed = ", ".join(f"{field.name}{'?' if field.optional else ''}: {field.type.text}" for field in fields)
        return n.Type(_between(children[0], children[-1]), "object", _clip(f"{{ {listed} }}"), (), fields)

    def type_field(self, children: Children) -> n.TypeField:
        return n.TypeField(_cover(children), str(children[0]), children[3], children[1] is not None)


RESERVED = frozenset(
    "import skill role can team agent uses llm default on state playbook resilience mcp prompt export "
    "async function var const let if else for of in while try catch finally throw instanceof return "
    "await send timeout use run override affordance amnesia expose private true false null".split()
)


class Statements(Expressions):
    """Rules of statements."""

    def block(self, children: Children) -> n.Block:
        return n.Block(_between(children[0], children[2]), children[1])

    def statements(self, children: Children) -> tuple[n.Statement, ...]:
        found: tuple[n.Statement, ...] = _only(children, n.Statement)
        self.neighbours += [(a.span, b.span) for a, b in pairwise(found) if _is_suspicious(a, b)]
        return found

    def terminated(self, children: Children) -> n.Statement:
        statement: n.Statement = children[0]
        return statement

    def expression_statement(self, children: Children) -> n.Statement:
        expression = children[0]
        if isinstance(expression, n.Function) and expression.name is not None:
            return n.FunctionStatement(expression.span, expression)
        return n.ExpressionStatement(expression.span, expression)

    def variable(self, children: Children) -> n.Variable:
        return n.Variable(_cover(children), children[0].lower(), _only(children, n.Declarator))

    def declarator(self, children: Children) -> n.Declarator:
        pattern, _, type, _, value = children
        return n.Declarator(_cover(children), pattern, type, value)

    def if_statement(self, children: Children) -> n.If:
        _, condition, then, _, other = children
        branches: tuple[tuple[n.Expression, n.Block], ...] = ((condition, _block(then)),)
        otherwise = None if other is None else _block(other)
        if isinstance(other, n.If):
            branches, otherwise = branches + other.branches, other.otherwise
        return n.If(_cover(children), branches, otherwise)

    def for_each(self, children: Children) -> n.ForEach:
        _, _, kind, pattern, _, _, over, iterable, _, body = children
        return n.ForEach(_cover(children), kind.lower(), pattern, over.lower(), iterable, _block(body))

    def for_statement(self, children: Children) -> n.For:
        _, _, first, _, condition, _, update, _, body = children
        if isinstance(first, n.Expression):
            first = n.ExpressionStatement(first.span, first)
        return n.For(_cover(children), first, condition, update, _block(body))

    def while_statement(self, children: Children) -> n.While:
        return n.While(_cover(children), children[1], _block(children[2]))

    def return_statement(self, children: Children) -> n.Return:
        return n.Return(_cover(children[:2]), children[1])

    def throw_statement(self, children: Children) -> n.Throw:
        return n.Throw(_cover(children[:2]), children[1])

    def break_statement(self, children: Children) -> n.Break:
        return n.Break(span_of(children[0]))

    def continue_statement(self, children: Children) -> n.Continue:
        return n.Continue(span_of(children[0]))

    def try_statement(self, children: Children) -> n.Try:
        _, body, catch, _, error, _, _, _, handler, last, finalizer = children
        if catch is None and last is None:
            help = "write `catch (error) { … }` behind it."
            raise BuildError(span_of(children[0]), "this `try` has neither `catch` nor `finally`", help, "E0190")
        binding = n.Binding(span_of(error), str(error)) if error else None
        return n.Try(_cover(children), body, binding, handler, finalizer)

    def playbook(self, children: Children) -> n.Playbook:
        _, parts, budget = children
        return n.Playbook(_between(children[0], budget or parts[-1]), parts, budget)

    def budget(self, children: Children) -> n.Budget:
        return n.Budget(_cover(children), _only(children, tuple))

    def budget_limit(self, children: Children) -> tuple[n.Name, int | float]:
        name, _, value = children
        return _name(name), duration_s(value) if value.type == "DURATION" else number(value)

    def playbook_parts(self, children: Children) -> tuple[n.Node, ...]:
        return tuple(children[::2])

    def prompt_call(self, children: Children) -> n.PromptCall:
        return n.PromptCall(_between(children[0], children[-1]), _name(children[0]), _only(children, n.Expression))

    def state_name(self, children: Children) -> n.Name:
        """`state` is reserved in code; where prompts are filled it is a name, spelled in capitals."""
        return n.Name(span_of(children[0]), "STATE")

    def path(self, children: Children) -> n.Expression:
        first = children[0]
        result: n.Expression = self.state_name(children) if first.type == "STATE" else _name(first)
        for token in children[2::2]:
            result = n.Member(_between(children[0], token), result, str(token), span_of(token))
        return result

    def use_playbook(self, children: Children) -> n.UsePlaybook:
        return n.UsePlaybook(_cover(children), str(children[2]))

    def affordance(self, children: Children) -> n.Affordance:
        return n.Affordance(_between(*children), children[1])


def _clip(text: str) -> str:
    """The text of a type; long ones are cut, so that nested types do not take memory by the square of their depth."""
    return text if len(text) <= LONGEST_TYPE else text[: LONGEST_TYPE - 1] + "…"


def _is_suspicious(first: n.Statement, second: n.Statement) -> bool:
    """Whether two statements on one line are rather one that is misspelled."""
    if isinstance(first, n.Variable):
        is_bare = first.declarators[-1].value is None and isinstance(second, n.ExpressionStatement)
        return is_bare or isinstance(second, n.Block)
    if isinstance(second, n.ExpressionStatement) and isinstance(second.expression, (n.Text, n.Template, n.Literal)):
        return True
    return isinstance(first, n.ExpressionStatement) and isinstance(first.expression, n.Name)


def _block(body: n.Statement) -> n.Block:
    """The body of a branch or loop: a block, or one statement without braces."""
    if isinstance(body, n.Block):
        return body
    is_empty = isinstance(body, n.ExpressionStatement) and isinstance(body.expression, n.Object)
    if is_empty and not body.expression.properties:  # type: ignore[attr-defined]
        return n.Block(body.span, ())
    return n.Block(body.span, (body,))


class Builder(Statements):
    """Rules of declarations; handed to the parser, which calls a method when its rule is complete."""

    def program(self, children: Children) -> n.Program:
        return n.Program(_cover(children), _only(children, n.Declaration))

    def import_(self, children: Children) -> n.Import:
        _, name, _, type, _, path = children
        return n.Import(_cover(children), name and _name(name), type and str(type), path)

    def package(self, children: Children) -> n.Package:
        return n.Package(_cover(children), children[1])

    def role(self, children: Children) -> n.Role:
        return n.Role(_cover(children), _name(children[1]), children[3])

    def capabilities(self, children: Children) -> tuple[n.Name, ...]:
        return _only(children, n.Name)

    def capability(self, children: Children) -> n.Name:
        _, word, _, detail = children
        return n.Name(_cover(children[1:]), str(word) if detail is None else f"{word}:{detail}")

    def team(self, children: Children) -> n.Team:
        return n.Team(_cover(children), _name(children[1]), children[4])

    def override(self, children: Children) -> None:
        return None

    def members(self, children: Children) -> tuple[n.TeamMember, ...]:
        return _only(children, n.TeamMember)

    def team_member(self, children: Children) -> n.TeamMember:
        key, _, value = children
        return n.TeamMember(_between(key, value), _name(key), self._member_value(value))

    def _member_value(self, token: Token) -> n.Name | n.Text | n.McpAddress:
        if token.type == "NAME":
            return _name(token)
        if token.type == "MCP_ADDRESS":
            return n.McpAddress(span_of(token), str(token))
        return self._quoted(token)

    def mcp(self, children: Children) -> n.Mcp:
        return n.Mcp(_cover(children), _name(children[1]), children[3])

    def prompt(self, children: Children) -> n.Prompt:
        exported, _, name, parameters, _, value = children
        return n.Prompt(_cover(children), _name(name), parameters, value, exported is not None)

    def prompt_parameters(self, children: Children) -> tuple[n.PromptParameter, ...]:
        return _only(children, n.PromptParameter)

    def prompt_parameter(self, children: Children) -> n.PromptParameter:
        return n.PromptParameter(_cover(children), _name(children[0]), str(children[2]))

    def prompt_parts(self, children: Children) -> tuple[n.Node, ...]:
        return tuple(children[::2])

    def compose(self, children: Children) -> n.Compose:
        entries = dict(
            child for child in children if isinstance(child, tuple) and len(child) == 2 and child[0] in ENTRIES
        )
        names = children[1] if children[1] is not None else ()
        span = _between(children[0], children[-1])
        return n.Compose(span, names, entries.get("fragments", ()), entries.get("template"), entries.get("model"))

    def compose_names(self, children: Children) -> tuple[n.Name, ...]:
        return _names(children)

    def fragments(self, children: Children) -> tuple[str, tuple[tuple[n.Name, n.Name], ...]]:
        return "fragments", _only(children, tuple)

    def fragment(self, children: Children) -> tuple[n.Name, n.Name]:
        return _name(children[0]), _name(children[2])

    def template_entry(self, children: Children) -> tuple[str, n.Text]:
        return "template", children[2]

    def model_entry(self, children: Children) -> tuple[str, n.Text]:
        return "model", children[2]

    def run(self, children: Children) -> n.Run:
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
        return n.Run(_cover(children), callee.object, handler, target.arguments)

    # ------------------------------------------------------------ agents and skills

    def agent(self, children: Children) -> n.Agent:
        _, name, _, role, _, items, _ = children
        return n.Agent(_cover(children), _name(name), _name(role), items)

    def agent_items(self, children: Children) -> tuple[n.Node, ...]:
        return _only(children, n.Node)

    def uses(self, children: Children) -> n.Uses:
        return n.Uses(_cover(children), children[1].lower(), _names(children[2:]))

    def expose(self, children: Children) -> n.ExposeMcp:
        return n.ExposeMcp(_cover(children))

    def llm(self, children: Children) -> n.Llm:
        return n.Llm(_cover(children), str(children[1]), children[3])

    def amnesia(self, children: Children) -> n.Amnesia:
        return n.Amnesia(_cover(children), children[2].lower() == "true")

    def handler(self, children: Children) -> n.Handler:
        private, _, name, _, parameters, _, is_async, body = children
        return n.Handler(_cover(children), _name(name), parameters, body, private is not None, is_async is not None)

    def state(self, children: Children) -> n.State:
        return n.State(_cover(children), _only(children, n.Field))

    def field(self, children: Children) -> n.Field:
        name, _, type, _, value = children
        return n.Field(_cover(children), _name(name), type, value)

    def named_playbook(self, children: Children) -> n.NamedPlaybook:
        return n.NamedPlaybook(_cover(children), children[1], children[2])

    def resilience(self, children: Children) -> n.Resilience:
        return n.Resilience(_cover(children), children[1], _only(children, tuple))

    def resilience_property(self, children: Children) -> tuple[n.Name, n.Expression]:
        return _name(children[0]), children[2]

    def skill(self, children: Children) -> n.Skill:
        _, name, _, items, _ = children
        return n.Skill(_cover(children), _name(name), items)

    def skill_items(self, children: Children) -> tuple[n.Node, ...]:
        return _only(children, n.Node)


ENTRIES = ("fragments", "template", "model")
