"""The global `console`: values to lines at the host."""

from __future__ import annotations

from koi_lang.js.console_state import duration
from koi_lang.js.conversions import number, text, truth
from koi_lang.js.environment import current_environment
from koi_lang.js.inspect_layout import display_width
from koi_lang.js.inspect_value import console_text, inspect
from koi_lang.js.method_tables import MethodTable, namespace
from koi_lang.js.own_properties import is_array, is_record, own_entries
from koi_lang.js.process import now_ms
from koi_lang.js.properties import get
from koi_lang.js.undefined import Value, nullish, undefined

METHODS = MethodTable()
# Of objects within each other that `console.dir(value, { depth: null })` writes out.
MAX_LEVELS = 200


def _print(text: str) -> Value:
    current_environment().print(current_environment().console.indent(text))
    return undefined


def _tell(text: str) -> Value:
    current_environment().log(current_environment().console.indent(text))
    return undefined


@METHODS.add_as("log")
def _log(*values: Value) -> Value:
    return _print(console_text(*values))


@METHODS.add_as("info")
def _info(*values: Value) -> Value:
    return _log(*values)


@METHODS.add_as("error")
def _error(*values: Value) -> Value:
    return _tell(console_text(*values))


@METHODS.add_as("warn")
def _warn(*values: Value) -> Value:
    return _error(*values)


@METHODS.add_as("debug")
def _debug(*values: Value) -> Value:
    return _error(*values)


@METHODS.add_as("trace")
def _trace(*values: Value) -> Value:
    return _error(f"Trace: {console_text(*values)}")


@METHODS.add_as("dir")
def _dir(value: Value, options: Value = undefined) -> Value:
    depth = undefined if nullish(options) else get(options, "depth")
    if depth is undefined:
        return _print(inspect(value))
    return _print(inspect(value, MAX_LEVELS if depth is None else int(min(max(number(depth), 0), MAX_LEVELS))))


@METHODS.add_as("assert")
def _assert(condition: Value, *values: Value) -> Value:
    if truth(condition):
        return undefined
    return _error(f"Assertion failed{': ' if values else ''}{console_text(*values)}")


@METHODS.add_as("group", "groupCollapsed")
def _group(*values: Value) -> Value:
    if values:
        _log(*values)
    current_environment().console.begin()
    return undefined


@METHODS.add_as("groupEnd")
def _group_end() -> Value:
    current_environment().console.end()
    return undefined


@METHODS.add_as("count")
def _count(label: Value = undefined) -> Value:
    name, counts = _label(label), current_environment().console.counts
    counts[name] = counts.get(name, 0) + 1
    return _print(f"{name}: {counts[name]}")


@METHODS.add_as("countReset")
def _count_reset(label: Value = undefined) -> Value:
    name = _label(label)
    if current_environment().console.counts.pop(name, None) is None:
        return _tell(f"Count for '{name}' does not exist")
    return undefined


@METHODS.add_as("time")
def _time(label: Value = undefined) -> Value:
    name, started_ms = _label(label), current_environment().console.started_ms
    if name in started_ms:
        return _tell(f"Label '{name}' already exists for console.time()")
    started_ms[name] = now_ms()
    return undefined


@METHODS.add_as("timeLog")
def _time_log(label: Value = undefined, *values: Value) -> Value:
    return _print_elapsed("timeLog", _label(label), values)


@METHODS.add_as("timeEnd")
def _time_end(label: Value = undefined) -> Value:
    name = _label(label)
    _print_elapsed("timeEnd", name, ())
    current_environment().console.started_ms.pop(name, None)
    return undefined


def _label(label: Value) -> str:
    return "default" if label is undefined else text(label)


def _print_elapsed(method: str, name: str, values: tuple[Value, ...]) -> Value:
    """Print how long ago a clock was started, with values behind it."""
    started_ms = current_environment().console.started_ms.get(name)
    if started_ms is None:
        return _tell(f"No such label '{name}' for console.{method}()")
    return _print(console_text("%s", f"{name}: {duration(now_ms() - started_ms)}", *values))


@METHODS.add_as("table")
def _table(data: Value) -> Value:
    if not is_array(data) and not is_record(data):
        return _log(data)
    rows = [(name, _cells(item)) for name, item in own_entries(data)]
    columns = list(dict.fromkeys(column for _, cells in rows for column in cells if column))
    columns += [""] if any("" in cells for _, cells in rows) else []
    body = [[name, *(cells.get(column, "") for column in columns)] for name, cells in rows]
    return _log("\n".join(_box(["(index)", *(column or "Values" for column in columns)], body)))


def _cells(item: Value) -> dict[str, str]:
    """A row by column; what has no members stands in the column without a name."""
    if is_array(item) or is_record(item):
        return {name: inspect(value, depth=0) for name, value in own_entries(item)}
    return {"": inspect(item)}


def _box(head: list[str], body: list[list[str]]) -> list[str]:
    widths = [max(map(display_width, column)) + 2 for column in zip(head, *body, strict=True)]
    lines = ["─" * width for width in widths]
    rows = [_row(row, widths) for row in (head, *body)]
    return [f"┌{'┬'.join(lines)}┐", rows[0], f"├{'┼'.join(lines)}┤", *rows[1:], f"└{'┴'.join(lines)}┘"]


def _row(cells: list[str], widths: list[int]) -> str:
    padded = [f" {cell}{' ' * (width - display_width(cell) - 1)}" for cell, width in zip(cells, widths, strict=True)]
    return f"│{'│'.join(padded)}│"


CONSOLE = namespace(METHODS)
