"""Jobs of programs: the module that they become, and what the commands make of them."""

from __future__ import annotations

import pytest

from koi_lang.program import declarations
from koi_lang.schedules.job import Job
from tests.projects import Project
from tests.support import diagnostics_of_text

PROGRAM = """
role Worker { can execute }
agent Reporter : Worker {
  on daily(args: { top: number }) { console.log("top", args.top) }
  on changed(args: { files: { path: string, change: string }[] }) { console.log(args.files.length) }
}
"""
JOBS = """
run Reporter.daily({ top: 3 }) every "weekdays 09:00"
run Reporter.changed() when "file docs/**/*.md" { name: "docs" }
"""


def test_the_module_lists_its_jobs(project: Project) -> None:
    """A program with jobs is a Python module like others, which can be asked for them."""
    module = project.load("report.koi", PROGRAM + JOBS)

    assert [
        Job("Reporter", "daily", {"top": 3}, "every", "weekdays 09:00", "Reporter.daily"),
        Job("Reporter", "changed", {}, "when", "file docs/**/*.md", "docs"),
    ] == declarations.jobs_of(module)
    assert ["skip", "wait"] == [job.when_busy for job in declarations.jobs_of(module)]
    assert not hasattr(module, "main")


def test_a_run_passes_over_jobs(project: Project) -> None:
    """What is started at once is run, and one line says who starts the rest."""
    project.write("report.koi", PROGRAM + "run Reporter.daily({ top: 1 })" + JOBS)
    project.write("jobs.koi", PROGRAM + JOBS)

    ran, refused = project.koi("run", "report.koi"), project.koi("run", "jobs.koi")

    assert (0, "top 1\n", "2 jobs are left to `koi serve http report.koi`\n") == (
        ran.returncode,
        ran.stdout,
        ran.stderr,
    )
    assert "its jobs are started by `koi serve http jobs.koi`." in refused.stderr.lower()
    assert 2 == refused.returncode


@pytest.mark.parametrize("name", ["every", "when"])
def test_the_words_of_jobs_are_names_elsewhere(name: str) -> None:
    """Programs that call something `every` or `when` mean what they did."""
    text = f"""
    role Worker {{ can execute }}
    agent A : Worker {{
      state {{ {name}: number = 1 }}
      on {name}({name}: {{ {name}: number }}) {{
        let sum = {name}.{name}
        const list = [{{ {name}: 2 }}].map({name} => {name}.{name})
        console.log(sum, list)
      }}
    }}
    run A.{name}({{ {name}: 1 }})
    """

    assert [] == diagnostics_of_text(text)
