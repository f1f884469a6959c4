"""Hosts of URLs: domains, IPv4 in all its spellings, IPv6, and the opaque ones of other schemes.

The mapping is derived from the character data of Python as the rules derive it, so no table is kept here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from ipaddress import AddressValueError, IPv6Address
from itertools import groupby
from unicodedata import bidirectional, category, combining, normalize

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
    domain = to_ascii(percent_decode(source))
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


# Kept as they are, though they would be folded; the joiners count only where scripts need them.
_DEVIATIONS = frozenset("ßς\u200c\u200d")
_STOPS = frozenset(".\u3002\uff0e\uff61")
_NO_NAME = "\uffff"
# Characters without a shape of their own, which are left out.
_IGNORED = re.compile(
    "[\u00ad\u034f\u180b-\u180d\u180f\u200b\u2060\u2064\ufe00-\ufe0f\ufeff\U0001bca0-\U0001bca3\U000e0100-\U000e01ef]"
)
# What is refused though its category would be allowed.
_REFUSED = re.compile(
    "[\u061c\u115f\u1160\u17b4\u17b5\u1806\u180e\u2061-\u2063\u2065-\u206f\u200e\u200f\u202a-\u202e\u2ff0-\u2fff\u3164"
    "\ufff9-\uffff\uffa0\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_NO_NAMES = frozenset({"Cc", "Cn", "Co", "Cs", "Zs", "Zl", "Zp"})
_VIRAMA = 9
_NEUTRAL = frozenset({"EN", "ES", "CS", "ET", "ON", "BN", "NSM"})


def to_ascii(domain: str) -> str | None:
    """A domain in lower case with `xn--` labels for what is not ASCII; None when it is no valid name."""
    lowered = domain.lower()
    if domain.isascii() and "xn--" not in lowered:
        return lowered
    mapped = normalize("NFC", "".join([_map(c) for c in domain]))
    labels = [_label_to_ascii(label) for label in mapped.split(".")]
    return None if None in labels else ".".join([label or "" for label in labels])


@lru_cache(maxsize=1024)
def _map(character: str) -> str:
    """What a character counts as: itself, its folded form, or nothing."""
    if character in _DEVIATIONS:
        return character
    if character in _STOPS:
        return "."
    if _IGNORED.match(character):
        return ""
    mapped = normalize("NFKC", normalize("NFKC", character).casefold())
    # A stop out of something that is no stop, such as an ellipsis, is refused.
    return _NO_NAME if "." in mapped or "\u3002" in mapped else mapped


def _label_to_ascii(label: str) -> str | None:
    if label.startswith("xn--"):
        return label if label.isascii() and _is_encoded(label) else None
    if label.isascii():
        return label
    return f"xn--{label.encode('punycode').decode()}" if _is_valid(label) else None


def _is_encoded(label: str) -> bool:
    """Whether a label that begins with `xn--` stands for a valid one that needs it."""
    try:
        decoded = label[4:].encode().decode("punycode")
    except UnicodeError:
        return False
    if decoded.isascii() or decoded.encode("punycode").decode() != label[4:]:
        return False
    return _is_valid(decoded) and "".join([_map(c) for c in decoded]) == decoded == normalize("NFC", decoded)


def _is_valid(label: str) -> bool:
    if category(label[0])[0] == "M" or any(category(c) in _NO_NAMES or _REFUSED.match(c) for c in label):
        return False
    return _has_joiners_in_place(label) and _has_one_direction(label)


def _has_joiners_in_place(label: str) -> bool:
    return all(at > 0 and combining(label[at - 1]) == _VIRAMA for at, c in enumerate(label) if c in "\u200c\u200d")


def _has_one_direction(label: str) -> bool:
    """Whether a label that is read from right to left, or holds such characters, can be told apart (RFC 5893)."""
    kinds = [bidirectional(c) for c in label]
    if not {"R", "AL", "AN"} & set(kinds):
        return True
    last = next((kind for kind in reversed(kinds) if kind != "NSM"), "")
    if kinds[0] == "L":
        return _NEUTRAL.issuperset(set(kinds) - {"L"}) and last in ("L", "EN")
    allowed = _NEUTRAL | {"R", "AL", "AN"}
    return allowed.issuperset(kinds) and last in ("R", "AL", "EN", "AN") and not {"EN", "AN"} <= set(kinds)
