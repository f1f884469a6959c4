"""Programs that change while they are served: their jobs do, too."""

from __future__ import annotations

import asyncio
from pathlib import Path

from koi_lang.service.job_service import JobService
from koi_lang.service.programs import Programs
from koi_lang.sessions.options import RunOptions
from koi_lang.settings import read_settings
from tests.schedules.service import Runs, SetClock, serving

PROGRAM = """
role Worker { can execute }
agent Reporter : Worker { on daily(args: { top: number }) { console.log("top", args.top) } }
run Reporter.daily({ top: 3 }) every "hourly"
"""


def test_jobs_of_a_program_that_changes(tmp_path: Path) -> None:
    """Those that are gone are not started, new ones are, and what others have begun is not begun again."""
    versions = PROGRAM, PROGRAM + 'run Reporter.daily({ top: 9 }) every "daily 10:30" { name: "late" }'

    def programs(version: int) -> Programs:
        path = tmp_path / str(version) / "desk.koi"
        path.parent.mkdir()
        path.write_text(versions[version], "utf-8")
        return Programs([str(path)], RunOptions(settings=read_settings(tmp_path)))

    async def play() -> None:
        async with serving(tmp_path, SetClock("2026-11-26 08:50"), Runs()) as service:
            served, others = programs(0), programs(1)
            jobs = JobService(served, service.scheduler, {}, "UTC", service.lines.append)
            jobs.reload()
            assert 1 == await service.at("2026-11-26 09:00")
            await service.runs.end()
            old, served.find("desk").ready = served.find("desk").ready, others.find("desk").ready
            jobs.reload_if_changed()
            assert [1, 3] == [await service.at(f"2026-11-26 {time}") for time in ("09:00", "10:30")]
            await service.runs.end()
            served.find("desk").ready = old
            jobs.reload_if_changed()
            jobs.reload_if_changed()
            assert 4 == await service.at("2026-11-27 10:30")
            assert ["1 job is", "2 jobs are", "1 job is"] == [line.partition(" started")[0] for line in service.lines]

    asyncio.run(play())
