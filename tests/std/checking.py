"""Projects in temporary folders, and what comes of their checks in a run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from koi_lang.llm.scripted import ScriptedModel
from koi_lang.runtime.host import Host
from koi_lang.runtime.run import Run
from koi_lang.runtime.services import Services
from koi_lang.settings import read_settings
from tests.journal.test_ended_commands import is_gone
from tests.limits import LIMIT_S
from tests.running import RecordingHost

Check = Callable[[Any], Awaitable[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class CheckedProject:
    """A folder with the files of a project."""

    folder: Path

    def write(self, files: Mapping[str, str]) -> CheckedProject:
        """Add files with their texts."""
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        return self

    def check(
        self, check: Check, given: Any = None, *, allow: Sequence[str] = ("shell",), host: Host | None = None
    ) -> dict[str, Any]:
        """What a check gives in a run in the folder; without a host nobody can be asked."""
        (result,) = self.check_together([(check, given)], allow=allow, host=host)
        return result

    def check_together(
        self, checks: Sequence[tuple[Check, Any]], *, allow: Sequence[str] = ("shell",), host: Host | None = None
    ) -> list[dict[str, Any]]:
        """What several checks give that are under way at the same time."""

        async def main() -> list[dict[str, Any]]:
            host_of_run = RecordingHost() if host is None else host
            services = Services(
                lambda llm: ScriptedModel([]),
                host_of_run,
                folder=self.folder,
                settings=read_settings(self.folder),
                allow=allow,
            )
            async with Run(services):
                return list(await asyncio.gather(*(check(given) for check, given in checks)))

        return asyncio.run(main())


def summary(result: Mapping[str, Any]) -> tuple[bool, int, int]:
    """What counts of a result."""
    return result["ok"], result["passed"], result["failed"]


def titles(result: Mapping[str, Any]) -> list[str]:
    """What the findings say."""
    return [finding["title"] for finding in result["findings"]]


def wait_until_gone(pid: int) -> None:
    """Wait until a process has ended."""
    end_s = time.monotonic() + LIMIT_S
    while not is_gone(pid):
        assert time.monotonic() < end_s
        time.sleep(0.05)
