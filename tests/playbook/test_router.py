"""Intents in free words to the events that answer them."""

from __future__ import annotations

import pytest

from koi_lang.runtime.routing.lexical import Route, rank

OFFERS = [
    Route("translator", "translate", "Translates a text into another language"),
    Route("calculator", "calculate", "Adds, subtracts and multiplies numbers"),
    Route("writer", "summarize", "Writes a short summary of a long document"),
    Route("mailer", "sendEmail", "Sends an e-mail message to a person"),
    Route("weather", "forecast", "Tells the weather of a city for the next days"),
    Route("shop", "deleteOrder", "Removes an order from the shop"),
    Route("shop", "createOrder", "Places a new order in the shop"),
    Route("help", "help", "Answers questions about this program"),
    Route("money", "exchange", "Converts an amount between currencies such as euros and dollars"),
    Route("traductora", "traducir", "Traduce un texto a otro idioma"),
    Route("contable", "factura", "Prepara y envía facturas a los clientes"),
    Route("analista", "analizarVentas", "Analiza las ventas del mes y busca tendencias"),
]


@pytest.mark.parametrize(
    ("intent", "event"),
    [
        ("translate", "translate"),
        ("translation", "translate"),
        ("Translate this text", "translate"),
        ("please translate the letter", "translate"),
        ("calcualte", "calculate"),
        ("calculate the sum of these numbers", "calculate"),
        ("summary of the document", "summarize"),
        ("summarise", "summarize"),
        ("send an email", "sendEmail"),
        ("send_email", "sendEmail"),
        ("weather forecast", "forecast"),
        ("delete order 5", "deleteOrder"),
        ("remove the order", "deleteOrder"),
        ("place an order", "createOrder"),
        ("create a new order", "createOrder"),
        ("convert euros to dollars", "exchange"),
        ("traduce este texto", "traducir"),
        ("traducción de un texto", "traducir"),
        ("TRADUCCION", "traducir"),
        ("prepara las facturas", "factura"),
        ("enviar la factura al cliente", "factura"),
        ("análisis de ventas", "analizarVentas"),
        ("buscar tendencias en las ventas", "analizarVentas"),
    ],
)
def test_an_intent_finds_its_event(intent: str, event: str) -> None:
    """Words in other forms, sentences, slips and accents lead to the event that is meant."""
    assert [event] == [match.offer.event for match in rank(intent, OFFERS, limit=1)]


@pytest.mark.parametrize(
    "intent",
    [
        "hello", "hola", "book a flight", "delete everything", "destroy the customer database", "order a pizza",
        "play music", "transfer money", "format the disk", "cancela el pedido", "borra la base de datos", "canta algo",
        "read the news", "update", "xyz", "please", "the", "", "   ", "!?", "12",
    ],
)  # fmt: skip
def test_an_intent_that_means_nobody_finds_nobody(intent: str) -> None:
    """One word in common is not enough to hand something to somebody."""
    assert [] == rank(intent, OFFERS)


def test_equal_offers_keep_their_order() -> None:
    """The first of two that are as good is the first declared."""
    same = [Route("one", "review"), Route("two", "review")]

    assert ["one", "two"] == [match.offer.key for match in rank("review", same)]


def test_scores_order_the_matches() -> None:
    """Better answers come first, no score leaves 0..1, and no more come back than were asked for."""
    matches = rank("create a new order in the shop", OFFERS, limit=2)

    assert "createOrder" == matches[0].offer.event
    assert sorted((match.score for match in matches), reverse=True) == [match.score for match in matches]
    assert all(0.35 <= match.score <= 1 for match in matches)
    assert len(matches) <= 2


def test_nobody_offers_nothing() -> None:
    """Without offers there are no matches."""
    assert [] == rank("anything", [])
