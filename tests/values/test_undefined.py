"""The value of what is not there."""

from __future__ import annotations

import copy
import pickle

from koi_lang.js.undefined import Undefined, nullish, undefined


def test_there_is_one_undefined() -> None:
    """Copies, pickles and new instances are the value itself."""
    twins = [Undefined(), copy.copy(undefined), copy.deepcopy([undefined])[0], pickle.loads(pickle.dumps(undefined))]

    assert all(twin is undefined for twin in twins)


def test_undefined_is_falsy_and_prints_its_name() -> None:
    """Python sees it as false; its repr is how Koi writes it."""
    assert (bool(undefined), repr(undefined)) == (False, "undefined")


def test_null_and_undefined_are_nullish() -> None:
    """Nothing else is, not even what is falsy."""
    assert [nullish(value) for value in (None, undefined, 0, "", False)] == [True, True, False, False, False]
