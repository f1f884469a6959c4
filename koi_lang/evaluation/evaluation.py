"""The evals of a program to the cases that are carried out, side by side in several processes, within a budget."""

from __future__ import annotations

import csv
import hashlib
import json
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

from koi_lang.errors import UsageError, reason
from koi_lang.evaluation.case_run import CaseAnswers, CaseRun, EvalOutcome, has_header
from koi_lang.evaluation.records import CaseRecord, record_of
from koi_lang.js.json_text import stringify_exactly
from koi_lang.runtime.journal import store
from koi_lang.runtime.journal.summary import summarise
from koi_lang.runtime.test_blocks.evals import EvalBlock
from koi_lang.sessions.prepared import Prepared
from koi_lang.testing.pool import results


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of an evaluation.

    Attributes:
        blocks: the evals that were chosen.
        cases: in their order, each as often as it is to be carried out.
        digest: tells whether the cases have changed.
    """

    id: str
    blocks: list[EvalBlock]
    cases: list[CaseRun]
    digest: str


def plan_evaluation(
    id: str, ready: Prepared, blocks: list[EvalBlock], answers: CaseAnswers | None, most: int | None
) -> Plan:
    """The cases of some evals of a program.

    Args:
        most: how many cases of each eval are taken, the first ones; None for all.

    Raises:
        UsageError: cases or their answers cannot be read.
    """
    path, planned = Path(ready.path), list[CaseRun]()
    for block in blocks:
        for case in cases_of(block, path)[:most]:
            for repeat in range(1, block.times + 1):
                about = {"evaluation": id, "eval": block.name, "id": case.id, "repeat": repeat, "key": case.key}
                given = None if answers is None or block.gives_model else answers.pick(case.id, repeat)
                about["data"] = case.data
                planned.append(CaseRun(path, len(planned) + 1, about, ready.options, given))
    keys = [f"{case.name}: {case.case['key']}: {case.case['repeat']}" for case in planned]
    return Plan(id, blocks, planned, hashlib.sha256("\n".join(keys).encode()).hexdigest())


@dataclass(slots=True)
class EvalBudget:
    """The money that an evaluation may spend; None is no limit.

    Attributes:
        spent: by the numbers of cases.
        open: what cases that are under way may spend at the most.
    """

    usd: float | None
    spent: dict[int, float] = field(default_factory=dict)
    open: dict[int, float] = field(default_factory=dict)

    @property
    def total(self) -> float:
        """The spending so far."""
        return sum(self.spent.values())

    @property
    def is_spent(self) -> bool:
        """Whether nothing is left."""
        return self.usd is not None and self.total >= self.usd

    def reserve(self, number: int, idle: int) -> float | None:
        """The budget of a case: an equal share of the rest for each waiting process."""
        if self.usd is None:
            return None
        share = max(0.0, self.usd - self.total - sum(self.open.values())) / idle
        self.open[number] = share
        return share

    def settle(self, number: int, usd: float) -> None:
        """Count the spending of a case, over its whole run."""
        self.open.pop(number, None)
        self.spent[number] = usd


@dataclass(slots=True)
class Evaluation:
    """An evaluation while it goes on.

    Attributes:
        left: cases that are to be carried out.
        stuck: cases whose runs cannot go on, each with why.
        is_out_of_money: whether cases are left because of the budget.
        refusal: why no case can be carried out; empty while that is not known.
    """

    budget: EvalBudget
    left: deque[CaseRun]
    stuck: list[tuple[CaseRun, str]] = field(default_factory=list)
    is_out_of_money: bool = False
    refusal: str = ""

    def carry_out(self, *, jobs: int, timeout_s: float) -> Generator[CaseRecord]:
        """Run the remaining cases; yields each record at its end.

        A case that its share of the budget has stopped goes on alone, with all that is left of it.
        """
        yield from self._carry_out(min(jobs, len(self.left)), timeout_s)
        if self.is_out_of_money and jobs > 1 and not self.budget.is_spent and not self.refusal:
            self.is_out_of_money = False
            yield from self._carry_out(1, timeout_s)

    def _carry_out(self, jobs: int, timeout_s: float) -> Iterator[CaseRecord]:
        arriving = results(self._hand_out(jobs), jobs=jobs, timeout_s=timeout_s, is_hermetic=False)
        with closing(arriving):
            for result in arriving:
                case, outcome = result.case, result.outcome
                assert isinstance(case, CaseRun)
                known = outcome if isinstance(outcome, EvalOutcome) else EvalOutcome(False, message=outcome.message)
                self.budget.settle(case.number, known.usage.usd)
                if known.end == "over":
                    yield record_of(case, known)
                elif known.end == "stuck":
                    self.stuck.append((case, known.message))
                else:
                    self.left.appendleft(case)
                    self.is_out_of_money |= known.end == "budget"
                    self.refusal = self.refusal or (known.message if known.end == "refused" else "")

    def _hand_out(self, jobs: int) -> Iterator[CaseRun]:
        while self.left and not (self.is_out_of_money or self.refusal):
            self.is_out_of_money = self.budget.is_spent
            if not self.is_out_of_money:
                case = self.left.popleft()
                yield replace(case, usd=self.budget.reserve(case.number, jobs - len(self.budget.open)))


def spent_before(cases: Iterable[CaseRun], folder: Path) -> dict[int, float]:
    """The spending of cases with interrupted runs, by their numbers."""
    paths = ((case.number, store.path_of(folder, case.id)) for case in cases)
    return {number: summarise(path).totals.usd for number, path in paths if has_header(path)}


# Larger files are no list of cases; the largest of the usual collections have a tenth of it.
MAX_BYTES = 64_000_000


class CaseFileError(UsageError):
    """The cases of an eval cannot be read."""


@dataclass(frozen=True, slots=True)
class EvalCase:
    """A case of an eval.

    Attributes:
        id: its own field `id` where all cases have one and no two the same, else its number.
        data: what `case` stands for, as JSON knows it.
        key: tells by its content which case of another time is the same.
    """

    id: str
    data: Any
    key: str


def cases_of(block: EvalBlock, program: Path) -> list[EvalCase]:
    """The cases of an eval, in their order. Raises CaseFileError, which names the line."""
    if isinstance(block.over, str):
        return _with_ids(_read(program.parent / block.over, block.over))
    return _with_ids([{}] if block.over is None else json.loads(str(stringify_exactly(block.over))))


def _with_ids(found: Sequence[Any]) -> list[EvalCase]:
    own = [str(data["id"]) if _has_id(data) else "" for data in found]
    has_ids = all(own) and len(set(own)) == len(own)
    keys: Counter[str] = Counter()
    cases = []
    for number, data in enumerate(found, 1):
        key = hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]
        keys[key] += 1  # the same case twice is two cases
        again = f"-{keys[key]}" if keys[key] > 1 else ""
        cases.append(EvalCase(own[number - 1] if has_ids else str(number), data, key + again))
    return cases


def _has_id(data: Any) -> bool:
    id = data.get("id") if isinstance(data, dict) else None
    return isinstance(id, str | int) and not isinstance(id, bool)


# ---------------------------------------------------------------- files


def _read(path: Path, name: str) -> list[Any]:
    read = READERS.get(path.suffix.lower())
    if read is None:
        known = ", ".join(f"`{suffix}`" for suffix in READERS)
        raise CaseFileError(f"`{name}` is no file of cases", help=f"Cases are in files that end with {known}.")
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            message = f"`{name}` has {size / 1e6:,.0f} MB, and a file of cases at most {MAX_BYTES / 1e6:.0f} MB"
            raise CaseFileError(message, help="Split it, or take a part of it.")
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        help = "The path is seen from the file with the eval."
        raise CaseFileError(f"the cases in `{name}` cannot be read: {reason(error)}", help=help) from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise CaseFileError(f"`{name}` is no UTF-8 in line {line}", help="Save it as UTF-8.") from error
    cases = list(read(text, name))
    if not cases:
        raise CaseFileError(f"there are no cases in `{name}`", help='Write one case a line, such as `{"name": "Ada"}`.')
    return cases


def _json_lines(text: str, name: str) -> Iterator[Any]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield _load_json(line)
            except (ValueError, RecursionError) as error:
                _refuse(name, number, error)


def _json_list(text: str, name: str) -> Sequence[Any]:
    try:
        found = _load_json(text) if text.strip() else []
    except json.JSONDecodeError as error:
        _refuse(name, error.lineno, error)
    except (ValueError, RecursionError) as error:
        _refuse(name, 1, error)
    if not isinstance(found, list):
        raise CaseFileError(
            f"`{name}` holds no list of cases", help='Write `[{"name": "Ada"}, …]`, or one case a line.'
        )
    return found


def _load_json(text: str) -> Any:
    return json.loads(text, parse_constant=_refuse_constant)


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")


def _refuse(name: str, line: int, error: Exception) -> NoReturn:
    why = error.msg if isinstance(error, json.JSONDecodeError) else error
    why = "it is nested too deeply" if isinstance(error, RecursionError) else why
    help = "A file `.jsonl` has one JSON value a line, a file `.json` one list of them."
    raise CaseFileError(f"`{name}` is no JSON in line {line}: {why}", help=help) from error


def _csv_rows(text: str, name: str) -> Iterator[Mapping[str, str]]:
    reader = csv.reader(text.splitlines(keepends=True), strict=True)
    try:
        names = next(reader, [])
        if len(set(names)) < len(names) or not all(names):
            raise CaseFileError(f"`{name}` does not name every column once in line 1", help="Name the columns.")
        for row in reader:
            if len(row) not in (0, len(names)):
                message = f"`{name}` has {len(row)} fields in line {reader.line_num}, and line 1 names {len(names)}"
                raise CaseFileError(message, help="Put texts with commas or line breaks into quotes.")
            if row:
                yield dict(zip(names, row, strict=True))
    except csv.Error as error:
        raise CaseFileError(f"`{name}` is no CSV in line {reader.line_num}: {error}") from error


READERS: Mapping[str, Callable[[str, str], Any]] = {".jsonl": _json_lines, ".json": _json_list, ".csv": _csv_rows}
