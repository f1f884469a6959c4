"""Sentences of playbooks that say what to return: fields and kinds of values against the type of the result."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.declared_types import choices_of, resolve_type
from koi_lang.compiler.rules.kinds import KINDS, WORDS
from koi_lang.compiler.rules.prose.playbooks import PlaybookSentence, PlaybookText, playbook_texts
from koi_lang.compiler.rules.prose.words import DATA, pattern, read_words
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.compiler.symbols import SymbolTable
from koi_lang.diagnostics import SLIP_IN_FOUR, nearest
from koi_lang.lazy import lazy_module
from koi_lang.source import Span

if TYPE_CHECKING:
    from koi_lang.llm.rehearsal import literals
else:
    literals = lazy_module("koi_lang.llm.rehearsal.literals")

# A key of an object without objects in it; placeholders are masked before.
KEY = re.compile(r"(?:^|,)\s*[\"']?([A-Za-z_]\w*)[\"']?\s*(?=:|,|$)")
# What people write in quotes where `true` or `false` is meant.
YES_NO = frozenset({"yes", "no", "true", "false", "sí", "si", "verdadero", "falso"})
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
OPEN_END = re.compile(r"\.\.\.|…|\betc\b")


@dataclass(frozen=True, slots=True)
class ReturnedObject:
    """An object that a sentence says to return.

    Attributes:
        start: where its opening brace stands in the text.
        keys: its fields.
        values: those of them whose values are written as in JSON; None where the object cannot be read.
        is_last: whether nothing behind it adds to it.
    """

    sentence: PlaybookSentence
    start: int
    end: int
    keys: Sequence[str]
    values: Mapping[str, Any] | None
    is_last: bool


@dataclass(frozen=True, slots=True)
class TypedText:
    """A text of a playbook whose handler has a type for its result, and the type without the name declared for it."""

    text: PlaybookText
    declared: n.Type
    table: SymbolTable

    @property
    def type(self) -> n.Type:
        """The type without the name that is declared for it."""
        return resolve_type(self.declared, self.table)

    @property
    def choices(self) -> list[n.Type]:
        """What the result may be."""
        return choices_of(self.declared, self.table)


@rule("E0622", "warning")
def misspelt_in_returned_object(file: Analysis, report: Report) -> None:
    """A playbook says to return an object with a field that is nearly one of the declared type.

    The result is checked against the type of the handler, so a model that does as it is told fails. The sentence may
    be English or Spanish; `[check] prose = false` in `koi.toml` turns warnings about prose off.

    Wrong:

        in agent: on add(args): { sum: number } { playbook "Add the numbers. Return { summ: the sum }." }

    Right:

        in agent: on add(args): { sum: number } { playbook "Add the numbers. Return { sum: the sum }." }
    """
    for typed in _typed_texts(file, report):
        known = [field.name for field in typed.type.fields]
        for found in returned_objects(typed.text):
            for key, near in misspelt_keys(found.keys, known):
                message = f"this sentence returns `{key}`, which is no field of the result"
                others = [report.place(typed.declared.span, "the type of the result")]
                span = _place_of_key(key, found, typed.text)
                fixes = () if span == typed.text.text.span else report.replacement(span, near)
                report.add(span, message, others=others, help=f"did you mean `{near}`?", fixes=fixes)


@rule("E0625", "warning")
def returned_object_misfits(file: Analysis, report: Report) -> None:
    """A playbook says to return what does not fit the type of the handler's result.

    A field is missing, or a value that is written down is of another kind: `"yes"` for a boolean, a word that is none
    of the words of the type, a list for an object. The result is checked, so a model that does as it is told fails.
    What is described in words is left alone.

    Wrong:

        in agent: on add(args): { sum: number, count: number } { playbook "Add. Return { sum: the sum }." }

    Right:

        in agent: on add(args): { sum: number, count: number } { playbook "Add. Return { sum, count }." }
    """
    for typed in _typed_texts(file, report):
        others = [report.place(typed.declared.span, "the type of the result")]
        for start, end, message, help in (*_wrong_objects(typed), *_wrong_sentences(typed)):
            report.add(typed.text.place(start, end), message, others=others, help=help)


def _typed_texts(file: Analysis, report: Report) -> Iterator[TypedText]:
    for text in report.program.for_file(playbook_texts, file):
        handler = text.around.function
        if isinstance(handler, n.Handler) and handler.returns is not None:
            yield TypedText(text, handler.returns, file.table)


def returned_objects(text: PlaybookText) -> Iterator[ReturnedObject]:
    """The objects that the sentences of a text say to return."""
    form = pattern(rf"\b(?:{{answer}})\b\s*:?\s*{{form}}(?P<data>{DATA}+|\{{[^{{}}\[\]()]*\}})")
    for sentence in text.sentences if "{" in text.text.value else ():
        for found in form.finditer(sentence.prose) if not sentence.is_negated else ():
            start, end = found.span("data")
            written, behind = sentence.written[start:end], sentence.prose[end:]
            is_last = not pattern(r"\W*{goes_on}\b").match(behind) and not OPEN_END.search(written)
            values = _read(written)
            keys = list(values) if values is not None else KEY.findall(sentence.prose[start + 1 : end - 1].strip())
            yield ReturnedObject(sentence, sentence.start + start, sentence.start + end, keys, values, is_last)


def _read(written: str) -> dict[str, Any] | None:
    try:
        value = literals.read_literal(written)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def misspelt_keys(keys: Sequence[str], known: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Keys that are nearly fields which an object lacks, with those."""
    missing = [name for name in known if name not in keys]
    for key in (each for each in keys if each not in known):
        near = nearest(key, missing, alike=SLIP_IN_FOUR)
        if near is not None:
            yield key, near


def _place_of_key(key: str, found: ReturnedObject, text: PlaybookText) -> Span:
    """Where a field of an object stands."""
    match = re.compile(rf"\b{key}\b").search(text.text.value, found.start, found.end)
    return text.place(*match.span()) if match else text.place(found.start, found.end)


Misfit = tuple[int, int, str, str]


def _wrong_objects(typed: TypedText) -> Iterator[Misfit]:
    """Objects that do not fit, with what is wrong and what to do."""
    objects = [choice for choice in typed.choices if choice.name == "object"]
    if len(objects) > 1 or not typed.choices or any(_kind(choice) is None for choice in typed.choices):
        return
    for found in returned_objects(typed.text):
        if not objects:
            if not pattern(r"\b{each}\b").search(found.sentence.prose):
                message = f"this sentence returns an object, and the result is {_describe(typed.choices)}"
                yield found.start, found.end, message, "write what the type says, or declare another type."
            continue
        fields = {field.name: field for field in objects[0].fields}
        yield from _wrong_fields(found, fields, typed)
        misspelt = {near for _, near in misspelt_keys(found.keys, list(fields))}
        needed = [name for name, field in fields.items() if not field.optional and name not in {*found.keys, *misspelt}]
        if needed and found.keys and found.is_last and not _is_added(needed, typed.text):
            shown = " and ".join(f"`{name}`" for name in needed)
            message = f"this sentence returns an object without {shown}, which the result needs"
            yield found.start, found.end, message, f"say what {shown} is, or write `{needed[0]}?: …` in the type."


def _wrong_fields(found: ReturnedObject, fields: Mapping[str, n.TypeField], typed: TypedText) -> Iterator[Misfit]:
    """Fields of a returned object whose written value is of another kind."""
    for key, value in (found.values or {}).items():
        if key not in fields or not misfits(value, fields[key].type, typed.table):
            continue
        match = re.compile(rf"""["']?\b{key}\b["']?\s*:\s*("[^"]*"|'[^']*'|[^,}}\n]+)""").search(
            typed.text.text.value, found.start, found.end
        )
        span = match.span() if match else (found.start, found.end)
        type = fields[key].type
        message = f"this sentence returns {_show(value)} as `{key}`, which is declared as `{type.one_line}`"
        yield *span, message, "write a value of that type, or declare another type."


def misfits(value: Any, type: n.Type, table: SymbolTable) -> bool:
    """Whether a value that is written down can hardly be meant for a type; quoted words may describe a value."""
    choices = choices_of(type, table)
    kinds = {_kind(choice) for choice in choices}
    if None in kinds or not kinds or value is None or isinstance(value, literals.Reference):
        return False
    if isinstance(value, str):
        return _text_misfits(value, choices)
    kind = _kind_of(value)
    written = [choice for choice in choices if choice.name == "literal" and _kind(choice) == kind]
    is_plain = any(choice.name != "literal" and _kind(choice) == kind for choice in choices)
    return not is_plain and not any(_literal(choice) == value for choice in written)


def _text_misfits(value: str, choices: Sequence[n.Type]) -> bool:
    kinds = {_kind(choice) for choice in choices}
    texts = [_literal(choice) for choice in choices if choice.name == "literal" and _kind(choice) == "string"]
    if "string" in kinds:
        return len(texts) == len(choices) and re.fullmatch(r"\w+", value) is not None and value not in texts
    return (kinds == {"boolean"} and value.lower() in YES_NO) or (kinds == {"number"} and bool(NUMBER.fullmatch(value)))


def _wrong_sentences(typed: TypedText) -> Iterator[Misfit]:
    """Sentences that say in words to return a list, nothing, or `true`, where the result is something else."""
    words, kinds = read_words()["returned"], {_kind(choice) for choice in typed.choices}
    if None in kinds or not kinds:
        return
    fields = [field.name for choice in typed.choices for field in choice.fields]
    ways = {"list": "array", "nothing": "null", "truth": "boolean"}
    for sentence in typed.text.sentences:
        for begin in sentence.clauses:
            for way, kind in ways.items():
                found = pattern(rf"(?:{words['all_of']}) (?:{words[way]})").match(sentence.prose, begin)
                # A text may well consist of a list.
                fits = kind in kinds or (way == "list" and "string" in kinds)
                if found and not fits and not _is_part(fields, sentence.prose[found.end() :]):
                    start, end = sentence.start + begin, sentence.start + found.end()
                    label = f"this sentence returns {WORDS.get(kind, 'nothing') if kind != 'null' else 'nothing'}"
                    message = f"{label}, and the result is {_describe(typed.choices)}"
                    yield start, end, message, "write what the type says, or declare another type."


def _is_part(fields: Sequence[str], behind: str) -> bool:
    """Whether what is returned may be one of several things, or is to be written in another form."""
    named = "|".join(map(re.escape, fields)) or "(?!)"
    in_field = rf"\b(?:as|in|under|and|with|plus|como|en|y|con) (?:the |el |la )?`?(?:{named}|json|text|string|texto)\b"
    return DATA in behind or "{" in behind or pattern(in_field).search(behind) is not None


def _is_added(fields: Sequence[str], text: PlaybookText) -> bool:
    """Whether some words elsewhere in the playbook may add fields to what is returned."""
    if not text.is_whole:
        return True
    verbs = r"\b(?:include|including|add|also|plus|set|incluye|añade|agrega|además|pon)\b[^.]*"
    return any(pattern(rf"{verbs}\b{re.escape(field)}\b").search(text.prose) for field in fields)


def _kind(type: n.Type) -> str | None:
    """The kind of values of a type; None where they may be of any."""
    if type.name == "literal":
        return "string" if type.text[:1] in "\"'" else "boolean" if type.text in ("true", "false") else "number"
    return KINDS.get(type.name.lower())


def _literal(type: n.Type) -> Any:
    """The only value of a type."""
    try:
        return literals.read_literal(type.text)
    except ValueError:
        return type.text


def _kind_of(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float) else "array" if isinstance(value, list) else "object"


def _describe(choices: Sequence[n.Type]) -> str:
    return " or ".join(dict.fromkeys(WORDS[kind] for choice in choices if (kind := _kind(choice)) in WORDS))


def _show(value: Any) -> str:
    if isinstance(value, dict | list):
        return WORDS["object"] if isinstance(value, dict) else WORDS["array"]
    return f'`"{value}"`' if isinstance(value, str) else f"`{str(value).lower()}`"
