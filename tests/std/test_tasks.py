"""Tasks of one list that processes share: each is done by one of them, and once."""

from __future__ import annotations

import subprocess

import pytest

from tests import forks
from tests.limits import LIMIT_S
from tests.projects import Project

PROGRAM = """
import "std/tasks"
role Worker { can execute }
agent Main : Worker {
  on fill(args: { count: int }) { for (const n of Array(args.count).keys()) await addTask(`t${n}`) }
  on work(args: Json) {
    const mine = []
    for (let task = await claimTask("worker"); task !== null; task = await claimTask("worker")) {
      mine.push(task.title)
      await finishTask(task.id)
    }
    console.log(mine.join(" "))
  }
}
run Main.CALL
"""


def share(project: Project, tasks: int, processes: int) -> list[str]:
    """The titles of the tasks that some processes have done, all together."""
    project.write("fill.koi", PROGRAM.replace("CALL", f"fill({{ count: {tasks} }})"))
    project.write("work.koi", PROGRAM.replace("CALL", "work({})"))
    assert "" == project.koi("run", "fill.koi").stderr

    words, pipe = forks.koi("run", "work.koi"), subprocess.PIPE
    workers = [
        subprocess.Popen(words, cwd=project.folder, stdout=pipe, stderr=pipe, text=True) for _ in range(processes)
    ]
    try:
        said = [worker.communicate(timeout=LIMIT_S) for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()
    assert [""] * processes == [errors for _, errors in said]
    return sorted(" ".join(output for output, _ in said).split())


def test_processes_do_not_take_the_same_task(project: Project) -> None:
    """Though both act under one name, and look at the list at the same time."""
    assert sorted(f"t{n}" for n in range(12)) == share(project, 12, 3)


@pytest.mark.thorough
def test_a_thousand_tasks_and_eight_processes(project: Project) -> None:
    """Each is done, and once."""
    assert sorted(f"t{n}" for n in range(1000)) == share(project, 1000, 8)
