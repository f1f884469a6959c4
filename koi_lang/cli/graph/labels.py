"""What stands in the boxes and beside the lines of a drawn program."""

from __future__ import annotations

from collections.abc import Mapping

from koi_lang.compiler.program_graph import EdgeKind, GraphEdge, GraphNode, NodeKind
from koi_lang.system.text_width import clean, width

MAX_COLUMNS = 44
MAX_LINES = 8
MAX_LABELS = 4
WORDS: Mapping[EdgeKind, str] = {
    "runs": "runs",
    "delegates": "may ask",
    "calls": "calls",
    "uses": "uses",
    "members": "",
    "has": "",
}

COLOURS: Mapping[NodeKind, str] = {
    "run": "#ffffff",
    "agent": "#dbeafe",
    "team": "#fef3c7",
    "skill": "#dcfce7",
    "server": "#ede9fe",
    "role": "#f3f4f6",
}


def box_lines(node: GraphNode) -> list[str]:
    """The lines of a box: what it is, what it says of itself, and its details, as far as there is room."""
    of_role = f" : {node.role}" if node.role else ""
    head = node.name if node.kind == "run" else f"{node.kind} {node.name}{of_role}"
    details = [*node.details[:MAX_LINES], *(["…"] if len(node.details) > MAX_LINES else [])]
    if node.kind == "role":
        details = [f"can {each}" for each in details]
    return [one_line(line) for line in (head, node.text, *details) if line.strip()]


def edge_label(edge: GraphEdge) -> str:
    """What stands beside a line: a verb, and what it is about."""
    if edge.kind == "uses" and not edge.labels:
        return ""  # the kind of line says it
    if edge.kind == "members" and edge.labels[0].lower() == edge.target.partition(":")[2].lower():
        return ""  # the key is the name
    names = [*edge.labels[:MAX_LABELS], *(["…"] if len(edge.labels) > MAX_LABELS else [])]
    return one_line(f"{WORDS[edge.kind]} {', '.join(names)}".strip())


def one_line(text: str) -> str:
    """A text of others as one line without what steers a terminal, cut where it is long."""
    line = clean(" ".join(text.split()))
    if width(line) <= MAX_COLUMNS:
        return line
    while width(line) >= MAX_COLUMNS:
        line = line[:-1]
    return f"{line}…"
