"""Addresses to the readable text of their pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from koi_lang.errors import AgentError, PermissionDeniedError
from koi_lang.lazy import lazy_module
from koi_lang.runtime.concurrency.stoppable_threads import run_in_thread
from koi_lang.runtime.replay.calls import Effect
from koi_lang.std.code.access import Workplace
from koi_lang.std.effects import perform_effect
from koi_lang.std.html_text import readable
from koi_lang.std.http_request import MAX_BYTES, check_request

if TYPE_CHECKING:
    from koi_lang.std import http_client
else:
    http_client = lazy_module("koi_lang.std.http_client")

DEFAULT_CHARS, MAX_CHARS = 8000, 100_000
MAX_HOPS, TIMEOUT_S = 5, 30
MOVED = frozenset({301, 302, 303, 307, 308})
HTML = ("text/html", "application/xhtml+xml")
TEXTS = ("application/json", "application/xml", "application/javascript", "application/yaml", "application/toml")


async def web_fetch(url: str, max_chars: int = DEFAULT_CHARS) -> dict[str, Any]:
    """Read a page of the web as text: HTML without its marks and scripts, other texts as they are.

    Args:
        url: of `http` or `https`.
        max_chars: how much of the text is wanted, at most MAX_CHARS.

    Returns:
        `success`, `url` (after redirects), `contentType`, `text`, `chars` of the whole text, and `truncated`; or
        `success` as false, `status` (None where no answer came) and `error`.

    Raises:
        PermissionDeniedError: the host is not public and not allowed, or a rule or the person does not allow it;
            that of a redirect, too.
        AgentError: this is no address, or no number of characters.
    """
    if isinstance(max_chars, bool) or not isinstance(max_chars, int) or not 1 <= max_chars <= MAX_CHARS:
        raise AgentError(f"`maxChars` must be a whole number from 1 to {MAX_CHARS:,}, not {max_chars!r}")
    check_request(url, {})
    host = ""
    for _ in range(MAX_HOPS + 1):
        if (new_host := urlsplit(url).hostname or "") != host:
            host = new_host
            await Workplace.current().require_page(host, url)
        page = await _open_page(url, max_chars)
        target = page.pop("location", None)
        if target is None:
            return page
        try:
            url = urljoin(url, target)
            check_request(url, {})
        except (ValueError, AgentError):
            return {"success": False, "status": None, "error": f"`{url}` leads on to what is no address of the web"}
    return {"success": False, "status": None, "error": f"`{url}` leads on more than {MAX_HOPS} times"}


async def _open_page(url: str, max_chars: int) -> dict[str, Any]:
    """A page, or `location` where it leads on. Raises PermissionDeniedError."""
    effect = Effect("web.fetch", {"url": url, "maxChars": max_chars}, safe=True, goes_out=True)
    return dict(await perform_effect(effect, lambda: _fetch(url, max_chars)))


async def _fetch(url: str, max_chars: int) -> dict[str, Any]:
    wanted = {"accept": "text/html, text/*;q=0.9, application/json;q=0.8"}
    asked = check_request(url, {"headers": wanted, "timeout": TIMEOUT_S, "size": MAX_BYTES})
    try:
        answer = await http_client.send_request(asked, follows=False)
    except PermissionDeniedError:
        raise
    except AgentError as error:
        return {"success": False, "status": None, "error": error.message}
    if answer["status"] in MOVED and "location" in answer["headers"]:
        return {"location": answer["headers"]["location"]}
    if not answer["ok"]:
        message = f"`{url}` answered with the status {answer['status']}"
        return {"success": False, "status": answer["status"], "error": message}
    kind, text = answer["type"], answer["text"]
    if not _is_text(kind):
        message = f"`{url}` is `{kind}`, which is no text"
        return {"success": False, "status": answer["status"], "error": message}
    if kind in HTML or (not kind and "<html" in text[:1000].lower()):
        text = await run_in_thread(lambda _: _text_of(text, url))
    short = {"text": text[:max_chars], "chars": len(text), "truncated": len(text) > max_chars}
    return {"success": True, "url": url, "contentType": kind, **short}


def _text_of(page: str, url: str) -> str:
    found = readable(page, url)
    return f"{found['title']}\n\n{found['text']}" if found["title"] else str(found["text"])


def _is_text(kind: str) -> bool:
    return not kind or kind.startswith("text/") or kind in HTML or kind in TEXTS or kind.endswith(("+json", "+xml"))
