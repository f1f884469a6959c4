"""Tests of Koi programs, run inside the process of these tests."""

from __future__ import annotations

from koi_lang.testing.blocks import collect
from koi_lang.testing.cases import CaseOutcome
from tests.projects import Project

WORKER = """
role Worker { can execute, can registry }
agent Clerk : Worker {
  state { count = 0 }
  on greet(args: { name: string }) { console.log(`Hello, ${args.name}!`)  return { greeted: args.name } }
  on count() { this.state.count += 1  return this.state.count }
  on fail() { throw new RangeError("there is no unicorn") }
  on ask() { playbook "Ask for a name and greet." }
}
"""


def outcomes(project: Project, text: str) -> dict[str, CaseOutcome]:
    """What came of the tests in a program that has the agent `Clerk`."""
    path = project.write("main.test.koi", WORKER + text)
    return {case.name: case.run() for case in collect(path, False)}


def outcome(project: Project, body: str) -> CaseOutcome:
    """What came of one test with these steps."""
    return outcomes(project, f'test "this" {{ {body} }}')["this"]
