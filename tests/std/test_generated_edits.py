"""Thousands of edits with slips of models: what is meant is done, or nothing is."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as some

from koi_lang.errors import AgentError
from koi_lang.std.code.editing import apply_diff, replace_piece
from koi_lang.std.code.text_files import decode_file, encode_file
from tests.std.generated_edits import GeneratedEdit, generate_edit


def carry_out(edit: GeneratedEdit) -> bytes:
    """The bytes after an edit. Raises AgentError where it is refused."""
    file = decode_file(edit.data, "f")
    done = apply_diff(file.text, edit.diff) if edit.diff else replace_piece(file.text, edit.before, edit.after)
    return encode_file(file, done, "f")


@settings(max_examples=1500, derandomize=True, deadline=None, database=None)
@given(some.integers(0, 2**32))
def test_the_result_is_what_was_meant_or_the_edit_is_refused(seed: int) -> None:
    """Whatever is wrong in how an edit is written down, no other place is ever changed."""
    edit = generate_edit(seed)
    try:
        done = carry_out(edit)
    except AgentError:
        return

    assert edit.meant == done


def test_few_of_the_certain_edits_are_refused() -> None:
    """Where one place only fits, blanks aside, nearly all edits are done."""
    counts: Counter[bool] = Counter()
    for seed in range(4000):
        edit = generate_edit(seed)
        if edit.is_certain:
            try:
                counts[carry_out(edit) != edit.meant] += 1
            except AgentError:
                counts[True] += 1

    assert counts.total() > 1000
    assert counts[True] / counts.total() < 0.05
