"""Objects: the meaning of `this` in their functions, and objects that the language has no use for."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.rules.names import MEMBERS_OF_AGENTS
from koi_lang.compiler.rules.program import handlers, is_named, is_variable
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.compiler.walk import everything

# What `this` has besides its handlers.
OF_AGENTS = MEMBERS_OF_AGENTS | {"state", "name", "role", "peers", "phase"}


# Functions that convert a value, and make an object of it with `new` in JavaScript.
WRAPPERS = ("Boolean", "Number", "String")
# What only agents are likely to have.
OF_AGENTS_ALONE = frozenset({"state", "handle", "callSkill", "callAction", "peers"})


@rule("E0309", "warning")
def this_of_object(file: Analysis, report: Report) -> None:
    """`this` is used for the agent in a method of an object, or for the object in an arrow function.

    In a method, a getter or setter, and behind `key: function`, `this` is the object that it is called on. Arrow
    functions have the `this` of what is around them. A method reaches the agent by a name that was given to it before.
    One message an object.

    Wrong:

        in agent:
          state { n = 0 }
          on start(args) {
            const counter = { add() { this.state.n += 1 } }
            counter.add()
          }

    Right:

        in agent:
          state { n = 0 }
          on start(args) {
            const agent = this
            const counter = { add() { agent.state.n += 1 } }
            counter.add()
          }
    """
    for object, around in file.index.of(n.Object):
        if around.agent is None:
            continue
        keys = {property.key for property in object.properties if isinstance(property, n.Property)}
        events = {handler.name.name for handler in handlers(around.agent)}
        for member, is_arrow in islice(_find_misplaced(object, keys, events), 1):
            if is_arrow:
                message = f"`this` is the agent `{around.agent.name.name}` in an arrow function, not the object"
                report.add(member.span, message, help="write a method: `name(…) { … }`.")
            else:
                message = f"`this` is the object here, not the agent `{around.agent.name.name}`"
                help = f"write `const agent = this` in front of the object, and `agent.{member.name}` here."
                report.add(member.span, message, help=help)


def _find_misplaced(
    object: n.Object, keys: set[str | n.Expression], events: set[str]
) -> Iterator[tuple[n.Member, bool]]:
    """Where the functions of an object take `this` for something else, and whether they are arrow functions."""
    is_open = any(isinstance(item, n.Spread) for item in object.properties)
    values = (property.value for property in object.properties if isinstance(property, n.Property))
    for function in (value for value in values if isinstance(value, n.Function)):
        for member in (node for node in everything(function) if isinstance(node, n.Member)):
            name = member.name
            if is_named(member.object, n.OBJECT_THIS) and name not in keys and not is_open:
                yield from [(member, False)] if name in OF_AGENTS_ALONE | events else ()
            elif is_named(member.object, "this") and function.is_arrow and name in keys - OF_AGENTS - events:
                yield member, True


@rule("E0337", "error")
def wrapper_object(file: Analysis, report: Report) -> None:
    """`new Boolean`, `new Number` or `new String` would make an object around a value.

    Values have all methods without one. In JavaScript such an object is true even around `false`, and equals no other;
    here there are none, so a program that relies on them would do something else.

    Wrong:

        in handler: return new Number(args.count)

    Right:

        in handler: return Number(args.count)
    """
    for new, around in file.index.of(n.New):
        callee = new.callee
        if isinstance(callee, n.Name) and callee.name in WRAPPERS and not is_variable(callee, around, file):
            message = f"there are no objects around values, which `new {callee.name}` would make"
            report.add(new.span, message, help=f"leave out `new`: `{callee.name}(…)` converts a value.")


@rule("E0338", "error")
def this_as_value(file: Analysis, report: Report) -> None:
    """`this` as a value in a plain function, where JavaScript has `undefined`.

    A plain function, one with `function`, has the `this` of what is around it here, so `this.name` and `this.handle(…)`
    reach the agent. As a value of its own it would be compared with, or given to, something that JavaScript has not.

    Wrong:

        in agent:
          on start(args) {
            const items = args.items.map(function (item) { return [this, item] })
            return items.length
          }

    Right:

        in agent:
          on start(args) {
            const agent = this
            const items = args.items.map(function (item) { return [agent, item] })
            return items.length
          }
    """
    seen: set[int] = set()
    for function, _ in file.index.of(n.Function):
        if function.is_arrow or function.takes_this:
            continue
        parts = list(everything(function))
        used = {id(part.object) for part in parts if isinstance(part, n.Member)}
        for part in parts:
            if is_named(part, "this") and id(part) not in used and id(part) not in seen:
                seen.add(id(part))
                help = "write an arrow function, or `const agent = this` in front of the function and `agent` here."
                report.add(part.span, "`this` is `undefined` in a plain function of JavaScript", help=help)
