"""Python's debugger and coverage.py work on the lines of `.koi` files."""

from __future__ import annotations

import json
import sys

import pytest

from tests.projects import Project

COUNTING = """
    // Adds up.
    role Worker { can execute }

    agent Counter : Worker {
      on count(args: Json) {
        let total = 0
        for (const n of args.numbers) {
          total += double(n)
        }
        console.log("total", total)
      }
    }

    skill Parts {
      export function double(n: number): number {
        const result = n * 2
        return result
      }
    }

    run Counter.count({ numbers: [3, 4] })
    """


needs_breakpoints = pytest.mark.skipif(
    sys.version_info >= (3, 13), reason="pdb of Python 3.13 takes breakpoints in files called `.py` alone"
)


def session(project: Project, *commands: str) -> list[str]:
    """What pdb and the program print while these commands are typed, without the prompts."""
    words = ("-m", "pdb", "-m", "koi_lang", "run", "count.koi")
    outcome = project.fork(*words, stdin="\n".join([*commands, "q", ""]))
    shown = outcome.stdout.partition("Breakpoint 1")[2].partition("The program exited")[0]
    return [line.removeprefix("(Pdb) ").replace(str(project.folder), "…") for line in shown.splitlines()]


@needs_breakpoints
def test_pdb_stops_at_a_line_and_shows_variables(project: Project) -> None:
    """A breakpoint on a `.koi` line stops there; variables keep their names; `next` goes to the next `.koi` line."""
    path = project.write("count.koi", COUNTING)

    shown = session(project, f"b {path}:8", "c", "p total, n", "n", "p total", "n")

    stops = [line for line in shown if line.startswith(("> …", "-> ", "(", "6"))]
    assert stops == [
        "> …/count.koi(8)count()",
        "-> total += double(n)",
        "(0, 3)",
        "> …/count.koi(7)count()",
        "-> for (const n of args.numbers) {",
        "6",
        "> …/count.koi(8)count()",
        "-> total += double(n)",
    ]


@needs_breakpoints
def test_pdb_shows_the_calls_and_the_source(project: Project) -> None:
    """`up` leads from a skill's function to the handler that called it, `list` shows the text of the file."""
    path = project.write("count.koi", COUNTING)

    shown = session(project, f"b {path}:16", "c", "p n", "l 15, 16", "w")

    assert "3" in shown
    assert [line.split("\t")[-1] for line in shown if line.startswith(" 1")] == [
        "  export function double(n: number): number {",
        "    const result = n * 2",
    ]
    assert [line.strip("> ") for line in shown if "count.koi(" in line][-2:] == [
        "…/count.koi(8)count()",
        "…/count.koi(16)double()",
    ]


@needs_breakpoints
def test_pdb_stops_where_an_imported_module_is(project: Project) -> None:
    """A Python script that imports a `.koi` file is debugged into that file by its name."""
    project.write("parts.koi", "skill Parts {\nexport function double(n: number): number {\n  return n * 2\n}\n}")
    project.write(
        "main.py", "import asyncio, koi_lang\nkoi_lang.install()\nimport parts\nasyncio.run(parts.double(4))\n"
    )

    commands = "b parts.koi:3\nc\np n\nr\nq\n"
    shown = project.fork("-m", "pdb", "main.py", stdin=commands).stdout

    assert f"> {project.folder}/parts.koi(3)double()\n-> return n * 2\n(Pdb) 4\n(Pdb) --Return--\n" in shown
    assert "double()->8" in shown


COVERED = """
    // Not code.
    role Worker { can execute }

    agent Main : Worker {
      state { total: number = 1 }
      on start(args: Json) {
        if (args.n > 1) {
          console.log("many")
        } else {
          console.log("few")
        }
        const list = [
          1,
          2
        ]
        list.map(n => {
          return n
        })

        /* a comment */
        return twice(this.state.total)
      }
      on never(args: Json) {
        console.log("never"); console.log("at all")
        [1].map(n => n)
      }
      on unwanted(args: Json) { // pragma: no cover
        console.log("unwanted")
      }
    }

    skill Parts {
      affordance "Doubles."
      const factor = 2
      export function twice(n: number): number {
        return n * factor
      }
      function unused(f: any): any {
        return f
      }
      export function unasked(): any { return unused(1) }
    }

    run Main.start({ n: 1 })
    """


def coverage_of(project: Project, *words: str, options: str = "") -> dict[str, tuple[list[int], list[int], list[int]]]:
    """Executed, missing and excluded lines by file, measured while a command of `koi` runs."""
    project.write(".coveragerc", f"[run]\nplugins = koi_lang.coverage\n{options}")
    ran = project.fork("-m", "coverage", "run", "-m", "koi_lang", *words)
    assert (ran.returncode, ran.stderr) == (0, "")
    reported = project.fork("-m", "coverage", "json", "-q", "-o", "-")
    files = json.loads(reported.stdout)["files"]
    kinds = ("executed_lines", "missing_lines", "excluded_lines")
    return {name: tuple(lines[kind] for kind in kinds) for name, lines in files.items()}


def test_coverage_measures_koi_lines(project: Project) -> None:
    """Lines that ran, lines that did not, and lines marked as unwanted are exactly those of the program."""
    project.write("main.koi", COVERED)

    found = coverage_of(project, "run", "main.koi", options="include = *.koi")

    executed = [2, 4, 5, 6, 7, 10, 12, 13, 14, 16, 17, 21, 23, 32, 34, 35, 36, 38, 41, 44]
    assert found == {"main.koi": (executed, [8, 24, 25, 39], [27, 28, 29])}


def test_coverage_reports_files_that_never_ran(project: Project) -> None:
    """With `source`, `.koi` files that nothing imported are reported with all their lines missing."""
    project.write("main.koi", COVERED)
    project.write("parts/other.koi", "skill Other {\n\n  export function one(): number { return 1 }\n}\n")

    found = coverage_of(project, "run", "main.koi", options="source = .")

    assert found["parts/other.koi"] == ([], [1, 3], [])


def test_coverage_tells_what_cannot_be_compiled(project: Project) -> None:
    """A broken file is named in a warning, and the others are reported."""
    project.write("main.koi", COVERED)
    project.write("broken.koi", "skill {")
    project.write(".coveragerc", "[run]\nplugins = koi_lang.coverage\nsource = .")
    project.fork("-m", "coverage", "run", "-m", "koi_lang", "run", "main.koi")

    reported = project.fork("-m", "coverage", "report", "-i")

    assert "broken.koi': it cannot be compiled\nerror: " in reported.stderr
    assert "main.koi" in reported.stdout


@pytest.mark.parametrize("mark", ["\ufeff", "\r\n\r\n"])
def test_coverage_copes_with_any_file(project: Project, mark: str) -> None:
    """Marks and line ends of Windows do not move lines."""
    project.write("main.koi", "")
    (project.folder / "main.koi").write_text(mark + COVERED.lstrip("\n"), "utf-8", newline="")

    executed, missing, _ = coverage_of(project, "run", "main.koi", options="include = *.koi")["main.koi"]

    moved = mark.count("\n")
    assert (executed[0], missing) == (2 + moved, [line + moved for line in (8, 24, 25, 39)])
