"""Programs that are debugged, with the answers of their models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.projects import Project

TEAM = """
    role Boss { can execute, can delegate }
    role Worker { can execute }

    agent Lead : Boss {
      uses team Crew
      state { words: number = 0 }
      on start(args: { text: string }) {
        const counted = await send peers.event("count").role(Worker).any()(args)
        this.state.words = counted.words
        console.log(`${counted.words} words`)
        return await this.report({ words: counted.words })
      }

      on report(args: { words: number }) {
        const many = args.words > 2
        return many ? "many" : "few"
      }
    }

    agent Counter : Worker {
      on count(args: { text: string }): { words: number } {
        playbook \"\"\"
          Count the words of ${args.text}.
          Return { words }.
        \"\"\"
      }
    }

    team Crew { counter = Counter }

    run Lead.start({ text: "a run is a file" })
    """
PRINT = {"intent": "print", "message": "counting", "id": "p"}


def returning(value: Any) -> dict[str, Any]:
    """The action that returns."""
    return {"intent": "return", "data": value}


def write_team(project: Project, *answers: Any, text: str = TEAM) -> Path:
    """The program of a team, and what its model answers beside it."""
    project.write("answers.json", json.dumps(list(answers) or [{"batch": [PRINT, returning({"words": 5})]}]))
    return project.write("team.koi", text)


def record(project: Project, program: str = "team.koi") -> str:
    """The id of a run that was recorded."""
    outcome = project.koi("run", "--answers", "answers.json", "--quiet", program)
    assert outcome.returncode == 0, outcome.stderr
    return next((project.folder / ".koi" / "runs").glob("*.jsonl")).stem
