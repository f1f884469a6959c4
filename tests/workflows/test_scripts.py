"""Workflow scripts make the same calls of agents as in Node, and come to the same value."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.running import RecordingHost
from tests.workflows.answering import REFERENCE, SCRIPTS, TaskModel, outcome_in_node
from tests.workflows.running import run_script

NAMES = sorted(path.stem for path in SCRIPTS.glob("*.js"))


@pytest.mark.parametrize("name", NAMES)
def test_a_script_does_what_it_does_in_node(name: str, tmp_path: Path) -> None:
    """Each task is given to one agent, with the answer of Node the value is that of Node."""
    expected = outcome_in_node(name)
    model = TaskModel(expected["answers"])
    outcome: dict[str, object] = {}
    try:
        outcome["value"] = json.loads(json.dumps(run_script(SCRIPTS / f"{name}.js", tmp_path, model, RecordingHost())))
    except Exception as error:
        outcome["error"] = str(error)

    assert {**expected, "calls": sorted(expected["calls"])} == {
        "answers": expected["answers"],
        "calls": sorted(model.tasks),
        **outcome,
    }


@pytest.mark.needs("node")
@pytest.mark.parametrize("name", NAMES)
def test_the_outcome_in_node_is_the_stored_one(name: str) -> None:
    """What the scripts are held against is what Node makes of them."""
    words = ["node", str(REFERENCE), str(SCRIPTS / f"{name}.js")]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)

    assert outcome_in_node(name) == json.loads(done.stdout)
