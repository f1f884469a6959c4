"""A program that is run again whenever one of its files changes, each time as a branch of the run before."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event, Thread

import click

from koi_lang.cli.options import options_from
from koi_lang.cli.rerunning import RerunOptions, run_again
from koi_lang.cli.running import run_program
from koi_lang.cli.ui.interrupts import BY_SIGNAL
from koi_lang.cli.ui.messages import show_error
from koi_lang.cli.ui.text import count_text
from koi_lang.errors import KoiError, UsageError
from koi_lang.program import cache, loader
from koi_lang.program.source_watch import SourceWatch, content_hash, files_asked_for
from koi_lang.runtime.concurrency.cancellation import CancelScope
from koi_lang.runtime.guidance.instructions import instruction_paths
from koi_lang.runtime.guidance.skill_folders import skill_paths
from koi_lang.runtime.modules.python_neighbours import neighbours
from koi_lang.sessions.continuation import Continuation
from koi_lang.sessions.earlier_run import ReuseMeter
from koi_lang.settings import PROJECT_FILES
from koi_lang.system.text_width import clean

Load = Callable[[], cache.CachedModule]


@dataclass(slots=True)
class Watcher:
    """Runs a program again and again.

    Attributes:
        load: compiles the program. Raises KoiError.
        wanted: the run that the next one is a branch of, empty before the first one, and how it goes on.
        folder: where programs are run.
    """

    file: str
    context: click.Context
    load: Load
    wanted: RerunOptions
    folder: Path = field(default_factory=Path.cwd)
    _code: int = 0

    def run_until_interrupted(self) -> int:
        """Run at every change until the person ends that; gives the exit code. Raises KeyboardInterrupt."""
        if self.context.params["record"] is False:
            raise UsageError("`--watch` goes on from journals, and `--no-record` keeps none")
        while True:
            changed = self._run_once()
            if self._code > BY_SIGNAL:
                return self._code
            self._tell(f"changed: {', '.join(sorted(os.path.relpath(file) for file in changed))}")
            loader.unload()
            neighbours().unload()

    def _run_once(self) -> list[str]:
        """Run until the end, or until a file changes; gives the files that have changed then, or in the time after."""
        try:
            entry = self.load()
        except KoiError as error:
            show_error(error)
            return self._wait(self._watch_of(files_asked_for(self.file)))
        watch = self._watch_of(entry.files)
        changed: list[str] = []
        scope = CancelScope()
        with _following(watch, changed, scope):
            self._code = self._run(entry, scope)
        return changed if changed or self._code > BY_SIGNAL else self._wait(watch)

    def _run(self, entry: cache.CachedModule, scope: CancelScope) -> int:
        meter = ReuseMeter()
        wanted = replace(self.wanted, scope=scope, meter=meter)
        try:
            if wanted.run:
                return run_again(self.file, entry, self.context, wanted)
            options = replace(options_from(self.context.params), record=True)
            return run_program(self.file, entry, options, Continuation(consumers=[meter], scope=scope))
        except KoiError as error:
            show_error(error)
            return 0
        finally:
            self.wanted = replace(self.wanted, run=meter.run or self.wanted.run)

    def _watch_of(self, files: Mapping[str, str | None]) -> SourceWatch:
        """A watch of the program's files as they were read, its settings, and instructions and skills in files."""
        guidance = [*instruction_paths(self.folder, Path(self.file).resolve()), *skill_paths(self.folder)]
        paths = [str(path) for path in (*(self.folder / name for name in PROJECT_FILES), *guidance)]
        return SourceWatch({**files, **{path: content_hash(path) for path in paths}}, neighbours().loaded_files)

    def _wait(self, watch: SourceWatch) -> list[str]:
        self._tell(f"watching {count_text(watch.count, 'file')}; Ctrl-C ends that")
        return watch.wait(Event())

    def _tell(self, line: str) -> None:
        if not self.context.params["quiet"]:
            click.echo(clean(line), err=True)


@contextmanager
def _following(watch: SourceWatch, changed: list[str], scope: CancelScope) -> Iterator[None]:
    """A context whose scope is cancelled when files change, which are added to a list."""
    stop = Event()

    def follow() -> None:
        changed.extend(watch.wait(stop))
        if changed:
            scope.cancel()

    thread = Thread(target=follow, name="koi-watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
