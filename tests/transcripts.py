"""Terminal sessions on pages: their commands are run, and what comes is held against what is written there."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pexpect

from tests import forks
from tests.projects import LIMIT_S, Project

# What differs from run to run, or with the length of prompts, and `…` for what is left out: lines where it is one.
VARIES = re.compile(
    r"(?P<lines>^[│ ]*…\n)|(?P<text>…)|(?P<id>\b[0-9a-f]{12}\b)|(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)"
    r"|(?P<seconds>\b\d+\.\d+ ?s\b)|(?P<tokens>\b(?:\d{1,3},)?\d{3,4}\b)",
    re.MULTILINE,
)
ANYTHING = {
    "lines": r"(?:.*\n)*?",
    "text": r".*?",
    "id": r"([0-9a-f]{12})",
    "time": r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d",
    "seconds": r"\d+\.\d+ ?s",
    "tokens": r"(?:\d{1,3},)?\d{3,4}",
}
# A question at a terminal, with what the page has the person answer.
ANSWERED = re.compile(r"^(.*\?) (\S+)$", re.MULTILINE)
KILLED = "Killed\n"


@dataclass(frozen=True, slots=True)
class Step:
    """A command of a session, and what the page shows of its output."""

    command: str
    told: str


def steps(session: str) -> list[Step]:
    """The commands of a session: each stands behind `$ `, what it writes below it."""
    parts = re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]
    return [Step(*part.split("\n", 1)) for part in parts]


@dataclass(slots=True)
class Terminal:
    """A folder in which the commands of a page are run, one after the other.

    Attributes:
        ids: those of runs, as the page calls them, to what they are here.
    """

    project: Project
    ids: dict[str, str] = field(default_factory=dict)

    def run(self, step: Step) -> str:
        """What a command writes on both streams, in the words of the page where only such things differ as always do.

        What ends with a line `Killed` is killed while it asks the person, without an answer; what is `--plain` is run
        at a terminal, and is answered what the page answers.
        """
        command = re.sub(r"\b[0-9a-f]{4,12}\b", self._own_id, step.command)
        if step.told.endswith(KILLED):
            text = self._kill(command, step.told.removesuffix(KILLED).count("\n")) + KILLED
        elif "--plain" in command:
            text = self._answer(command, dict(ANSWERED.findall(step.told)))
        else:
            text = self._pipe(command)
        return self._in_words_of(step.told, re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE))

    def _own_id(self, found: re.Match[str]) -> str:
        return next((own for id, own in self.ids.items() if id.startswith(found[0])), found[0])

    def _in_words_of(self, told: str, text: str) -> str:
        pattern, ids, end = "", [], 0
        for found in VARIES.finditer(told):
            pattern += re.escape(told[end : found.start()]) + ANYTHING[found.lastgroup or ""]
            ids += [found["id"]] if found["id"] else []
            end = found.end()
        match = re.fullmatch(pattern + re.escape(told[end:]), text)
        if match is None:
            return text
        self.ids |= dict(zip(ids, match.groups(), strict=True))
        return told

    def _pipe(self, command: str) -> str:
        with self._path_to(forks.python()) as environment:
            done = subprocess.run(
                ["bash", "-c", command], cwd=self.project.folder, env=environment, timeout=LIMIT_S, check=False,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
            )  # fmt: skip
        return done.stdout

    def _kill(self, command: str, lines: int) -> str:
        with (
            self._path_to([sys.executable]) as environment,
            subprocess.Popen(
                ["bash", "-c", command], cwd=self.project.folder, env=environment, start_new_session=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
            ) as process,
        ):  # fmt: skip
            assert process.stdout is not None
            text = "".join(process.stdout.readline() for _ in range(lines))
            self._wait_for_question()
            os.killpg(process.pid, signal.SIGKILL)
        return text

    def _wait_for_question(self) -> None:
        deadline = time.monotonic() + LIMIT_S
        newest = max(self.project.folder.glob(".koi/runs/*.jsonl"), key=lambda path: path.stat().st_mtime_ns)
        while '"asked"' not in newest.read_text("utf-8"):
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def _answer(self, command: str, answers: dict[str, str]) -> str:
        events = {re.escape(question) + " ": f"{answer}\n" for question, answer in answers.items()}
        with self._path_to(forks.python()) as environment:
            text = pexpect.run(
                shlex.join(["bash", "-c", command]), cwd=str(self.project.folder), env=environment, encoding="utf-8",
                timeout=LIMIT_S, events=events, dimensions=(50, 120),
            )  # fmt: skip
        return str(text).replace("\r\n", "\n")

    @contextmanager
    def _path_to(self, python: list[str]) -> Iterator[dict[str, str]]:
        """The environment of commands that find `koi` by a Python of these words."""
        commands = self.project.folder.parent / "commands"
        commands.mkdir(exist_ok=True)
        # A forked Python has imported plugins of pytest, which then warns that it cannot rewrite them.
        for name, words in {"koi": [*python, *forks.KOI], "python": [sys.executable]}.items():
            (commands / name).write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', "utf-8")
            (commands / name).chmod(0o755)
        path = os.pathsep.join((str(commands), os.environ["PATH"]))
        # Lines come in the order in which they are written, as at a terminal.
        ordered = {**self.project.environment, "PYTHONUNBUFFERED": "1"}
        # Of the plugins for pytest only ours is loaded, and that for tests that are coroutines.
        plugins = "koi_lang.testing.pytest_plugin,anyio.pytest_plugin"
        yield {**ordered, "PATH": path, "PYTEST_PLUGINS": plugins}
