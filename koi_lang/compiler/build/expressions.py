"""Rules of expressions, functions and patterns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from lark import Token

from koi_lang.compiler import nodes as n
from koi_lang.compiler.build.annotations import Annotations
from koi_lang.compiler.build.helpers import (
    MIXED_OPERATORS,
    RESERVED,
    BuildError,
    Children,
    cover,
    name_of,
    only,
    span_between,
    span_of,
)
from koi_lang.compiler.literals import duration_s, number, text_of_string, text_of_triple, unescape
from koi_lang.compiler.operators import operation
from koi_lang.compiler.patterns import CoverError, ParameterList, parameters_of, pattern_of, target_of
from koi_lang.source import Span

# What there is to say of a list with a hole.
NOTHING_THERE = ("nothing stands before this `,`", "delete it, or write the value before it.", "E0172")


def _not_assignable(span: Span, message: str = "this cannot be assigned to") -> BuildError:
    return BuildError(span, message, "assign to a name, a field or an index.", "E0183")


def _default_in_object(property: n.Property) -> BuildError:
    message = f"the value of `{property.key}` is given with `=`"
    return BuildError(property.span, message, f"write `{property.key}: …`.", "E0135")


# The selections of a `send`.
FILTERS = ("event", "role", "as", "any", "all")


def _is_filter(callee: n.Expression) -> bool:
    """Whether a call is one of the selections of a `send` and not the one with the payload."""
    return isinstance(callee, n.Member) and callee.name.lower() in FILTERS


class Cast(NamedTuple):
    """`as type`: where it ends, and the operators and operands that follow it."""

    end: int
    following: tuple[Any, ...]


class Expressions(Annotations):
    """Rules of expressions."""

    def __init__(self) -> None:
        # Forms that are only right as part of something else; what is left at the end was misplaced.
        self.pending: dict[Any, BuildError] = {}
        # Statements in a row of which the first means nothing alone; wrong where both stand on one line.
        self.neighbours: list[tuple[Span, Span]] = []
        # Each `this` that is not known to stand for an object.
        self.agents: list[n.Name] = []
        # Each name `yield` that is not known to stand in a generator.
        self.yields: list[n.Name] = []

    def name(self, children: Children) -> n.Name:
        """A word that stands for a value."""
        token = children[0]
        name = n.Name(Span(token.start_pos, token.end_pos), str(token))
        if token == "this":
            self.agents.append(name)
        if token == "yield":
            self.yields.append(name)
        return name

    def number(self, children: Children) -> n.Literal:
        """A number in any of its notations. Raises BuildError for `017`, which is 15 in old programs of JavaScript."""
        if children[0][0] == "0" and children[0][1:2].isdigit():
            plain = children[0].lstrip("0_") or "0"
            is_octal = set(plain) <= set("01234567_")
            help = f"write `{plain}`{f', or `0o{plain}` for a number in base 8' if is_octal else ''}."
            raise BuildError(span_of(children[0]), f"`{children[0]}` begins with a zero", help, "E0613")
        return n.Literal(span_of(children[0]), number(children[0]))

    def boolean(self, children: Children) -> n.Literal:
        """`true` or `false`, in capitals or not."""
        return n.Literal(span_of(children[0]), children[0].lower() == "true")

    def null(self, children: Children) -> n.Literal:
        """`null`, which is None as a value."""
        return n.Literal(span_of(children[0]), None)

    def text(self, children: Children) -> n.Text:
        """A quoted text, with its escapes read."""
        return self._build_text(children[0])

    def _build_text(self, token: Token) -> n.Text:
        span = span_of(token)
        if token.type == "TRIPLE":
            value, offset = text_of_triple(token)
            return n.Text(span, value, span.start + offset)
        return n.Text(span, text_of_string(token), None)

    def regex(self, children: Children) -> n.Regex:
        """`/pattern/flags`."""
        pattern, _, flags = children[0][1:].rpartition("/")
        return n.Regex(span_of(children[0]), pattern, flags)

    def mcp_address(self, children: Children) -> n.McpAddress:
        """`mcp://server/tool`."""
        return n.McpAddress(span_of(children[0]), str(children[0]))

    def template(self, children: Children) -> n.Template:
        """Text between backticks with `${…}` in it: texts and expressions in turn."""
        parts: list[str | n.Expression] = []
        for child in children[1:-1]:
            if not isinstance(child, Token):
                parts.append(child)
            elif child.type == "TEMPLATE_TEXT":
                parts.append(unescape(child))
        return n.Template(span_between(children[0], children[-1]), tuple(parts))

    def spread(self, children: Children) -> n.Spread:
        """`...expression` in a call, list or object."""
        return n.Spread(cover(children), children[1])

    def arguments(self, children: Children) -> tuple[n.Expression, ...]:
        """What stands between the parentheses of a call."""
        return only(children, n.Expression)

    def items(self, children: Children) -> tuple[n.Expression, ...]:
        """What stands between the brackets of a list."""
        return only(children, n.Expression)

    def hole(self, children: Children) -> n.Hole:
        """A comma with nothing before it."""
        return n.Hole(span_of(children[0]))

    def array(self, children: Children) -> n.Array:
        """`[…]`, which may turn out to be a pattern; a hole in it is noted until it does."""
        result = n.Array(span_between(children[0], children[-1]), children[1])
        for hole in only(result.items, n.Hole):
            self.pending.setdefault(result, BuildError(hole.span, *NOTHING_THERE))
        return result

    def object(self, children: Children) -> n.Object:
        """`{ … }`; a default in it is right in patterns only, and is noted until one is made of it."""
        result = n.Object(span_between(children[0], children[-1]), only(children, n.Property, n.Spread))
        for property in result.properties:
            if isinstance(property, n.Property) and property.default is not None:
                self.pending.setdefault(result, _default_in_object(property))
        return result

    def property(self, children: Children) -> n.Property | n.Spread:
        """`key: value`, with a quoted key or not, or a spread."""
        if isinstance(children[0], n.Spread):
            return children[0]
        value = self._of_object(children[2])
        return n.Property(span_between(children[0], children[2]), _key(children[0]), value)

    def method(self, children: Children) -> n.Property:
        """`name(parameters): type { … }`, `async` or not: a function as the value of the key that is its name."""
        is_async, star, name, generics, _, parameters, _, _, returns, body = children
        span = cover(children)
        function = n.Function(span, None, parameters, body, is_async is not None, returns, generics=generics or ())
        function = self._generator(function, star)
        return n.Property(span, _key(name), self._of_object(function))

    def computed_method(self, children: Children) -> n.Property:
        """`[key](parameters) { … }`: a function as the value of a computed key."""
        named = [*children[:2], Token.new_borrow_pos("WORD", "", children[2]), *children[5:]]
        return replace(self.method(named), span=cover(children), key=children[3])

    def accessor(self, children: Children) -> n.Property:
        """`get name() { … }` or `set name(value) { … }`. Raises BuildError for other numbers of parameters."""
        word, name, _, parameters, _, _, returns, body = children
        span = cover(children)
        if len(parameters) != (word == "set"):
            message = f"`{word} {name}` takes {'one parameter' if word == 'set' else 'no parameters'}"
            help = f"write `{word} {name}({'value' if word == 'set' else ''}) {{ … }}`."
            raise BuildError(span_between(word, name), message, help, "E0191")
        function = n.Function(span, None, parameters, body, False, returns)
        return n.Property(span, _key(name), self._of_object(function), accessor=str(word))  # type: ignore[arg-type]

    def _of_object(self, value: n.Expression) -> n.Expression:
        """The value of a property; `this` in a function with a `this` of its own becomes that of its object."""
        if not isinstance(value, n.Function) or value.is_arrow:
            return value
        takes_this = False
        while self.agents and self.agents[-1].span.start >= value.span.start:
            # The tree is still being built, and nobody has seen the name.
            object.__setattr__(self.agents.pop(), "name", n.OBJECT_THIS)
            takes_this = True
        return replace(value, takes_this=True) if takes_this else value

    def computed_property(self, children: Children) -> n.Property:
        """`[key]: value`, where the key is computed."""
        return n.Property(span_between(children[0], children[4]), children[1], children[4])

    def shorthand(self, children: Children) -> n.Property:
        """`name`, or `name = default` of a pattern. Raises BuildError for reserved words."""
        token, _, default = children
        name = name_of(token)
        self._check_reserved(token)
        return n.Property(
            name.span if default is None else span_between(token, default), str(token), name, True, default
        )

    def _check_reserved(self, token: Token) -> None:
        if str(token) in RESERVED:
            message = f"`{token}` is a reserved word and cannot be a name"
            raise BuildError(span_of(token), message, f"write `{token}: value`, or choose another name.", "E0143")

    def member(self, children: Children) -> n.Member:
        """`object.name`."""
        target, _, word = children
        return n.Member(span_between(target, word), target, str(word), span_of(word))

    def optional_member(self, children: Children) -> n.Member:
        """`object?.name`."""
        target, _, word = children
        return n.Member(span_between(target, word), target, str(word), span_of(word), True)

    def index(self, children: Children) -> n.Index:
        """`object[index]`."""
        return n.Index(span_between(children[0], children[3]), children[0], children[2])

    def optional_index(self, children: Children) -> n.Index:
        """`object?.[index]`."""
        return n.Index(span_between(children[0], children[4]), children[0], children[3], True)

    def call(self, children: Children) -> n.Call:
        """`callee(arguments)`."""
        return n.Call(span_between(children[0], children[-1]), children[0], children[-2])

    def non_null(self, children: Children) -> n.Expression:
        """`value!`, which is the value."""
        value: n.Expression = children[0]
        return value

    def optional_call(self, children: Children) -> n.Call:
        """`callee?.(arguments)`."""
        return n.Call(span_between(children[0], children[4]), children[0], children[3], True)

    def new(self, children: Children) -> n.New:
        """`new Callee(arguments)`, with types or without."""
        return n.New(span_between(children[0], children[-1]), children[1], children[-2])

    def prefix(self, children: Children) -> n.Prefix:
        """`!`, `-`, `+`, `~`, `typeof`, `delete` or `void` before a value."""
        return n.Prefix(span_between(*children), str(children[0]), children[1])

    def prefix_update(self, children: Children) -> n.Update:
        """`++target`. Raises BuildError where nothing can be assigned to."""
        return n.Update(span_between(*children), str(children[0]), self._assignable(children[1]), True)

    def postfix_update(self, children: Children) -> n.Update:
        """`target++`. Raises BuildError where nothing can be assigned to."""
        return n.Update(span_between(*children), str(children[1]), self._assignable(children[0]), False)

    def await_expression(self, children: Children) -> n.Await:
        """`await value`."""
        return n.Await(span_between(*children), children[1])

    def operation(self, children: Children) -> n.Expression:
        """Operands with operators of one rank between them; `instanceof` may be in capitals."""
        flat, casts = list[Any](), dict[int, int]()
        for child in children:
            if isinstance(child, Cast):
                casts[len(flat) // 2] = child.end
                flat += child.following
            else:
                flat.append(child)
        operands, operators = flat[::2], [token.lower() for token in flat[1::2]]
        _require_parentheses(operands, operators)
        return operation(operands, operators, casts)

    def cast(self, children: Children) -> Cast:
        """`as type`, with the operators and operands behind it. Raises BuildError for `as let`."""
        word, type, *following = children
        if isinstance(type, Token) and (type != "const" or word != "as"):
            raise BuildError(span_of(type), f"`{type}` is not a type", "write a type, or `as const`.")
        return Cast(span_of(type).end, tuple(each for each in following if each is not None))

    def conditional(self, children: Children) -> n.Conditional:
        """`condition ? then : otherwise`."""
        return n.Conditional(span_between(children[0], children[4]), children[0], children[2], children[4])

    def assignment(self, children: Children) -> n.Assignment:
        """`target = value`, with a pattern as the target, too, and `+=` and the like without."""
        target, mark, value = children
        checked = self._target(target) if mark == "=" else self._assignable(target)
        if isinstance(checked, (n.Member, n.Index)):
            value = self._of_object(value)
        return n.Assignment(span_between(target, value), checked, mark[:-1], value)

    def _target(self, target: n.Expression) -> n.Expression | n.Pattern:
        self.pending.pop(target, None)
        try:
            return target_of(target, self.pending)
        except CoverError as problem:
            raise _not_assignable(problem.span, problem.message) from None

    def _assignable(self, target: n.Expression) -> n.Expression:
        target = n.strip_parentheses(target)
        if isinstance(target, (n.Name, n.Member, n.Index)):
            return target
        raise _not_assignable(target.span)

    def parenthesized(self, children: Children) -> n.Parenthesized | ParameterList:
        """`(value)`, or what may turn out to be the parameters of an arrow function; that is noted until it does."""
        span = span_between(children[0], children[-1])
        items = only(children, n.Expression, n.Parameter)
        if len(items) == 1 and not isinstance(items[0], (n.Spread, n.Parameter)):
            return n.Parenthesized(span, items[0])
        result = ParameterList(span, items)
        help = "write `[…]` for a list, or `(…) => …` for a function."
        self.pending[result] = BuildError(span, "these parentheses hold no single value", help, "E0182")
        return result

    def typed_item(self, children: Children) -> n.Parameter:
        """`pattern?: type = default` between parentheses, which only a parameter can be."""
        target, *rest = children
        is_optional = isinstance(rest[0], Token) and rest[0].type == "OPTIONAL"
        _, type, _, default = rest[1:] if is_optional else rest
        return n.Parameter(cover(children), self._pattern(target), type, default, optional=is_optional)

    def typed_rest(self, children: Children) -> n.Parameter:
        """`...name: type` between parentheses."""
        return n.Parameter(cover(children), self._pattern(children[0].value), children[2], rest=True)

    def _pattern(self, expression: n.Expression) -> n.Pattern:
        try:
            return pattern_of(expression, self.pending)
        except CoverError as problem:
            raise BuildError(problem.span, problem.message) from None

    def arrow(self, children: Children) -> n.Function:
        """`(parameters) => body`, `async` or not."""
        is_async, generics, items, _, returns, _, body = children
        self.pending.pop(items, None)
        try:
            parameters = parameters_of(items, self.pending)
        except CoverError as problem:
            raise BuildError(problem.span, problem.message) from None
        span = span_between(next(child for child in children if child not in (None, generics)), body)
        own = generics or ()
        return n.Function(span, None, parameters, _body(body), is_async is not None, returns, False, True, generics=own)

    def arrow_of_name(self, children: Children) -> n.Function:
        """`name => body`, `async` or not."""
        is_async, name, _, body = children
        binding = n.Binding(span_of(name), str(name))
        parameters = (n.Parameter(binding.span, binding),)
        return n.Function(cover(children), None, parameters, _body(body), is_async is not None, is_arrow=True)

    def send(self, children: Children) -> n.Send:
        """`send base.event("e").role(R).any()(payload) timeout 5s`. Raises BuildError without an event or payload."""
        return self._send("send", children[2], children[4], cover(children))

    def start(self, children: Children) -> n.Start:
        """`start base.event("e").any()(payload) timeout 5s`. Raises BuildError without an event or payload."""
        span = cover(children)
        return n.Start(span, self._send("start", children[1], children[3], span))

    def _send(self, word: str, target: n.Expression, duration: Any, span: Span) -> n.Send:
        if not isinstance(target, n.Call) or _is_filter(target.callee):
            help = _send_form(_event_of(target), word)
            raise BuildError(target.span, f"this `{word}` carries no payload", help, "E0184")
        base, filters = self._filters(target.callee)
        event, event_span = filters.get("event", ("", target.span))
        if not event:
            raise _without_event(base, target)
        select: Literal["any", "all", ""] = "any" if "any" in filters else "all" if "all" in filters else ""
        timeout_s = None if duration is None else duration_s(duration)
        bounds = tuple(filters.get("as", ()))
        return n.Send(span, base, event, event_span, filters.get("role"), select, target.arguments, timeout_s, bounds)

    def _filters(self, target: n.Expression) -> tuple[n.Expression, dict[str, Any]]:
        """The base of a send and its filters by name: `event` → (text, span), `role` → name, `as` → names."""
        filters: dict[str, Any] = {}
        while isinstance(target, n.Call) and isinstance(target.callee, n.Member):
            name, arguments = target.callee.name.lower(), target.arguments
            if name not in FILTERS:
                break
            given = self._filter(name, arguments, target.span)
            filters[name] = [given, *filters.get(name, ())] if name == "as" else given
            target = target.callee.object
        return target, filters

    def _filter(self, name: str, arguments: tuple[n.Expression, ...], span: Span) -> Any:
        if name in ("any", "all") and not arguments:
            return True
        if name == "event" and len(arguments) == 1 and isinstance(arguments[0], n.Text):
            return arguments[0].value, arguments[0].span
        if name in ("role", "as") and len(arguments) == 1 and isinstance(arguments[0], n.Name):
            return arguments[0]
        expected = {"event": "one text", "role": "the name of a role", "as": "the name of a role"}
        message = f"`.{name}` takes {expected.get(name, 'no arguments')}"
        named = next((each.name for each in arguments if isinstance(each, n.Name)), "") if name == "event" else ""
        help = "write `.as(Reader)`, with the name of a role." if name == "as" else _send_form(named)
        raise BuildError(span, message, help, "E0186")

    def function_expression(self, children: Children) -> n.Function:
        """A function where a value is expected."""
        function: n.Function = children[0]
        return function

    # ------------------------------------------------------------ functions and patterns

    def function(self, children: Children) -> n.Function:
        """`function name(parameters): type { … }`, `async` or not; the name may be missing."""
        is_async, _, star, name, generics, _, parameters, _, _, returns, body = children
        called = name and str(name)
        span = cover(children)
        made = n.Function(span, called, parameters, body, is_async is not None, returns, generics=generics or ())
        return self._generator(made, star)

    def _generator(self, function: n.Function, star: Token | None) -> n.Function:
        """A function with a `*` as a generator, in which the name `yield` is a step; elsewhere it remains a name."""
        while self.yields and self.yields[-1].span.start >= function.span.start:
            name = self.yields.pop()
            if star is not None:
                object.__setattr__(name, "name", n.BARE_YIELD)
        return function if star is None else replace(function, is_generator=True)

    def yield_expression(self, children: Children) -> n.Yield:
        """`yield value` or `yield* values`."""
        return n.Yield(span_between(*children), children[1], children[0].type == "YIELD_ALL")

    def export_function(self, children: Children) -> n.Function:
        """`export function name(…) { … }`, behind what it needs or not. Raises BuildError without a name."""
        exported, f = children[-2:]
        permission = children[1] if len(children) > 2 else None
        span = span_between(exported, f)
        if f.name is None:
            raise BuildError(span, "an exported function needs a name", "write `export function name(…) { … }`.")
        made: n.Function = replace(f, span=span, exported=True, needs=permission)
        return made

    def parameters(self, children: Children) -> tuple[n.Parameter, ...]:
        """What stands between the parentheses of a function."""
        return only(children, n.Parameter)

    def parameter(self, children: Children) -> n.Parameter:
        """`pattern?: type = default`."""
        pattern, optional, _, type, _, default = children
        return n.Parameter(cover(children), pattern, type, default, optional=optional is not None)

    def rest_parameter(self, children: Children) -> n.Parameter:
        """`...name: type`."""
        name = children[1]
        return n.Parameter(cover(children), n.Binding(span_of(name), str(name)), children[3], rest=True)

    def binding(self, children: Children) -> n.Binding:
        """A name that is given a value."""
        return n.Binding(span_of(children[0]), str(children[0]))

    def elements(self, children: Children) -> tuple[n.Element, ...]:
        """What stands between the brackets of a list pattern."""
        found = only(children, n.Element, n.Hole)
        return tuple(n.Element(item.span, item) if isinstance(item, n.Hole) else item for item in found)

    def array_pattern(self, children: Children) -> n.ArrayPattern:
        """`[a, , b]` where it takes a value apart."""
        return n.ArrayPattern(span_between(children[0], children[-1]), children[1])

    def object_pattern(self, children: Children) -> n.ObjectPattern:
        """`{ a, b }` where it takes a value apart."""
        return n.ObjectPattern(span_between(children[0], children[-1]), only(children, n.Element))

    def element(self, children: Children) -> n.Element:
        """`pattern = default` in a list."""
        pattern, _, default = children
        return n.Element(cover(children), pattern, None, default)

    def entry(self, children: Children) -> n.Element:
        """`key: pattern = default` in an object; without a pattern the key is the name."""
        key, _, pattern, _, default = children
        if pattern is None:
            self._check_reserved(key)
            pattern = n.Binding(span_of(key), str(key))
        return n.Element(cover(children), pattern, str(key), default)

    def keyed_entry(self, children: Children) -> n.Element:
        """`"key": pattern = default` in an object, with a key that is no name."""
        return n.Element(cover(children), children[2], _key(children[0]), children[4])

    def computed_entry(self, children: Children) -> n.Element:
        """`[key]: pattern = default` in an object."""
        return n.Element(span_between(children[0], children[6] or children[4]), children[4], children[1], children[6])

    def rest_items(self, children: Children) -> n.Element:
        """`...name` or `...[a, b]` in a list, which takes what is left."""
        return n.Element(cover(children), children[1], rest=True)

    def rest_element(self, children: Children) -> n.Element:
        """`...name`, which takes what is left."""
        return n.Element(cover(children), n.Binding(span_of(children[1]), str(children[1])), rest=True)


def _require_parentheses(operands: Sequence[n.Expression], operators: Sequence[str]) -> None:
    """Raise BuildError for operators that JavaScript takes beside each other with parentheses only."""
    for at, operand in enumerate(operands[:-1]):
        if operators[at] == "**" and isinstance(operand, (n.Prefix, n.Await)):
            mark = operand.operator if isinstance(operand, n.Prefix) else "await"
            sign = mark if len(mark) == 1 else f"{mark} "
            span = Span(operand.span.start, operands[at + 1].span.end)
            base, power = _spelt(getattr(operand, "operand", None)) or "a", _spelt(operands[at + 1]) or "b"
            help = f"write `({sign}{base}) ** {power}`, or `{sign}({base} ** {power})`."
            raise BuildError(span, f"`{mark}` stands before `**` without parentheses", help, MIXED_OPERATORS)
    choices = [(at, mark) for at, mark in enumerate(operators) if mark in ("??", "||", "&&")]
    for (_, first), (at, second) in pairwise(choices):
        if first != second and "??" in (first, second):
            help = f"write `(a {first} b) {second} c`, or `a {first} (b {second} c)`."
            span = Span(operands[0].span.start, operands[at + 1].span.end)
            raise BuildError(
                span, f"`{first}` and `{second}` stand together without parentheses", help, MIXED_OPERATORS
            )


def _spelt(node: n.Expression | None) -> str | None:
    """A short value as it is written: a number, a name or a path."""
    match node:
        case n.Literal(value=int() | float() as value):
            return str(value)
        case n.Name(name=name):
            return name
        case n.Member(object=holder, name=name, optional=False) if (before := _spelt(holder)) is not None:
            return f"{before}.{name}"
    return None


def _body(body: n.Block | n.Expression) -> n.Block | n.Expression:
    """The body of an arrow function; braces with nothing between them hold no statement."""
    return n.Block(body.span, ()) if isinstance(body, n.Object) and not body.properties else body


def _send_form(event: str = "", word: str = "send") -> str:
    form = "start" if word == "start" else "await send"
    return f'write `{form} peers.event("{event or "name"}").any()({{ … }})`.'


def _event_of(target: n.Expression) -> str:
    """The event that is named somewhere in the target of a `send`; empty for none."""
    while isinstance(target, (n.Call, n.Member)):
        match target:
            case n.Call(callee=n.Member(name="event"), arguments=(n.Text(value=event),)):
                return event
        target = target.callee if isinstance(target, n.Call) else target.object
    return ""


def _without_event(base: n.Expression, target: n.Expression) -> BuildError:
    """What is wrong with a `send` whose event was not found; it may stand before something that selects nobody."""
    inner, unknown = base, list[n.Member]()
    while isinstance(inner, (n.Call, n.Member)):
        if isinstance(inner, n.Member):
            unknown.append(inner)
        inner = inner.callee if isinstance(inner, n.Call) else inner.object
    if not any(member.name.lower() == "event" for member in unknown[1:]):
        called = target.callee if isinstance(target, n.Call) else target
        event = called.name if called is base and isinstance(called, n.Member) else ""
        return BuildError(base.span, "this `send` does not name its event", _send_form(event), "E0185")
    message = f"`.{unknown[0].name}` is not a selection of a `send`"
    if unknown[0].name == "timeout":
        return BuildError(unknown[0].name_span, message, "write `timeout 5s` behind the payload.", "E0186")
    return BuildError(unknown[0].name_span, message, "write `.any()` or `.all()`.", "E0186")


def _key(token: Token) -> str:
    """The key of an object's property as the text that it is."""
    if token.type == "NUMBER":
        value = number(token)
        return str(value) if isinstance(value, int) else str(token)
    return text_of_string(token) if token.type == "STRING" else str(token)
