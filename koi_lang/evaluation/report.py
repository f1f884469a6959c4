"""The report of cases and evals, as lines for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from koi_lang.evaluation.intervals import Interval, PairedDifference
from koi_lang.evaluation.records import CaseRecord
from koi_lang.evaluation.summary import PASSED, EvalComparison, EvalSummary
from koi_lang.system.text_width import clean

RED = "\x1b[31m"
GREEN = "\x1b[32m"
PLAIN = "\x1b[0m"
MIN_SHOWN = 0.001


def case_line(record: CaseRecord, times: int, *, colour: bool) -> str:
    """A case on a line: `passed greets politely: ada 2/3 (0.01 s), politeness 0.8`."""
    word, shade = ("passed", GREEN) if record.ok else ("failed", RED)
    repeat = f" {record.repeat}/{times}" if times > 1 else ""
    scores = "".join(f", {name} {value:.4g}" for name, value in record.scores.items())
    line = clean(f"{' '.join(record.eval.split())}: {' '.join(record.case.split())}{repeat}")
    return f"{f'{shade}{word}{PLAIN}' if colour else word} {line} ({record.seconds:.2f} s){clean(scores)}"


def failure_lines(record: CaseRecord, reasons: dict[str, str]) -> Iterator[str]:
    """The reasons of a failed case, and the command to inspect its run; repeated reasons are shortened.

    Args:
        reasons: the runs that reasons were told of, by these; the one of this case is added.
    """
    known = reasons.setdefault(record.message, record.run)
    if known != record.run:
        yield f"  as `{known}`; `koi runs show {record.run}` shows what happened"
        return
    yield from (f"  {line}".rstrip() for line in clean(record.message).split("\n"))
    yield f"  `koi runs show {record.run}` shows what happened"


def summary_lines(summary: EvalSummary, comparison: EvalComparison | None, *, colour: bool) -> Iterator[str]:
    """The summary of an eval, and its difference from an earlier time."""
    yield ""
    runs = f" ({summary.passed:,} of {summary.runs:,} runs passed)" if summary.runs > summary.rate.cases else ""
    yield f"{clean(' '.join(summary.name.split()))}: {_cases(summary.rate.cases)}{runs}"
    rows = [(PASSED, _percent(summary.rate)), *((name, _decimal(each)) for name, each in summary.scores.items())]
    differences = {} if comparison is None else comparison.differences
    width = max(len(name) for name, _ in rows)
    for name, text in rows:
        yield f"  {clean(name.ljust(width))}  {text}{_difference(name, differences)}"
    if comparison is not None and comparison.unpaired:
        yield f"  {_cases(comparison.unpaired)} not in both, and not compared"
    if summary.accept is not None:
        word, shade = ("missed", RED) if summary.is_missed else ("reached", GREEN)
        shown = f"{shade}{word}{PLAIN}" if colour else word
        yield f"  {summary.accept:.1%} had to pass: {shown}".replace(".0%", "%").replace("%", " %")


def _cases(number: int) -> str:
    return f"{number:,} case{'' if number == 1 else 's'}"


def _percent(rate: Interval) -> str:
    low, high = rate.low or 0.0, 1.0 if rate.high is None else rate.high
    return f"{100 * rate.value:.1f} % (95 % interval {100 * low:.1f} to {100 * high:.1f} %)"


def _decimal(mean: Interval) -> str:
    interval = "" if mean.low is None or mean.high is None else f" (95 % interval {mean.low:.4g} to {mean.high:.4g})"
    return f"{mean.value:.4g}{interval}"


def _difference(name: str, differences: Mapping[str, PairedDifference]) -> str:
    """The difference, and whether it may be chance; empty without a comparison."""
    found = differences.get(name)
    if found is None:
        return ""
    value = f"{100 * found.value:+.1f} points" if name == PASSED else f"{found.value:+.4g}"
    p = f"p = {found.p:.3f}" if found.p >= MIN_SHOWN else f"p < {MIN_SHOWN}"
    return f"; {value}, {'more than chance' if found.is_more_than_chance else 'may be chance'} ({p})"
