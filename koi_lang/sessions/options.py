"""The options of a run."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from koi_lang.lazy import lazy_module
from koi_lang.redaction.redactor import MAX_FOUND, Redactor, Secrets
from koi_lang.runtime.guards.access_rules import behind_links, is_access_rule, parse_rule
from koi_lang.runtime.guards.permissions import NO_RESTRICTIONS, Restrictions, trust_of
from koi_lang.settings import ProjectSettings, read_settings, variables_in
from koi_lang.settings.lasting_rules import LastingRules
from koi_lang.setup.keys.lookup import Keys

if TYPE_CHECKING:
    from koi_lang.runtime.ports import RunPort
    from koi_lang.settings import project
else:
    project = lazy_module("koi_lang.settings.project")

RULE = re.compile(r"shell|shell:.*\S.*|mcp:[^:\s]+(?::\S.*)?", re.DOTALL)
LIMITS = ("turns", "requests", "tokens", "usd", "time", "concurrency")

_CONNECT = "Connect one with `koi connect`, which keeps a key, or the address of a server of your own"
_REHEARSE = "follows the explicit steps of playbooks without a model."
_NAME = f"{_CONNECT}, or name it with `-m provider/model`"
# What to do about a missing model, by who is told.
EVALUATION_HELP = f"{_NAME}; `--answers FILE` takes answers from a file."
COMMAND_HELP = f"{EVALUATION_HELP} `--rehearse` {_REHEARSE}"
RESUME_HELP = f"{_NAME}; `-m rehearsal` {_REHEARSE}"
PYTHON_HELP = (
    f'{_CONNECT}, or name it with `model="provider/model"`, behind `%%koi` with `-m provider/model`.'
    f" `rehearse=True`, there `--rehearse`, {_REHEARSE}"
)
SERVICE_HELP = (
    "Whoever runs the service connects one with `koi connect`, or names it in `[models]` of `koi.toml`."
    f" With `--rehearse` the service {_REHEARSE}"
)


def is_rule(text: str) -> bool:
    """Whether a text says what is allowed without asking, such as `write:src/**` or `mcp:files:write_*`."""
    return RULE.fullmatch(text) is not None or is_access_rule(text)


@dataclass(frozen=True)
class RunOptions:
    """What a person says about a run, on a command line or from Python.

    Attributes:
        effort: how much models are to think; None leaves it to programs and settings.
        as_result: whether stdout gets the result of the last `run` as JSON, and stderr what the program prints; None
            shows the result to a person at a terminal.
        record: whether a journal is written; None does without where none can be.
        no_extensions: whether installed extensions are left out.
        plain: whether a terminal gets finished lines only.
        missing_model_help: what to do where no model is configured; empty lets a rehearsal stand in there.
        report: gives what a line at the end says of a run beside its cost, such as its changed files, also on a pipe.
        plan: whether agents only look and plan, until the person has accepted a plan.
        settings: of the project whose program is run, read once.
        no_memory: whether agents are told no notes, and none are offered.
        uses_plans: whether frozen plans answer in the place of models.
        user: of a service, who answers in the run; empty for the person at this machine.
        words: of the command line, from the command on, as journals keep them.
        found: secrets that came up by their names; all that is shown and written of the run shares them.
    """

    debug: bool = False
    quiet: bool = False
    answers: str | None = None
    rehearse: bool = False
    allow: Sequence[str] = ()
    limits: Mapping[str, Any] = field(default_factory=dict)
    payload: Mapping[str, Any] = field(default_factory=dict)
    verbose: bool = False
    as_json: bool = False
    as_result: bool | None = None
    record: bool | None = None
    model: str | None = None
    effort: str | None = None
    keys: str | None = None
    no_extensions: bool = False
    plain: bool = False
    report: Callable[[RunPort], str] | None = None
    missing_model_help: str = ""
    plan: bool = False
    no_memory: bool = False
    uses_plans: bool = False
    settings: ProjectSettings = field(default_factory=read_settings)
    words: Sequence[str] = ()
    user: str = ""
    found: Secrets = field(default_factory=lambda: Secrets(most=MAX_FOUND), repr=False)

    @property
    def folder(self) -> Path:
        """The folder of the project, which has the journals of its runs."""
        return self.settings.folder

    @cached_property
    def limits_here(self) -> Mapping[str, Any]:
        """The limits that count in the folder: those of `koi.toml`, then those that were given."""
        return {**self.settings.once(_read_limits), **self.limits}

    @cached_property
    def session_limits(self) -> Mapping[str, Any]:
        """The limits of a session, which lasts as long as its client likes; the time is that of each call."""
        return {name: value for name, value in self.limits_here.items() if name != "time"}

    @cached_property
    def call_time_s(self) -> float | None:
        """The time that a call of a session may take."""
        return self.limits_here.get("time")

    @cached_property
    def granted_here(self) -> Sequence[str]:
        """The rules that were given for a run, and those of `koi.toml`."""
        return (*self.allow, *self.settings.once(_read_allowed))

    @property
    def allowed_here(self) -> list[str]:
        """The rules that count in the folder: given ones and those that the person keeps for it."""
        return [*self.granted_here, *self.kept_rules.rules()]

    @cached_property
    def kept_rules(self) -> LastingRules:
        """The rules that whoever answers in the run keeps for the project."""
        kept = self.settings.once(_find_kept_rules)
        return LastingRules(kept.record.of_user(self.user)) if self.user else kept

    @cached_property
    def restrictions_here(self) -> Restrictions:
        """What the folder denies, and what it has the person asked about. Raises SettingsError."""
        return self.settings.once(_read_restrictions)

    @cached_property
    def lookup(self) -> Keys:
        """Where the models of a run find their keys."""
        given = variables_in(self.keys) if self.keys else {}
        return Keys(self.settings, given=given, found=self.found)

    @cached_property
    def redact(self) -> Redactor:
        """Removes the secrets of a run from a text: keys of its models, and fields of its payload that are secret."""
        return self.lookup.redactor(self.payload)


def require_settings(settings: ProjectSettings) -> None:
    """Raise SettingsError where `koi.toml` says what cannot be meant, also where it does not count yet."""
    whole = settings if settings.is_trusted else replace(settings, is_trusted=True)
    for read in (_read_allowed, _read_restrictions):
        whole.once(read)


def _find_kept_rules(settings: ProjectSettings) -> LastingRules:
    return LastingRules.of(settings.folder)


def _read_limits(settings: ProjectSettings) -> Mapping[str, Any]:
    return project.limits(settings) if settings.has_project_file else {}


def _read_allowed(settings: ProjectSettings) -> Sequence[str]:
    if not settings.has_project_file:
        return ()
    commands = (f"shell:{command}" for command in project.allowed_commands(settings))
    given = project.permissions(settings).allow
    rules = [parse_rule(text, "[permissions] allow").text for text in given]
    free = trust_of(project.trust(settings)).rules()
    return (*rules, *free, *commands, *project.allowed_tools(settings))


def _read_restrictions(settings: ProjectSettings) -> Restrictions:
    if not settings.has_project_file:
        return NO_RESTRICTIONS
    known = project.permissions(settings)
    deny = [parse_rule(text, "[permissions] deny") for text in known.deny]
    ask = [parse_rule(text, "[permissions] ask") for text in known.ask]
    return Restrictions(
        tuple(each for rule in deny for each in (rule, *behind_links(rule, settings.folder))),
        tuple(each for rule in ask for each in (rule, *behind_links(rule, settings.folder))),
        trust_of(project.trust(settings)),
    )
