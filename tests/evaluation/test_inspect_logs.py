"""Logs of evaluations for `inspect view`: their content, and what the reader of `inspect-ai` makes of them."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.evaluating import evaluated, id_of, write_evals
from tests.projects import Project

READ = """
import json, sys
from inspect_ai.log import list_eval_logs, read_eval_log
found = []
for info in sorted(list_eval_logs(sys.argv[1]), key=lambda info: info.name):
    log = read_eval_log(info)
    found.append({
        "task": log.eval.task, "status": log.status, "epochs": log.eval.config.epochs, "model": log.eval.model,
        "scores": {score.name: score.metrics["mean"].value for score in log.results.scores},
        "samples": [[sample.id, sample.epoch, sample.scores["passed"].value, sample.output.completion]
                    for sample in log.samples],
    })
print(json.dumps(found))
"""


def logs(project: Project) -> list[Any]:
    """The logs that were written, in the order of their names."""
    return [json.loads(path.read_text("utf-8")) for path in sorted((project.folder / "logs").glob("*.json"))]


def reader() -> str:
    """A Python that has `inspect-ai`: INSPECT_PYTHON, or the one with the command `inspect`; skips without."""
    python = os.environ.get("INSPECT_PYTHON") or shutil.which("inspect")
    if python is None:
        pytest.skip("`inspect-ai` IS NOT INSTALLED, SO NO LOG IS READ BY IT")
    return python if "INSPECT_PYTHON" in os.environ else str(Path(python).parent / "python")


def test_a_log_has_a_sample_for_each_run(project: Project) -> None:
    """Its case, what was printed, whether it passed and why not, and its scores; the results are as in the report."""
    write_evals(project)

    id = id_of(evaluated(project, "--inspect", "logs"))
    (log,) = logs(project)

    samples = {(sample["id"], sample["epoch"]): sample for sample in log["samples"]}
    lost = samples["bo", 2]
    assert [("ada", 1), ("ada", 2), ("bo", 1), ("bo", 2), ("cy", 1), ("cy", 2)] == list(samples)
    assert ("I", True) == (
        lost["scores"]["passed"]["value"],
        "the two sides are equal" in lost["scores"]["passed"]["explanation"],
    )
    assert (10.0, f"{id}-4") == (lost["scores"]["length"]["value"], lost["metadata"]["run"])
    assert "Hello, Bo!" == lost["output"]["choices"][0]["message"]["content"]
    assert {"id": "bo", "name": "Bo"} == json.loads(lost["input"])
    assert pytest.approx(2 / 3) == log["results"]["scores"][0]["metrics"]["mean"]["value"]


def test_a_log_holds_no_secret(project: Project) -> None:
    """What a journal does not show is not shown by a log, neither of cases nor of what was printed."""
    text = 'eval "keeps" over "./names.jsonl" { console.log(case.password) expect case.password == 1 }'
    write_evals(project, text, [{"name": "Ada", "password": "k9XfQ2mZ81LpRt55"}])

    evaluated(project, "--inspect", "logs")

    assert [] == [path for path in (project.folder / "logs").glob("*") if "k9XfQ2mZ" in path.read_text("utf-8")]


def test_inspect_reads_the_logs(project: Project) -> None:
    """The reader of the package gives what was measured."""
    python = reader()
    write_evals(
        project, 'eval "a / b" over [1, 2] times 2 { console.log(case) score n = case }\neval "ü" { expect false }'
    )

    evaluated(project, "--inspect", "logs")
    done = project.run(python, "-c", READ, "logs")

    assert (0, True) == (done.returncode, bool(done.stdout)), done.stderr
    found = {log["task"]: log for log in json.loads(done.stdout)}
    assert [[1, "C", "1"], [2, "C", "1"], [1, "C", "2"], [2, "C", "2"]] == [
        each[1:] for each in found["a / b"]["samples"]
    ]
    assert ({"passed": 1.0, "n": 1.5}, 2, "success") == tuple(
        found["a / b"][name] for name in ("scores", "epochs", "status")
    )
    assert ({"passed": 0.0}, [["1", 1, "I", ""]]) == (found["ü"]["scores"], found["ü"]["samples"])


def test_a_folder_for_logs_that_cannot_be_made_is_told_first(project: Project) -> None:
    """Nothing is carried out whose log could not be kept."""
    write_evals(project)
    project.write("taken", "a file")

    done = evaluated(project, "--inspect", "taken/logs")

    assert (2, "", False) == (done.returncode, done.stdout, (project.folder / ".koi").exists())
    assert "taken" in done.stderr
