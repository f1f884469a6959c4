"""The global `URL`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import ClassVar

from koi_lang.js.conversions import text
from koi_lang.js.errors import TypeErrorValue
from koi_lang.js.method_tables import Constructor, MethodTable, holder
from koi_lang.js.search_params import SearchParamsValue
from koi_lang.js.undefined import Value, undefined
from koi_lang.js.url_encoding import FRAGMENT, USERINFO, parse_form, percent_encode, scalar_text
from koi_lang.js.url_hosts import HostError, parse_host
from koi_lang.js.url_parser import SCHEME, UrlError, clean, encode_query, parse_port, parse_url, split_port, with_path
from koi_lang.js.url_records import PORTS, UrlRecord

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


_DIGITS = re.compile("[0-9]*")


def set_protocol(record: UrlRecord, value: str) -> UrlRecord:
    """Another scheme, of the same sort."""
    found = SCHEME.match(clean(value) + ":")
    scheme = found[1].lower() if found else record.scheme
    to_file = scheme == "file" and (record.has_credentials or record.port is not None)
    from_file = record.scheme == "file" and not record.host
    if (scheme in PORTS) != record.is_special or to_file or from_file:
        return record
    return replace(record, scheme=scheme, port=None if record.port == PORTS.get(scheme) else record.port)


def set_username(record: UrlRecord, value: str) -> UrlRecord:
    """Another user."""
    if not record.can_have_credentials:
        return record
    return replace(record, username=percent_encode(scalar_text(value), USERINFO))


def set_password(record: UrlRecord, value: str) -> UrlRecord:
    """Another password."""
    if not record.can_have_credentials:
        return record
    return replace(record, password=percent_encode(scalar_text(value), USERINFO))


def set_host(record: UrlRecord, value: str) -> UrlRecord:
    """Another host, and another port where one is given."""
    return _set_host(record, value, with_port=True)


def set_hostname(record: UrlRecord, value: str) -> UrlRecord:
    """Another host; a port is refused."""
    return _set_host(record, value, with_port=False)


def _set_host(record: UrlRecord, value: str, with_port: bool) -> UrlRecord:
    if isinstance(record.path, str):
        return record
    ends = r"[/\\?#]" if record.is_special else "[/?#]"
    whole = re.split(ends, clean(value), maxsplit=1)[0]
    host, colon, port = split_port(whole) if record.scheme != "file" else (whole, "", "")
    if colon and (not host or not with_port):
        return record
    if not host and record.scheme != "file" and (record.is_special or record.has_credentials or record.port):
        return record
    try:
        changed = replace(record, host=parse_host(host, record.is_special) if host else "")
    except HostError:
        return record
    if record.scheme == "file" and changed.host == "localhost":
        changed = replace(changed, host="")
    return set_port(changed, port) if port else changed


def set_port(record: UrlRecord, value: str) -> UrlRecord:
    """Another port: the digits that the text begins with."""
    if not record.can_have_credentials:
        return record
    digits = _DIGITS.match(clean(value))
    if not value:
        return replace(record, port=None)
    try:
        return replace(record, port=parse_port(digits[0], record.scheme)) if digits and digits[0] else record
    except UrlError:
        return record


def set_pathname(record: UrlRecord, value: str) -> UrlRecord:
    """Another path."""
    if isinstance(record.path, str):
        return record
    written = clean(value)
    changed = with_path(written, record)
    return replace(changed, path=("",)) if not written and record.host is None else changed


def set_search(record: UrlRecord, value: str) -> UrlRecord:
    """Another query; an empty text takes it away."""
    if not value:
        return _strip_end(replace(record, query=None))
    return replace(record, query=encode_query(clean(value.removeprefix("?")), record))


def set_hash(record: UrlRecord, value: str) -> UrlRecord:
    """Another fragment; an empty text takes it away."""
    if not value:
        return _strip_end(replace(record, fragment=None))
    return replace(record, fragment=percent_encode(clean(value.removeprefix("#")), FRAGMENT))


def _strip_end(record: UrlRecord) -> UrlRecord:
    """Without the spaces that an opaque path ends with, unless something follows them."""
    if isinstance(record.path, str) and record.query is None and record.fragment is None:
        return replace(record, path=record.path.rstrip(" "))
    return record


SETTERS: Mapping[str, Callable[[UrlRecord, str], UrlRecord]] = MappingProxyType({
    "protocol": set_protocol, "username": set_username, "password": set_password, "host": set_host,
    "hostname": set_hostname, "port": set_port, "pathname": set_pathname, "search": set_search, "hash": set_hash,
})  # fmt: skip
