"""Sentences that ask or tell the user something, turned into `prompt_user` and `print`."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

from koi_lang.llm.rehearsal.patterns import english, spanish
from koi_lang.llm.rehearsal.phrase_values import PhraseParts, as_text, evaluate, fill, piece_value
from koi_lang.llm.rehearsal.quoting import mask, piece_of
from koi_lang.llm.rehearsal.state import ProposedAction, RehearsalState, UnclearSentenceError

ASK = "ask prompt question"
PREGUNTA = "pregunta pregúntale preguntale pide pídele pidele solicita"
PRINT = "print say show display write output log announce echo"
IMPRIME = "imprime muestra escribe di"
IMPRIMELO = "imprímelo imprímela imprimelo imprimela muéstralo muéstrala muestralo muestrala escríbelo escríbela dilo"
TOO_VAGUE = frozenset({"a question", "questions", "something", "input", "algo", "una pregunta"})
_OWNED = re.compile(r"(?:their|his|her|your|the (?:user|person|customer)'s)\s+(.+)", re.I)
_PROPIO = re.compile(r"(su|sus|tu|tus|el|la|los|las)\s+(.+?)(?: (?:del usuario|de la usuaria))?", re.I)
_TO_YOU = {"they": "you", "he": "you", "she": "you", "them": "you", "their": "your", "his": "your", "her": "your",
           "they're": "you're"}  # fmt: skip


@english(
    ASK,
    r"(?:{user}\s*)?(?:this|the question|the following)?\s*:?\s*(?P<question>{mark})(?: as (?P<label>\w+))?"
    r"(?:,? \(?(?:with (?:the )?)?(?:options?|choices):? (?P<options>.+?)\)?)?",
)
@spanish(
    PREGUNTA,
    r"(?:{usuario}\s*)?(?:esto)?\s*:?\s*(?P<question>{mark})"
    r"(?:,? \(?(?:con (?:las )?)?(?:opciones|opción):? (?P<options>.+?)\)?)?",
)
def ask_quoted(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """Ask the user a question that stands in quotes."""
    question = as_text(words.value("question", scene))
    found = re.fullmatch(r"(?:what is|what's|cuál es) (?:your|tu) (.+?)", question.strip(" ¿?:").lower())
    options = _options(words, scene)
    label = words.get("label") or (found[1] if found else "")
    return ProposedAction(_prompt(question, options), label)


@english(ASK, r"{user} (?:for|about) (?P<what>.+)")
@english(ASK, r"for (?P<what>(?:the|an?) .+)")
@english(ASK, r"(?:{user} |for )?(?P<what>(?:their|his|her|your|the (?:user|person|customer)'s) .+)")
@english(
    ASK,
    r"{user} to (?:please )?(?:enter|type(?: in)?|give|provide|choose|pick|write|tell you|say|input) (?P<what>.+)",
)
@english("get request collect obtain", r"(?P<what>.+?) from {user}")
@english("get request collect obtain", r"(?P<what>the (?:user|person|customer)'s .+)")
def ask_for(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """Ask the user for something that is named."""
    what = _named(words, "what")
    owned = _OWNED.fullmatch(what)
    if not owned:
        return ProposedAction(_prompt(f"Please enter {what}:"), re.sub(r"^(?:an?|the|some) ", "", what))
    thing = _to_you(owned[1])
    plural = thing.endswith("s") and not thing.endswith(("ss", "us", "is"))
    return ProposedAction(_prompt(f"What {'are' if plural else 'is'} your {thing}?"), thing)


@english(ASK, r"{user} (?P<clause>(?:what|which|who|where|when|why|how|whether|if) .+)")
def ask_clause(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """Ask the user what a subordinate clause says."""
    return ProposedAction(_prompt(f"Please say {_to_you(words.get('clause').rstrip('?'))}:"))


@spanish(PREGUNTA, r"(?:{usuario} )?(?:por )?(?P<what>(?:su|sus|tu|tus|el|la|los|las|un|una) .+?)(?: {usuario})?")
@spanish(PREGUNTA, r"{usuario} que (?:escriba|introduzca|indique|diga|dé|elija) (?P<what>.+)")
def pregunta_por(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """Ask the user, in Spanish, for something that is named."""
    what = _named(words, "what")
    owned = _PROPIO.fullmatch(what)
    if not owned:
        return ProposedAction(_prompt(f"Por favor, indica {what}:"), what.partition(" ")[2])
    owner, thing = owned[1].lower(), owned[2]
    if owner in ("su", "tu", "el", "la"):
        return ProposedAction(_prompt(f"¿Cuál es tu {thing}?"), thing)
    return ProposedAction(_prompt(f"¿Cuáles son tus {thing}?"), thing)


@spanish(PREGUNTA, r"{usuario} (?P<clause>(?:qué|cuál|cuáles|cómo|cuándo|cuánt\w+|dónde|quién|por qué|si) .+)")
def pregunta_que(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """Ask the user, in Spanish, what a subordinate clause says."""
    return ProposedAction(_prompt(f"Por favor, responde: {words.get('clause').rstrip('?')}"))


@english("say", r"(?P<salute>hello|hi|welcome|good morning|goodbye|good bye|bye|thank you|thanks)(?: to (?P<who>.+))?")
@english("greet", r"(?P<who>.*)")
@english("welcome", r"(?P<who>.+)")
@english("thank", r"(?P<who>.+)")
def greet(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """Greet, thank or take leave of somebody, by name where the name is known."""
    verb = words.source.split()[0].lower()
    salute = {"thank": "Thank you", "welcome": "Welcome"}.get(verb, words.get("salute").capitalize() or "Hello")
    name = _whom(words, scene, "name", r" ?(?:{user})?(?: by (?:their |his |her )?(?P<by>name))?")
    return _say(f"{salute}, {name}!" if name else f"{salute}!")


@spanish("saluda salúdalo salúdala salúdale saludalo saludale salúdalos", r"(?:a (?!la )|al? )?(?P<who>.*)")
@spanish("di", r"(?P<salute>hola|adiós|gracias|buenos días)(?: al? (?P<who>.+))?")
@spanish("despídete despidete", r"(?:de )?(?P<who>.*)")
@spanish("agradece", r"(?:a |al )?(?P<who>.+)")
def saluda(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """Greet, thank or take leave of somebody in Spanish."""
    verb = words.source.split()[0].lower()
    if verb.startswith("desp"):
        salute = "Adiós"
    else:
        salute = "Gracias" if verb == "agradece" else words.get("salute").capitalize() or "Hola"
    name = _whom(
        words, scene, "nombre", r" ?(?:l[ae] )?(?:usuari[oa]|persona|cliente)?(?: ?por (?:su )?(?P<by>nombre))?"
    )
    return _say(f"¡{salute}, {name}!" if name else f"¡{salute}!")


@english(
    PRINT,
    r"(?:{user} )?(?:that |the |a |this |following )*(?:message|text|line|word|words|sentence|greeting)?\s*:?\s*"
    r"(?P<quote>{mark}){to_user}",
)
@english("tell", r"{user}\s*(?:that|this)?\s*:?\s*(?P<quote>{mark})")
@spanish(
    IMPRIME,
    r"(?:{usuario} )?(?:el |la |un |una |este |siguiente )*(?:mensaje|texto|línea|palabra|frase|saludo)?\s*:?\s*"
    r"(?P<quote>{mark}){al_usuario}",
)
def print_quoted(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """Print what stands in quotes or braces."""
    return _say(as_text(words.value("quote", scene)))


@english(PRINT, r":\s*(?P<line>.+)")
@spanish(IMPRIME, r":\s*(?P<line>.+)")
def print_line(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """Print what stands after a colon, word for word."""
    return _say(_line(words, "line", scene))


@english(PRINT, r"(?:out )?(?:{user} )?(?P<what>.+?){to_user}")
@english("tell", r"{user} (?P<what>.+)")
@spanish(IMPRIME, r"(?:{usuario} )?(?P<what>.+?){al_usuario}")
def print_value(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """Print a value that is known, or a text that begins like one and not like a description of one."""
    try:
        return _say(as_text(words.value("what", scene)))
    except UnclearSentenceError:
        if re.match(r"[a-záéíóúñ<]", words.get("what")) or '"' in words.get("what"):
            raise
    return _say(_line(words, "what", scene))


@spanish(IMPRIMELO, r"{al_usuario}")
def imprimelo(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """Print the last value, in Spanish: the verb says what."""
    return _say(as_text(evaluate("eso", scene)))


def _say(message: str) -> ProposedAction:
    return ProposedAction({"actionType": "direct", "intent": "print", "message": message})


def _prompt(question: str, options: list[str] | None = None) -> dict[str, Any]:
    action: dict[str, Any] = {"actionType": "direct", "intent": "prompt_user", "question": question}
    return action | {"options": options} if options else action


def _to_you(text: str) -> str:
    """What is said about the user as it is said to them."""
    return re.sub(r"[\w']+", lambda word: _TO_YOU.get(word[0].lower(), word[0]), text)


def _named(words: PhraseParts, part: str) -> str:
    what = words.get(part).rstrip("?: ")
    if what.lower() in TOO_VAGUE:
        raise UnclearSentenceError("what to ask is not said")
    return what


def _options(words: PhraseParts, scene: RehearsalState) -> list[str]:
    if not words.has("options"):
        return []
    masked = mask(words.get("options"))
    choices = re.split(r"\s*(?:,| or | and | o | y |/)\s*", masked.text)
    pieces = [(choice, piece_of(choice, masked.pieces)) for choice in choices if choice.strip()]
    if len(pieces) == 1 and pieces[0][1] and pieces[0][1].kind == "data":
        return [as_text(option) for option in piece_value(pieces[0][1], scene)]
    return [as_text(piece_value(piece, scene)) if piece else choice.strip() for choice, piece in pieces]


def _line(words: PhraseParts, part: str, scene: RehearsalState) -> str:
    return as_text(fill(words.get(part), scene)) + words.ending


def _whom(words: PhraseParts, scene: RehearsalState, noun: str, general: str) -> str:
    """The name of the one who is meant; empty when nobody has told it and it was not asked for."""
    who = words.get("who")
    user = r"(?:the )?(?:user|person|human|customer|visitor|player|client)|them|him|her"
    if not (found := re.fullmatch(general.replace("{user}", user), who, re.IGNORECASE)):
        return _somebody(words, scene)
    for known in (noun, "name"):
        with suppress(UnclearSentenceError):
            return as_text(evaluate(known, scene))
    if found["by"]:
        raise UnclearSentenceError("the name is not known")
    return ""


def _somebody(words: PhraseParts, scene: RehearsalState) -> str:
    try:
        return as_text(words.value("who", scene))
    except UnclearSentenceError:
        if re.fullmatch(
            r"[A-ZÁÉÍÓÚÑ][\w'-]*(?: [A-ZÁÉÍÓÚÑ][\w'-]*)*|everyone|everybody|world|todos|mundo", words.get("who")
        ):
            return words.get("who")
        raise
