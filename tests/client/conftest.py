"""What tests of the client start from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from koi_lang.client import Client, exchange
from tests.client.stand_in import StandIn, serving


@pytest.fixture
def service() -> Iterator[StandIn]:
    """A server that answers what the test gives it."""
    with serving() as stand_in:
        yield stand_in


@pytest.fixture
def client(service: StandIn, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """A client of it that asks again soon."""
    monkeypatch.setattr(exchange, "FIRST_PAUSE_S", 0.01)
    with Client(service.url, "secret") as client:
        yield client


@pytest.fixture
def hasty(service: StandIn, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """One that does not wait long."""
    monkeypatch.setattr(exchange, "FIRST_PAUSE_S", 0.01)
    with Client(service.url, "secret", patience_s=0.1) as client:
        yield client
