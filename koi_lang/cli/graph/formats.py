"""The forms in which a program is drawn."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import asdict

from koi_lang.cli.graph.columns import draw_columns
from koi_lang.cli.graph.labels import COLOURS, box_lines, edge_label
from koi_lang.compiler.program_graph import EdgeKind, NodeKind, ProgramGraph

MAX_LAYOUT_S = 30.0
# How Mermaid draws each kind: what stands around the label, and the line.
SHAPES: Mapping[NodeKind, tuple[str, str]] = {
    "run": ("((", "))"),
    "agent": ("[", "]"),
    "team": ("{{", "}}"),
    "skill": ("[[", "]]"),
    "server": ("[(", ")]"),
    "role": ("([", "])"),
}
LINES: Mapping[EdgeKind, str] = {
    "runs": "==>",
    "delegates": "==>",
    "calls": "-->",
    "uses": "-.->",
    "members": "---",
    "has": "-.-",
}
DOT_SHAPES: Mapping[NodeKind, str] = {
    "run": "circle",
    "agent": "box",
    "team": "hexagon",
    "skill": "component",
    "server": "cylinder",
    "role": "note",
}
DOT_LINES: Mapping[EdgeKind, str] = {
    "runs": "style=bold",
    "delegates": "style=bold",
    "calls": "style=solid",
    "uses": "style=dashed",
    "members": "style=solid, arrowhead=none",
    "has": "style=dotted, arrowhead=none",
}
# What means something in a label of Mermaid, or in the HTML that it makes of it.
MEANING = re.compile(r"[^\w .,:()→…/-]")


def as_mermaid(graph: ProgramGraph) -> str:
    """A flowchart for Mermaid; every sign of a text that could mean something is written by its number."""
    ids = {node.id: f"n{number}" for number, node in enumerate(graph.nodes)}
    lines = ["flowchart LR"]
    for node in graph.nodes:
        opening, closing = SHAPES[node.kind]
        label = "<br>".join(map(_mermaid_text, box_lines(node)))
        lines.append(f'  {ids[node.id]}{opening}"{label}"{closing}')
    for edge in graph.edges:
        label = _mermaid_text(edge_label(edge))
        told = f'|"{label}"|' if label else ""
        lines.append(f"  {ids[edge.source]} {LINES[edge.kind]}{told} {ids[edge.target]}")
    return "\n".join(lines)


def _mermaid_text(text: str) -> str:
    return MEANING.sub(lambda found: f"#{ord(found[0])};", text)


def as_dot(graph: ProgramGraph) -> str:
    """A directed graph for Graphviz."""
    lines = ["digraph program {", "  rankdir=LR", '  node [fontname="sans-serif"]', '  edge [fontname="sans-serif"]']
    for node in graph.nodes:
        label = "\\n".join(map(_dot_text, box_lines(node)))
        lines.append(f'  "{_dot_text(node.id)}" [{_dot_look(node.kind)}, label="{label}"]')
    for edge in graph.edges:
        label = _dot_text(edge_label(edge))
        ends = f'"{_dot_text(edge.source)}" -> "{_dot_text(edge.target)}"'
        lines.append(f'  {ends} [{DOT_LINES[edge.kind]}, label="{label}"]')
    return "\n".join([*lines, "}"])


def _dot_look(kind: NodeKind) -> str:
    return f'shape={DOT_SHAPES[kind]}, style=filled, fillcolor="{COLOURS[kind]}"'


def _dot_text(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")


def as_json(graph: ProgramGraph) -> str:
    """Nodes and edges as they are, for programs."""
    return json.dumps(asdict(graph), indent=2, ensure_ascii=False)


def as_svg(graph: ProgramGraph) -> str:
    """A picture: by Graphviz where it is installed, else in columns."""
    program = shutil.which("dot")
    return (_laid_out_by(program, as_dot(graph)) if program else "") or draw_columns(graph)


def _laid_out_by(program: str, dot: str) -> str:
    """What Graphviz makes of a graph; empty where it cannot."""
    try:
        done = subprocess.run(
            [program, "-Tsvg"],
            input=dot,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=MAX_LAYOUT_S,
            check=True,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return ""
    return done.stdout.rstrip("\n")


FORMATS: Mapping[str, Callable[[ProgramGraph], str]] = {
    "mermaid": as_mermaid,
    "dot": as_dot,
    "json": as_json,
    "svg": as_svg,
}
