"""Sentences that ask or tell the user something, turned into `prompt_user` and `print`."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

from koi_lang.llm.rehearsal.languages import compile_words, get_phrase
from koi_lang.llm.rehearsal.patterns import form
from koi_lang.llm.rehearsal.phrase_values import PhraseParts, as_text, evaluate, fill, piece_value
from koi_lang.llm.rehearsal.quoting import mask, piece_of
from koi_lang.llm.rehearsal.state import ProposedAction, RehearsalState, UnclearSentenceError


@form
def ask_quoted(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """Ask the user a question that stands in quotes."""
    question = as_text(words.value("question", scene))
    found = compile_words("{name_question}").fullmatch(question.strip(" ¿?:").lower())
    options = _options(words, scene)
    label = words.get("label") or (next(filter(None, found.groups())) if found else "")
    return ProposedAction(_prompt(question, options), label)


@form
def ask_for(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """Ask the user for something that is named."""
    what = _thing_in(words, "what")
    for owned, question in get_phrase("questions", words.language):
        if found := re.fullmatch(owned, what, re.IGNORECASE):
            thing = _to_you(found["thing"], words)
            return ProposedAction(_prompt(question.format(thing=thing)), thing)
    question = get_phrase("enter", words.language).format(what=what)
    return ProposedAction(_prompt(question), re.sub(get_phrase("article", words.language), "", what))


@form
def ask_clause(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """Ask the user the question of a subordinate clause."""
    clause = _to_you(words.get("clause").rstrip("?"), words)
    return ProposedAction(_prompt(get_phrase("clause", words.language).format(clause=clause)))


@form
def greet(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """Greet, thank or take leave of somebody, by name where the name is known."""
    salutes = get_phrase("salutes", words.language)
    verb = words.source.split()[0].lower()
    salute = salutes.get(verb) or words.get("salute").capitalize() or salutes["greet"]
    name = _name_of_whom(words, scene)
    return _say(get_phrase("greeting", words.language).format(salute=f"{salute}, {name}" if name else salute))


@form
def print_quoted(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """Print the text in quotes or braces."""
    return _say(as_text(words.value("quote", scene)))


@form
def print_line(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """Print the text after a colon, word for word."""
    return _say(_line(words, "line", scene))


@form
def print_value(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """Print a value that is known, or a text that begins like one and not like a description of one."""
    try:
        return _say(as_text(words.value("what", scene)))
    except UnclearSentenceError:
        if re.match(r"[a-záéíóúñ<]", words.get("what")) or '"' in words.get("what"):
            raise
    return _say(_line(words, "what", scene))


@form
def print_last(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """Print the last value, as the verb names it."""
    return _say(as_text(evaluate("that", scene)))


def _say(message: str) -> ProposedAction:
    return ProposedAction({"actionType": "direct", "intent": "print", "message": message})


def _prompt(question: str, options: list[str] | None = None) -> dict[str, Any]:
    action: dict[str, Any] = {"actionType": "direct", "intent": "prompt_user", "question": question}
    return action | {"options": options} if options else action


def _to_you(text: str, words: PhraseParts) -> str:
    """A text about the user, addressed to them."""
    pronouns = get_phrase("pronouns", words.language)
    return re.sub(r"[\w']+", lambda word: pronouns.get(word[0].lower(), word[0]), text)


def _thing_in(words: PhraseParts, part: str) -> str:
    what = words.get(part).rstrip("?: ")
    if compile_words("{vague}").fullmatch(what):
        raise UnclearSentenceError("what to ask is not said")
    return what


def _options(words: PhraseParts, scene: RehearsalState) -> list[str]:
    if not words.has("options"):
        return []
    masked = mask(words.get("options"))
    choices = compile_words(r"\s*(?:,| {or} | {and} |/)\s*").split(masked.text)
    pieces = [(choice, piece_of(choice, masked.pieces)) for choice in choices if choice.strip()]
    if len(pieces) == 1 and pieces[0][1] and pieces[0][1].kind == "data":
        return [as_text(option) for option in piece_value(pieces[0][1], scene)]
    return [as_text(piece_value(piece, scene)) if piece else choice.strip() for choice, piece in pieces]


def _line(words: PhraseParts, part: str, scene: RehearsalState) -> str:
    return as_text(fill(words.get(part), scene)) + words.ending


def _name_of_whom(words: PhraseParts, scene: RehearsalState) -> str:
    """The name of a person in question; empty while it is unknown."""
    found = re.fullmatch(get_phrase("whom", words.language), words.get("who"), re.IGNORECASE)
    if not found:
        return _somebody(words, scene)
    for known in (get_phrase("own_name", words.language), "name"):
        with suppress(UnclearSentenceError):
            return as_text(evaluate(known, scene))
    if found["by"]:
        raise UnclearSentenceError("the name is not known")
    return ""


def _somebody(words: PhraseParts, scene: RehearsalState) -> str:
    try:
        return as_text(words.value("who", scene))
    except UnclearSentenceError:
        who, word = words.get("who"), r"[A-ZÁÉÍÓÚÑ][\w'-]*"
        if re.fullmatch(rf"{word}(?: {word})*", who) or compile_words("{crowd}").fullmatch(who):
            return who
        raise
