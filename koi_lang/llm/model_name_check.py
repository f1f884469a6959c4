"""Names of models compared with the lists of their providers: a mistyped one is told before it costs anything."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from difflib import get_close_matches

from koi_lang.errors import RequestError, UnknownModelError
from koi_lang.llm.connection import ProviderConnection
from koi_lang.llm.layers import Layer, open_stream
from koi_lang.llm.local_servers import server_title
from koi_lang.llm.messages import Adapter, Delta, Request
from koi_lang.llm.model_list_cache import ModelListCache
from koi_lang.llm.model_listing import has

LIMIT_S = 3.0
MAX_NAMES = 5
HOST_AND_PORT = re.compile(r"[\w.-]+:\d{2,5}(?:/.*)?")


def fits(name: str, known: Sequence[str]) -> bool:
    """Whether a name is one of a list: as it is, as the beginning of a dated one, or with a variant behind a colon."""
    lowered, names = name.lower(), {each.lower() for each in known}
    if lowered in names or lowered.partition(":")[0] in names:
        return True
    return any(each.startswith((f"{lowered}-", f"{lowered}:", f"{lowered}@")) for each in names)


def nearest_models(name: str, known: Sequence[str], most: int = 3) -> list[str]:
    """The names that a mistyped one may stand for, the likeliest first."""
    by_case = {each.lower(): each for each in known}
    return [by_case[each] for each in get_close_matches(name.lower(), by_case, n=most, cutoff=0.6)]


def unknown_model_error(connection: ProviderConnection, known: Sequence[str]) -> UnknownModelError:
    """The error for a model that a provider does not have."""
    provider = connection.provider.name
    near = nearest_models(connection.model, known)
    if connection.is_own_server:
        listed = " or ".join(f"`{name}`" for name in near or known[:MAX_NAMES])
        message = f"the server at `{server_title(str(connection.base_url))}` has no model `{connection.model}`"
        help = f"Did you mean {listed}?" if near else f"It has {listed}."
        if HOST_AND_PORT.fullmatch(connection.model):
            help = f"An address has `http://`: write `-m http://{connection.model}`."
        return UnknownModelError(message, help=help)
    listed = f"`koi models {provider}` lists what it has."
    help = f"Did you mean {' or '.join(f'`{name}`' for name in near)}? {listed}" if near else listed
    message = f"`{provider}` has no model `{connection.model}`"
    maker, _, name = connection.model.partition("/")
    if name and not near and not any(each.startswith(f"{maker}/") for each in known):
        message = f"there is no provider `{maker}`, and {message}"
    return UnknownModelError(message, help=help)


async def check(connection: ProviderConnection, lists: ModelListCache, *, ask: bool) -> None:
    """See that a provider has a model. Raises UnknownModelError.

    A list may be old, and providers accept names that they do not list; so before anything is called wrong, the
    provider is asked about this one name. Where it cannot be asked, nothing is wrong yet.

    Args:
        ask: whether to ask for the list where none is kept.
    """
    known = lists.find(connection)
    try:
        if known is None and ask:
            known = await lists.current(connection, limit_s=LIMIT_S)
        if known is None or fits(connection.model, known.names) or await has(connection, limit_s=LIMIT_S):
            return
    except RequestError:  # the request for an answer will fail in the same way, and be explained
        return
    raise unknown_model_error(connection, known.names)


def with_name_check(model: Adapter, connection: ProviderConnection, lists: ModelListCache, *, ask: bool) -> Adapter:
    """A model whose name is looked up before the first request. Raises UnknownModelError with that."""
    return _Checked(model, connection, lists, ask)


async def require_known(model: Adapter) -> None:
    """Raise UnknownModelError when the name of a model is looked up, and its provider has none of that name."""
    if isinstance(model, _Checked):
        await model.check(model.model)


class _Checked(Layer):
    def __init__(self, inner: Adapter, connection: ProviderConnection, lists: ModelListCache, ask: bool) -> None:
        super().__init__(inner)
        self._connection = connection
        self._lists = lists
        self._ask = ask
        self._known: set[str] = set()
        self._turn = asyncio.Lock()

    async def __call__(self, request: Request) -> AsyncIterator[Delta]:
        await self.check(request.model or self._connection.model)
        async with open_stream(self.inner, request) as deltas:
            async for delta in deltas:
                yield delta

    async def check(self, name: str) -> None:
        """Look a name up, once. Raises UnknownModelError."""
        async with self._turn:
            if name not in self._known:
                await check(replace(self._connection, model=name), self._lists, ask=self._ask)
                self._known.add(name)
