"""Jobs: the words and options behind a `run`, their names, and payloads that a service can keep."""

from __future__ import annotations

from collections.abc import Iterator

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.codegen.module import job_name
from koi_lang.compiler.constant_data import NoDataError, constant_data
from koi_lang.compiler.declared_types import resolve_type
from koi_lang.compiler.rules.program import handlers
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.diagnostics import nearest
from koi_lang.schedules.job import MAX_JITTER_S, MISSED, OPTIONS, OVERLAPS, ScheduleError
from koi_lang.schedules.schedule import IntervalSchedule
from koi_lang.schedules.triggers import FileTrigger, HookTrigger, parse_trigger
from koi_lang.schedules.words import parse_schedule
from koi_lang.source import Span

CHOICES = {"missed": MISSED, "overlap": OVERLAPS}
# What the event of a changed file brings.
FILE_FIELDS = ("files",)
SAMPLES = {"name": 'write `name: "weekly"`, for example.', "jitter": "write `jitter: 30s`, for example."}


def _jobs(file: Analysis) -> Iterator[tuple[n.Run, n.Job]]:
    return ((run, run.job) for run, _ in file.index.of(n.Run) if run.job is not None)


@rule("E0461", "error")
def job_words(file: Analysis, report: Report) -> None:
    """The words behind `every` or `when` mean no time and no event.

    A schedule is an interval (`15m`, `2h`), days with a time of day (`weekdays 09:00`, `mondays,thursdays 09:00`,
    `1st 08:00`, `last day 18:00`, `24 December 12:00`), `hourly`, or the five fields of cron; a time zone may follow.
    An event is `file` with a pattern, or `hook` with a path. A day that no year has, such as 31 February, is an error,
    too: the job would never start.

    Wrong:

        role Worker { can execute }
        agent Reporter : Worker { on daily(args) { return args } }
        run Reporter.daily({}) every "wekdays 09:00"

    Right:

        role Worker { can execute }
        agent Reporter : Worker { on daily(args) { return args } }
        run Reporter.daily({}) every "weekdays 09:00"
    """
    for _, job in _jobs(file):
        try:
            parse_schedule(job.words.value) if job.trigger == "every" else parse_trigger(job.words.value)
        except ScheduleError as error:
            other = _other_trigger(job)
            span = report.inside(job.words) if job.words.value else job.words.span
            fixes = () if other else report.replacement(*_misspelt(report, span, error))
            report.add(span, str(error), help=other or error.help, fixes=fixes)


def _misspelt(report: Report, words: Span, error: ScheduleError) -> tuple[Span, str | None]:
    """The piece of some words that an error is about, and what was probably meant by it."""
    start = report.source.text.find(error.wrong, words.start, words.end)
    if not error.wrong or start < 0:
        return words, None
    return Span(start, start + len(error.wrong)), error.meant


def _other_trigger(job: n.Job) -> str | None:
    """What to write where the words belong behind the other word."""
    other = "when" if job.trigger == "every" else "every"
    try:
        parse_trigger(job.words.value) if other == "when" else parse_schedule(job.words.value)
    except ScheduleError:
        return None
    return f'write `{other} "{job.words.value}"`.'


@rule("E0462", "error")
def job_option(file: Analysis, report: Report) -> None:
    """An option of a job does not exist, or stands there twice.

    The options behind `every "…"` are `name`, `missed`, `overlap` and `jitter`, those behind `when "…"` are `name` and
    `overlap`.

    Wrong:

        role Worker { can execute }
        agent Reporter : Worker { on daily(args) { return args } }
        run Reporter.daily({}) every "15m" { jiter: 30s }

    Right:

        role Worker { can execute }
        agent Reporter : Worker { on daily(args) { return args } }
        run Reporter.daily({}) every "15m" { jitter: 30s }
    """
    for _, job in _jobs(file):
        known, seen = OPTIONS["every" if job.trigger == "every" else "when"], set[str]()
        for name, _ in job.options:
            if name.name in seen:
                report.add(name.span, f"`{name.name}` stands here twice", help="keep one of them.")
            elif name.name not in known:
                near = nearest(name.name, known)
                listed = ", ".join(f"`{option}`" for option in known)
                help = f"did you mean `{near}`?" if near else f"there are {listed}."
                fixes = report.replacement(name.span, near)
                report.add(name.span, f"`{job.trigger}` has no option `{name.name}`", help=help, fixes=fixes)
            seen.add(name.name)


@rule("E0463", "error")
def job_option_value(file: Analysis, report: Report) -> None:
    """An option of a job has a value that it cannot have.

    `name` is a text, `missed` is `"once"` or `"never"`, `overlap` is `"skip"`, `"wait"` or `"together"`, and `jitter`
    is a duration such as `30s`, shorter than the interval.

    Wrong:

        role Worker { can execute }
        agent Reporter : Worker { on daily(args) { return args } }
        run Reporter.daily({}) every "15m" { missed: "always" }

    Right:

        role Worker { can execute }
        agent Reporter : Worker { on daily(args) { return args } }
        run Reporter.daily({}) every "15m" { missed: "once" }
    """
    for _, job in _jobs(file):
        for name, value in job.options:
            wanted = _form_of_option(name.name, value.value, job)
            if wanted is not None:
                written = report.source.text[value.span.start : value.span.end]
                near = nearest(str(value.value), CHOICES.get(name.name, ()))
                help = f'did you mean `"{near}"`?' if near else SAMPLES.get(name.name)
                fixes = report.replacement(value.span, f'"{near}"' if near else None)
                report.add(value.span, f"`{name.name}` of a job is {wanted}, not `{written}`", help=help, fixes=fixes)


def _form_of_option(option: str, value: object, job: n.Job) -> str | None:
    """What an option has to be, if its value is not that."""
    match option:
        case "missed" | "overlap" if value not in CHOICES[option]:
            *others, last = (f'`"{choice}"`' for choice in CHOICES[option])
            return f"{', '.join(others)} or {last}"
        case "name" if not (isinstance(value, str) and value.strip() and len(value) <= 100 and value.isprintable()):
            return "a text of at most 100 characters"
        case "jitter":
            return _form_of_jitter(value, job)
    return None


def _form_of_jitter(value: object, job: n.Job) -> str | None:
    if not isinstance(value, int | float) or not 0 <= value <= MAX_JITTER_S:
        return "a duration such as `30s`, of a day at most"
    try:
        schedule = parse_schedule(job.words.value)
    except ScheduleError:
        return None
    is_longer = isinstance(schedule, IntervalSchedule) and value >= schedule.seconds
    return f"shorter than `{job.words.value}`" if is_longer else None


@rule("E0464", "error")
def job_twice(file: Analysis, report: Report) -> None:
    """Two jobs of a program have the same name, or listen to the same path.

    A job is called like its handler, unless it has a `name`. The name tells what was started last, so each needs its
    own. Of a message over HTTP nobody could tell which job is meant.

    Wrong:

        role Worker { can execute }
        agent Reporter : Worker { on daily(args) { return args } }
        run Reporter.daily({ top: 3 }) every "daily 09:00"
        run Reporter.daily({ top: 9 }) every "mondays 09:00"

    Right:

        role Worker { can execute }
        agent Reporter : Worker { on daily(args) { return args } }
        run Reporter.daily({ top: 3 }) every "daily 09:00"
        run Reporter.daily({ top: 9 }) every "mondays 09:00" { name: "weekly" }
    """
    names: dict[str, n.Run] = {}
    paths: dict[str, n.Run] = {}
    for run, job in _jobs(file):
        name, path = job_name(run, job), _hook_path(job)
        first = names.setdefault(name, run)
        if first is not run:
            others = [report.place(first.span, "the first one")]
            help = 'give one of them another name: `{ name: "…" }`.'
            report.add(job.span, f"two jobs are called `{name}`", others=others, help=help)
        first = paths.setdefault(path, run) if path else run
        if first is not run:
            others = [report.place(first.span, "the first one")]
            report.add(job.words.span, f"two jobs listen to `{path}`", others=others, help="give one another path.")


def _hook_path(job: n.Job) -> str:
    """The path of a hook; empty for other jobs, and for words that mean nothing."""
    try:
        trigger = parse_trigger(job.words.value) if job.trigger == "when" else None
    except ScheduleError:
        return ""
    return trigger.path if isinstance(trigger, HookTrigger) else ""


@rule("E0465", "error")
def job_payload(file: Analysis, report: Report) -> None:
    """The payload of a job is computed, or an event is given one.

    A service keeps the payload of a job and passes it on at each start, so behind `every` it is data that is written
    out: texts, numbers, `true`, `false`, `null`, lists and objects of these. Behind `when` the event gives the payload.

    Wrong:

        role Worker { can execute }
        agent Reporter : Worker { on daily(args) { return args } }
        run Reporter.daily({ day: new Date().getDay() }) every "daily 09:00"

    Right:

        role Worker { can execute }
        agent Reporter : Worker { on daily(args) { return { ...args, day: new Date().getDay() } } }
        run Reporter.daily({ top: 3 }) every "daily 09:00"
    """
    for run, job in _jobs(file):
        if not run.arguments:
            continue
        if job.trigger == "when":
            help = f'write `run {run.agent.name}.{run.handler.name}() when "…"`.'
            report.add(run.arguments[0].span, "the event gives the payload of this job", help=help)
            continue
        try:
            constant_data(run.arguments[0])
        except NoDataError as error:
            help = "write it out, or compute it in the handler, which is called anew each time."
            report.add(error.node.span, "the payload of a job is kept, so it cannot be computed", help=help)


@rule("E0466", "error")
def event_payload(file: Analysis, report: Report) -> None:
    """A handler needs fields that the event of a changed file does not bring.

    The payload is `{ files: { path: string, change: "added" | "changed" | "removed" }[] }`.

    Wrong:

        role Worker { can execute }
        agent Reporter : Worker { on changed(args: { file: string }) { return args.file } }
        run Reporter.changed() when "file docs/**/*.md"

    Right:

        role Worker { can execute }
        agent Reporter : Worker { on changed(args: { files: { path: string }[] }) { return args.files.length } }
        run Reporter.changed() when "file docs/**/*.md"
    """
    for run, job, type in _event_types(file):
        if type is None or not isinstance(_event(job), FileTrigger):
            continue
        needed = [field.name for field in resolve_type(type, file.table).fields if not field.optional]
        missing = next((name for name in needed if name not in FILE_FIELDS), None)
        if missing is not None:
            help = 'declare `files: { path: string, change: "added" | "changed" | "removed" }[]`.'
            message = f"`{run.handler.name}` needs `{missing}`, which no change of a file brings"
            report.add(run.handler.span, message, help=help)


@rule("E0467", "warning")
def unchecked_hook(file: Analysis, report: Report) -> None:
    """A message over HTTP goes to a handler that declares no type, so nothing checks it.

    The body of the message is checked against the type of the handler's parameter, and refused when it does not fit.

    Wrong:

        role Worker { can execute }
        agent Triage : Worker { on issue(event) { return event.action } }
        run Triage.issue() when "hook /github"

    Right:

        role Worker { can execute }
        agent Triage : Worker { on issue(event: { action: string }) { return event.action } }
        run Triage.issue() when "hook /github"
    """
    for run, job, type in _event_types(file):
        if type is None and isinstance(_event(job), HookTrigger):
            help = f"declare the type of its parameter, as in `on {run.handler.name}(event: {{ action: string }})`."
            report.add(job.words.span, f"`{run.handler.name}` takes any message that comes here", help=help)


def _event(job: n.Job) -> FileTrigger | HookTrigger | None:
    try:
        return parse_trigger(job.words.value)
    except ScheduleError:
        return None


def _event_types(file: Analysis) -> Iterator[tuple[n.Run, n.Job, n.Type | None]]:
    """The jobs of events, with the type that the handler declares for its payload; none without a parameter."""
    for run, job in _jobs(file):
        symbol = file.table.find("agent", run.agent.name)
        if job.trigger == "when" and symbol is not None and isinstance(symbol.node, n.Agent):
            for handler in handlers(symbol.node):
                if handler.name.name == run.handler.name and handler.parameters:
                    yield run, job, handler.parameters[0].type
