"""The forms in which a program is drawn."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import comb
from typing import TypeAlias
from xml.sax.saxutils import escape, quoteattr

from koi_lang.cli.graph.labels import COLOURS, box_lines, edge_label
from koi_lang.compiler.program_graph import EdgeKind, GraphEdge, GraphNode, NodeKind, ProgramGraph
from koi_lang.system.text_width import clean, width

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
# Pixels: of a letter and a line of text, around the text of a box, between boxes and columns, around the picture.
LETTER = 7.3
LINE = 17.0
INSET = 9.0
GAP = 22.0
BETWEEN = 150.0
MARGIN = 20.0
# How far lines bend, and those between boxes of one column.
BEND = 70.0
DETOUR = 60.0
ASIDE = 9.0
# In how many steps a place on a line is looked for.
STEPS = 40
Point: TypeAlias = tuple[float, float]
LEADING = ("runs", "delegates", "calls")
# Who has which role stands in the box of an agent.
STYLES: Mapping[EdgeKind, str] = {
    "runs": 'stroke="#111827" stroke-width="2" marker-end="url(#arrow)"',
    "delegates": 'stroke="#1d4ed8" stroke-width="2" marker-end="url(#arrow)"',
    "calls": 'stroke="#111827" marker-end="url(#arrow)"',
    "uses": 'stroke="#6b7280" stroke-dasharray="6 4" marker-end="url(#arrow)"',
    "members": 'stroke="#b45309"',
}
HEAD = (
    '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
    'markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0 8 4 0 8z" fill="#374151"/></marker></defs>'
)
# Halves of characters, and the two that Unicode has kept free for ever.
NOT_IN_XML = re.compile("[\ud800-\udfff\ufffe\uffff]")
FONT = 'font-family="ui-monospace, DejaVu Sans Mono, monospace" font-size="12"'


@dataclass(frozen=True, slots=True)
class _Box:
    """A node with its place; `column` counts from the left."""

    node: GraphNode
    lines: tuple[str, ...]
    column: int
    x: float
    y: float
    wide: float
    high: float

    @property
    def middle(self) -> float:
        """Its height in the picture."""
        return self.y + self.high / 2


def draw_columns(graph: ProgramGraph) -> str:
    """A picture that needs no other program; texts of the program are escaped."""
    boxes = _place(graph)
    wide = max((box.x + box.wide for box in boxes.values()), default=0) + MARGIN + DETOUR
    high = max((box.y + box.high for box in boxes.values()), default=0) + MARGIN
    size = f'width="{wide:.0f}" height="{high:.0f}" viewBox="0 0 {wide:.0f} {high:.0f}"'
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} {FONT}>', HEAD]
    lines.append(f'<rect width="{wide:.0f}" height="{high:.0f}" fill="#ffffff"/>')
    paths = [_draw_line(edge, boxes[edge.source], boxes[edge.target]) for edge in graph.edges if edge.kind in STYLES]
    lines += [path for path, _ in paths]
    lines += [part for box in boxes.values() for part in _draw_box(box)]
    lines += [label for _, label in paths if label]
    return "\n".join([*lines, "</svg>"])


def _place(graph: ProgramGraph) -> dict[str, _Box]:
    """The boxes by the ids of their nodes, column by column."""
    columns = _columns(graph)
    boxes: dict[str, _Box] = {}
    x = MARGIN
    tall = [sum(_height(node) + GAP for node in column) - GAP for column in columns]
    for number, column in enumerate(columns):
        wide = max(_width(node) for node in column)
        y = MARGIN + (max(tall) - tall[number]) / 2
        for node in column:
            high = _height(node)
            boxes[node.id] = _Box(node, tuple(box_lines(node)), number, x, y, wide, high)
            y += high + GAP
        x += wide + BETWEEN
    return boxes


def _columns(graph: ProgramGraph) -> list[list[GraphNode]]:
    """What runs, then agents by how many steps they are from it, then teams, skills and servers, then roles."""
    steps = _steps(graph)
    last = max(steps.values(), default=0)
    beside = {"run": 0, "team": last + 1, "skill": last + 1, "server": last + 1, "role": last + 2}
    found: dict[int, list[GraphNode]] = {}
    for node in graph.nodes:
        found.setdefault(beside.get(node.kind, steps.get(node.id, 0)), []).append(node)
    return [found[number] for number in sorted(found)]


def _steps(graph: ProgramGraph) -> dict[str, int]:
    """How many steps each agent is from what runs; those that nothing leads to stand where it leads first."""
    leads: dict[str, list[str]] = {}
    for edge in graph.edges:
        if edge.kind in LEADING:
            leads.setdefault(edge.source, []).append(edge.target)
    agents = {node.id for node in graph.nodes if node.kind == "agent"}
    steps = dict.fromkeys([node.id for node in graph.nodes if node.kind == "run"], 0)
    waiting = list(steps) or [id for id in leads if id in agents][:1]
    steps |= dict.fromkeys(waiting, 0)
    while waiting:
        current = waiting.pop(0)
        new = [id for id in leads.get(current, ()) if id not in steps]
        steps |= dict.fromkeys(new, steps[current] + 1)
        waiting += new
    return {**dict.fromkeys(agents, 1), **steps}


def _width(node: GraphNode) -> float:
    return max(width(line) for line in box_lines(node)) * LETTER + 2 * INSET


def _height(node: GraphNode) -> float:
    return len(box_lines(node)) * LINE + 2 * INSET - 4


def _draw_box(box: _Box) -> Iterator[str]:
    """A box, its full text for whoever points at it, and its lines, the first one bold."""
    node = box.node
    yield f"<g><title>{_xml(' '.join([node.name, *node.text.split()]))}</title>"
    place = f'x="{box.x:.1f}" y="{box.y:.1f}" width="{box.wide:.1f}" height="{box.high:.1f}"'
    yield f'<rect {place} rx="5" fill={quoteattr(COLOURS[node.kind])} stroke="#374151"/>'
    for number, line in enumerate(box.lines):
        at = f'x="{box.x + INSET:.1f}" y="{box.y + INSET + 10 + number * LINE:.1f}"'
        weight = ' font-weight="bold"' if number == 0 else ""
        yield f"<text {at}{weight}>{_xml(line)}</text>"
    yield "</g>"


def _draw_line(edge: GraphEdge, source: _Box, target: _Box) -> tuple[str, str]:
    """The line of an edge, and its label, which stands in front of all lines."""
    points = _points(source, target)
    first, *rest = (f"{x:.1f} {y:.1f}" for x, y in points)
    path = f'<path d="M{first}C{" ".join(rest)}" fill="none" {STYLES[edge.kind]}/>'
    return path, _draw_label(edge_label(edge), _label_point(points, abs(source.column - target.column)))


def _points(source: _Box, target: _Box) -> tuple[Point, Point, Point, Point]:
    """The curve from one box to another: where it begins, two points to which it bends, and where it ends."""
    if source.column < target.column:
        begin, end = (source.x + source.wide, source.middle), (target.x, target.middle)
        bends = (begin[0] + BEND, end[0] - BEND)
    elif source.column > target.column:
        begin, end = (source.x, source.middle), (target.x + target.wide, target.middle)
        bends = (begin[0] - BEND, end[0] + BEND)
    else:  # beside the boxes of their column
        begin, end = (source.x + source.wide, source.middle + ASIDE), (target.x + target.wide, target.middle - ASIDE)
        bends = (max(begin[0], end[0]) + DETOUR,) * 2
    return begin, (bends[0], begin[1]), (bends[1], end[1]), end


def _label_point(points: Sequence[Point], columns: int) -> Point:
    """Where the label of a line stands: in its middle, of one that passes columns in the gap before its right end."""
    if columns < 2:
        return _on_curve(points, 0.5)
    wanted = max(points[0][0], points[-1][0]) - BETWEEN / 2
    return min((_on_curve(points, step / STEPS) for step in range(STEPS + 1)), key=lambda point: abs(point[0] - wanted))


def _on_curve(points: Sequence[Point], part: float) -> Point:
    """A point of a cubic curve, so far from its beginning."""
    weights = [comb(3, n) * part**n * (1 - part) ** (3 - n) for n in range(4)]
    x, y = (sum(weight * point[axis] for weight, point in zip(weights, points, strict=True)) for axis in (0, 1))
    return x, y


def _draw_label(text: str, at: Point) -> str:
    """A text beside a line, on a ground that lets it be read."""
    if not text:
        return ""
    x, y = at
    wide = width(text) * LETTER * 0.85 + 6
    ground = (
        f'<rect x="{x - wide / 2:.1f}" y="{y - 9:.1f}" width="{wide:.1f}" height="14" fill="#ffffff" opacity="0.85"/>'
    )
    return f'{ground}<text x="{x:.1f}" y="{y + 2:.1f}" font-size="10" text-anchor="middle">{_xml(text)}</text>'


def _xml(text: str) -> str:
    """A text as XML has it; what may not stand in XML, and what steers terminals, is replaced."""
    return escape(NOT_IN_XML.sub("\ufffd", clean(text)))


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
        caption = f'|"{label}"|' if label else ""
        lines.append(f"  {ids[edge.source]} {LINES[edge.kind]}{caption} {ids[edge.target]}")
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
