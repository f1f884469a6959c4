"""Errors of providers are read, whatever their shape, and the part of a request that they are about is found."""

from __future__ import annotations

import pytest

from koi_lang.llm.error_documents import read_error
from koi_lang.llm.request_parts import part_of
from tests.llm.refusals import BODY, REFUSALS, error


@pytest.mark.parametrize("case", REFUSALS)
def test_the_part_that_is_refused_is_found(case: str) -> None:
    """By the name that the error gives, in whatever place, or by what is said of nothing else."""
    document, expected = REFUSALS[case]

    part = part_of(read_error(document), BODY)

    assert expected == (part and part.name)


def test_what_is_not_in_a_request_is_not_refused() -> None:
    """A provider that names parts that nobody has sent, or nothing, gives no reason to change anything."""
    assert part_of(read_error(error("no `tools`, no `seed`, please")), {"model": "m"}) is None
    assert part_of(read_error("<html>temperature</html>"), BODY) is None
    assert part_of(read_error([[[["temperature"]]] * 3]), {}) is None


def test_a_body_is_read_to_what_it_says() -> None:
    """Its message, its word for the error, the status and the fields that it names, and what the model had written."""
    document = read_error(error("no", code=429, param="tools[1].name", failed_generation="{"))

    assert ("no", "invalid_request_error", 429, ("tools.1.name",), "{") == (
        document.message,
        document.code,
        document.status,
        document.fields,
        document.generation,
    )


@pytest.mark.parametrize("body", [None, 3, True, [], [1], {}, {"error": 7}, {"error": {"code": True, "message": 4}}])
def test_what_is_no_error_says_nothing(body: object) -> None:
    """Whatever a server sends, reading it does not fail."""
    document = read_error(body)

    assert ("", None, ()) == (document.message, document.status, document.fields)
