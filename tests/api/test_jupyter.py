"""`%%koi` in notebooks, as a shell of IPython carries cells out."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from IPython.core.interactiveshell import ExecutionResult, InteractiveShell
from IPython.utils.capture import capture_output

from koi_lang.jupyter import load_ipython_extension
from koi_lang.program import loader
from tests.projects import Project

PROGRAM = '''
role R { can execute }
agent Writer : R {
  on write(args: { about: string }) { playbook """Write about {{args.about}}. Return { text: "…" }.""" }
}
agent Lead : R {
  on start(args: Json) { const found = await Writer.handle("write", args); console.log(found.text); return found }
}
run Lead.start({ about: "ants" })
'''
ANSWERS = [{"intent": "return", "data": {"text": "<b>ANTS</b>"}}]


@pytest.fixture
def shell(project: Project, monkeypatch: pytest.MonkeyPatch) -> InteractiveShell:
    """A shell in a folder with answers of a model."""
    project.write("answers.json", json.dumps(ANSWERS))
    monkeypatch.chdir(project.folder)
    monkeypatch.setenv("IPYTHONDIR", str(project.folder / "ipython"))
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)  # which IPython compares with the Python that it is run by
    shell = InteractiveShell.instance()
    load_ipython_extension(shell)
    loader.unload()
    return shell


def run(shell: InteractiveShell, cell: str) -> tuple[ExecutionResult, str]:
    """What came of a cell that is carried out inside of an event loop, as kernels do; and what was shown."""

    async def carry_out() -> ExecutionResult:
        return await shell.run_cell_async(cell, store_history=False, transformed_cell=shell.transform_cell(cell))

    with capture_output() as shown:
        result = asyncio.run(carry_out())
    return result, shown.stdout + shown.stderr


def test_a_cell_is_a_program(shell: InteractiveShell) -> None:
    """Its output is shown, its result displayed with what a model wrote as text, or bound to a name."""
    result, shown = run(shell, f"%%koi --answers answers.json\n{PROGRAM}")
    run(shell, f"%%koi --answers answers.json --name found --arg about=bees\n{PROGRAM}")

    assert result.success, shown
    assert {"text": "<b>ANTS</b>"} == result.result.value == shell.user_ns["found"].value
    assert ("<b>ANTS</b>",) == result.result.output
    assert shown.startswith("<b>ANTS</b>\n")
    html = result.result._repr_html_()
    assert "&lt;b&gt;ANTS&lt;/b&gt;" in html
    assert "<b>" not in html
    assert f"run {result.result.run}: 1 request, " in html
    assert Path(f".koi/runs/{result.result.run}.jsonl").is_file()


def test_statements_are_a_program(shell: InteractiveShell) -> None:
    """As with `koi run -c`."""
    result, shown = run(shell, "%%koi\nconsole.log(6 * 7)")

    assert (True, "42\n") == (result.success, shown[:3])


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ("%%koi\nconsole.log(x", "error: this `(` is never closed"),
        ('%%koi\nthrow new Error("no luck")', "no luck"),
        ("%%koi --modle x\n1", "No such option"),
        ("%%koi --answers nope.json\nconsole.log(1)", "cannot read the answers in `nope.json`"),
    ],
)
def test_an_error_is_told_in_words_of_koi(shell: InteractiveShell, cell: str, told: str) -> None:
    """Without a traceback of Python; the cell has failed, so that the next ones are not carried out."""
    result, shown = run(shell, cell)

    assert not result.success
    assert told in shown
    assert not [word for word in ("Traceback", ".py", "CellError") if word in shown]


def test_a_question_is_asked_in_the_notebook(shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch) -> None:
    """The person answers where the kernel asks."""
    asked: list[str] = []
    monkeypatch.setattr("builtins.input", lambda question: asked.append(question) or "Ada")
    action = {"id": "q", "intent": "prompt_user", "question": "Your name?"}
    Path("answers.json").write_text(
        json.dumps([{"batch": [action, {"intent": "return", "data": {"text": "${q.output.answer}"}}]}])
    )
    result, shown = run(
        shell, f"%%koi --answers answers.json\n{PROGRAM.replace('can execute', 'can execute, can prompt_user')}"
    )

    assert ["Your name? "] == asked, shown
    assert {"text": "Ada"} == result.result.value
