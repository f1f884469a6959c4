"""A playbook turned into steps, and steps into the deeds they come to in a scene."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from koi_lang.llm.rehearsal import delegation_forms, dialog_forms, return_forms, state_forms
from koi_lang.llm.rehearsal.languages import compile_words
from koi_lang.llm.rehearsal.patterns import matches, verbs
from koi_lang.llm.rehearsal.phrase_values import PhraseParts, as_number
from koi_lang.llm.rehearsal.sentences import Sentence, sentences_of, without_lead
from koi_lang.llm.rehearsal.state import ProposedAction, RehearsalState, UnclearSentenceError
from koi_lang.llm.rehearsal.written_actions import fill_in, ids_in, written_actions

# Importing these fills the table.
FORMS = (dialog_forms, state_forms, delegation_forms, return_forms)
MOST_REPETITIONS = 1000
CONDITION = r"\b{condition}\b"
ASKS_IF = r"\b{asks_if}\b"
NEGATION = r"{negation}\b"
_COUNT = r"(?P<count>\S+?|\S+ \S+)"
REPEAT = (rf"{{repeat}} {_COUNT} {{times}}\s*[:,]?\s*(?P<rest>.*)", rf"{_COUNT} {{times}}\s*[:,]\s*(?P<rest>.*)")
TWO_THINGS = r"(?P<ask>{asks} .*?)(?P<own>{own}) (?P<first>\w+(?: \w+)?) {and} (?:(?P=own) )?(?P<second>\w+(?: \w+)?)"
SUFFIX = r"(?P<rest>.+?),? (?:(?P<count>\S+) {times}|(?P<word>once|twice))"
JOINT = r"\s*(?:,|;|\b)\s*{joint}\s+"


@dataclass(frozen=True, slots=True)
class PlaybookStep:
    """One thing a playbook says to do.

    Attributes:
        action: where it is written out as an action.
        ids: what the actions written out in the playbook are called.
    """

    sentence: Sentence
    action: Mapping[str, Any] | None = None
    ids: frozenset[str] = frozenset()

    @property
    def source(self) -> str:
        """How the playbook says it."""
        return self.sentence.source

    def action_for(self, scene: RehearsalState) -> ProposedAction:
        """The action that this step proposes.

        Raises:
            UnclearSentenceError: only a model could tell what is meant.
            NotYetKnownError: the result of an earlier action is missing.
        """
        if self.action is not None:
            return ProposedAction(fill_in(self.action, scene, self.ids))
        if _needs_judgement(self.sentence):
            raise UnclearSentenceError("conditions are for a model")
        for row, words in matches(self.sentence):
            try:
                return scene.with_values(row.build(words, scene))
            except UnclearSentenceError:
                continue
        raise UnclearSentenceError("no form fits")


def steps_of(playbook: str, scene: RehearsalState) -> list[PlaybookStep]:
    """The steps of a playbook in order; repetitions are written out, with numbers taken from the scene."""
    sentences = sentences_of(playbook)
    ids = ids_in(sentences)
    return [replace(step, ids=ids) for step in _expand(sentences, scene)]


def _expand(sentences: list[Sentence], scene: RehearsalState) -> Iterator[PlaybookStep]:
    while sentences:
        sentence, *sentences = sentences
        repeat = _repetition(sentence, scene)
        if repeat is None:
            yield from _steps(sentence, scene)
            continue
        times, rest = repeat
        body = [rest] if rest.text else []
        while sentences and sentences[0].depth > sentence.depth:
            body.append(sentences.pop(0))
        yield from list(_expand(body, scene)) * times if body else [PlaybookStep(sentence)]


def _repetition(sentence: Sentence, scene: RehearsalState) -> tuple[int, Sentence] | None:
    """How often the rest of a sentence is to be done, None when it is no repetition of that kind."""
    for repeat in REPEAT:
        if found := compile_words(repeat).fullmatch(sentence.text):
            times = _count(found["count"], sentence, scene)
            return None if times is None else (times, sentence.with_text(found["rest"]))
    return None


def _steps(sentence: Sentence, scene: RehearsalState) -> Iterator[PlaybookStep]:
    if _needs_judgement(sentence):
        yield PlaybookStep(sentence)
        return
    if actions := written_actions(sentence):
        yield from (PlaybookStep(sentence, action) for action in actions)
        return
    for clause in _clauses(sentence):
        times, rest = _suffix(clause, scene)
        yield from [PlaybookStep(rest)] * times


def _needs_judgement(sentence: Sentence) -> bool:
    """Whether a sentence is a condition, a prohibition or an example, all of which are for a model."""
    return bool(
        compile_words(CONDITION).search(compile_words(ASKS_IF).sub("", sentence.text))
        or compile_words(NEGATION).match(sentence.text)
    )


def _clauses(sentence: Sentence) -> list[Sentence]:
    """`Ask … and then print …` as two sentences: a joint counts where a known verb follows it."""
    known = "|".join(sorted(map(re.escape, verbs()), key=len, reverse=True))
    parts = compile_words(rf"(?:{JOINT}|\s*[,;]\s*)(?=(?:{known})\b)").split(sentence.text)
    clauses = [without_lead(part) for part in parts if part]
    return [sentence.with_text(single) for clause in clauses for single in _single_questions(clause)]


def _single_questions(clause: str) -> list[str]:
    """`Ask for their name and age` as two questions, since a person is asked one thing at a time."""
    found = compile_words(TWO_THINGS).fullmatch(clause)
    return [f"{found['ask']}{found['own']} {found[thing]}" for thing in ("first", "second")] if found else [clause]


def _suffix(sentence: Sentence, scene: RehearsalState) -> tuple[int, Sentence]:
    found = compile_words(SUFFIX).fullmatch(sentence.text)
    if not found:
        return 1, sentence
    times = _count(found["count"] or found["word"], sentence, scene)
    return (1, sentence) if times is None else (times, sentence.with_text(found["rest"]))


def _count(words: str, sentence: Sentence, scene: RehearsalState) -> int | None:
    try:
        number = as_number(PhraseParts({"count": words}, sentence.pieces).value("count", scene))
    except UnclearSentenceError:
        return None
    return int(number) if number is not None and 0 <= number <= MOST_REPETITIONS else None
