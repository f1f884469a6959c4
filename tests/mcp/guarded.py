"""A server that lets nobody in without a token, with the authorization server that gives tokens, at a port it prints.

It agrees with everybody who comes. The word `refuses` has it agree with nobody, `renews` give tokens that live
five seconds, `forgets` also renew none of these. What happens is written to the file that `EVENTS` names, a word a
line.
"""

from __future__ import annotations

import os
import secrets
import socket
import sys
import time
from pathlib import Path

import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    AuthorizeError,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl

HABIT = sys.argv[1] if len(sys.argv) > 1 else ""
SCOPE = "tools"


def note(word: str) -> None:
    """Write a word down."""
    with Path(os.environ["EVENTS"]).open("a", encoding="utf-8") as file:
        file.write(f"{word}\n")


class Gate:
    """Clients, codes and tokens, as long as the process lives."""

    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        """A client that was registered."""
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        """Register a client."""
        note("registered")
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        """Where the browser goes on to: with a code, since everybody agrees here."""
        note("asked")
        if HABIT == "refuses":
            raise AuthorizeError("access_denied", "not you")
        code = AuthorizationCode(
            code=secrets.token_urlsafe(32), scopes=[SCOPE], expires_at=time.time() + 60, client_id=client.client_id,
            code_challenge=params.code_challenge, redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly, resource=params.resource,
        )  # fmt: skip
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        """A code that was not used."""
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        """Tokens for a code."""
        del self.codes[authorization_code.code]
        return self._tokens(client)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        """A token that renews."""
        return None if HABIT == "forgets" else self.refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        """New tokens for an old one, which is used up."""
        note("renewed")
        del self.refresh[refresh_token.token]
        return self._tokens(client)

    async def load_access_token(self, token: str) -> AccessToken | None:
        """A token that is valid."""
        found = self.access.get(token)
        return found if found is None or (found.expires_at or 0) > time.time() else None

    def _tokens(self, client: OAuthClientInformationFull) -> OAuthToken:
        life_s = 5 if HABIT in ("renews", "forgets") else 3600
        access, refresh = f"access-{secrets.token_urlsafe(24)}", f"refresh-{secrets.token_urlsafe(24)}"
        expires = int(time.time()) + life_s
        self.access[access] = AccessToken(token=access, client_id=client.client_id, scopes=[SCOPE], expires_at=expires)
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client.client_id, scopes=[SCOPE])
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=life_s, scope=SCOPE)


def main() -> None:
    """Serve at a free port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        here = f"http://127.0.0.1:{listening.getsockname()[1]}"
        settings = AuthSettings(
            issuer_url=AnyHttpUrl(here),
            resource_server_url=AnyHttpUrl(f"{here}/mcp"),
            client_registration_options=ClientRegistrationOptions(
                enabled=True, valid_scopes=[SCOPE], default_scopes=[SCOPE]
            ),
            required_scopes=[SCOPE],
            validate_token_resource=False,
        )
        server = MCPServer("guarded", auth=settings, auth_server_provider=Gate(), log_level="ERROR")  # type: ignore[arg-type]
        server.tool(structured_output=False)(echo)
        print(listening.getsockname()[1], flush=True)
        uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="error")).run(sockets=[listening])


def echo(text: str) -> str:
    """Say it again."""
    return text


if __name__ == "__main__":
    main()
