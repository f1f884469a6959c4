"""Scripted answers for the cases of an evaluation: the same ones anew for each, or those of a case by its id."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from koi_lang.errors import SettingsError
from koi_lang.llm.scripted import Answers, read_answers, require_answers

# The only field of an object that gives answers by cases.
CASES = "cases"
MAX_NAMED = 6


@dataclass(frozen=True, slots=True)
class CaseAnswers:
    """The answers in a file.

    Attributes:
        common: begin anew for each case; None where there are such `by_case`.
        by_case: by the id of a case, or `ID N` for the n-th time that it is carried out.
    """

    path: Path
    common: Answers | None
    by_case: Mapping[str, Any]

    def pick(self, case: str, repeat: int) -> Answers:
        """The answers for a case, the n-th time that it is carried out. Raises SettingsError where there are none."""
        if self.common is not None:
            return self.common
        for key in (f"{case} {repeat}", case):
            if key in self.by_case:
                return require_answers(self.by_case[key], f"{self.path}: {key}")
        known = ", ".join(f"`{key}`" for key in list(self.by_case)[:MAX_NAMED])
        raise SettingsError(f"`{self.path}` has no answers for the case `{case}`", help=f"It has some for {known}.")


def read_case_answers(path: Path) -> CaseAnswers:
    """The answers in a file: as `koi run --answers` takes them, or `{"cases": {ID: ANSWERS, "ID N": ANSWERS}}`.

    Raises:
        SettingsError: the file cannot be read or holds something else.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8")) if path.suffix != ".jsonl" else None
    except (OSError, ValueError):
        found = None  # told by the reader of other answers
    if isinstance(found, dict) and list(found) == [CASES] and isinstance(found[CASES], dict):
        return CaseAnswers(path, None, found[CASES])
    return CaseAnswers(path, read_answers(path), {})
