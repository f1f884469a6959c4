"""Texts to URLs by the rules of the WHATWG, in the steps of a text that is cut rather than of a machine of states."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from koi_lang.js.url_encoding import FRAGMENT, OPAQUE, PATH, QUERY, SPECIAL_QUERY, USERINFO, percent_encode, scalar_text
from koi_lang.js.url_hosts import HostError, parse_host
from koi_lang.js.url_records import PORTS, UrlRecord

SCHEME = re.compile("([a-zA-Z][a-zA-Z0-9+.-]*):")
_EDGES = "".join(map(chr, range(0x21)))
_LINES = str.maketrans("", "", "\t\n\r")
_SINGLE = frozenset({".", "%2e"})
_DOUBLE = frozenset({"..", ".%2e", "%2e.", "%2e%2e"})
_DRIVE = re.compile("[a-zA-Z][:|]")
_STARTS_WITH_DRIVE = re.compile(r"[a-zA-Z][:|](?:[/\\]|$)")


class UrlError(ValueError):
    """A text is no URL."""


def parse_url(source: str, base: UrlRecord | None = None) -> UrlRecord:
    """A text as a URL, relative to another one where it has no scheme.

    Raises:
        UrlError: it is none.
    """
    cleaned = clean(source.strip(_EDGES))
    front, hash_mark, fragment = cleaned.partition("#")
    front, query_mark, query = front.partition("?")
    try:
        record = _parse_front(front, base, query_mark, hash_mark)
    except HostError as error:
        raise UrlError from error
    if query_mark:
        record = replace(record, query=encode_query(query, record))
    return replace(record, fragment=percent_encode(fragment, FRAGMENT)) if hash_mark else record


def clean(source: str) -> str:
    """A text without tabs and line breaks, and of whole characters."""
    return scalar_text(source).translate(_LINES)


def encode_query(query: str, record: UrlRecord) -> str:
    """A query as it is written in a URL."""
    return percent_encode(query, SPECIAL_QUERY if record.is_special else QUERY)


def _parse_front(front: str, base: UrlRecord | None, query_mark: str, hash_mark: str) -> UrlRecord:
    """What stands before the query and the fragment; the query of the base where it counts."""
    found = SCHEME.match(front)
    if found:
        return _parse_after_scheme(found[1].lower(), front[found.end() :], base, query_mark)
    if base is None:
        raise UrlError
    if isinstance(base.path, str):
        if front or query_mark or not hash_mark:
            raise UrlError
        return base
    return _parse_relative(front, base, query_mark)


def _parse_after_scheme(scheme: str, rest: str, base: UrlRecord | None, query_mark: str) -> UrlRecord:
    record = UrlRecord(scheme)
    slashes = _slashes(record)
    same = base is not None and base.scheme == scheme
    if scheme == "file":
        return _parse_file(rest, base if same else None, query_mark)
    if record.is_special and base is not None and same and not rest.startswith("//"):
        return _parse_relative(rest, base, query_mark)
    if record.is_special:
        return _parse_authority(rest.lstrip(slashes), record)
    if rest.startswith("//"):
        return _parse_authority(rest[2:], record)
    if rest.startswith("/"):
        return replace(record, path=parse_path(rest[1:], record))
    return replace(record, path=percent_encode(rest, OPAQUE))


def _slashes(record: UrlRecord) -> str:
    return "/\\" if record.is_special else "/"


def _parse_relative(front: str, base: UrlRecord, query_mark: str) -> UrlRecord:
    if base.scheme == "file":
        return _parse_file(front, base, query_mark)
    slashes = _slashes(base)
    if front[:1] and front[0] in slashes:
        if front[1:2] and front[1] in slashes:
            return _parse_authority(front.lstrip(slashes) if base.is_special else front[2:], UrlRecord(base.scheme))
        return replace(base.without_tail(), path=parse_path(front[1:], base))
    return _replace_end(front, base, query_mark)


def _replace_end(front: str, base: UrlRecord, query_mark: str) -> UrlRecord:
    """The base with another last segment, or as it is where there is nothing else."""
    if not front:
        return base.without_tail() if query_mark else replace(base, fragment=None)
    return replace(base.without_tail(), path=parse_path(front, base, drop_segment(base)))


def _parse_authority(rest: str, record: UrlRecord) -> UrlRecord:
    """User, host, port and path behind `//`."""
    end = _end_of_authority(rest, record)
    userinfo, at, host_and_port = rest[:end].rpartition("@")
    if at:
        if not host_and_port:
            raise UrlError
        username, _, password = userinfo.partition(":")
        record = replace(
            record, username=percent_encode(username, USERINFO), password=percent_encode(password, USERINFO)
        )
    host, colon, port = split_port(host_and_port)
    if not host and (colon or record.is_special):
        raise UrlError
    record = replace(record, host=parse_host(host, record.is_special), port=parse_port(port, record.scheme))
    return with_path(rest[end:], record)


def _end_of_authority(rest: str, record: UrlRecord) -> int:
    return min((at for at in (rest.find(slash) for slash in _slashes(record)) if at >= 0), default=len(rest))


def split_port(source: str) -> tuple[str, str, str]:
    """A host, the colon behind it, and the port; colons between brackets are part of the host."""
    inside = False
    for at, character in enumerate(source):
        if character in "[]":
            inside = character == "["
        elif character == ":" and not inside:
            return source[:at], ":", source[at + 1 :]
    return source, "", ""


def parse_port(digits: str, scheme: str) -> int | None:
    """A port, None for that of the scheme.

    Raises:
        UrlError: it is none.
    """
    if not digits:
        return None
    if not digits.isascii() or not digits.isdigit() or len(digits.lstrip("0")) > 5 or int(digits) > 65535:
        raise UrlError
    return None if int(digits) == PORTS.get(scheme) else int(digits)


def with_path(rest: str, record: UrlRecord) -> UrlRecord:
    """A URL with the path that stands behind its host."""
    if not rest and not record.is_special:
        return replace(record, path=())
    start = 1 if rest[:1] and rest[0] in _slashes(record) else 0
    return replace(record, path=parse_path(rest[start:], record))


def _parse_file(front: str, base: UrlRecord | None, query_mark: str) -> UrlRecord:
    record = UrlRecord("file", host="")
    if front[:1] not in ("/", "\\"):
        if base is None:
            return replace(record, path=parse_path(front, record))
        if _STARTS_WITH_DRIVE.match(front):
            return replace(base.without_tail(), path=parse_path(front, base))
        return _replace_end(front, base, query_mark)
    if front[1:2] in ("/", "\\"):
        return _parse_file_host(front[2:], record)
    if base is None:
        return replace(record, path=parse_path(front[1:], record))
    kept = base.path[:1] if is_drive(base.path[:1]) and not _STARTS_WITH_DRIVE.match(front[1:]) else ()
    return replace(record, host=base.host, path=parse_path(front[1:], record, kept))


def _parse_file_host(rest: str, record: UrlRecord) -> UrlRecord:
    end = _end_of_authority(rest, record)
    if _DRIVE.fullmatch(rest[:end]):
        return replace(record, path=parse_path(rest, record))
    host = parse_host(rest[:end], True) if end else ""
    return with_path(rest[end:], replace(record, host="" if host == "localhost" else host))


def is_drive(path: Iterable[str]) -> bool:
    """Whether a path is nothing but the letter of a drive, such as `C:`."""
    segments = tuple(path)
    return len(segments) == 1 and re.fullmatch("[a-zA-Z]:", segments[0]) is not None


def drop_segment(record: UrlRecord) -> tuple[str, ...]:
    """The path without its last segment; the letter of a drive stays."""
    path = tuple(record.path)
    return path if record.scheme == "file" and is_drive(path) else path[:-1]


def parse_path(source: str, record: UrlRecord, before: Iterable[str] = ()) -> tuple[str, ...]:
    """The segments of a path, with `.` and `..` carried out.

    Args:
        source: the path without its first slash.
        record: the URL that it belongs to.
        before: segments that it goes on from.
    """
    path = list(before)
    segments = (source.replace("\\", "/") if record.is_special else source).split("/")
    for at, segment in enumerate(segments):
        dots, is_last = segment.lower(), at == len(segments) - 1
        if dots in _DOUBLE:
            if path and not (record.scheme == "file" and is_drive(path)):
                path.pop()
        elif dots not in _SINGLE:
            if record.scheme == "file" and not path and _DRIVE.fullmatch(segment):
                segment = f"{segment[0]}:"
            path.append(percent_encode(segment, PATH))
            continue
        if is_last:
            path.append("")
    return tuple(path)
