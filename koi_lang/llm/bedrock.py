"""Requests to streams of deltas through Amazon Bedrock, for the models of Anthropic there."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

from koi_lang.errors import MissingKeyError, ProviderError
from koi_lang.lazy import lazy_module
from koi_lang.llm.anthropic import Anthropic
from koi_lang.llm.connection import ProviderConnection

if TYPE_CHECKING:
    import anthropic
    import httpx2
else:
    anthropic = lazy_module("anthropic")
    httpx2 = lazy_module("httpx2")

NEEDED = ("boto3", "botocore")


class Bedrock(Anthropic):
    """A model of Anthropic's at Amazon; region and credentials are found as Amazon's own tools find them."""

    aliases: ClassVar[Mapping[str, str]] = {
        "sonnet": "global.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "opus": "global.anthropic.claude-opus-4-5-20251101-v1:0",
        "haiku": "global.anthropic.claude-haiku-4-5-20251001-v1:0",
    }

    def __init__(self, connection: ProviderConnection) -> None:
        """Raises ProviderError when the packages that sign requests are not installed."""
        missing = [name for name in NEEDED if find_spec(name) is None]
        if missing:
            raise ProviderError(
                f"the provider `bedrock` needs the package `{missing[0]}`, which is not installed",
                help='Install it with `pip install "anthropic[bedrock]"`.',
            )
        super().__init__(connection)

    def _open(self) -> anthropic.AsyncAnthropicBedrock:
        """A client with region and credentials. Raises MissingKeyError or ProviderError."""
        try:
            client = self._client_for_region()
            if client.api_key or import_module("boto3").Session().get_credentials():
                return client
        except import_module("botocore.exceptions").BotoCoreError as error:
            raise _no_credentials() from error
        raise _no_credentials()

    def _payload(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The body unchanged; the SDK takes the address from it."""
        return {"body": dict(body)}

    def _client_for_region(self) -> anthropic.AsyncAnthropicBedrock:
        try:
            return anthropic.AsyncAnthropicBedrock(
                api_key=self.connection.key.value or None,
                base_url=self.connection.base_url,
                timeout=httpx2.Timeout(self.connection.silence_s, connect=10.0),
                max_retries=0,
            )
        except ValueError as error:
            raise ProviderError(
                "the provider `bedrock` does not know which region to use",
                help="Set it with `export AWS_REGION=…`, or in the profile of the `aws` command.",
            ) from error


def _no_credentials() -> MissingKeyError:
    return MissingKeyError(
        "the provider `bedrock` finds no usable credentials of Amazon",
        help="Run `aws configure`, or set a key with `export AWS_BEARER_TOKEN_BEDROCK=…`.",
    )
