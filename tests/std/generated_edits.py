"""Files, what somebody means to change in them, and that as a model might write it down: not quite right."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

BLANK = " \t"
MARK = "\ufeff"


@dataclass(frozen=True, slots=True)
class Change:
    """Lines `start` to before `end`, and those meant in their place."""

    start: int
    end: int
    new: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GeneratedEdit:
    """A file in bytes, what is meant to become of it, and how that is written down.

    Attributes:
        diff: empty where a piece and what replaces it are given.
        is_certain: whether what is written fits in one place only, blanks aside.
        noise: what is not right in it.
    """

    data: bytes
    meant: bytes
    diff: str
    before: str
    after: str
    is_certain: bool
    noise: tuple[str, ...]


def generate_edit(seed: int) -> GeneratedEdit:
    """One edit; the same seed gives the same."""
    chance = random.Random(seed)
    lines, unit = _file(chance)
    as_piece = chance.random() < 0.4
    # Of two lines that look the same but for their ends, a piece does not say which one goes.
    ends = [chance.choice(["\n", "\r\n"] if as_piece else ["\n", "\r\n", "mixed"])] * len(lines)
    ends = [chance.choice(["\n", "\r\n"]) if end == "mixed" else end for end in ends]
    is_ended, mark = chance.random() < 0.8, MARK * (chance.random() < 0.2)
    changes = list(_changes(chance, lines, 1 if as_piece else chance.randrange(1, 4)))
    changes = changes or [Change(0, 1, ("new_0 = 1",))]
    rows = [*zip(lines, ends, strict=True)]
    data = _bytes(mark, rows, is_ended)
    meant = _bytes(mark, _meant(rows, changes), is_ended)
    noise = _Noise(chance, unit, chance.randrange(3))
    if as_piece:
        before, after, is_certain = noise.piece(lines, changes[0])
        return GeneratedEdit(data, meant, "", before, after, is_certain, tuple(sorted(noise.kinds)))
    diff, is_certain = noise.diff(lines, changes)
    return GeneratedEdit(data, meant, diff, "", "", is_certain, tuple(sorted(noise.kinds)))


def _file(chance: random.Random) -> tuple[list[str], str]:
    """Lines of functions, some of which stand there twice, also deeper; blanks behind some of them."""
    unit = chance.choice(["    ", "  ", "\t"])
    blocks: list[list[str]] = []
    for number in range(chance.randrange(3, 12)):
        if blocks and chance.random() < 0.3:
            copied, deeper = chance.choice(blocks), chance.choice(["", "", unit])
            blocks.append([deeper + line if line.strip() else line for line in copied])
            continue
        name = chance.choice("abc") if chance.random() < 0.3 else f"work_{number}"
        body = [f"{unit}{chance.choice('xyz')} = {chance.randrange(4)}" for _ in range(chance.randrange(1, 5))]
        inner = [f"{unit}if {name}:", f"{unit}{unit}call({number})", ""] * (chance.random() < 0.5)
        blocks.append([f"def {name}():", *body, *inner, f"{unit}return {chance.choice('xyz')}", ""])
    lines = [line for block in blocks for line in block]
    return [line + " " * chance.randrange(1, 4) * (chance.random() < 0.1) for line in lines[:-1]], unit


def _changes(chance: random.Random, lines: Sequence[str], most: int) -> Iterator[Change]:
    """Changes that leave two lines between each other."""
    at = 0
    for number in range(most):
        room = (len(lines) - at) // (most - number)
        if room < 4:
            return
        start = at + chance.randrange(room - 2)
        end = start + chance.choice([0, 1, 1, 2])
        indent = next((_lead(line) for line in reversed(lines[: start + 1]) if line.strip()), "")
        new = [f"{indent}new_{start}_{each} = {chance.randrange(9)}" for each in range(chance.randrange(0, 3))]
        if new or end > start:
            yield Change(start, end, tuple(new))
        at = end + 2


def _meant(rows: Sequence[tuple[str, str]], changes: Sequence[Change]) -> list[tuple[str, str]]:
    out: list[tuple[str, str]] = []
    at = 0
    for change in changes:
        out += rows[at : change.start]
        own = [end for _, end in rows[change.start : change.end]][: len(change.new)]
        near = own or [end for _, end in out[-1:]] or [end for _, end in rows[change.end : change.end + 1]]
        ends = own + near[-1:] * (len(change.new) - len(own))
        out += zip(change.new, ends, strict=True)
        at = change.end
    return [*out, *rows[at:]]


def _bytes(mark: str, rows: Sequence[tuple[str, str]], is_ended: bool) -> bytes:
    text = "".join(line + end for line, end in rows)
    return (mark + (text if is_ended else text.removesuffix(rows[-1][1] if rows else ""))).encode()


class _Noise:
    """What is done to lines on their way; `kinds` is what has been."""

    def __init__(self, chance: random.Random, unit: str, count: int) -> None:
        self.chance, self.unit = chance, unit
        self.kinds = set[str]()
        self.wanted = set(chance.sample(["stripped", "tabs", "dedented", "crlf", "around", "unmarked"], k=count))

    def piece(self, lines: Sequence[str], change: Change) -> tuple[str, str, bool]:
        """`before` and `after` of one change, and whether there is one place for them."""
        start, end = max(0, change.start - self.chance.randrange(3)), change.end + self.chance.randrange(3)
        if start == end == change.start:
            start, end = max(0, start - 1), end + 1
        end = min(end, len(lines))
        old = [*lines[start:end]]
        new = [*lines[start : change.start], *change.new, *lines[change.end : end]]
        shown = self._indented(self._stripped([*old, *new]), len(old))
        is_last = end == len(lines)
        close = "" if is_last else "\n"
        before, after = "\n".join(shown[: len(old)]) + close, "".join(f"{each}\n" for each in shown[len(old) :])
        after = after.removesuffix("\n") if is_last else after
        if "crlf" in self.wanted:
            self.kinds.add("crlf")
            before, after = before.replace("\n", "\r\n"), after.replace("\n", "\r\n")
        return before, after, _count(lines, shown[: len(old)]) == 1

    def diff(self, lines: Sequence[str], changes: Sequence[Change]) -> tuple[str, bool]:
        """A unified diff of all changes, and whether there is one place for each hunk."""
        numbers = self.chance.choice(["right", "wrong", "none", "miscounted"])
        self.kinds |= {numbers} - {"right"}
        width = self.chance.choice([3, 3, 2, 1, 0])
        out, moved, is_certain = ["--- a/f", "+++ b/f"] * (self.chance.random() < 0.5), 0, True
        for change in changes:
            start, end = max(0, change.start - width), min(len(lines), change.end + width)
            old = [*lines[start:end]]
            shown = self._indented(self._stripped([*old, *change.new]), len(old))
            marked = self._marked(shown[: len(old)], shown[len(old) :], change.start - start, change.end - start)
            seen = [each[1:] for each in marked if not each.startswith("+")]
            is_certain &= _count(lines, seen) == 1 and "around" not in self.kinds
            out += [self._header(numbers, lines, seen, start, sum(each[:1] != "-" for each in marked), moved), *marked]
            moved += len(change.new) - (change.end - change.start)
        text = "\n".join(out) + "\n"
        if "crlf" in self.wanted:
            self.kinds.add("crlf")
            text = text.replace("\n", "\r\n")
        return text, is_certain

    def _marked(self, old: Sequence[str], new: Sequence[str], start: int, end: int) -> list[str]:
        before, behind = [" " + line for line in old[:start]], [" " + line for line in old[end:]]
        if "around" in self.wanted and len(before) > 1:
            self.kinds.add("around")
            before[0] = f" {self.unit}what is not there"
        if "unmarked" in self.wanted:
            self.kinds.add("unmarked")
            before, behind = ([each if each.strip() else "" for each in part] for part in (before, behind))
        return [*before, *("-" + line for line in old[start:end]), *("+" + line for line in new), *behind]

    def _header(
        self, numbers: str, lines: Sequence[str], seen: Sequence[str], start: int, new_count: int, moved: int
    ) -> str:
        first, more = start + 1, 0
        if numbers == "none":
            return "@@"
        if numbers == "wrong":
            # A wrong number that leads to the same lines elsewhere means those.
            same = {place + 1 for place in _places(lines, seen)}
            first = self.chance.choice([each for each in range(1, len(lines) + 20) if each not in same] or [first])
        if numbers == "miscounted":
            more = 1
        return f"@@ -{first},{len(seen) + more} +{first + moved},{new_count} @@"

    def _stripped(self, lines: list[str]) -> list[str]:
        if "stripped" not in self.wanted:
            return lines
        self.kinds.add("stripped")
        return [line.rstrip(BLANK) for line in lines]

    def _indented(self, lines: list[str], old: int) -> list[str]:
        """Lines with other blanks before them, where the first `old` of them show that."""
        told = [line for line in lines[:old] if line.strip()]
        if "tabs" in self.wanted and any(line[:1] in BLANK for line in told):
            self.kinds.add("tabs")
            width = len(self.unit)
            if self.unit == "\t":
                return [
                    _lead(line).replace("\t", "    ") + line.lstrip(BLANK) if line.strip() else line for line in lines
                ]
            return [
                _lead(line).replace(" " * width, "\t") + line.lstrip(BLANK) if line.strip() else line for line in lines
            ]
        if "dedented" in self.wanted and told:
            common = min((_lead(line) for line in lines if line.strip()), key=len)
            self.kinds |= {"dedented"} if common else set()
            return [line.removeprefix(common) if line.strip() else line for line in lines]
        return lines


def _lead(line: str) -> str:
    return line[: len(line) - len(line.lstrip(BLANK))]


def _places(lines: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Where lines stand, blanks aside; an empty one may be shown behind the last one."""
    bare, sought = [line.strip(BLANK) for line in (*lines, "")], [line.strip(BLANK) for line in wanted]
    return [at for at in range(len(bare) - len(sought) + 1) if bare[at : at + len(sought)] == sought]


def _count(lines: Sequence[str], wanted: Sequence[str]) -> int:
    return len(_places(lines, wanted)) if any(line.strip() for line in wanted) else 0
