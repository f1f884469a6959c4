"""Objects with functions: what `this` means in them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.rules.names import MEMBERS_OF_AGENTS
from koi_lang.compiler.rules.program import handlers, is_named
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.compiler.walk import everything

# What `this` has besides its handlers.
OF_AGENTS = MEMBERS_OF_AGENTS | {"state", "name", "role", "peers"}


@rule("E0309", "warning")
def this_of_object(file: Analysis, report: Report) -> None:
    """`this` is used for the object that a function belongs to.

    `this` is always the agent, also in the functions of an object. They reach their object by its name. One message
    an object.

    Wrong:

        in handler:
          const counter = { n: 0, add() { this.n += 1 } }
          counter.add()
          return counter.n

    Right:

        in handler:
          const counter = { n: 0, add() { counter.n += 1 } }
          counter.add()
          return counter.n
    """
    for object, around in file.index.of(n.Object):
        if around.agent is None:
            continue
        known = OF_AGENTS.union(handler.name.name for handler in handlers(around.agent))
        meant = (member for member, is_arrow in _own_fields(object, file) if member.name not in known or not is_arrow)
        for member in islice(meant, 1):
            help = f"give the object a name, and write `name.{member.name}`."
            report.add(member.span, f"`this` is the agent `{around.agent.name.name}` here, not the object", help=help)


def _own_fields(object: n.Object, file: Analysis) -> Iterator[tuple[n.Member, bool]]:
    """Where the functions of an object use one of its fields with `this`, and whether they are arrow functions, whose
    `this` is the agent in JavaScript, too."""
    properties = [item for item in object.properties if isinstance(item, n.Property)]
    keys = {property.key for property in properties}
    for function in [property.value for property in properties if isinstance(property.value, n.Function)]:
        is_arrow = "=>" in file.unit.source.text[function.span.start : function.body.span.start]
        used = (node for node in everything(function) if isinstance(node, n.Member) and is_named(node.object, "this"))
        yield from ((node, is_arrow) for node in used if node.name in keys)
