"""A service of Koi from Python: begin runs, follow their events, answer and approve, and get results.

    from koi_lang.client import Client

    with Client("http://127.0.0.1:8000", token) as client:
        print(client.ask("Writer.write", {"topic": "the sea"}))

Neither the compiler nor what runs programs is needed, nor imported.
"""

from __future__ import annotations

from koi_lang.client.async_client import AsyncClient, AsyncRemoteRun
from koi_lang.client.errors import (
    BrokenServiceError,
    ForeignServerError,
    RefusedError,
    RemoteCallError,
    RemoteError,
    SignInError,
    UnreachableError,
)
from koi_lang.client.following import RunMessage
from koi_lang.client.sync_client import RemoteRun
from koi_lang.client.sync_client import SyncClient as Client

__all__ = [
    "AsyncClient",
    "AsyncRemoteRun",
    "BrokenServiceError",
    "Client",
    "ForeignServerError",
    "RefusedError",
    "RemoteCallError",
    "RemoteError",
    "RemoteRun",
    "RunMessage",
    "SignInError",
    "UnreachableError",
]
