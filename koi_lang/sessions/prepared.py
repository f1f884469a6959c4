"""A program that is loaded, with everything that its runs and sessions need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from koi_lang import settings
from koi_lang.errors import SettingsError, error_of
from koi_lang.extensions import additions, find_extensions
from koi_lang.extensions.finding import Extension
from koi_lang.lazy import lazy_module
from koi_lang.otel.tracing import trace_run
from koi_lang.otel.variables import is_wanted
from koi_lang.program import cache, declarations, loader
from koi_lang.program.error_report import explain
from koi_lang.program.files import absolute
from koi_lang.program.runs import run_of
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.budget.limits import BudgetAccount
from koi_lang.runtime.events import Consumer
from koi_lang.runtime.guards.permissions import NO_RESTRICTIONS, explain_rules
from koi_lang.runtime.host import Host
from koi_lang.runtime.journal.calls import SERVE
from koi_lang.runtime.journal.store import streams_folder
from koi_lang.runtime.journal.writer import Follow
from koi_lang.runtime.mcp.sign_in import SignIn
from koi_lang.runtime.run import Run
from koi_lang.sessions.browser import sign_in_with
from koi_lang.sessions.continuation import LivePort
from koi_lang.sessions.options import RunOptions, require_settings
from koi_lang.setup.preferences import Preferences, preferences
from koi_lang.system.date_and_place import today

if TYPE_CHECKING:
    from koi_lang.llm import sdk_imports, stream_recording
    from koi_lang.llm.messages import Adapter
    from koi_lang.llm.request_trial import Refused
    from koi_lang.llm.stream_recording import StreamStore
    from koi_lang.setup import availability
else:
    stream_recording = lazy_module("koi_lang.llm.stream_recording")
    sdk_imports = lazy_module("koi_lang.llm.sdk_imports")
    availability = lazy_module("koi_lang.setup.availability")


REHEARSAL = "a rehearsal follows the explicit steps of playbooks"
STAND_IN = f"no model is configured, so {REHEARSAL}; `koi connect` connects a model"
NEEDS_MODEL = "a model would be needed for: "
Note = Callable[[str], None]
# Of a `Session`, which stands above this module.
MakeLive = Callable[[Any], LivePort]


def ignore_line(text: str) -> None:
    """Take a line that nobody wants."""


class ModelNeededError(SettingsError, code="E0509"):
    """Real work is to be done, and no model is configured."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A loaded program with what the command line, the folder and the person's settings say about running it.

    Attributes:
        latest: what is wanted by now, where that may change while a run goes on.
        adapter: the model of all agents; None where names decide.
        refused: what models were found not to take of requests, by any run of the program.
        listed: provider, name and address of models whose lists were asked for, by any run of the program.
        agents: those that it declares, in order.
        version: hash of its files.
        asks_models: whether it has playbooks, so that the SDKs of their models are imported as a run begins.
        make_live: makes what lets other processes follow a run of a session; None where none may.
        extensions: of all its runs.
        sign_in: how its runs sign in to MCP servers; None where they cannot.
        is_traced: whether there are traces of its runs.
        note: is told about models in sessions, a line each.
        run_id: id of a new run of a session; empty where it makes its own.
        files: where the files of its runs are; None where they are in the folder of the project.
        followers: are told every entry that is written to a journal of a session.
        payer: who pays for its runs beside themselves; None for nobody.
    """

    module: ModuleType
    entry: cache.CachedModule
    options: RunOptions
    wanted: Preferences
    latest: Callable[[], Preferences] | None = None
    adapter: Adapter | None = None
    refused: Refused = field(default_factory=dict, repr=False)
    listed: set[tuple[str, ...]] = field(default_factory=set, repr=False)
    agents: Sequence[type[Agent]] = ()
    version: str = ""
    asks_models: bool = True
    make_live: MakeLive | None = None
    extensions: Sequence[Extension] = ()
    sign_in: SignIn | None = None
    is_traced: bool = field(default_factory=is_wanted)
    note: Note = ignore_line
    run_id: str = ""
    files: Path | None = None
    followers: Sequence[Follow] = ()
    payer: BudgetAccount | None = None

    @property
    def path(self) -> str:
        """Absolute path of its file."""
        return str(self.module.__file__)

    @property
    def name(self) -> str:
        """The name of its file."""
        return Path(self.path).name

    @property
    def is_service(self) -> bool:
        """Whether its runs are the sessions of a service."""
        return tuple(self.options.words[:1]) == (SERVE,)

    @property
    def folder(self) -> Path:
        """Where it is run."""
        return self.options.folder

    def redactor(self) -> Callable[[str], str]:
        """Takes the secrets of its runs out of a text."""
        return self.options.redact

    def explain(self, error: BaseException) -> str:
        """An error as a person gets it."""
        return self.redactor()(explain(error, self.folder.as_posix()))

    def run(self, host: Host, consumers: Sequence[Consumer], note: Note, **own: Any) -> Run:
        """A run of the program that has not started yet.

        Args:
            note: is told about models, and of rules that allow nothing, a line each.
            own: further fields of `Services`, or others than here.
        """
        usual = {
            "folder": self.files or self.folder,
            "service": self.folder if self.files is not None else None,
            "payer": self.payer,
            "settings": self.options.settings,
            "config": self.options.settings.once(settings.koi_config),
            "limits": self.options.limits_here,
            "allow": self.options.granted_here,
            "restrictions": self.options.restrictions_here,
            "kept_rules": self.options.kept_rules,
            "redact": self.redactor(),
            "plan": self.options.plan,
            "no_memory": self.options.no_memory,
            "plans": Path(self.path).parent if self.options.uses_plans else None,
            "is_served": self.is_service,
            "today": today(settings.variable("TZ")),
            "models": self.wanted.blocks,
            "note": note,
            "note_once": lambda name, line: note_once(name, line, note),
            "sign_in": self.sign_in,
            "connect_embedder": None if self.has_stand_in else lambda llm: self._connect_embedder(llm, run),
        }
        given = {**usual, **own, "added": own.get("added") or additions(self.extensions)}
        if self.is_traced:
            consumers = [*consumers, *trace_run(self.path, self.redactor(), given["note_once"])]
        if self.options.allow or self.options.settings.may_describe_servers:  # else there is nothing to say
            for line in declarations.explain_unused_rules(self.module, self.options.allow, self.options.settings):
                note(line)
        if given["allow"] or given["restrictions"] != NO_RESTRICTIONS:
            for line in explain_rules(given["allow"], given["restrictions"], self.folder):
                note(line)

        reported: set[str] = set()

        def note_option(line: str) -> None:
            if line not in reported:  # blocks of several agents may ask the same of one model
                reported.add(line)
                note(line)

        def connect(llm: Mapping[str, Any]) -> Adapter:
            return self._connect(llm, run, note, note_option)

        if self.asks_models and given.get("history") is None and not self.has_stand_in:
            self._begin_imports()
        run: Run = run_of(self.module, connect, host=host, consumers=consumers, **given)
        return run

    def _begin_imports(self) -> None:
        """Have the SDKs that playbooks need imported while the run begins, and while the person is asked."""
        wanted: list[Mapping[str, Any]] = []

        def note(declared: Callable[[], Mapping[str, Any]]) -> None:
            wanted.append(self.wanted.options(declared())[0])

        for agent in self.agents:
            if any(each.playbook for each in agent.about.handlers.values()):
                # What is wrong with a block is told by its first call.
                error_of(note, agent.about.llm.get("default", dict))
        if wanted:
            sdk_imports.begin_imports(wanted, self.wanted.keys)

    @property
    def has_stand_in(self) -> bool:
        """Whether no model outside of this process is to be asked, but one that was handed in."""
        return self.adapter is not None or self.options.answers is not None or self.options.rehearse

    def _connect_embedder(self, llm: Mapping[str, Any], run: Run) -> Any:
        """The model for embeddings for an `llm` block; `-m` is about answers."""
        return availability.embedder_of(
            llm,
            self.wanted.keys,
            on_event=lambda data: run.events.emit(data),
            ask_for_lists=llm in self.wanted.usual.values(),
            providers=run.added.providers,
        )

    def _connect(self, llm: Mapping[str, Any], run: Run, note: Note, note_option: Note) -> Adapter:
        """The model for an `llm` block; what was handed in goes first, then the command line.

        Args:
            note_option: is told what of the options a model does not take, and which settings do not count.
        """
        if self.adapter is not None:
            return self.adapter
        wanted = self.latest() if self.latest else self.wanted
        chosen, named = wanted.options(llm)
        if self.options.answers is not None:
            chosen = {"provider": "scripted", "answers": self.options.answers}
        elif self.options.rehearse:
            chosen = {"provider": "rehearsal"}
        place = tuple(str(chosen.get(name)) for name in ("provider", "model", "base_url"))
        model = availability.model_of(
            chosen,
            wanted.keys,
            lambda text: note(NEEDS_MODEL + text),
            on_event=lambda data: run.events.emit(data),
            ask_for_lists=named and place not in self.listed,
            providers=run.added.providers,
            note=note_option,
            refused=self.refused,
            streams=self._streams_of(run),
        )
        self.listed.add(place)
        for line in wanted.keys.notes if not self.has_stand_in else ():
            note_option(line)
        if model.provider == "rehearsal":
            is_named = self.options.rehearse or availability.names_rehearsal(chosen)
            is_refused = bool(self.options.missing_model_help) and not is_named
            if not is_refused:
                note(REHEARSAL if is_named else STAND_IN)
            for line in () if is_named else availability.tell_nearby_servers():
                note(line)
            if is_refused:
                message = "no model is configured, and this is no rehearsal"
                raise ModelNeededError(message, help=self.options.missing_model_help)
        return model

    def _streams_of(self, run: Run) -> StreamStore | None:
        """The store of a run's streams beside its journal, on request of the person: KOI_KEEP_STREAMS."""
        is_recorded = run.detailed and self.options.record is not False
        if not is_recorded or settings.variable("KOI_KEEP_STREAMS") != "1":
            return None
        return stream_recording.StreamStore(streams_folder(self.folder, run.id), run.redact, run.host.log)


def prepare_program(
    file: str, entry: cache.CachedModule, options: RunOptions, adapter: Adapter | None = None
) -> Prepared:
    """A compiled program, loaded.

    Args:
        adapter: the model of all its agents; None where names decide.

    Raises:
        KoiError: it cannot be loaded, settings cannot be meant, or a model is named that does not exist.
    """
    require_settings(options.settings)
    wanted = preferences(options.model, options.lookup, options.effort or "")
    module = loader.module_of(absolute(file), None, entry)
    extensions = find_extensions(module, use_installed=not options.no_extensions)
    sign_in = sign_in_with(wanted.keys)
    ready = Prepared(module, entry, options, wanted, adapter=adapter, extensions=extensions, sign_in=sign_in)
    agents = declarations.agents_of(module)
    asks_models = any(handler.playbook for agent in agents for handler in agent.about.handlers.values())
    return replace(ready, agents=agents, version=entry.version(), asks_models=asks_models)


FOLDER = "notes"


def note_once(name: str, line: str, note: Callable[[str], None]) -> None:
    """Tell something once; a file in the folder of caches keeps that it has been told.

    Args:
        name: a name for a file.
    """
    folder = settings.cache_folder() / FOLDER
    with suppress(OSError):  # where nothing can be written it is told again
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / name).exists():
            return
        (folder / name).touch()
    note(line)
