"""Playbooks with seeded faults, and what `koi check` says of them: which faults it finds, and what it finds beside."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from koi_lang.diagnostics import Diagnostic
from koi_lang.source import Span
from tests.support import HERE, diagnostics_of_text

FOLDER = HERE / "data" / "prose"
MARKED = re.compile("⟦(.*?)⟧", re.DOTALL)
# Which warnings a fault of a kind may have; E0316 to E0318 and E0322 are about braces, too.
CODES: Mapping[str, frozenset[str]] = {
    "name": frozenset({"E0621"}),
    "result": frozenset({"E0622", "E0625"}),
    "permission": frozenset({"E0623", "E0624"}),
    "value": frozenset({"E0626"}),
    "braces": frozenset({"E0627", "E0316", "E0317", "E0318", "E0322"}),
}
ALL = frozenset().union(*CODES.values())


@dataclass(frozen=True, slots=True)
class SeededPlaybook:
    """A playbook in its program, and the fault in it.

    Attributes:
        kind: of the fault; empty where nothing is wrong.
    """

    program: str
    kind: str
    text: str
    fault: Span | None

    @property
    def source(self) -> str:
        """The whole program."""
        return _programs()[self.program].replace("PLAYBOOK", self.text)

    def warnings(self) -> list[Diagnostic]:
        """What `koi check` says of it, apart from what is about other things."""
        return [each for each in diagnostics_of_text(self.source, {}) if each.code in ALL]


@dataclass(frozen=True, slots=True)
class Figures:
    """How many playbooks have a fault, in how many it was found, how many have none, how many warnings are wrong."""

    faults: int
    found: int
    sound: int
    wrong: int

    @property
    def recall(self) -> float:
        """The share of faults that are found."""
        return self.found / self.faults

    @property
    def precision(self) -> float:
        """The share of warnings that are right."""
        return self.found / (self.found + self.wrong)


@cache
def _programs() -> dict[str, str]:
    return tomllib.loads((FOLDER / "programs.toml").read_text("utf-8"))


def playbooks(name: str) -> Iterator[SeededPlaybook]:
    """The playbooks of a file of the corpus, `tuned` or `held_out`."""
    for each in tomllib.loads((FOLDER / f"{name}.toml").read_text("utf-8"))["playbooks"]:
        program, kind, text = each["program"], each.get("kind", ""), each["text"].strip("\n")
        begin = _programs()[program].index("PLAYBOOK")
        marked = MARKED.search(text)
        fault = Span(begin + marked.start(), begin + marked.end() - 2) if marked else None
        yield SeededPlaybook(program, kind, MARKED.sub(r"\1", text), fault)


def judge(playbook: SeededPlaybook) -> tuple[bool, list[tuple[str, Span]]]:
    """Whether the fault of a playbook was found, and the warnings that are not about it."""
    wrong, is_found = [], False
    for warning in playbook.warnings():
        code, span, fault = warning.code, warning.place.span, playbook.fault
        is_hit = (
            fault is not None and code in CODES[playbook.kind] and span.start < fault.end and fault.start < span.end
        )
        is_found |= is_hit
        wrong += [] if is_hit else [(code, span)]
    return is_found, wrong


def measure(corpus: Sequence[SeededPlaybook]) -> Figures:
    """How well faults are found in some playbooks."""
    judged = [judge(playbook) for playbook in corpus]
    faults = sum(playbook.fault is not None for playbook in corpus)
    found, wrong = sum(is_found for is_found, _ in judged), sum(len(others) for _, others in judged)
    return Figures(faults, found, len(corpus) - faults, wrong)
