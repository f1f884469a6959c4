"""What words say beyond a plan: cases that no recording has shown, and in constants the day of the recordings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from typing import Any

from koi_lang.freezing.candidates import UnexplainedError
from koi_lang.freezing.recordings import ECHOES, RecordedCall
from koi_lang.freezing.terms import names_text, numbers_in
from koi_lang.llm.rehearsal.languages import compile_needs, compile_words, list_verbs, merge, read_languages
from koi_lang.runtime.actions.control import FOR_EACH
from koi_lang.runtime.model_calls.frozen_plans import EXPECT
from koi_lang.runtime.playbook.holes import texts_in
from koi_lang.system.interpolation import HOLE

QUOTED = re.compile(r"[`\"“][^`\"”\n]{1,60}[`\"”]")
# A line that only goes on in the next one ends no clause.
CLAUSE_ENDS = r"[.,;:!?()]|\n\s*(?=[-*\d\n])|\b{and}\b(?=\s+(?:{condition})\b)"
NAME_PARTS = re.compile(r"[A-Z]?[^\W_A-Z]+|[A-Z]+|\d+")
ACTION_VERBS = ("print", "store", "ask", "return", "delegate", "call", "read")
SENTENCE_ENDS = re.compile(r"[.;!?](?=\s|$)|\n\s*(?=[-*\d\n])")
# Fields with actions.
NESTED = ("then", "else", "actions")
FILTER = re.compile(r"\.filter\(each => ([^)]*)\)")
COMPARISON = re.compile(r" (?:<=?|>=?|===) |^!")
ROUNDING = ("* 100) / 100", ".toFixed(2)")
# Days before and after that of a recording that a playbook may mean, such as tomorrow or next month.
NEAR_DAYS = 31
WRITTEN_DAY = re.compile(r"(?<![\w.])(\d{1,4})([./-])(\d{1,2})(?:\2(\d{1,4})|\.|(?=\b))(?![\w/-])")
COMPACT_DAY = re.compile(r"(?<!\d)(?:\d{8}|\d{6})(?!\d)")
SHORT_YEAR = re.compile(r"(?<![\w.,:/-])\d\d(?![\w:/-]|[.,]\d)")
QUARTER = re.compile(r"(?<!\w)(?:Q[1-4]|[1-4]Q)(?!\w)")
NUMBERED = r"(?<!\w)[1-4](?:st|nd|rd|th|º|er|e|\.)? (?:{})\b"
OBJECT = re.compile(r"^(\w+ )(\w+)")
ORDINAL = re.compile(r"\b(\d{1,2})(?:st|nd|rd|th)\b")
# Names of months that are other words in small letters.
CAPITALIZED = frozenset({"May", "March"})


def require_whole(playbook: str, actions: Sequence[Mapping[str, Any]]) -> None:
    """Raise UnexplainedError where a playbook says something that no recording has shown."""
    flat = list(_walk_actions(actions))
    plan, plain = str(flat), re.sub(r"⟨[^⟩]*⟩", "", playbook)
    rounds = any(sign in plan for sign in ROUNDING)
    for number in numbers_in(_words("decimals").sub("", plain) if rounds else plain):
        if not _has_number(plan, number):
            raise UnexplainedError(f"the playbook names {number}, and no recording shows what for")
    holes = [hole[1] for text in texts_in(flat) for hole in HOLE.finditer(text)]
    names = set(re.findall(r"\w+", " ".join(holes).lower()))
    plain = QUOTED.sub("", plain)
    for share, factors in merge("shares", "freezing").items():
        if names_text(plain, share) and share not in names and not any(_has_number(plan, each) for each in factors):
            raise UnexplainedError(f"the playbook says `{share}`, and no recording shows what for")
    if choice := next((each[0] for each in _words("choices").finditer(plain) if each[0].lower() not in names), ""):
        raise UnexplainedError(f"the playbook says `{choice}`, which no plan can express")
    wanted, conditions = list(_cases(plain, names)), set(_conditions(actions, holes))
    if len(wanted) > len(conditions):
        same = "all recordings took the same way" if not conditions else f"the plan has only {len(conditions)}"
        raise UnexplainedError(f"the playbook says `{wanted[len(conditions)]}`, and {same}; record where it matters")


@dataclass(frozen=True, slots=True)
class FixedText:
    """A text that a plan gives whatever the payload is.

    Attributes:
        intent, field: of the action; empty for a sentence of the playbook of which the plan says nothing.
        text: with `…` in the place of values.
        doubtful: words of it that a person is to confirm; empty where the playbook says them.
        is_choice: whether the playbook names these as one of several.
    """

    intent: str
    field: str
    text: str
    doubtful: tuple[str, ...] = ()
    is_choice: bool = False

    @property
    def doubt(self) -> str:
        """Why it is to be confirmed."""
        if not self.intent:
            return f"the playbook says `{self.text}`, and nothing in the plan does"
        words = " ".join(self.doubtful)
        why = f"names `{words}` as one of several" if self.is_choice else f"does not say `{words}`"
        return f"`{self.field}` of `{self.intent}` was always `{self.text}`, and the playbook {why}"

    def count_in(self, recordings: Iterable[RecordedCall]) -> int:
        """In how many recordings it stands."""
        written = re.compile(".*".join(map(re.escape, self.text.split("…"))), re.DOTALL | re.IGNORECASE)
        steps = ((each.run, step) for each in recordings for step in each.steps if step.intent == self.intent)
        fields = ((run, value) for run, step in steps for _, value in _walk_values(step.fields, ""))
        return len({run for run, value in fields if written.fullmatch(str(value))})


def select_unconfirmed(texts: Iterable[FixedText], confirmed: Iterable[str]) -> tuple[FixedText, ...]:
    """The texts of a plan with doubtful words that a person has not confirmed.

    Args:
        confirmed: texts with words that are always so.
    """
    # Words of texts may have digits, and those of sentences have none.
    forms = (r"\w+", r"[^\W\d_]+", r"\W")
    words = (word for text in confirmed for form in forms for word in re.findall(form, text))
    known = set(map(str.lower, words))
    return tuple(each for each in dict.fromkeys(texts) if not known.issuperset(map(str.lower, each.doubtful)))


def fixed_texts(playbook: str, actions: Sequence[Mapping[str, Any]], fields: Iterable[str]) -> Iterator[FixedText]:
    """The texts that a plan prints, stores or returns whatever the payload is; of other actions those in doubt alone.

    A word that the playbook does not say may stand for something that it asks for, such as `happy` for a mood. One of
    several that it names is a decision of the model.

    Args:
        fields: names in the payload, the state and results.
    """
    plain = re.sub(r"⟨[^⟩]*⟩", " ", playbook)
    parts = [part for name in fields for part in NAME_PARTS.findall(name)]
    named = {
        _stem(word) for word in (*_common_words(), *parts, *re.findall(r"\w+", plain), *map(str, numbers_in(playbook)))
    }
    flat = list(_walk_actions(actions))
    plan = {_stem(word) for text in texts_in(flat) for word in re.findall(r"\w+", text)}
    choices = [words for words in _alternatives(plain) if any(_stem(each) not in plan for each in words)]
    asks_whether = _words("whether").search(plain) is not None
    for action in flat:
        for field, value in _walk_values(action, ""):
            text = HOLE.sub("…", str(value).lower() if isinstance(value, bool) else str(value))
            words = dict.fromkeys(re.findall(r"\w+", text))
            if unseen := tuple(dict.fromkeys(sign for sign in text if is_unseen(sign) and sign not in plain)):
                yield FixedText(action["intent"], field, text, unseen)
            choice = tuple(word for word in words if any(word.lower() in each for each in choices))
            if isinstance(value, bool):
                yield FixedText(action["intent"], field, text, (text,) if asks_whether else (), is_choice=True)
            elif words and (choice or action["intent"] in ECHOES):
                new = tuple(word for word in words if _stem(word) not in named)
                yield FixedText(action["intent"], field, text, choice or new, is_choice=bool(choice))


def is_unseen(sign: str) -> bool:
    """Whether a character is invisible, controls a terminal, or turns the direction of writing; layout does not."""
    return not sign.isprintable() and sign not in "\n\t"


def _alternatives(plain: str) -> Iterator[set[str]]:
    """The words that decide in each list of which one is to be chosen, such as `good day or good night`."""
    either = _words_in("or")
    comma, last = r"\s*[,/|]\s*", rf"(?:\s*,)?\s+(?:{either})\s+|\s*[/|]\s*"
    between = rf"(?:{last}|{comma})"
    words, again = r"(?:[\w-]+ ){1,3}?", (r"(?P=begin)[\w-]+", r"(?:[\w-]+ ){0,2}[\w-]+(?P=end)\b")
    more = [rf"(?:(?:{comma}{each})*(?:{last}){each}|(?:{comma}{each})+(?={last}))" for each in again]
    alike = [rf"\b(?P<begin>{words})[\w-]+{more[0]}", rf"\b(?:[\w-]+ ){{0,2}}?[\w-]+(?P<end> [\w-]+){more[1]}"]
    article = r"(?:(?:an?|the|un[ae]?|el|la|le|ein\w*)\s+)?"
    item = rf"{article}(?:[`\"“'][^`\"”'\n]{{1,60}}[`\"”']|[\w-]+)"
    listed = [rf"{item}(?:{comma}{item})*(?:{last}){item}", rf"(?<=[(:])\s*{item}(?:{comma}{item})+\s*(?=[).\n]|$)"]
    for form in (*alike, "|".join(listed)):
        for found in re.finditer(form, plain, re.IGNORECASE):
            each = [set(re.findall(r"\w+", part)) for part in re.split(between, found[0].lower())]
            yield set.union(*each) - set.intersection(*each) - {*either.split("|"), *_common_words()}
        plain = re.sub(form, ".", plain, flags=re.IGNORECASE)


def open_sentences(playbook: str, actions: Sequence[Mapping[str, Any]]) -> Iterator[FixedText]:
    """The sentences of a playbook of which no word stands in a plan, such as `doctors get their title`.

    Of one that asks for a check a word is to stand in a condition, or the plan is to have an action that is called so.
    """
    flat = list(_walk_actions(actions))
    texts = list(texts_in([[name, value] for each in flat for name, value in each.items()]))
    holes = [hole[1] for text in texts for hole in HOLE.finditer(text)]
    plan, checked = (_stems(each) for each in (texts, _conditions(actions, holes)))
    called = _stems(each["intent"] for each in flat)
    fields = _stems(_keys_in(flat))
    verbs = [verb for name in ACTION_VERBS for verb in list_verbs(name)]
    idle = {*_common_words(), *verbs, "args", "state"}
    lead = compile_words(r"^\s*(?:{lead}\b\s*)*")
    for sentence in SENTENCE_ENDS.split(playbook):
        own = lead.sub("", sentence)
        words = [word for word in re.findall(r"[^\W\d_]+", own) if word.lower() not in idle]
        check = _words("checks").match(own)
        has_action = check is not None and _stem(check[0]) in called
        stems = set(map(_stem, words))
        is_field = check is None and stems <= fields  # `return the cost`, for an action that has no other word of it
        if words and not is_field and (checked if check and not has_action else plan).isdisjoint(stems):
            yield FixedText("", "", " ".join(sentence.split()), tuple(words))


def _keys_in(value: Any) -> Iterator[str]:
    """The keys of the objects in a value, at any depth."""
    if isinstance(value, dict):
        yield from value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _keys_in(item)


def _stems(texts: Iterable[str]) -> set[str]:
    return {_stem(part) for text in texts for part in NAME_PARTS.findall(text)}


def _walk_actions(actions: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Actions and those in them, each without these; checks of results are none."""
    for action in actions:
        if action["intent"] != EXPECT:
            yield {name: value for name, value in action.items() if name not in NESTED}
        for name in NESTED:
            yield from _walk_actions(action.get(name, ()))


def _walk_values(value: Any, field: str) -> Iterator[tuple[str, Any]]:
    """The texts, numbers and truth values that an action gives, each with the name of its field; no keys and ids."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _walk_values(inner, name) if name not in ("intent", "id", "key") else ()
    elif isinstance(value, list):
        for inner in value:
            yield from _walk_values(inner, field)
    elif value is not None:
        yield field, value


def _stem(word: str) -> str:
    """The beginning of a word, by which its forms are the same."""
    word = word.lower()
    return (word[:-1] if len(word) > 3 and word.endswith("s") else word)[:4]


@cache
def _common_words() -> tuple[str, ...]:
    """Words that say nothing by themselves."""
    return tuple(" ".join(read_languages()["freezing"]["plain"].values()).split())


def _has_number(plan: str, number: float) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(str(number))}(?![\w.]*\d)", plan) is not None


def _words(name: str) -> re.Pattern[str]:
    return compile_needs(name, "freezing")


def _cases(plain: str, names: set[str]) -> Iterator[str]:
    """A word for each clause of a playbook that is about some cases alone; of other hints one where no clause is."""
    count, hints = 0, [each[0] for name in ("else", "sizes") for each in _words(name).finditer(plain)]
    loops, otherwise = _words("loops"), _words("else")
    for clause in compile_words(CLAUSE_ENDS).split(compile_words("{asks_if}").sub("", plain)):
        rest = otherwise.sub("", loops.sub("", clause.strip()))
        found = [_words("begins").match(rest), compile_words(r"\b(?:{condition})\b").search(rest)]
        # The object of a clause may be a field, as `who` in `print who has ordered`.
        behind = OBJECT.sub(lambda each: each[1] if each[2].lower() in names else each[0], rest)
        found += [each for each in _words("cases").finditer(behind) if each[0].lower() not in names]
        if word := next((each[0] for each in found if each), ""):
            count += 1
            yield word
    if not count:
        yield from [each for each in hints if each.lower() not in names][:1]


def _conditions(actions: Sequence[Mapping[str, Any]], holes: Sequence[str]) -> Iterator[str]:
    """The conditions in a plan: of branches, of parts of lists and of values."""
    for action in actions:
        if action["intent"] == "if":
            yield str(action["condition"])
            yield from _conditions([*action["then"], *action.get("else", [])], ())
        elif action["intent"] == FOR_EACH:
            yield from _conditions(action["actions"], ())
    for hole in holes:
        parts = [*FILTER.findall(hole), *(hole.partition(" ? ")[:1] if " ? " in hole else ())]
        yield from parts or ([hole] if COMPARISON.search(hole) else ())


# ---------------------------------------------------------------- days


def days_in(text: str, today: str) -> Iterator[str]:
    """What may be the day of a recording in a text, or one near to it.

    Args:
        today: what its model was told of the day, such as `Monday, 2026-11-30, Etc/UTC`.
    """
    parts = [part.strip() for part in today.split(",")[:2]]
    yield from (part for part in parts if part and part in text)
    try:
        day = date.fromisoformat(parts[-1])
    except ValueError:
        return
    near = [day + timedelta(days) for days in range(-NEAR_DAYS, NEAR_DAYS + 1)]
    yield from (year for year in (str(day.year + each) for each in (-1, 0, 1)) if year in text)
    short = {f"{each.year % 100:02}" for each in near}
    yield from (found[0] for found in SHORT_YEAR.finditer(text) if found[0] in short)
    quarters = {(each.month + 2) // 3 for each in near}
    for found in (*QUARTER.finditer(text), *compile_words(NUMBERED.format(_words_in("quarters"))).finditer(text)):
        yield from [found[0]] if int(re.sub(r"\D", "", found[0])) in quarters else []
    yield from (found[0] for found in _words("times").finditer(text))
    yield from (found[0] for found in _names(tuple(sorted({each.month for each in near}))).finditer(text))
    years = [(each, year) for each in near for year in ((), (each.year,), (each.year % 100,))]
    numbers = {tuple(sorted((each.day, each.month, *year))) for each, year in years}
    for found in WRITTEN_DAY.finditer(text):
        is_decimal = found[2] == "." and found[4] is None and not found[0].endswith(".")
        if not is_decimal and tuple(sorted(int(each) for each in found.group(1, 3, 4) if each)) in numbers:
            yield found[0]
    compact = {each.strftime(form) for each in near for form in ("%Y%m%d", "%y%m%d", "%d%m%Y", "%d%m%y")}
    yield from (found[0] for found in COMPACT_DAY.finditer(text) if found[0] in compact)
    weeks, days = {each.isocalendar().week for each in near}, {each.day for each in near if abs(each - day).days < 2}
    for found in re.finditer(rf"(?<![^\W_])(?:{_words_in('week')})[ -]?(\d{{1,2}})(?!\d)", text, re.IGNORECASE):
        yield from [found[0]] if int(found[1]) in weeks else []
    yield from (found[0] for found in ORDINAL.finditer(text) if int(found[1]) in days)


def _words_in(name: str) -> str:
    return "|".join(read_languages()["freezing"][name].values())


@cache
def _names(months: tuple[int, ...]) -> re.Pattern[str]:
    """The names of months, by their numbers from 1 on, and of weekdays, in all languages."""
    words = read_languages()["freezing"]
    names = [names.split()[number - 1] for names in words["months"].values() for number in months]
    names += [name for names in words["weekdays"].values() for name in names.split()]
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(map(_spelling, dict.fromkeys(names)))})")


def _spelling(name: str) -> str:
    """The forms of a name: also in capitals, and shortened where it is written with a capital letter."""
    forms = {name, name.upper()} | (set() if name in CAPITALIZED else {name.lower()})
    end = "" if len(name) > 4 and name not in CAPITALIZED else r"(?!\w)"
    short = rf"|{name[:3]}(?!\w)" if name[0].isupper() else ""
    return rf"(?:{'|'.join(sorted(forms))}){end}{short}"
