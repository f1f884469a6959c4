"""`koi compile`: a Python module that works where it is put."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.projects import Project

PARTS = {
    "parts/words.koi": 'import helper from "../lib/helper.py"\n'
    "skill Words { export function double(text: string): string { return helper.twice(text) } }",
    "lib/helper.py": "def twice(text):\n    return text * 2\n",
    "main.koi": 'import "./parts/words.koi"\nimport helper from "./lib/helper.py"\nimport path from "python:os.path"\n'
    "role Worker { can execute }\nagent Main : Worker { on start(args: Json) {\n"
    'console.log(double("a"), helper.twice("b"), path.basename("c/d")) } }\nrun Main.start({})',
}

RUN = """
    import asyncio
    import out
    from koi_lang.runtime.run import Run
    from koi_lang.runtime.services import Services

    async def main():
        async with Run(Services(connect=None)):
            await out.main()

    asyncio.run(main())
    """


@pytest.mark.sampled(2)
@pytest.mark.parametrize("output", ["out.py", "elsewhere/deep/out.py", "../beside/out.py"])
def test_a_compiled_program_runs_from_its_place(project: Project, output: str) -> None:
    """The written module finds the Koi and Python files that the program imports, wherever it was put."""
    for name, text in PARTS.items():
        project.write(name, text)
    place = project.folder / output

    written = project.koi("compile", "main.koi", "-o", output)
    outcome = project.fork_python(RUN, PYTHONPATH=f"{place.parent}:{Path(__file__).parents[1]}")

    assert (written.stderr, outcome.stderr, outcome.stdout) == ("", "", "aa bb d\n")


def test_compile_without_an_output_prints_the_module(project: Project) -> None:
    """`koi compile` alone writes to standard output what `-o` writes into a file beside the program."""
    project.write("main.koi", PARTS["main.koi"])
    project.write("parts/words.koi", PARTS["parts/words.koi"])
    project.write("lib/helper.py", PARTS["lib/helper.py"])

    shown = project.koi("compile", "main.koi").stdout
    project.koi("compile", "main.koi", "-o", "main_compiled.py")

    assert (project.folder / "main_compiled.py").read_text("utf-8").rstrip("\n") == shown.rstrip("\n")


def test_a_dash_as_the_output_is_standard_output(project: Project) -> None:
    """`-o -` prints the module and leaves no file called `-`."""
    project.write("main.koi", "role Worker { can execute }")

    shown = project.koi("compile", "main.koi", "-o", "-").stdout

    assert project.koi("compile", "main.koi").stdout == shown
    assert ["main.koi"] == [file.name for file in project.folder.iterdir() if not file.name.startswith(".")]
