"""Programs that machines write or that are broken throughout: one twice as long takes twice the work."""

from __future__ import annotations

import ast
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koi_lang.compiler.cycles import nodes_on_cycles
from koi_lang.compiler.printer.module_text import written_statements
from koi_lang.diagnostics import nearest
from koi_lang.program import build
from tests.growth import MOST_GROWTH, growth

ROLE = "role Worker { can execute, can delegate }\n"
WORDS = "account balance customer delivery employee feature garden history invoice journal kitchen letter".split()


def many_lines(line: str, n: int) -> str:
    """A line so many times, `#` in it replaced by its number and `+` by the next one."""
    return "\n".join(line.replace("#", str(number)).replace("+", str(number + 1)) for number in range(n))


def unknown_names(n: int) -> str:
    """As many agents as runs of agents that do not exist."""
    agents = many_lines("agent Known#x : Worker { on go(args: Json) { return 1 } }", n)
    return f"{ROLE}{agents}\n{many_lines('run Knwn#y.go({})', n)}"


def prompt_chain(n: int) -> str:
    """Prompts that contain the next one each."""
    agent = "agent Main : Worker { on go(args: Json) { playbook Text0 } }"
    chain = many_lines('prompt Text# = "text #" & Text+', n).replace("&", "+")
    return f'{ROLE}{chain}\nprompt Text{n} = "end"\n{agent}\nrun Main.go({{}})'


def else_ifs(n: int) -> str:
    """One `if` with very many branches."""
    branches = many_lines("else if (args.a === #) { console.log(#) }", n)
    return f"{ROLE}agent Main : Worker {{ on go(args: Json) {{\nif (args.a) {{ }}\n{branches}\n}} }}\nrun Main.go({{}})"


def teams(n: int) -> str:
    """Teams with one member, which is the same agent."""
    handler = 'on go(args: Json) { return await send peers.event("go").any()({}) }'
    return f"{ROLE}agent Main : Worker {{ {handler} }}\n{many_lines('team Team# { main: Main }', n)}\nrun Main.go({{}})"


def playbooks(n: int) -> str:
    """Agents with a playbook that names one of them."""
    line = 'agent Main# : Worker { on go(args: Json) { playbook "Print Main0::go, then return { a: 1 }." } }'
    return f"{ROLE}{many_lines(line, n)}\nrun Main0.go({{}})"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("program", [prompt_chain, unknown_names, playbooks, else_ifs, teams])
def test_checking_takes_linear_work(program: Callable[[int], str], tmp_path: Path) -> None:
    """Twice as many of something that programs can hold many of take twice as many calls, not four times."""

    def check(n: int) -> Callable[[], Any]:
        path = tmp_path / f"{n}.koi"
        path.write_text(program(n), "utf-8")
        build.check(str(path))
        return lambda: build.check(str(path))

    assert growth(check, 100) < MOST_GROWTH


def test_writing_a_module_takes_no_more_room_when_it_is_long() -> None:
    """The text of a module needs the tree of one statement at a time."""

    def room(n: int) -> int:
        tree = ast.parse(many_lines("def work_#(item):\n    return [item - #, item * #]", n))
        tracemalloc.start()
        try:
            for _ in written_statements(tree):
                pass
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    room(10)

    assert room(400) < 1.5 * room(100)


def test_the_nearest_of_very_many_names_is_found() -> None:
    """A misspelt name finds the one that was meant also among thousands, as it would among a few."""
    names = [f"{first}_{second}{number}" for first in WORDS for second in WORDS for number in range(20)]
    meant = names[::97]

    assert [nearest(name[:3] + name[4:], names) for name in meant] == meant


GRAPHS = st.dictionaries(st.integers(0, 7), st.lists(st.integers(0, 7), max_size=3), max_size=8)


@given(GRAPHS)
def test_nodes_on_cycles_lead_back_to_themselves(graph: dict[int, list[int]]) -> None:
    """A node is on a cycle if it can be reached from one of those that it leads to."""

    def reached(node: int) -> set[int]:
        found: set[int] = set()
        waiting = list(graph.get(node, ()))
        while waiting:
            each = waiting.pop()
            waiting += graph.get(each, ()) if each not in found else ()
            found.add(each)
        return found

    assert nodes_on_cycles(graph) == {node for node in graph if node in reached(node)}
