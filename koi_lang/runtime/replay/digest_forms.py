"""The forms in which requests to models were told over the releases, as the digests of them say."""

from __future__ import annotations

# Of what the runtime tells models of its own accord; digests of requests in another form say nothing about a program.
FORM = "8"
# Ends the form of requests to models that are told of one action after the other alone, with a number of its own.
PLAIN = "p3"
# The first one to which models could answer with `\${…}`, and with expressions from data as text.
FIRST_WITH_LITERALS = 4
# The first one in whose answers `${…}` fails where it cannot be computed.
FIRST_WITH_FAILURES = 7
# The first one in whose answers `null` is a result of its own; before, it was an empty object.
FIRST_WITH_NULL = 8
# The first one in whose answers code is text, whatever is called `args` or `state` in it.
FIRST_WITH_CODE = 8


def is_of_same_form(one: str, other: str) -> bool:
    """Whether two digests can be compared: those of other versions of the prompts, or of other models, cannot."""
    return one.partition("-")[0] == other.partition("-")[0]


def form_number(fingerprint: str) -> int:
    """The number of the form of a request; 0 where requests had none yet."""
    form = fingerprint.partition("-")[0].partition(PLAIN[0])[0]
    return int(form) if form.isdigit() else 0
