"""Amazon Bedrock, as far as it can be shown without Amazon."""

from __future__ import annotations

import sys

import pytest

from koi_lang.errors import ProviderError
from koi_lang.llm.anthropic import Anthropic
from koi_lang.llm.bedrock import Bedrock
from koi_lang.llm.connect import connect
from koi_lang.llm.models import card_of
from koi_lang.llm.providers import provider_named


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the packages that sign requests, the message says what to install."""
    monkeypatch.setitem(sys.modules, "boto3", None)

    with pytest.raises(ProviderError, match="needs the package `boto3`, which is not installed") as caught:
        connect({"provider": "bedrock"}, lambda name: None)

    assert caught.value.help == 'Install it with `pip install "anthropic[bedrock]"`.'


def test_its_aliases_are_names_at_amazon() -> None:
    """The same short names mean models of the same families, and the default is one of them."""
    families = {alias for alias, name in Bedrock.aliases.items() if f"claude-{alias}-" in name}

    assert families == set(Anthropic.aliases) == set(Bedrock.aliases)
    assert provider_named("bedrock").model == Bedrock.aliases["sonnet"]


def test_names_at_amazon_have_the_prices_of_their_models() -> None:
    """Region and maker in front of a name do not hide which model it is."""
    assert card_of("eu.anthropic.claude-haiku-4-5-20251001-v1:0") == card_of("claude-haiku-4-5")
