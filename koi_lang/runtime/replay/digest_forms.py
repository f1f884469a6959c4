"""The forms in which requests to models were told over the releases, as the digests of them say."""

from __future__ import annotations

# Of what the runtime tells models of its own accord; digests of requests in another form say nothing about a program.
FORM = "4"
# The first one to which models could answer with `\${…}`, and with expressions from data as text.
FIRST_WITH_LITERALS = 4


def is_of_this_form(fingerprint: str) -> bool:
    """Whether a digest that was recorded can be compared; those of earlier versions of the prompts cannot."""
    return fingerprint.startswith(f"{FORM}-")


def has_literals(fingerprint: str) -> bool:
    """Whether `${…}` could be plain text in the answer to a request that was recorded; before, it never was."""
    form = fingerprint.partition("-")[0]
    return form.isdigit() and int(form) >= FIRST_WITH_LITERALS
