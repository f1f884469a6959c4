"""How lines that were shown with another indentation are indented in their file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

BLANK = " \t"
WIDTHS = (2, 4, 8)
Conversion = Callable[[str], str]
Shift = Callable[[str], str | None]


def indentation(line: str) -> str:
    """The blanks a line begins with."""
    return line[: len(line) - len(line.lstrip(BLANK))]


def carry_indentation(shown: Sequence[str], lines: Sequence[str], new: Sequence[str]) -> list[str] | None:
    """New lines as the file would indent them, where there is one way to do it; else None.

    Args:
        shown: lines of the file as somebody has shown them, which differ by blanks around them only.
        lines: the same as they stand in the file.
        new: lines that are indented like those of `shown`.
    """
    pairs = [(indentation(a), indentation(b)) for a, b in zip(shown, lines, strict=True) if a.strip(BLANK)]
    if not pairs:
        return None
    for conversions in (_plain_conversions(pairs), _combined_conversions(pairs)):
        results = {tuple(carried) for each in conversions if (carried := _convert_all(each, pairs, new)) is not None}
        if results:
            return list(results.pop()) if len(results) == 1 else None
    return None


def is_same_for_the_eye(shown: Sequence[str], lines: Sequence[str]) -> bool:
    """Whether lines differ at most in tabs that stand for blanks, or the other way round."""
    pairs = [(indentation(a), indentation(b)) for a, b in zip(shown, lines, strict=True) if a.strip(BLANK)]
    widths = [convert for width in WIDTHS for convert in (_tabs(width), _blanks(width))]
    return any(all(convert(a) == b for a, b in pairs) for convert in widths)


def _plain_conversions(pairs: Sequence[tuple[str, str]]) -> Iterator[Shift]:
    """Shifts without a change of characters, and changes of characters without a shift."""
    yield _shift(*pairs[0])
    for width in WIDTHS:
        yield _tabs(width)
        yield _blanks(width)


def _combined_conversions(pairs: Sequence[tuple[str, str]]) -> Iterator[Shift]:
    """Changes of characters that are then shifted."""
    for width in WIDTHS:
        yield _shift_behind(_tabs(width), *pairs[0])
        yield _shift_behind(_blanks(width), *pairs[0])


def _shift_behind(convert: Conversion, shown: str, stands: str) -> Shift:
    shift = _shift(convert(shown), stands)
    return lambda blanks: shift(convert(blanks))


def _tabs(width: int) -> Conversion:
    def convert(blanks: str) -> str:
        columns = len(blanks.expandtabs(width))
        return "\t" * (columns // width) + " " * (columns % width)

    return convert


def _blanks(width: int) -> Conversion:
    return lambda blanks: blanks.expandtabs(width)


def _shift(shown: str, stands: str) -> Shift:
    """The shift from one indentation to another: more before it, or less."""

    def convert(blanks: str) -> str | None:
        if stands.endswith(shown):
            return stands[: len(stands) - len(shown)] + blanks
        less = shown[: len(shown) - len(stands)]
        return blanks.removeprefix(less) if shown.endswith(stands) and blanks.startswith(less) else None

    return convert


def _convert_all(convert: Shift, pairs: Sequence[tuple[str, str]], new: Sequence[str]) -> list[str] | None:
    """New lines by a conversion; None where it does not fit the pairs, or mixes tabs and blanks anew."""
    if any(convert(shown) != stands for shown, stands in pairs):
        return None
    is_mixed = any(set(BLANK) <= set(stands) for _, stands in pairs)
    out = []
    for line in new:
        before = indentation(line)
        after = convert(before) if line.strip(BLANK) else before
        if after is None or (not is_mixed and set(BLANK) <= set(after)):
            return None
        out.append(after + line[len(before) :])
    return out
