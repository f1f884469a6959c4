"""Programs of several sizes to what it costs to read, check and translate them, the Python process included."""

from __future__ import annotations

from pathlib import Path

from benchmarks.measuring import Figure, python, repeat
from benchmarks.programs import code_program, playbook_program

SMALL, LARGE = 10_000, 50_000
AGENT = """
agent AgentNUMBER : Worker {
  on greet(args: { name: string }): { text: string } {
    playbook \"\"\"
      You are agent NUMBER. Say hello to {{args.name}} and return the text.
    \"\"\"
  }
}
"""
TRANSLATE = "import sys; from koi_lang.program.build import syntax_trees; syntax_trees(sys.argv[1])"


def figures(folder: Path) -> list[Figure]:
    """Speed, what writing the module takes, growth, playbooks, checks and parentheses."""
    return [*_sizes(folder), _writing(folder), _playbooks(folder), _checking(folder), _parentheses(folder)]


def _sizes(folder: Path) -> list[Figure]:
    small, large = code_program(SMALL), code_program(LARGE)
    lines = small.count("\n")
    pairs = repeat(3, lambda: (_cpu_s(folder, small), _cpu_s(folder, large)))
    return [
        Figure(f"compile {SMALL:,} lines of code", 5000, [lines / one for one, _ in pairs], "lines/s", at_least=True),
        Figure(f"growth from {SMALL:,} to {LARGE:,} lines", 5.5, [many / one for one, many in pairs], "×"),
    ]


def _writing(folder: Path) -> Figure:
    """A whole `koi compile`, which writes the module, against checking and translating alone."""
    program, output = code_program(SMALL), str(folder / "program.py")

    def ratio() -> float:
        alone = _cpu_s(folder, program)
        return python("-m", "koi_lang", "compile", str(folder / "program.koi"), "-o", output).cpu_s / alone

    return Figure("`koi compile` against translating alone", 1.4, repeat(3, ratio), "×")


def _playbooks(folder: Path) -> Figure:
    program = playbook_program(1000)
    return Figure("compile 1,000 playbooks", 3.0, repeat(5, lambda: _cpu_s(folder, program)), "s")


def _checking(folder: Path) -> Figure:
    """A whole `koi check` of agents with a playbook, a parameter and a result type."""
    path = folder / "agents.koi"
    agents = "".join(AGENT.replace("NUMBER", str(number)) for number in range(2000))
    path.write_text(f"role Worker {{ can execute }}\n{agents}", "utf-8")
    return Figure(
        "`koi check` of 2,000 agents", 2.0, repeat(5, lambda: python("-m", "koi_lang", "check", str(path)).cpu_s), "s"
    )


def _parentheses(folder: Path) -> Figure:
    one, six = code_program(2000, 1), code_program(2000, 6)
    ratios = repeat(5, lambda: _cpu_s(folder, six) / _cpu_s(folder, one))
    return Figure("six nested parentheses against one", 1.2, ratios, "×")


def _cpu_s(folder: Path, program: str) -> float:
    """CPU seconds of a process that makes the syntax trees of a program."""
    path = folder / "program.koi"
    path.write_text(program, "utf-8")
    return python("-c", TRANSLATE, str(path)).cpu_s
