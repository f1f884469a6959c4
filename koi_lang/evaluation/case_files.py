"""What `over` names to cases: JSONL, JSON, CSV, or a list in the program."""

from __future__ import annotations

import csv
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from koi_lang.errors import UsageError, reason
from koi_lang.js.json_text import stringify_exactly
from koi_lang.runtime.test_blocks.evals import EvalBlock

# Larger files are no list of cases; the largest of the usual collections have a tenth of it.
MOST_BYTES = 64_000_000


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
        if size > MOST_BYTES:
            told = f"`{name}` has {size / 1e6:,.0f} MB, and a file of cases at most {MOST_BYTES / 1e6:.0f} MB"
            raise CaseFileError(told, help="Split it, or take a part of it.")
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
                told = f"`{name}` has {len(row)} fields in line {reader.line_num}, and line 1 names {len(names)}"
                raise CaseFileError(told, help="Put texts with commas or line breaks into quotes.")
            if row:
                yield dict(zip(names, row, strict=True))
    except csv.Error as error:
        raise CaseFileError(f"`{name}` is no CSV in line {reader.line_num}: {error}") from error


READERS: Mapping[str, Callable[[str, str], Any]] = {".jsonl": _json_lines, ".json": _json_list, ".csv": _csv_rows}
