"""The global `URL`."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from koi_lang.js.conversions import text
from koi_lang.js.errors import TypeErrorValue
from koi_lang.js.method_tables import Constructor, MethodTable, holder
from koi_lang.js.search_params import SearchParamsValue
from koi_lang.js.undefined import Value, undefined
from koi_lang.js.url_encoding import parse_form
from koi_lang.js.url_parser import UrlError, parse_url
from koi_lang.js.url_records import UrlRecord
from koi_lang.js.url_setters import SETTERS

_SHOWN = (
    "href", "origin", "protocol", "username", "password", "host", "hostname", "port", "pathname", "search",
    "searchParams", "hash",
)  # fmt: skip


def _part(name: str, read: Callable[[UrlRecord], str]) -> property:
    """A member that is read out of the record, and set by the rules for it."""

    def assign(url: URLValue, value: Value) -> None:
        url.assign(SETTERS[name](url.record, text(value)))

    return property(lambda url: read(url.record), assign)


def _with_mark(mark: str, part: str | None) -> str:
    return f"{mark}{part}" if part else ""


class URLValue:
    """A `URL`; its parts can be set, and `searchParams` is in step with them."""

    __slots__ = ("_params", "record")
    __koi_members__: ClassVar[dict[str, str]] = {
        **{name: name for name in _SHOWN if name != "searchParams"}, "searchParams": "search_params",
        "toString": "__str__", "toJSON": "__str__",
    }  # fmt: skip

    def __init__(self, record: UrlRecord) -> None:
        self.record = record
        self._params: SearchParamsValue | None = None

    def __str__(self) -> str:
        return str(self.record)

    def __koi_shape__(self) -> tuple[str, list[tuple[str, Value]]]:
        """How it is shown: the name of the class and the members."""
        return "URL", [(name, getattr(self, self.__koi_members__[name])) for name in _SHOWN]

    @property
    def href(self) -> str:
        """The whole URL."""
        return str(self.record)

    @href.setter
    def href(self, value: Value) -> None:
        self.assign(_parse(text(value)))

    @property
    def origin(self) -> str:
        """Scheme and host, those of the path for `blob:`, or `null`."""
        if self.record.scheme != "blob":
            return self.record.origin
        try:
            inner = parse_url(self.record.path_text)
        except UrlError:
            return "null"
        return inner.origin if inner.scheme in ("http", "https") else "null"

    protocol = _part("protocol", lambda record: f"{record.scheme}:")
    username = _part("username", lambda record: record.username)
    password = _part("password", lambda record: record.password)
    host = _part("host", lambda record: record.host_text)
    hostname = _part("hostname", lambda record: record.host or "")
    port = _part("port", lambda record: "" if record.port is None else str(record.port))
    pathname = _part("pathname", lambda record: record.path_text)
    search = _part("search", lambda record: _with_mark("?", record.query))
    hash = _part("hash", lambda record: _with_mark("#", record.fragment))

    @property
    def search_params(self) -> SearchParamsValue:
        """The pairs of the query; what changes them changes the URL."""
        if self._params is None:
            self._params = SearchParamsValue(parse_form(self.record.query or ""), self._take_query)
        return self._params

    def assign(self, record: UrlRecord) -> None:
        """Become another URL; the pairs of the query stay the same object."""
        is_other = record.query != self.record.query
        self.record = record
        if is_other and self._params is not None:
            self._params.pairs[:] = parse_form(record.query or "")

    def _take_query(self, query: str) -> None:
        self.record = SETTERS["search"](self.record, query)


def _parse(source: str, base: str | None = None) -> UrlRecord:
    """A URL, relative to a base when there is one. Raises TypeErrorValue."""
    try:
        return parse_url(source, None if base is None else parse_url(base))
    except UrlError as error:
        refusal = TypeErrorValue("Invalid URL")
        refusal.__koi_extra__.update(code="ERR_INVALID_URL", input=source, **({} if base is None else {"base": base}))
        raise refusal from error


def _build(*given: Value) -> URLValue:
    if not given:
        refusal = TypeErrorValue('The "url" argument must be specified')
        refusal.__koi_extra__["code"] = "ERR_MISSING_ARGS"
        raise refusal
    source, base = (*given, undefined)[:2]
    return URLValue(_parse(text(source), None if base is undefined else text(base)))


STATICS = MethodTable()


@STATICS.add_as("canParse")
def _can_parse(*given: Value) -> bool:
    return _parse_or_null(*given) is not None


@STATICS.add_as("parse")
def _parse_or_null(*given: Value) -> URLValue | None:
    try:
        return _build(*given)
    except TypeErrorValue:
        if not given:
            raise
        return None


URL = Constructor("URL", _build, None, holder(URLValue), STATICS)
