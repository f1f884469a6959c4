"""Web search by the services for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from koi_lang.errors import REFUSED, AgentError
from koi_lang.lazy import lazy_module
from koi_lang.runtime.replay.calls import Effect
from koi_lang.settings import ProjectSettings, project
from koi_lang.setup.keys.lookup import Keys
from koi_lang.setup.search_services import SEARCH_SERVICES
from koi_lang.std.code.access import Workplace
from koi_lang.std.effects import perform_effect, project_settings
from koi_lang.std.html_text import readable
from koi_lang.std.http_request import CheckedRequest, check_request

if TYPE_CHECKING:
    from koi_lang.std import http_client
else:
    http_client = lazy_module("koi_lang.std.http_client")

MAX_RESULTS = 10
MAX_QUERY_CHARS = 400
MAX_TEXT_CHARS = 1000
TIMEOUT_S, MAX_BYTES = 30, 2_000_000
SEARXNG = "searxng"


@dataclass(frozen=True, slots=True)
class SearchEngine:
    """A service to be asked; printing it does not show the key.

    Attributes:
        address: of the service, for SearXNG without `/search`.
        key: of the person; empty for SearXNG, which needs none.
    """

    name: str
    address: str
    key: str = ""

    def __repr__(self) -> str:
        return f"SearchEngine({self.name!r}, {self.address!r})"


async def web_search(query: str, count: int = 5) -> dict[str, Any]:
    """Search the web; says `source`, `query` and `results`, each with `title`, `url` and `text`.

    Args:
        count: most results, at most MAX_RESULTS.

    Returns:
        With `success`; where no service is set up, or it fails, that is false and `error` says why.

    Raises:
        PermissionDeniedError: a rule or the person does not allow to ask the service.
        AgentError: the words are none.
    """
    if not isinstance(query, str) or not query.strip() or len(query) > MAX_QUERY_CHARS:
        raise AgentError(f"`query` must be a text of at most {MAX_QUERY_CHARS} characters", help="Ask in a few words.")
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise AgentError(f"`count` must be a whole number from 1 to {MAX_RESULTS}, not {count!r}")
    engine = find_engine(project_settings())
    if engine is None:
        names = " or ".join(f"`koi connect {service.name}`" for service in SEARCH_SERVICES)
        message = f'no search is set up; the person can do it with {names}, or `[web] search = "ADDRESS"` in `koi.toml`'
        return {"success": False, "error": f"{message} for a SearXNG"}
    return await search_with(engine, " ".join(query.split()), min(count, MAX_RESULTS))


def find_engine(settings: ProjectSettings) -> SearchEngine | None:
    """The SearXNG of `koi.toml`, else the first service that the person has a key of. Raises KoiError."""
    if address := project.search_address(settings):
        return SearchEngine(SEARXNG, address.rstrip("/"))
    keys = Keys(settings)
    found = ((service, keys(service.key)) for service in SEARCH_SERVICES)
    return next((SearchEngine(service.name, service.address, key) for service, key in found if key), None)


async def search_with(engine: SearchEngine, query: str, count: int) -> dict[str, Any]:
    """The results of a service. Raises PermissionDeniedError."""
    await Workplace.current().require_page(urlsplit(engine.address).hostname or "", engine.address)
    effect = Effect("web.search", {"source": engine.name, "query": query, "count": count}, safe=True, goes_out=True)

    async def ask() -> dict[str, Any]:
        try:
            results = await _ask(engine, query, count)
        except AgentError as error:
            message = error.message.replace(engine.key, "…") if engine.key else error.message
            return {"success": False, "source": engine.name, "error": message}
        return {"success": True, "source": engine.name, "query": query, "results": results}

    return dict(await perform_effect(effect, ask))


async def _ask(engine: SearchEngine, query: str, count: int) -> list[dict[str, str]]:
    """Raises AgentError where no results come of it."""
    form = FORMS[engine.name]
    own = {_host(engine.address)} if engine.name == SEARXNG else set()
    # Never to another place: headers with keys would go there, too.
    answer = await http_client.send_request(form.request(engine, query, count), follows=False, allowed=tuple(own))
    if not answer["ok"]:
        raise AgentError(_status_told(engine, answer["status"]))
    try:
        found = json.loads(answer["text"])
        rows = form.rows(found)
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
        raise AgentError(f"`{engine.name}` does not answer as a search does") from error
    results = [_result(row, form.text, engine) for row in rows if isinstance(row, dict)]
    return [each for each in results if each["url"].startswith(("http://", "https://"))][:count]


def _host(address: str) -> str:
    return urlsplit(address).netloc.rpartition("@")[2]


def _status_told(engine: SearchEngine, status: int) -> str:
    if engine.name == SEARXNG and status == 403:
        return "`searxng` does not answer with JSON; its `settings.yml` has to list `json` in `search: formats:`"
    if status in REFUSED and engine.key:
        return f"`{engine.name}` does not accept its key; the person can give another: `koi connect {engine.name}`"
    if status == 429:
        return f"`{engine.name}` takes no more questions for now, by its limits"
    return f"`{engine.name}` answered with the status {status}"


def _result(row: Mapping[str, Any], text: str, engine: SearchEngine) -> dict[str, str]:
    """One result, without marks of HTML in its texts, and never with the key that was sent."""
    found = {"title": row.get("title"), "url": row.get("url"), "text": row.get(text)}
    texts = {name: value if isinstance(value, str) else "" for name, value in found.items()}
    plain = {name: value if name == "url" else _plain(value) for name, value in texts.items()}
    return {name: value.replace(engine.key, "…") if engine.key else value for name, value in plain.items()}


def _plain(text: str) -> str:
    shown = str(readable(text, "")["text"]) if "<" in text or "&" in text else text
    shown = " ".join(shown.split())
    return shown if len(shown) <= MAX_TEXT_CHARS else f"{shown[:MAX_TEXT_CHARS]}…"


# ---------------------------------------------------------------- what each service reads and answers


@dataclass(frozen=True, slots=True)
class _Form:
    """How a service is asked, where its results are, and which field of one is its text."""

    request: Callable[[SearchEngine, str, int], CheckedRequest]
    rows: Callable[[Any], list[Any]]
    text: str


def _get(address: str, headers: Mapping[str, str]) -> CheckedRequest:
    return check_request(address, {"headers": dict(headers), "timeout": TIMEOUT_S, "size": MAX_BYTES})


def _ask_brave(engine: SearchEngine, query: str, count: int) -> CheckedRequest:
    headers = {"accept": "application/json", "x-subscription-token": engine.key}
    return _get(f"{engine.address}?{urlencode({'q': query, 'count': count})}", headers)


def _ask_searxng(engine: SearchEngine, query: str, count: int) -> CheckedRequest:
    return _get(f"{engine.address}/search?{urlencode({'q': query, 'format': 'json'})}", {"accept": "application/json"})


def _ask_tavily(engine: SearchEngine, query: str, count: int) -> CheckedRequest:
    headers = {"content-type": "application/json", "authorization": f"Bearer {engine.key}"}
    body = json.dumps({"query": query, "max_results": count})
    options = {"method": "POST", "headers": headers, "body": body, "timeout": TIMEOUT_S, "size": MAX_BYTES}
    return check_request(engine.address, options)


FORMS = {
    "brave": _Form(_ask_brave, lambda found: found.get("web", {}).get("results", []), "description"),
    "tavily": _Form(_ask_tavily, lambda found: found["results"], "content"),
    SEARXNG: _Form(_ask_searxng, lambda found: found["results"], "content"),
}
