"""Webhook events of sessions and accounts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from koi_lang.errors import JournalError, KoiError
from koi_lang.events import CallEnded
from koi_lang.runtime.journal.entries import event_data
from koi_lang.runtime.journal.reader import lines
from koi_lang.runtime.journal.store import path_of
from koi_lang.service.accounts import BudgetNews
from koi_lang.service.deliveries import WatchedRuns
from koi_lang.service.store import Database, SessionRow, SessionTable
from koi_lang.service.webhooks import HookEvent, Webhooks
from koi_lang.sessions.client_host import APPROVAL, QUESTION, Message

REQUESTS = {QUESTION: "question.open", APPROVAL: "approval.open"}
# Of a request, what is told of it.
ASKED = ("id", "question", "options", "agent", "what", "detail", "preview", "timeout_s")
ENDED = ("call", "name", "ok", "result", "aborted", "timed_out", "code", "error", "help")


class RunHooks:
    """Tells of ends of calls, of requests that are open, and of budgets, each once.

    Args:
        folder: of the journals.
    """

    def __init__(self, webhooks: Webhooks, database: Database, folder: Path) -> None:
        self.webhooks, self._folder = webhooks, folder
        self._watched, self._sessions = WatchedRuns(database), SessionTable(database)

    def catch_up(self) -> None:
        """Report the ends of runs that were awake when an earlier process was killed."""
        for run, last in self._watched.awake().items():
            row = self._sessions.find(run)
            for number, event in self._ends(run, last) if row is not None else ():
                assert row is not None, "one whose ends are looked for"
                self._tell_end(row, number, event)
            self._watched.note(run, is_awake=False)

    def _ends(self, run: str, last: int) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """The ends of calls behind an entry of a journal."""
        with suppress(JournalError):
            for line in lines(path_of(self._folder, run)):
                entry = line.entry
                if entry is not None and entry.n > last and entry.kind == CallEnded.journal_kind:
                    yield entry.n, event_data(entry, run)

    def begin(self, row: SessionRow) -> None:
        """Note that a run is awake."""
        self._watched.note(row.run)

    def end(self, row: SessionRow) -> None:
        """Note that it sleeps, and all was told."""
        self._watched.note(row.run, is_awake=False)

    def hear(self, row: SessionRow, message: Message) -> None:
        """Hear a message of a session; where it cannot be written down the session goes on."""
        try:
            self._take(row, message)
        except KoiError as error:
            self.webhooks.note(error.message)

    def _take(self, row: SessionRow, message: Message) -> None:
        type = message.get("type")
        if type == "event" and message["event"].get("type") == CallEnded.type and "n" in message:
            self._tell_end(row, message["n"], message["event"])
            self._watched.note(row.run, last=message["n"])
        elif type in REQUESTS:
            asked = {name: message[name] for name in ASKED if name in message}
            self._tell(row, REQUESTS[type], message["id"], {**asked, "request": asked.pop("id")})
        elif type == "session_failed":
            error = message["error"]
            self._tell(row, "run.failed", f"session: {error}", {"ok": False, "error": error})

    def hear_budget(self, news: BudgetNews) -> None:
        """Hear that a part of a budget was taken."""
        about = f"budget.{news.mark}|{news.of}|{news.name}|{news.day}|{news.limit}"
        run = news.name if news.of == "session" else ""
        fields = {"of": news.of, "user": news.owner or None, "day": news.day or None, "limit": news.limit}
        figures = {"percent": news.mark, "taken": news.taken, "most": news.most}
        try:
            self.webhooks.tell(HookEvent(f"budget.{news.mark}", about, run, {**fields, **figures}))
        except KoiError as error:
            self.webhooks.note(error.message)

    def _tell_end(self, row: SessionRow, number: int, event: Mapping[str, Any]) -> None:
        is_failed = not event["ok"] and not event.get("aborted")
        fields = {name: event[name] for name in ENDED if name in event}
        self._tell(row, "run.failed" if is_failed else "run.ended", str(number), fields)

    def _tell(self, row: SessionRow, name: str, which: str, fields: Mapping[str, Any]) -> None:
        about = {"program": row.program, "user": row.owner, "title": row.title}
        self.webhooks.tell(HookEvent(name, f"{name}|{row.run}|{which}", row.run, {**about, **fields}))
