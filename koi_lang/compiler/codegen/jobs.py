"""The runs of a file that a service starts, to one function that lists them."""

from __future__ import annotations

import ast

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.codegen import py_ast as py
from koi_lang.compiler.codegen.agents import place, plain_data
from koi_lang.compiler.constant_data import constant_data

# The names of options in the record of a job, where they are others.
FIELDS = {"jitter": "jitter_s"}


def jobs(file: Analysis) -> list[ast.stmt]:
    """`def koi_jobs()`: a function that gives the jobs of the file in their order; nothing without jobs."""
    pairs = [(run, run.job) for run in file.unit.program.declarations if isinstance(run, n.Run) and run.job]
    if not pairs:
        return []
    at = place(pairs[0][0].span, file)
    listed = ast.Return(ast.List([_job(run, job, file) for run, job in pairs], ast.Load(), **at), **at)
    return [py.function("koi_jobs", py.parameter_list([], (), None, (), at), [listed], at)]


def _job(run: n.Run, job: n.Job, file: Analysis) -> ast.expr:
    """`koi.Job("Agent", "handler", payload, "every", "words", name="…", …, line=1)`."""
    at = place(run.span, file)
    payload = constant_data(run.arguments[0]) if run.arguments else {}
    texts = [py.constant(text, at) for text in (run.agent.name, run.handler.name)]
    when = [py.constant(text, at) for text in (job.trigger, job.words.value)]
    options = {FIELDS.get(name.name, name.name): py.constant(value.value, at) for name, value in job.options}
    given: dict[str, ast.expr] = {"name": py.constant(job_name(run, job), at), **options}
    given["line"] = py.constant(file.unit.source.position(run.span.start).line, at)
    return py.call(py.koi("Job", at), [*texts, plain_data(payload, at), *when], at, **given)


def job_name(run: n.Run, job: n.Job) -> str:
    """What a job is called: its option `name`, else its handler."""
    given = (value.value for name, value in job.options if name.name == "name" and isinstance(value, n.Text))
    return next(given, f"{run.agent.name}.{run.handler.name}")
