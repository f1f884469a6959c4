"""Evaluations as logs that `inspect view` reads: one file for each eval, a sample for each case and repeat."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from koi_lang.evaluation.intervals import Interval
from koi_lang.evaluation.records import CaseRecord, total_usage
from koi_lang.evaluation.summary import PASSED, EvalSummary
from koi_lang.events import LinePrinted, ModelAnswered
from koi_lang.runtime.journal import store
from koi_lang.runtime.journal.entries import Redact, plain
from koi_lang.runtime.journal.reader import read
from koi_lang.runtime.journal.totals import UsageTotals
from koi_lang.version import __version__

# Of the format, which the package `inspect-ai` defines.
VERSION = 2
# How its samples say that something has passed or not.
CORRECT, INCORRECT = "C", "I"
UNNAMED = re.compile(r"[^A-Za-z0-9]+")


@dataclass(frozen=True, slots=True)
class InspectedEval:
    """An eval that is to be written as a log.

    Attributes:
        cases: the data of each case, by the numbers of their runs.
        source: the file of its cases, as it is written; empty for a list.
        model: what was asked, as `-m` names it.
        is_whole: whether all its cases have come to their end.
    """

    id: str
    program: str
    started: float
    summary: EvalSummary
    records: Sequence[CaseRecord]
    cases: Mapping[int, Any]
    source: str
    model: str
    is_whole: bool


def write_inspect_log(inspected: InspectedEval, target: Path, folder: Path, redact: Redact) -> Path:
    """Write the log of an eval into the folder `target`; gives its path. Raises OSError.

    Args:
        folder: where the journals of its cases are.
        redact: takes secrets out of a text.
    """
    began = datetime.fromtimestamp(inspected.started, UTC)
    name = UNNAMED.sub("-", inspected.summary.name).strip("-") or "eval"
    path = target / f"{began:%Y-%m-%dT%H-%M-%S}+00-00_{name}_{inspected.id}.json"
    # Before they become texts, as secrets are known by the names of fields.
    inspected = replace(inspected, cases={number: plain(data, redact) for number, data in inspected.cases.items()})
    document = plain(_log(inspected, began, folder), redact)
    path.write_text(json.dumps(document, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return path


def _log(inspected: InspectedEval, began: datetime, folder: Path) -> Mapping[str, Any]:
    records, summary = inspected.records, inspected.summary
    ended = max([began, *(_end_of(folder, record) for record in records)])
    return {
        "version": VERSION,
        "status": "success" if inspected.is_whole else "cancelled",
        "eval": {
            "eval_id": inspected.id,
            "run_id": inspected.id,
            "created": began.isoformat(),
            "task": summary.name,
            "task_id": f"{inspected.id}-{UNNAMED.sub('-', summary.name)}",
            "task_file": inspected.program,
            "dataset": _dataset(inspected),
            "model": inspected.model,
            "config": {"epochs": max(record.repeat for record in records)},
            "packages": {"koi-lang": __version__},
        },
        "results": _results(summary),
        "stats": {
            "started_at": began.isoformat(),
            "completed_at": ended.isoformat(),
            "model_usage": {inspected.model: _usage(total_usage(records))},
        },
        "samples": [_sample(record, inspected, folder) for record in records],
    }


def _end_of(folder: Path, record: CaseRecord) -> datetime:
    path = store.path_of(folder, record.run)
    return datetime.fromtimestamp(path.stat().st_mtime if path.exists() else 0, UTC)


def _dataset(inspected: InspectedEval) -> Mapping[str, Any]:
    ids = list(dict.fromkeys(record.case for record in inspected.records))
    name = Path(inspected.source).stem if inspected.source else inspected.summary.name
    return {"name": name, "location": inspected.source or None, "samples": len(ids), "sample_ids": ids}


def _usage(usage: UsageTotals) -> Mapping[str, Any]:
    known = {} if usage.unpriced else {"total_cost": usage.usd}
    return {"input_tokens": 0, "output_tokens": 0, "total_tokens": usage.tokens, **known}


def _results(summary: EvalSummary) -> Mapping[str, Any]:
    found = {PASSED: summary.rate, **summary.scores}
    scores = [{"name": name, "scorer": name, "metrics": _metrics(value)} for name, value in found.items()]
    return {"total_samples": summary.runs, "completed_samples": summary.runs, "scores": scores}


def _metrics(value: Interval) -> Mapping[str, Any]:
    known = {"mean": value.value, "low_95": value.low, "high_95": value.high}
    return {name: {"name": name, "value": number} for name, number in known.items() if number is not None}


def _sample(record: CaseRecord, inspected: InspectedEval, folder: Path) -> Mapping[str, Any]:
    given = json.dumps(inspected.cases[record.number], ensure_ascii=False)
    printed, answers = _heard(folder, record)
    passed = {"value": CORRECT if record.ok else INCORRECT, "explanation": record.message or None}
    messages = [{"role": "assistant", "content": text} for text in answers]
    return {
        "id": record.case,
        "epoch": record.repeat,
        "input": given,
        "target": "",
        "messages": [{"role": "user", "content": given}, *messages],
        "output": {"model": inspected.model, "choices": [_choice("\n".join(printed))]},
        "scores": {PASSED: passed, **{name: {"value": value} for name, value in record.scores.items()}},
        "metadata": {"run": record.run},
        "model_usage": {inspected.model: _usage(record.usage)},
        "total_time": record.seconds,
        "uuid": record.run,
    }


def _choice(text: str) -> Mapping[str, Any]:
    return {"message": {"role": "assistant", "content": text}, "stop_reason": "stop"}


def _heard(folder: Path, record: CaseRecord) -> tuple[list[str], list[str]]:
    """The printed lines and the answers of models of a case; empty where its journal is gone."""
    path = store.path_of(folder, record.run)
    entries = read(path).entries if path.exists() else ()
    texts: Iterator[tuple[str, str]] = (
        (entry.kind, str(entry.data.get("message" if entry.kind == LinePrinted.type else "text", "")))
        for entry in entries
        if entry.kind in (LinePrinted.type, ModelAnswered.type)
    )
    heard = list(texts)
    return [text for kind, text in heard if kind == LinePrinted.type], [
        text for kind, text in heard if kind == ModelAnswered.type
    ]
