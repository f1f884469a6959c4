"""The code of a routine to the calls in it, with how often each is made."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from math import ceil
from typing import Protocol

from koi_lang.compiler import nodes as n
from koi_lang.compiler.calls.routines import Calls, CallSite, CodePlace, Often, Outside, OutsideCall, Routine
from koi_lang.compiler.scope import ScopeVariable
from koi_lang.compiler.symbols import Symbol
from koi_lang.compiler.walk import child_nodes, everything

IN_LOOP, PASSED_ON = "in a loop", "in a function that is passed on"
# Actions of code that ask a model, one of the agent's teams, a function of a skill, or an MCP server.
ASK_MODEL = frozenset({"call_llm", "format"})
ASK_TEAM, ASK_SKILL = "send_message", "call_skill"
ASK_SERVER = frozenset({"call_mcp", "get_mcp_tool_info", "mcp_read_resource", "mcp_get_prompt"})
# Python behind parts of the standard library, which asks no model.
OF_STANDARD_LIBRARY = ("koi_lang.std.", "koi_lang.system.text_width")
ONCE = Often()


class Routines(Protocol):
    """The routines of a program, looked up by whoever calls them."""

    def of_agent(self, agent: Symbol, event: str = "") -> list[Routine]:
        """The handlers of an agent for an event; without a name all."""

    def of_node(self, node: n.Node) -> Routine | None:
        """The routine that a node is."""

    def of_skills(self, caller: Routine, skill: str = "", function: str = "") -> list[Routine]:
        """The functions of the skills that the agent of a routine uses, of one of them, or one."""

    def sent_to(self, caller: Routine, send: n.Send) -> list[Routine]:
        """Those whom a send may mean, in the order in which they are looked for."""

    def of_peers(self, caller: Routine, event: str = "") -> list[Routine]:
        """The handlers of the team members of the agent of a routine."""


def calls_in(routine: Routine, known: Routines) -> Calls:
    """The calls that stand in a routine; for a playbook those that are computed before its model is asked."""
    walk = _Walk(routine, known)
    for child in child_nodes(routine.node):
        walk.visit(child, ONCE)
    return Calls(tuple(walk.sites), tuple(walk.outside))


def calls_in_expression(expression: n.Expression, routine: Routine, known: Routines) -> Calls:
    """The calls in an expression whose names are resolved with those of a routine."""
    walk = _Walk(routine, known)
    walk.visit(expression, ONCE)
    return Calls(tuple(walk.sites), tuple(walk.outside))


class _Walk:
    def __init__(self, routine: Routine, known: Routines) -> None:
        self.routine, self.known = routine, known
        self.sites: list[CallSite] = []
        self.outside: list[OutsideCall] = []
        self._names = routine.file.code.get(routine.root)

    def visit(self, node: n.Node, often: Often) -> None:
        """Find the calls in a node that is carried out so often."""
        match node:
            case n.Function():
                if self.known.of_node(node) is None:
                    self.visit_all(child_nodes(node), often.without_number(PASSED_ON))
            case n.While() | n.DoWhile():
                self.visit_all(child_nodes(node), often.without_number(IN_LOOP))
            case n.For() | n.ForEach():
                self.visit_loop(node, often)
            case n.Call():
                self.visit_call(node, often)
            case n.Send():
                self.add(self.known.sent_to(self.routine, node), node, often, is_each=node.select == "all")
                self.visit_all(node.arguments, often)
            case n.Member(object=n.Name() as owner):
                self.visit_member(node, owner, often)
            case n.Name():
                self.visit_mention(node, often)
            case _:
                self.visit_all(child_nodes(node), often)

    def visit_all(self, nodes: Iterable[n.Node], often: Often) -> None:
        """The same for several."""
        for node in nodes:
            self.visit(node, often)

    def visit_loop(self, loop: n.For | n.ForEach, often: Often) -> None:
        """What a loop begins with is carried out once, the rest in each round."""
        rounds, first = rounds_of(loop), loop.iterable if isinstance(loop, n.ForEach) else loop.first
        inside = often.without_number(IN_LOOP) if rounds is None else often.by(rounds)
        for child in child_nodes(loop):
            # The condition of a loop is looked at once more than there are rounds.
            is_condition = isinstance(loop, n.For) and child is loop.condition and rounds is not None
            self.visit(child, often if child is first else often.by((rounds or 0) + 1) if is_condition else inside)

    # ------------------------------------------------------------ calls

    def visit_call(self, call: n.Call, often: Often) -> None:
        """A call of an agent, a function, a server or Python; else what stands in it."""
        callee = n.strip_parentheses(call.callee)
        if not self._is_known_call(callee, call, often):
            self.visit(callee, often)
        self.visit_all(call.arguments, often)

    def _is_known_call(self, callee: n.Expression, call: n.Call, often: Often) -> bool:
        """Enter a call whose callee says who is meant; whether it does."""
        match callee:
            case n.Member(object=n.Name() as owner, name=name):
                agent = self.agent(owner)
                if agent is not None:
                    self.call_of_agent(agent, name, call, often)
                return agent is not None or self.is_outside(owner, often)
            case n.Name(name="callAction") if self.variable(callee) is None:
                self.call_of_action(call, often)
                return True
            case n.Name():
                found = self.function(callee)
                if found is not None:
                    self.add([found], call, often)
                return found is not None or self.is_outside(callee, often)
        return False

    def call_of_agent(self, agent: Symbol, name: str, call: n.Call, often: Often) -> None:
        """`Agent.event(…)`, `Agent.handle("event", …)`, and what agents can besides."""
        first = call.arguments[0] if call.arguments else None
        text = first.value if isinstance(first, n.Text) else ""
        if name == "handle":
            self.add(self.known.of_agent(agent, text), call, often)
        elif name == "callAction":
            self.call_of_action(call, often)
        elif name == "callSkill":
            second = call.arguments[1] if len(call.arguments) > 1 else None
            function = second.value if isinstance(second, n.Text) else ""
            self.add(self.known.of_skills(self.routine, text, function), call, often)
        elif name == "peers":
            self.add(self.known.of_peers(self.routine), call, often)
        else:
            self.add(self.known.of_agent(agent, name), call, often)

    def call_of_action(self, call: n.Call, often: Often) -> None:
        """`callAction("name", { … })`."""
        first = call.arguments[0] if call.arguments else None
        name = first.value if isinstance(first, n.Text) else None
        if name is None:
            self.note("unknown", "an action whose name is computed", call, often)
        elif name in ASK_MODEL:
            self.note("model", name, call, often)
        elif name == ASK_TEAM:
            self.add(self.known.of_peers(self.routine), call, often)
        elif name == ASK_SKILL:
            self.add(self.known.of_skills(self.routine), call, often)
        elif name in ASK_SERVER:
            self.note("server", name, call, often)

    # ------------------------------------------------------------ names

    def visit_member(self, node: n.Member, owner: n.Name, often: Often) -> None:
        """A member that is not called here: a handler may be called by whoever gets it."""
        agent = self.agent(owner)
        if agent is None:
            self.visit(owner, often)
        elif node.name == "peers":
            self.add(self.known.of_peers(self.routine), node, often.without_number(PASSED_ON))
        else:
            found = [each for each in self.known.of_agent(agent) if node.name == _event(each)]
            self.add(found, node, often.without_number(PASSED_ON))

    def visit_mention(self, name: n.Name, often: Often) -> None:
        """A name that is not called here: whoever gets its value may call it."""
        unknown = often.without_number(PASSED_ON)
        agent = self.agent(name)
        function = self.function(name)
        if agent is not None:
            self.add(self.known.of_agent(agent), name, unknown)
        elif function is not None:
            self.add([function], name, unknown)
        elif name.name == "peers" and self.variable(name) is None:
            self.add(self.known.of_peers(self.routine), name, unknown)

    def agent(self, name: n.Expression) -> Symbol | None:
        """The agent that a name stands for, `this` included."""
        if not isinstance(name, n.Name) or self.variable(name) is not None:
            return None
        if name.name == "this" and self.routine.agent is not None:
            return self.routine.file.table.find("agent", self.routine.agent.name.name)
        return self.routine.file.table.find("agent", name.name)

    def variable(self, name: n.Name) -> ScopeVariable | None:
        """The variable that a name stands for."""
        return None if self._names is None else self._names.variables.get(name)

    def function(self, name: n.Name) -> Routine | None:
        """The function with a name that a name stands for."""
        variable = self.variable(name)
        if variable is not None:
            declared = None if self._names is None else self._names.declared.get(variable)
            return None if declared is None else self.known.of_node(declared)
        symbol = self.routine.file.table.find("function", name.name)
        return None if symbol is None else self.known.of_node(symbol.node)

    def is_outside(self, name: n.Name, often: Often) -> bool:
        """Enter a call of an MCP server or a Python module, if a name stands for one; whether it does."""
        file = self.routine.file
        if self.variable(name) is not None:
            return False
        if name.name in file.servers.get(self.routine.root, ()):
            self.note("server", name.name, name, often)
            return True
        symbol = file.table.find("module", name.name)
        if symbol is None or symbol.imported is None:
            return False
        if not _is_harmless(symbol.imported.target):
            self.note("python", name.name, name, often)
        return True

    # ------------------------------------------------------------ what was found

    def add(self, targets: Sequence[Routine], node: n.Node, often: Often, *, is_each: bool = False) -> None:
        """Enter a call of routines, if there are any."""
        if targets:
            self.sites.append(CallSite(tuple(targets), often, self._place(node), is_each))

    def note(self, kind: Outside, name: str, node: n.Node, often: Often) -> None:
        """Enter a call of something outside of the program."""
        self.outside.append(OutsideCall(kind, name, often, self._place(node)))

    def _place(self, node: n.Node) -> CodePlace:
        return CodePlace(self.routine.file.unit.source, node.span)


def _event(routine: Routine) -> str:
    return routine.name.rpartition(".")[2]


def _is_harmless(module: str) -> bool:
    """Whether a Python module calls no agents: one of Python itself, or what the standard library is made of."""
    return module.partition(".")[0] in sys.stdlib_module_names or module.startswith(OF_STANDARD_LIBRARY)


def rounds_of(loop: n.For | n.ForEach) -> int | None:
    """The most rounds of a loop; None where that is not written down."""
    return _rounds_of_each(loop) if isinstance(loop, n.ForEach) else _rounds_of_count(loop)


def _rounds_of_each(loop: n.ForEach) -> int | None:
    """Over a list that is written there."""
    values = n.strip_parentheses(loop.iterable)
    if not isinstance(values, n.Array) or any(isinstance(item, n.Spread) for item in values.items):
        return None
    return len(values.items)


def _rounds_of_count(loop: n.For) -> int | None:
    """Of `for (let i = 0; i < 3; i++)`, where nothing in it changes `i`."""
    match loop:
        case n.For(
            first=n.Variable(declarators=(n.Declarator(pattern=n.Binding(name=name), value=n.Literal(value=start)),)),
            condition=n.Operation(operands=(n.Name(name=counted), n.Literal(value=end)), operators=(operator,)),
            update=n.Update(operator="++", target=n.Name(name=stepped)),
        ) if name == counted == stepped and operator in ("<", "<=") and _are_numbers(start, end):
            if any(_writes(node, name) for node in everything(loop.body)):
                return None
            assert isinstance(start, (int, float))
            assert isinstance(end, (int, float))
            return max(0, ceil(end - start) if operator == "<" else int(end - start) + 1)
    return None


def _are_numbers(*values: object) -> bool:
    return all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)


def _writes(node: n.Node, name: str) -> bool:
    """Whether a node changes a variable of a name; one of the same name that is another variable counts, too."""
    match node:
        case n.Update(target=n.Name(name=changed)):
            return changed == name
        case n.Assignment(target=target):
            return any(isinstance(each, (n.Name, n.Binding)) and each.name == name for each in everything(target))
    return False
