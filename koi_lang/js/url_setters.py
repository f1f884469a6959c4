"""Assignments to the members of a URL: what cannot be set leaves it as it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from koi_lang.js.url_encoding import FRAGMENT, USERINFO, percent_encode, scalar_text
from koi_lang.js.url_hosts import HostError, parse_host
from koi_lang.js.url_parser import SCHEME, UrlError, clean, encode_query, parse_port, split_port, with_path
from koi_lang.js.url_records import PORTS, UrlRecord

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
