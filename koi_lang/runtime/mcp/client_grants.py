"""The sign-in of a program that acts for itself, without a person: with a secret, a key, or an identity token."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.exceptions import OAuthFlowError
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.client.auth.oauth2 import TokenStorage
from mcp.shared.auth import JWT_BEARER_GRANT_TYPE
from mcp.shared.auth_utils import resource_url_from_server_url

from koi_lang.system.loopback import is_loopback_url

# RFC 8693, and the profile of it that lets an identity provider vouch for a person at another issuer.
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ID_TOKEN, ASSERTION = "urn:ietf:params:oauth:token-type:id_token", "urn:ietf:params:oauth:token-type:id-jag"


class JwtBearerProvider(ClientCredentialsOAuthProvider):
    """A client that shows a token of somebody whom the issuer trusts (RFC 7523), with or without a secret of its own.

    Args:
        assertion: that token.
    """

    def __init__(self, url: str, known: TokenStorage, client: Mapping[str, Any], assertion: str) -> None:
        secret = client.get("client_secret")
        method: Any = "client_secret_basic" if secret else "none"
        given = (str(client["client_id"]), str(secret or ""), method, client.get("scope"), str(client["issuer"]))
        super().__init__(url, known, *given)
        self._assertion = assertion

    async def _exchange_token_client_credentials(self) -> httpx2.Request:
        """The request for a token."""
        request = await super()._exchange_token_client_credentials()
        own = {"grant_type": JWT_BEARER_GRANT_TYPE, "assertion": self._assertion}
        if "Authorization" not in request.headers:
            own["client_id"] = str(self._fixed_client_info.client_id)
        form = {**dict(parse_qsl(request.content.decode())), **own}
        headers = {name: request.headers[name] for name in ("Authorization",) if name in request.headers}
        return httpx2.Request("POST", request.url, data=form, headers=headers)


def secrets_of(client: Mapping[str, Any]) -> dict[str, Any]:
    """The secrets among the options of such a client, by names for them."""
    own = {name.upper(): client.get(name) for name in ("private_key", "assertion")}
    return {**own, "IDENTITY_TOKEN": client.get("identity", {}).get("token")}


def provider_for_client(
    url: str, client: Mapping[str, Any], known: TokenStorage, assertion: str
) -> OAuthClientProvider:
    """What signs in for a client at its issuer."""
    if client["grant"] == "jwt_bearer":
        return JwtBearerProvider(url, known, client, assertion)
    id, issuer = str(client["client_id"]), str(client["issuer"])
    scope = client.get("scope")
    if "client_secret" in client:
        secret = str(client["client_secret"])
        return ClientCredentialsOAuthProvider(url, known, id, secret, scope=scope, issuer=issuer)
    signing = SignedJWTParameters(
        issuer=id,
        subject=id,
        signing_key=str(client["private_key"]),
        signing_algorithm=str(client.get("algorithm", "RS256")),
    )
    make = signing.create_assertion_provider()

    async def sign(audience: str) -> str:
        try:
            return await make(audience)
        except Exception as error:  # of the library, and of the one that it signs with
            raise OAuthFlowError(f"its `private_key` cannot sign: {error}") from error

    return PrivateKeyJWTOAuthProvider(url, known, id, sign, scope, issuer)


def exchange_request(url: str, client: Mapping[str, Any]) -> httpx2.Request | None:
    """The request that exchanges the identity of a client for a token to show to its issuer; None without `identity`.

    Raises:
        OAuthFlowError: others could read what is sent to the identity provider.
    """
    identity = client.get("identity")
    if identity is None:
        return None
    address = str(identity["url"])
    if not (address.startswith("https://") or is_loopback_url(address)):
        raise OAuthFlowError(f"others could read what is sent to `{address}`, which does not begin with `https://`")
    form = {
        "grant_type": EXCHANGE,
        "subject_token": str(identity["token"]),
        "subject_token_type": ID_TOKEN,
        "requested_token_type": ASSERTION,
        "audience": str(client["issuer"]),
        "resource": resource_url_from_server_url(url),
    }
    if "client_id" in identity:
        form["client_id"] = str(identity["client_id"])
    return httpx2.Request("POST", address, data=form)


async def read_assertion(response: httpx2.Response) -> str:
    """The token that an identity provider gave. Raises OAuthFlowError where it gave none."""
    text = (await response.aread()).decode("utf-8", "replace")
    with suppress(ValueError, KeyError, TypeError):
        token = json.loads(text)["access_token"]
        if response.is_success and isinstance(token, str) and token:
            return token
    raise OAuthFlowError(f"its identity provider gave no token: HTTP {response.status_code}: {text}")
