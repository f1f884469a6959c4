"""Servers of models that a person runs: how they are named, what they cost, and who gets their key."""

from __future__ import annotations

import pytest

from koi_lang.errors import MissingKeyError, UsageError
from koi_lang.llm.connect import connect
from koi_lang.llm.local_servers import read_address
from koi_lang.llm.messages import Request, Usage
from koi_lang.llm.model_choice import ModelChoice, choose
from koi_lang.llm.models import cost_usd
from koi_lang.llm.sdk_model import SdkModel
from koi_lang.llm.usage import Candidate, estimate

HERE = "http://127.0.0.1:8080/v1"


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("http://127.0.0.1:8080/v1", (HERE, "")),
        ("http://127.0.0.1:8080", (HERE, "")),
        ("http://127.0.0.1:8080/", (HERE, "")),
        ("http://127.0.0.1:8080/v1/#qwen", (HERE, "qwen")),
        ("http://127.0.0.1:8080#org/qwen:7b", (HERE, "org/qwen:7b")),
        ("HTTPS://box:8000/models/v1", ("https://box:8000/models/v1", "")),
        ("http://[::1]:8080", ("http://[::1]:8080/v1", "")),
    ],
)
def test_how_addresses_are_read(address: str, expected: tuple[str, str]) -> None:
    """`/v1` may be missing, a model stands behind `#`."""
    assert read_address(address) == expected


@pytest.mark.parametrize("address", ["http://", "http://x:99999", "http://u:p@x/v1", "http://x/v1?key=1"])
def test_what_is_no_address(address: str) -> None:
    """A slip is told before anything is sent."""
    with pytest.raises(UsageError, match="is not an address of a server"):
        choose({"model": address}, lambda name: None)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"model": f"{HERE}#qwen"}, ModelChoice("local", "qwen", HERE)),
        ({"model": "local/qwen"}, ModelChoice("local", "qwen")),
        ({"model": "local"}, ModelChoice("local")),
        ({}, ModelChoice("local")),
        ({"model": "mystery"}, ModelChoice("local", "mystery")),
        ({"model": "gpt-4o"}, ModelChoice("openai", "gpt-4o")),
        ({"model": "groq/x"}, ModelChoice("groq", "x")),
    ],
)
def test_a_server_that_is_connected_goes_before_companies(options: dict[str, str], expected: ModelChoice) -> None:
    """What names neither a provider nor one of its models is meant for the server that the person has set up."""
    assert choose(options, {"LOCAL_BASE_URL": HERE, "OPENAI_API_KEY": "k"}.get) == expected


def test_an_address_in_the_environment_is_enough() -> None:
    """`OPENAI_BASE_URL` without a key counts as connected; before, a program without a model was rehearsed."""
    assert choose({}, {"OPENAI_BASE_URL": HERE}.get) == ModelChoice("openai")


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"model": "local/x"}, "secret"),
        ({"model": "local/x", "base_url": HERE}, "secret"),
        ({"model": "local/x", "base_url": "http://127.0.0.1:8080"}, "secret"),
        ({"model": "http://127.0.0.1:9090#x"}, ""),
        ({"model": "local/x", "base_url": "http://elsewhere/v1"}, ""),
    ],
)
def test_the_key_of_a_server_goes_to_no_other(options: dict[str, str], key: str) -> None:
    """An address that comes with a project does not get the key of the server that the person has connected."""
    model = connect(options, {"LOCAL_BASE_URL": HERE, "LOCAL_API_KEY": "secret"}.get)

    adapter = getattr(model, "inner", model)

    assert isinstance(adapter, SdkModel)
    assert adapter.connection.key.value == key


def test_without_an_address_one_is_asked_for() -> None:
    """Nothing is connected: the message says how to connect."""
    with pytest.raises(MissingKeyError, match="no server of your own is connected") as caught:
        connect({"model": "local/x"}, lambda name: None)

    assert "koi connect http://127.0.0.1:8080/v1" in (caught.value.help or "")


@pytest.mark.parametrize(
    ("name", "usd"), [("local/mystery", 0.0), ("local/gpt-4o", 0.0), ("ollama/qwen3.8-27b", 0.0), ("mystery", None)]
)
def test_models_of_ones_own_cost_nothing(name: str, usd: float | None) -> None:
    """What runs at home has the price 0, whatever somebody takes for a model of that name."""
    assert cost_usd(name, Usage(1000, 1000)) == usd


def test_a_budget_in_usd_bounds_them() -> None:
    """No estimate says that the price is not known, and $0 is enough."""
    need = estimate(Request("", ()), [Candidate("mystery", provider="local")])

    assert (need.unpriced, need.input_usd, need.answer_usd) == ("", 0.0, 0.0)
