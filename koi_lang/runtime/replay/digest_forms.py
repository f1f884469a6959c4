"""The forms in which requests to models were told over the releases, as the digests of them say."""

from __future__ import annotations

# Of what the runtime tells models of its own accord; digests of requests in another form say nothing about a program.
FORM = "6"
# Ends the form of requests to models that are told of one action after the other alone, with a number of its own.
PLAIN = "p3"
# The first one to which models could answer with `\${…}`, and with expressions from data as text.
FIRST_WITH_LITERALS = 4


def is_of_same_form(one: str, other: str) -> bool:
    """Whether two digests can be compared: those of other versions of the prompts, or of other models, cannot."""
    return one.partition("-")[0] == other.partition("-")[0]


def has_literals(fingerprint: str) -> bool:
    """Whether `${…}` could be plain text in the answer to a request that was recorded; before, it never was."""
    form = fingerprint.partition("-")[0].partition(PLAIN[0])[0]
    return form.isdigit() and int(form) >= FIRST_WITH_LITERALS
