"""A playbook turned into steps, and steps into the deeds they come to in a scene."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from koi_lang.llm.rehearsal import delegation_forms, dialog_forms, return_forms, state_forms
from koi_lang.llm.rehearsal.languages import compile_words
from koi_lang.llm.rehearsal.literals import Reference
from koi_lang.llm.rehearsal.patterns import matches, verbs
from koi_lang.llm.rehearsal.phrase_values import TEMPLATE, PhraseParts, as_number, as_text, evaluate, template_value
from koi_lang.llm.rehearsal.quoting import piece_of
from koi_lang.llm.rehearsal.sentences import Sentence, sentences_of, without_lead
from koi_lang.llm.rehearsal.state import STATE_UPDATES, UNREAD, ProposedAction, RehearsalState, UnclearSentenceError
from koi_lang.llm.rehearsal.values import VALUE, code_of, has_value, without_references
from koi_lang.system.interpolation import IMPLICIT_NAMES, USUAL_CODE

# Importing these fills the table.
FORMS = (dialog_forms, state_forms, delegation_forms, return_forms)
MAX_REPETITIONS = 1000
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
    return int(number) if number is not None and 0 <= number <= MAX_REPETITIONS else None


# Fields that say what is to be done.
NAMING = frozenset({"intent", "actionType", "type", "id"})
NESTED = frozenset({"actions", "then", "else", "otherwise"})
GROUPS = ("batch", "actions", "parallel")
_HOLE = re.compile(r"\$\{[^{}]*\}")
_WORD = re.compile(r"[A-Za-z_]\w*")
_PIECE = re.compile(f"(?P<value>{VALUE})|{TEMPLATE.pattern}")
_QUOTED = re.compile(rf"""(?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<value>{VALUE})|{TEMPLATE.pattern}""")


def written_actions(sentence: Sentence) -> list[Mapping[str, Any]]:
    """The actions of a sentence that ends with them in JSON; those of a list of actions one by one."""
    found = re.search(r"\S+$", sentence.text)
    piece = piece_of(found.group(), sentence.pieces) if found else None
    if piece is None or piece.kind != "data":
        return []
    return [action for action in _single(piece.value) if _is_action(action)]


def ids_in(sentences: Sequence[Sentence]) -> frozenset[str]:
    """The ids by which written-out actions of a playbook refer to each other."""
    return frozenset(
        str(action["id"]) for sentence in sentences for action in written_actions(sentence) if "id" in action
    )


def fill_in(action: Mapping[str, Any], scene: RehearsalState, ids: frozenset[str]) -> dict[str, Any]:
    """An action with values of earlier sentences; the runtime resolves the rest.

    What is to be done stands in the playbook: a value becomes no action, no name of one and no part of an expression.

    Raises:
        UnclearSentenceError: it refers to something that nobody knows, or a value stands for something to do.
        NotYetKnownError: it refers to the result of a sentence whose action has been proposed and not executed yet.
    """
    return _ActionWriter(scene, IMPLICIT_NAMES | ids).action(action)


class _ActionWriter:
    """Writes actions for a scene; references with one of the names are left to the runtime."""

    def __init__(self, scene: RehearsalState, names: frozenset[str]) -> None:
        self._scene = scene
        self._names = names
        self._values = scene.values

    def action(self, action: Mapping[str, Any]) -> dict[str, Any]:
        has_data = action.get("actionType") == "delegate" or action.get("intent") == "return"
        return {self._values.put_in(key): self._field(key, value, has_data) for key, value in action.items()}

    def _field(self, key: str, value: Any, has_data: bool) -> Any:
        if key in NAMING and not _is_plain(value):
            raise UnclearSentenceError("what is to be done is not for a value to say")
        if key in NESTED:
            return self._fill_nested(value)
        if key == "condition":
            return self._condition(value)
        if key in UNREAD or key in USUAL_CODE:  # in code a backslash in front of what says nothing is one of its own
            return self._values.plain(self._fill_known(value))
        if key == "data" and isinstance(value, dict) and not has_data:
            return {self._values.put_in(name): self._field(name, item, has_data) for name, item in value.items()}
        return self._result(value) if key == "data" else self._value(value)

    def _result(self, value: Any) -> Any:
        written = self._value(value)
        if isinstance(value, Reference) and isinstance(written, Mapping) and STATE_UPDATES & written.keys():
            raise UnclearSentenceError("what changes the state is not for a value to say")
        return written

    def _fill_nested(self, value: Any) -> Any:
        """Actions inside of an action: objects that the playbook consists of, never values."""
        if isinstance(value, list):
            return [self._fill_nested(item) for item in value]
        if not isinstance(value, dict):
            raise UnclearSentenceError("what is to be done is not for a value to say")
        if NAMING & value.keys():
            return self.action(value)
        return {key: self._fill_nested(item) if key in GROUPS else self._value(item) for key, item in value.items()}

    def _value(self, value: Any) -> Any:
        if isinstance(value, Reference):
            return self._values.literal(evaluate(value.words, self._scene))
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            return {
                self._values.put_in(key): self._fill_known(item) if key in USUAL_CODE else self._value(item)
                for key, item in value.items()
            }
        return [self._value(item) for item in value] if isinstance(value, list) else value

    def _text(self, text: str) -> Any:
        whole = TEMPLATE.fullmatch(text.strip())
        if whole and not self._is_kept(whole):
            return self._values.literal(template_value(whole, self._scene, strict=False))
        return without_references(self._parts(text))

    def _parts(self, text: str) -> Iterator[tuple[str, bool]]:
        """A text in parts, and whether they stand in the playbook."""
        done = 0
        for found in _PIECE.finditer(text):
            yield text[done : found.start()], True
            yield (found[0], True) if self._is_kept(found) else (self._write(found), False)
            done = found.end()
        yield text[done:], True

    def _write(self, found: re.Match[str]) -> str:
        if found["value"]:
            return self._values.put_in(found[0])
        return as_text(template_value(found, self._scene, strict=False))

    def _is_kept(self, hole: re.Match[str]) -> bool:
        spelled = _HOLE.fullmatch(hole[0].strip())
        return spelled is not None and not self._names.isdisjoint(_WORD.findall(spelled[0]))

    def _fill_known(self, value: Any) -> Any:
        """A value for a field that the runtime does not look into."""
        if isinstance(value, Reference):
            return evaluate(value.words, self._scene)
        if isinstance(value, str):
            return "".join(part for part, _ in self._parts(value))
        if isinstance(value, dict):
            return {key: self._fill_known(item) for key, item in value.items()}
        return [self._fill_known(item) for item in value] if isinstance(value, list) else value

    def _condition(self, value: Any) -> Any:
        """A condition: an expression with constants as values, or a question for a model."""
        if isinstance(value, dict):
            return {
                key: (self._fill_known if key == "instruction" else self._value)(item) for key, item in value.items()
            }
        if isinstance(value, str):
            return _QUOTED.sub(self._constant, value)
        if isinstance(value, bool):
            return value
        raise UnclearSentenceError("a condition is not for a value to say")

    def _constant(self, found: re.Match[str]) -> str:
        """A piece of an expression, with a value as a constant."""
        if found["value"]:
            value = self._values.find(found[0])
            return found[0] if value is None else code_of(value.value)
        if found["quoted"]:
            return self._write_quote(found[0])
        return found[0] if self._is_kept(found) else code_of(template_value(found, self._scene, strict=False))

    def _write_quote(self, quoted: str) -> str:
        """A quoted text of an expression, escaped for its quotes."""

        def inside(found: re.Match[str]) -> str:
            return found[0] if self._is_kept(found) else code_of(self._write(found))[1:-1].replace("'", "\\u0027")

        return _PIECE.sub(inside, quoted)


def _is_plain(value: Any) -> bool:
    """Whether a field of an action is just what the playbook says."""
    return not isinstance(value, Reference) and not (
        isinstance(value, str) and (has_value(value) or TEMPLATE.search(value))
    )


def _single(value: Any) -> Iterator[Any]:
    """The single actions of a batch or parallel group."""
    if not isinstance(value, dict):
        return
    group = next((value[key] for key in GROUPS if isinstance(value.get(key), list)), None)
    if group is None or _is_action(value):
        yield value
        return
    for item in group:
        yield from _single(item)


def _is_action(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("intent"), str)
