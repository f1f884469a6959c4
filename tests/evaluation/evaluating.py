"""Programs with evals, and what `koi eval` prints of them."""

from __future__ import annotations

import json
import re
from subprocess import CompletedProcess

from tests.projects import Project

GREETER = """
role Worker { can execute }
agent Host : Worker {
  on greet(args: { name: string }) { console.log(`Hello, ${args.name}!`)  return { greeting: `Hello, ${args.name}!` } }
  on write(args: { name: string }) { playbook "Greet {{args.name}} and return a greeting." }
}
"""
COUNTED = """
eval "greets" over "./names.jsonl" times 2 pass 0.9 {
  const answer = await Host.greet({ name: case.name })
  expect answer.greeting.includes(case.name)
  expect case.name != "Bo"
  expect output == [`Hello, ${case.name}!`]
  score length = answer.greeting.length
}
"""
NAMES = [{"id": "ada", "name": "Ada"}, {"id": "bo", "name": "Bo"}, {"id": "cy", "name": "Cyrus"}]


def write_cases(project: Project, cases: object, name: str = "names.jsonl") -> None:
    """A file with one case a line."""
    assert isinstance(cases, list)
    project.write(name, "".join(json.dumps(case) + "\n" for case in cases))


def write_evals(project: Project, text: str = COUNTED, cases: object = NAMES) -> None:
    """The file `main.eval.koi` with evals over the agent `Host`, and its cases."""
    project.write("main.eval.koi", GREETER + text)
    write_cases(project, cases)


def evaluated(project: Project, *words: str) -> CompletedProcess[str]:
    """The outcome of `koi eval` with two processes."""
    return project.koi("eval", "-j", "2", *words)


def report_of(done: CompletedProcess[str]) -> str:
    """What was printed, with all times and ids the same, the lines of cases in order."""
    text = re.sub(r"\d+\.\d+ s\b", "0.0 s", done.stdout)
    text = re.sub(r"\b[0-9a-f]{12}\b", "ID", text)
    lines = text.split("\n")
    cases = [line for line in lines if line.startswith(("passed", "failed"))]
    rest = [line for line in lines if not line.startswith(("passed", "failed"))]
    return "\n".join([*sorted(cases), *(line for line in rest if "koi runs show" not in line)])


def id_of(done: CompletedProcess[str]) -> str:
    """The id of the evaluation that was carried out."""
    found = re.search(r"evaluation ([0-9a-f]{12})$", done.stdout, re.MULTILINE)
    assert found is not None, done.stdout + done.stderr
    return found[1]
