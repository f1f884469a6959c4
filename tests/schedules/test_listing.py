"""`koi service jobs`: what would be started, and when."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from koi_lang.cli.service import job_lines, time_text
from koi_lang.schedules.job import Job
from koi_lang.service.served_jobs import due_starts, serve_jobs
from tests.projects import Project

NOW = datetime(2026, 11, 26, 14, 40, tzinfo=UTC)
JOBS = serve_jobs(
    "desk",
    [
        Job("Reporter", "daily", {}, "every", "weekdays 16:00 Europe/Berlin", "daily"),
        Job("Reporter", "daily", {}, "every", "10m", "often"),
        Job("Triage", "changed", {}, "when", "file docs/*.md", "docs"),
    ],
    "UTC",
)
PROGRAM = """
role Worker { can execute }
agent Reporter : Worker { on daily(args: { top: number }) { console.log("top", args.top) } }
run Reporter.daily({ top: 3 }) every "daily 09:00" { jitter: 30s }
"""


def test_starts_are_listed_in_order() -> None:
    """Those of several jobs, each with its own, to the end of the span."""
    starts = [f"{due:%H:%M} {job.job.name}" for due, job in due_starts(JOBS, NOW, NOW + timedelta(minutes=30))]

    assert ["14:50 often", "15:00 daily", "15:00 often", "15:10 often"] == starts


def test_a_table_tells_when_each_is_due() -> None:
    """By the clocks of its time zone."""
    assert [
        "job         starts                              next",
        "desk/daily  every weekdays 16:00 Europe/Berlin  Thu 2026-11-26 16:00:00 +0100 Europe/Berlin",
        "desk/often  every 10m                           Thu 2026-11-26 14:50:00 +0000 UTC",
        "desk/docs   when file docs/*.md                 -",
    ] == job_lines(JOBS, NOW)
    assert "Fri 2026-07-03 02:00:00 +0200 Europe/Berlin" == time_text(datetime(2026, 7, 3, tzinfo=UTC), JOBS[0])


def test_jobs_of_programs_are_listed(project: Project) -> None:
    """For people and as JSON, with what is due in a span; nothing is started."""
    project.write("desk.koi", PROGRAM)
    project.write("plain.koi", PROGRAM.rpartition("run")[0])

    table, plain = project.koi("service", "jobs", "desk.koi"), project.koi("service", "jobs", "plain.koi")
    data = json.loads(project.koi("service", "jobs", "desk.koi", "--json").stdout)["jobs"][0]
    dry = json.loads(project.koi("service", "jobs", "desk.koi", "--within", "3d", "--json").stdout)["starts"]

    assert "desk/Reporter.daily  every daily 09:00" in table.stdout
    assert "no program is named" in project.koi("service", "jobs").stderr
    project.write("koi.toml", '[serve]\nprograms = ["desk.koi"]\n')
    assert table.stdout == project.koi("service", "jobs").stdout
    assert ("", "there are no jobs\n") == (plain.stdout, plain.stderr)
    assert ("Reporter.daily", {"top": 3}, 30.0, "skip") == (
        data["handler"], data["payload"], data["jitter"], data["overlap"],
    )  # fmt: skip
    assert [data["next"]] == [start["due"] for start in dry[:1]]
    assert 3 == len(dry)


def test_a_program_with_errors_has_no_jobs(project: Project) -> None:
    """They are told as `koi check` tells them."""
    project.write("desk.koi", PROGRAM.replace("daily 09:00", "31 February 09:00"))

    refused = project.koi("service", "jobs", "desk.koi")

    assert 65 == refused.returncode
    assert "`31 February 09:00` never comes [E0461]" in refused.stderr
