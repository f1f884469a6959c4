"""From the options of an `llm` block to a model."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest

from docs.generate import runtime_facts_module
from koi_lang.errors import MissingKeyError, ProviderError
from koi_lang.llm import providers
from koi_lang.llm.connect import PROVIDERS, connect
from koi_lang.llm.connection import Provider
from koi_lang.llm.messages import Adapter, Message, Request, Usage, merge_turns
from koi_lang.llm.models import card_of, cost_usd
from koi_lang.llm.rehearsal import Rehearsal
from tests.llm.rehearsing import answer_text
from tests.llm.server import ModelServer


def connected(options: dict[str, Any], **keys: str) -> Adapter:
    """The model for these options when these keys are known."""
    return connect(options, keys.get)


@pytest.mark.parametrize("provider", [row for row in PROVIDERS if row.name != "bedrock"], ids=lambda row: row.name)
def test_every_provider_in_the_table_connects(provider: Any) -> None:
    """Each row gives a model under its name with its default."""
    model = connect(
        {"provider": provider.name, "base_url": provider.base_url or "http://127.0.0.1:9/v1"}, lambda _: "k"
    )

    assert (model.provider, model.model) == (provider.name, provider.model)


def test_a_provider_is_described_in_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that a test makes up connects, is suggested for a slip, and is known to the compiler's table."""
    row = Provider(
        "acme", ("ACME_API_KEY",), "roadrunner-1", "http://127.0.0.1:9/v1", prefixes=("roadrunner-",), seed=""
    )
    monkeypatch.setattr(providers, "PROVIDERS", (*providers.PROVIDERS, row))
    facts = runtime_facts_module()

    assert "roadrunner-1" == connected({"provider": "acme"}, ACME_API_KEY="k").model
    assert [row] == providers.makers_of("roadrunner-2")
    assert "acme" == providers.suggest_provider("acmee")
    assert 2 == facts.count('    "acme",\n')


def test_a_named_provider_without_its_key_says_which() -> None:
    """The message names the variable, the help how to set it."""
    with pytest.raises(MissingKeyError) as caught:
        connected({"provider": "groq"}, OPENAI_API_KEY="k")

    assert caught.value.message == "the provider `groq` needs a key, and `GROQ_API_KEY` is not set"
    assert "export GROQ_API_KEY=" in (caught.value.help or "")
    assert caught.value.exit_code == 2


def test_an_unknown_provider_is_answered_with_the_nearest() -> None:
    """A slip of the finger is recognised."""
    with pytest.raises(ProviderError, match="there is no provider `opnai`") as caught:
        connected({"provider": "opnai"})

    assert caught.value.help == "Did you mean `openai`?"


def test_an_unknown_provider_without_a_near_one_lists_all() -> None:
    """Where nothing is near, everything that exists is listed."""
    with pytest.raises(ProviderError) as caught:
        connected({"provider": "zzz"})

    assert "`ollama`, `local`, `rehearsal`, `scripted`" in (caught.value.help or "")


@pytest.mark.parametrize(
    ("options", "keys", "expected"),
    [
        ({}, {}, ("rehearsal", "rehearsal")),
        ({"provider": "auto", "model": "gpt-4o"}, {}, ("rehearsal", "rehearsal")),
        ({}, {"GROQ_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}, ("anthropic", "claude-sonnet-5-5")),
        ({}, {"OPENAI_API_KEY": " ", "GOOGLE_API_KEY": "k"}, ("gemini", "gemini-flash-latest")),
        (
            {"model": "claude-haiku-4-5"},
            {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"},
            ("anthropic", "claude-haiku-4-5"),
        ),
        ({"provider": "Anthropic", "model": "opus"}, {"ANTHROPIC_API_KEY": "k"}, ("anthropic", "claude-opus-5-5")),
        ({"provider": "openai", "model": "auto"}, {"OPENAI_API_KEY": "k"}, ("openai", "gpt-5.4-mini")),
        ({"provider": "ollama", "model": "qwen3"}, {}, ("ollama", "qwen3")),
        ({"provider": "rehearsal"}, {"OPENAI_API_KEY": "k"}, ("rehearsal", "rehearsal")),
        ({"provider": "scripted", "answers": ["x"]}, {}, ("scripted", "scripted")),
    ],
)
def test_the_choice_of_a_provider(options: dict[str, Any], keys: dict[str, str], expected: tuple[str, str]) -> None:
    """Named is named; else the maker of the named model, the first with a key, and at last the rehearsal."""
    model = connect(options, keys.get)

    assert (model.provider, model.model) == expected


def test_a_model_whose_maker_has_no_key_is_not_sent_elsewhere() -> None:
    """Asking for a model by name never ends at another provider that does not have it."""
    with pytest.raises(MissingKeyError, match="ANTHROPIC_API_KEY"):
        connected({"model": "claude-haiku-4-5"}, OPENAI_API_KEY="k")


def test_options_reach_the_request() -> None:
    """Temperature, limit and address of the block are used where the request says nothing."""

    async def run() -> dict[str, Any]:
        async with ModelServer() as server:
            options = {"provider": "openai", "model": "m", "temperature": 0.3, "max_tokens": 9, "base_url": server.url}
            model = connected(options)  # a server of one's own needs no key
            async for _ in model(Request("s", (Message("user", "u"),))):
                pass
            await model.aclose()
            return dict(server.requests[0].body)

    body = asyncio.run(run())

    assert {key: body[key] for key in ("model", "temperature", "max_tokens")} == {
        "model": "m",
        "temperature": 0.3,
        "max_tokens": 9,
    }


def test_notes_of_the_rehearsal_reach_the_caller() -> None:
    """Whoever connects can tell the user what would need a model."""
    told: list[str] = []
    model = connect({}, lambda name: None, on_note=told.append)
    answer_text(model, Request("", ()))

    assert isinstance(model, Rehearsal)
    assert told == ["a request outside of a playbook"]


def test_connecting_imports_no_sdk() -> None:
    """The SDKs, slow to import, wait for the first request."""
    code = (
        "import sys; from koi_lang.llm.connect import connect\n"
        "for name in ('openai', 'anthropic', 'rehearsal'): connect({'provider': name}, lambda key: 'k')\n"
        "print([name for name in ('openai', 'anthropic', 'httpx2', 'pydantic', 'lark') if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert shown.strip() == "[]"


def test_neighbouring_turns_are_merged() -> None:
    """Roles alternate after merging; the order of the text stays."""
    turns = [Message("user", "a"), Message("user", "b"), Message("assistant", "c"), Message("user", "d")]

    assert merge_turns(turns) == (Message("user", "a\n\nb"), Message("assistant", "c"), Message("user", "d"))


def test_costs_are_told_only_where_prices_are_known() -> None:
    """Cached tokens cost less; an unknown model costs an unknown amount, not nothing."""
    usage = Usage(1_000_000, 100_000, 400_000)

    assert cost_usd("openai/gpt-4o-mini-2024-07-18", usage) == pytest.approx(0.15 * 0.6 + 0.075 * 0.4 + 0.06)
    assert cost_usd("someone/else", usage) is None


@pytest.mark.parametrize(
    ("model", "sampling"),
    [("gpt-4o", True), ("gpt-5.4-mini", False), ("o3", False), ("gpt-12", False), ("claude-sonnet-4-6", True),
     ("claude-opus-4-7", False), ("openai/gpt-oss-120b", True), ("llama3.2", True)],
)  # fmt: skip
def test_which_models_take_a_temperature(model: str, sampling: bool) -> None:
    """Reasoning models refuse a temperature; models nothing is known about get it."""
    assert card_of(model).sampling is sampling
