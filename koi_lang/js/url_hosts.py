"""Hosts of URLs: domains, IPv4 in all its spellings, IPv6, and the opaque ones of other schemes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import AddressValueError, IPv6Address
from itertools import groupby

from koi_lang.js import url_domains
from koi_lang.js.url_encoding import OPAQUE, percent_decode, percent_encode

# What no host holds, and what a domain does not hold either.
_FORBIDDEN = re.compile(r"[\0\t\n\r #/:<>?@\[\\\]^|]")
_FORBIDDEN_IN_DOMAIN = re.compile(r"[\0-\x20#%/:<>?@\[\\\]^|\x7f]")
_DIGITS = {8: re.compile("[0-7]*"), 10: re.compile("[0-9]+"), 16: re.compile("[0-9a-fA-F]*")}


class HostError(ValueError):
    """A text is no host."""


def parse_host(source: str, special: bool) -> str:
    """A host as it is written in a URL.

    Args:
        source: what stands between the slashes, without user and port.
        special: whether the scheme has domains and IPv4, such as `http`; otherwise any text will do.

    Raises:
        HostError: it is no host.
    """
    if source.startswith("["):
        return _parse_ipv6(source)
    if not special:
        if _FORBIDDEN.search(source):
            raise HostError
        return percent_encode(source, OPAQUE)
    domain = url_domains.to_ascii(percent_decode(source))
    if not domain or _FORBIDDEN_IN_DOMAIN.search(domain):
        raise HostError
    return _parse_ipv4(domain) if _ends_in_number(domain) else domain


def _labels(domain: str) -> list[str]:
    labels = domain.split(".")
    return labels[:-1] if len(labels) > 1 and not labels[-1] else labels


def _ends_in_number(domain: str) -> bool:
    last = _labels(domain)[-1]
    return last.isdigit() or re.fullmatch("0[xX][0-9a-fA-F]*", last) is not None


def _parse_ipv4(domain: str) -> str:
    numbers = [_parse_number(label) for label in _labels(domain)]
    if len(numbers) > 4 or any(number > 255 for number in numbers[:-1]) or numbers[-1] >= 256 ** (5 - len(numbers)):
        raise HostError
    address = numbers[-1] + sum(number << 8 * (3 - at) for at, number in enumerate(numbers[:-1]))
    return ".".join(str(byte) for byte in address.to_bytes(4))


def _parse_number(label: str) -> int:
    """A part of an IPv4 address: decimal, octal behind `0`, hexadecimal behind `0x`."""
    base, digits = 10, label
    if label[:2] in ("0x", "0X"):
        base, digits = 16, label[2:]
    elif len(label) > 1 and label[0] == "0":
        base, digits = 8, label[1:]
    # More digits than any part may have would take Python long to read.
    if not _DIGITS[base].fullmatch(digits) or len(digits.lstrip("0")) > 20:
        raise HostError
    return int(digits or "0", base)


def _parse_ipv6(source: str) -> str:
    if not source.endswith("]") or "%" in source or "/" in source:
        raise HostError
    try:
        packed = IPv6Address(source[1:-1]).packed
    except AddressValueError as error:
        raise HostError from error
    return f"[{_ipv6_text([int.from_bytes(packed[at : at + 2]) for at in range(0, 16, 2)])}]"


def _ipv6_text(pieces: Sequence[int]) -> str:
    """Eight pieces in hexadecimal; `::` stands for the first one of the longest runs of at least two zeros."""
    runs = [(key, [at for at, _ in run]) for key, run in groupby(enumerate(pieces), lambda pair: pair[1] == 0)]
    zeros = max((run for is_zero, run in runs if is_zero and len(run) > 1), key=len, default=None)
    written = [f"{piece:x}" for piece in pieces]
    if zeros is None:
        return ":".join(written)
    return f"{':'.join(written[: zeros[0]])}::{':'.join(written[zeros[-1] + 1 :])}"
