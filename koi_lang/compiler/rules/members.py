"""What values of the language have as members; a test compares it with the runtime."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_OWN = {
    "console": (
        "assert count countReset debug dir error group groupCollapsed groupEnd info log table time timeEnd "
        "timeLog trace warn"
    ),
    "JSON": "parse stringify",
    "Math": (
        "E LN10 LN2 LOG10E LOG2E PI SQRT1_2 SQRT2 abs acos acosh asin asinh atan atan2 atanh cbrt ceil clz32 "
        "cos cosh exp expm1 floor fround hypot imul log log10 log1p log2 max min pow random round sign sin "
        "sinh sqrt tan tanh trunc"
    ),
    "Object": (
        "assign create defineProperty entries freeze fromEntries getOwnPropertyNames groupBy hasOwn is "
        "isFrozen isSealed keys preventExtensions seal values"
    ),
    "Array": "from isArray of",
    "String": "fromCharCode fromCodePoint",
    "Number": (
        "EPSILON MAX_SAFE_INTEGER MAX_VALUE MIN_SAFE_INTEGER MIN_VALUE NEGATIVE_INFINITY NaN "
        "POSITIVE_INFINITY isFinite isInteger isNaN isSafeInteger parseFloat parseInt"
    ),
    "Promise": "all allSettled any race reject resolve withResolvers",
    "Date": "UTC now parse",
    "Map": "groupBy",
    "AbortSignal": "abort any timeout",
    "Intl": "DateTimeFormat NumberFormat",
    "URL": "canParse parse",
    "Uint8Array": "BYTES_PER_ELEMENT from of",
    "crypto": "randomUUID",
    "performance": "now",
    "process": "argv cwd env pid platform",
    "registry": "change clear delete get has keys search set stats",
}
# The members of the objects that every program has, by their names.
MEMBERS: Mapping[str, frozenset[str]] = MappingProxyType({name: frozenset(own.split()) for name, own in _OWN.items()})
_OF_INSTANCES = {
    "AbortController": "abort signal",
    "AbortSignal": "aborted addEventListener onabort reason removeEventListener throwIfAborted",
    "Intl.DateTimeFormat": "format",
    "Intl.NumberFormat": "format",
    "Map": "clear delete entries forEach get has keys set size values",
    "Set": (
        "add clear delete difference entries forEach has intersection isDisjointFrom isSubsetOf isSupersetOf keys "
        "size symmetricDifference union values"
    ),
    "TextDecoder": "decode encoding fatal ignoreBOM",
    "TextEncoder": "encode encodeInto encoding",
    "URL": ("hash host hostname href origin password pathname port protocol search searchParams toJSON username"),
    "URLSearchParams": "append delete entries forEach get getAll has keys set size sort values",
}
# The members of what `new` makes of the objects that every program has, besides those that everything has.
OF_INSTANCES: Mapping[str, frozenset[str]] = MappingProxyType(
    {name: frozenset(own.split()) for name, own in _OF_INSTANCES.items()}
)
# Members that are such objects themselves.
INSTANCE_MEMBERS = MappingProxyType(
    {("URL", "searchParams"): "URLSearchParams", ("AbortController", "signal"): "AbortSignal"}
)
# What code can ask of any agent besides its handlers.
OF_AGENTS = frozenset({"state", "name", "role", "peers", "handle", "callSkill", "callAction", "phase"})
# What everything but null has.
OF_ALL = frozenset({"toString", "hasOwnProperty"})
OF_NUMBERS = frozenset({"toExponential", "toFixed", "toLocaleString", "toPrecision", "toString", "valueOf"})
# The methods of texts, and their length.
OF_TEXTS = frozenset(
    (
        "at charAt charCodeAt codePointAt concat endsWith includes indexOf isWellFormed lastIndexOf length "
        "localeCompare match matchAll normalize padEnd padStart repeat replace replaceAll search slice split "
        "startsWith substr substring toLocaleLowerCase toLocaleUpperCase toLowerCase toString toUpperCase "
        "toWellFormed trim trimEnd trimLeft trimRight trimStart valueOf"
    ).split()
)
# Methods that texts and lists have in Python and other languages, with what is written instead.
FOREIGN_OF_TEXTS: Mapping[str, str] = MappingProxyType({
    "strip": "`.trim()`", "lstrip": "`.trimStart()`", "rstrip": "`.trimEnd()`", "upper": "`.toUpperCase()`",
    "lower": "`.toLowerCase()`", "find": "`.indexOf(…)`", "contains": "`.includes(…)`",
    "format": "it in backticks, with `${…}` for each value", "splitlines": '`.split("\\n")`',
    "zfill": '`.padStart(…, "0")`', "len": "`.length`", "size": "`.length`",
})  # fmt: skip
FOREIGN_OF_LISTS: Mapping[str, str] = MappingProxyType({
    "append": "`.push(…)`", "add": "`.push(…)`", "extend": "`.push(...items)`", "insert": "`.splice(index, 0, item)`",
    "remove": "`.splice(index, 1)`", "index": "`.indexOf(…)`", "contains": "`.includes(…)`", "each": "`.forEach(…)`",
    "len": "`.length`", "size": "`.length`", "count": "`.length`",
})  # fmt: skip
# The methods of lists, and their length.
OF_LISTS = frozenset(
    (
        "at concat copyWithin entries every fill filter find findIndex findLast findLastIndex flat flatMap forEach "
        "includes indexOf join keys lastIndexOf length map pop push reduce reduceRight reverse shift slice some sort "
        "splice toLocaleString toReversed toSorted toSpliced toString unshift values with"
    ).split()
)
# What values of a kind have.
OF_KINDS: Mapping[str, frozenset[str]] = MappingProxyType(
    {"array": OF_LISTS, "string": OF_TEXTS, "number": OF_NUMBERS, "boolean": OF_ALL | {"valueOf"}}
)
