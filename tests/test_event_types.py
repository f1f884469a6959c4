"""The table of events beside the code that tells them, the runs that have them, and the page that lists them."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from koi_lang.events import EVENTS, OMITTED, Event, EventData, UnknownEvent
from koi_lang.runtime.journal.entries import KINDS
from koi_lang.system import resources
from koi_lang.web.openapi import document_of
from tests.package_trees import nodes_of, trees
from tests.pages import ROOT
from tests.service.test_message_schemas import closed, problems
from tests.test_examples import NAMES, run_example

OWN = f"{resources.PACKAGE.name}.events"
# A field of its own, and a word of a provider's protocol, that read like types.
OTHERS = {("koi_lang.runtime.journal.history", "timed_out"), ("koi_lang.service.run_hooks", "timed_out")}
OTHERS |= {("koi_lang.client.following", "timed_out"), ("koi_lang.llm.anthropic", "text_delta")}
OTHERS |= {("koi_lang.llm.anthropic", "thinking_delta"), ("koi_lang.service.user_view", "timed_out")}
OTHERS |= {("koi_lang.llm.whole_answers", kind) for kind in ("text_delta", "thinking_delta")}
PAGE = ROOT / "docs" / "events.md"
HEAD = "| type | what | fields |\n|---|---|---|\n"


def field_names(declared: type[EventData]) -> Iterator[str]:
    """The fields of a type, as the page has them."""
    for name in declared.__annotations__:
        wire = declared.wire_names.get(name, name)
        if name == declared.spread:
            yield "those of an error"
        elif getattr(declared, name, None) is OMITTED:
            yield f"*{wire}*{'†' if name in declared.hidden['detailed'] else ''}"
        else:
            yield wire


def table() -> str:
    """All events, as the manual lists them."""
    rows = []
    for name, declared in EVENTS.items():
        text = " ".join(str(declared.__doc__).split()).replace("|", "\\|")
        passing = " (passing)" if declared.is_transient else ""
        rows.append(f"| `{name}`{passing} | {text} | {', '.join(field_names(declared))} |")
    return HEAD + "\n".join(rows) + "\n"


def is_of_type(node: ast.expr) -> bool:
    """Whether an expression is the type of an event, or the kind of an entry."""
    return isinstance(node, ast.Attribute) and node.attr in ("type", "kind")


def literals_of(module: str) -> Iterator[str]:
    """The types of events that a module spells out: words that are nothing else, and what types are held against."""
    yield from (
        str(node.value) for node in nodes_of(module, ast.Constant) if node.value in EVENTS and "_" in node.value
    )
    compared: list[ast.AST] = [
        node for node in nodes_of(module, ast.Compare) if any(map(is_of_type, (node.left, *node.comparators)))
    ]
    matches = (node for node in nodes_of(module, ast.Match) if is_of_type(node.subject))
    for node in (*compared, *(case.pattern for match in matches for case in match.cases)):
        texts = (part.value for part in ast.walk(node) if isinstance(part, ast.Constant))
        yield from (text for text in texts if text in EVENTS)


def test_types_stand_in_the_table_alone() -> None:
    """Everywhere else an event is its class, so that a search for it finds who tells it and who follows it."""
    found = {(module, text) for module in trees() if module != OWN for text in literals_of(module)}

    assert set() == found - OTHERS


def test_every_type_is_told_somewhere() -> None:
    """Nothing is listed that cannot happen."""
    named = {node.id for module in trees() if module != OWN for node in nodes_of(module, ast.Name)}

    assert [] == [declared for declared in EVENTS.values() if declared.__name__ not in named]


def test_kinds_of_entries_follow_from_the_table() -> None:
    """Actions and effects share their kinds, since both are outcomes by path; transient events have none."""
    other = {type: kind for type, kind in KINDS.items() if type != kind}
    kinds = {"started": "begun", "ended": "done", "failed": "failed"}

    assert {f"{what}_{how}": kind for what in ("action", "effect") for how, kind in kinds.items()} == other
    assert [] == [type for type in KINDS if EVENTS[type].is_transient]


def test_the_manual_lists_all_events(accept: bool) -> None:
    """Its table is made from that of the code; `--accept` writes it anew."""
    if accept:
        PAGE.write_text(PAGE.read_text("utf-8").partition(HEAD)[0] + table(), "utf-8")
    _, head, listed = PAGE.read_text("utf-8").partition(HEAD)

    assert table() == head + listed


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", NAMES)
def test_runs_tell_what_the_table_has(name: str, tmp_path: Path) -> None:
    """Everything that the examples tell has a type and a schema, no other fields, and comes back as it was."""
    done = run_example(name, tmp_path, "--json", "--debug")
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"v":')]
    told = [Event.of_data(line) for line in lines]
    document = closed(document_of([], "1"))

    assert [] == problems(document, "Event", lines)
    assert lines == [event.as_data() for event in told]
    assert "run_ended" == told[-1].type
    assert [] == [event for event in told if isinstance(event.data, UnknownEvent)]
    assert [] == [event for event in told if set(vars(event.data)) - set(type(event.data).__annotations__)]
