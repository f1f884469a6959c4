"""A prepared program to the sessions of it: their runs, new ones or such that go on, and the models to choose from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from koi_lang.errors import KoiError
from koi_lang.events import Detail
from koi_lang.extensions.collecting import LoadedExtensions, collect_extensions
from koi_lang.llm.connect import connect
from koi_lang.program.error_report import explain
from koi_lang.runtime.budget.limits import Budget, BudgetAccount
from koi_lang.runtime.concurrency.cancellation import GRACE_S
from koi_lang.runtime.events import Consumer
from koi_lang.runtime.host import Host
from koi_lang.runtime.journal.writer import Follow
from koi_lang.sessions.client_host import Client
from koi_lang.sessions.continuation import Continuation
from koi_lang.sessions.earlier_session import BranchPoint, continuation
from koi_lang.sessions.held_run import PreparedRun
from koi_lang.sessions.prepared import Prepared
from koi_lang.sessions.recording import recording
from koi_lang.sessions.trust import Confirm, nobody_confirms, require_trust
from koi_lang.settings.efforts import EFFORTS
from koi_lang.setup.availability import all_reached, list_connections, require_model
from koi_lang.setup.keys.lookup import Keys
from koi_lang.setup.preferences import Preferences, preferences

NO_EXTENSIONS = LoadedExtensions()


class SessionFactory:
    """A program for sessions: makes their runs, with the models, permissions and limits of `koi run`.

    Args:
        note: is told about models, a line each.
        run: id of a new run; empty where it makes its own.
        files: where its files are; None where they are in the folder of the program.
        follow: is told every entry that is written to a journal.
        payer: who pays for its runs beside themselves; None for nobody.

    Attributes:
        agents: of the program, in the order of their declaration.
        choice: the models of its sessions.
        limit: the time that a call may take.
        detail: how much of an event is told.
        is_followed: whether clients are told the entries of its journals, and so need not be told events beside these.
        clean_up_s: how long a call that is ended from outside may clean up.
    """

    def __init__(
        self,
        ready: Prepared,
        note: Callable[[str], None],
        *,
        run: str = "",
        files: Path | None = None,
        follow: Follow | None = None,
        payer: BudgetAccount | None = None,
    ) -> None:
        self._ready, self._note = ready, note
        self._run = run
        self._files = files
        self._follow, self.is_followed = follow, follow is not None
        self._payer = payer
        self.module, self.agents = ready.module, ready.agents
        self.choice = ModelSelection(ready.wanted, is_stood_in=ready.has_stand_in)
        self.limit = Budget(time_s=ready.options.call_time_s)
        self.detail: Detail = "verbose" if ready.options.debug else "detailed"
        self.clean_up_s = GRACE_S

    @property
    def name(self) -> str:
        """The name of the program's file."""
        return Path(self._ready.path).name

    def explain(self, error: BaseException) -> str:
        """An error as a person gets it."""
        return self._ready.redactor()(explain(error, self._ready.folder.as_posix()))

    def read_recorded(
        self,
        run: str,
        at: int | None,
        trusted: bool,
        *,
        answer: str | None = None,
        confirm: Confirm = nobody_confirms,
    ) -> Continuation:
        """The record that a run continues which goes on with a recorded session. Raises KoiError.

        Args:
            trusted: whether it may be one that this machine has not signed.
            answer: what the model, or the person, is to have answered at the entry that it goes back to.
            confirm: asks the person about one.
        """
        trust = partial(require_trust, trusted=trusted, confirm=confirm)
        back = None if at is None else BranchPoint(at, answer)
        return continuation(self._ready, run, back, self._note, trust)

    @contextmanager
    def open_run(self, host: Host, going: Continuation, consumers: Sequence[Consumer]) -> Iterator[PreparedRun]:
        """A context with a run that is recorded, unless the command line says otherwise.

        Args:
            going: what it continues; empty for a new one.
            consumers: are told its events.
        """
        if going.model and not self.choice.name():
            self._go_on_with(going.model)
        if going.effort in EFFORTS and not self.choice.effort():
            self.choice.change_effort(going.effort)
        ready = replace(self._ready, latest=lambda: self.choice.wanted)
        options = ready.options
        found = collect_extensions(ready.extensions) if ready.extensions else NO_EXTENSIONS
        self.choice.providers = found.added.providers
        own: dict[str, Any] = {
            "limits": options.session_limits,
            "detailed": True,
            "added": found.added,
            "payer": self._payer,
        }
        if self._files is not None:
            own |= {"folder": self._files, "service": self._ready.folder}
        if going.history is not None:
            own["today"] = going.today
        own |= {"history": going.history, "id": going.run or self._run, "seed": going.seed}
        run = ready.run(host, consumers, self._note, **own)
        live = ready.make_live(ready, host) if ready.make_live is not None and isinstance(host, Client) else None
        with recording(run, ready, replace(going, follow=self._follow, live=live)) as writer:
            yield PreparedRun(run, writer, found.rpc, live)

    def _go_on_with(self, model: str) -> None:
        """Use the model of an earlier session, unless one has been chosen now."""
        try:
            self.choice.wanted = preferences(model, self.choice.wanted.keys, self.choice.effort())
        except KoiError as error:
            self._note(f"`{model}` cannot be used any more: {error.message}")
        else:
            self._note(f"answers come from {self.choice.name()}, as before")


class ModelSelection:
    """The model that a session uses, and what there is to choose from.

    Args:
        is_stood_in: whether no model outside of this process is to be asked.

    Attributes:
        providers: those that extensions add.
    """

    def __init__(self, wanted: Preferences, *, is_stood_in: bool = False) -> None:
        self.wanted, self._is_stood_in = wanted, is_stood_in
        self.providers: Mapping[str, Any] = {}

    def name(self) -> str:
        """What was chosen; empty where the program or `koi.toml` decides."""
        return self.wanted.model

    async def change(self, model: str) -> None:
        """Use another model from now on. Raises KoiError when it cannot be used, or its provider does not have it."""
        wanted = preferences(model, self.wanted.keys, self.wanted.effort)
        if self._is_stood_in:
            connect(wanted.model_options(), wanted.keys)
        else:
            await require_model(wanted.model_options(), wanted.keys, providers=self.providers)
        self.wanted = wanted

    def effort(self) -> str:
        """How much models are asked to think; empty where the program or `koi.toml` decides."""
        return self.wanted.effort

    def change_effort(self, effort: str) -> None:
        """Have models think so much from now on; empty leaves it to the program and `koi.toml`."""
        self.wanted = replace(self.wanted, effort=effort)

    async def available(self, refresh: bool) -> list[dict[str, Any]]:
        """The models of all providers that are connected."""
        keys: Keys = self.wanted.keys
        found = await all_reached(list_connections(keys, self.wanted.usual), refresh=refresh)
        return [
            {"model": f"{each.provider}/{model.name}", "provider": each.provider, **asdict(model)}
            for each in found
            for model in (each.known.models if each.known else ())
            if model.answers
        ]
