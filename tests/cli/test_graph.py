"""`koi graph`: what is drawn of a program, in each form, whatever its texts are."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from koi_lang.cli.graph.formats import FORMATS, draw_columns
from koi_lang.compiler.compile import check_program
from koi_lang.compiler.program_graph import ProgramGraph, graph_of
from tests.projects import Project
from tests.support import TextFiles

HOSTILE = r"</svg><script>x()</script> \" ]; } -- \\ `code` #quot; &amp; <br>\n\u0000\u001b[31m 変更"
PROGRAM = f"""
role Lead {{ can delegate, can call_mcp: mail }}
role Worker {{ can execute, can registry: read }}
mcp mail = {{ command: "mail-server" }}
skill Notes {{
  affordance "{HOSTILE}"
  needs write
  export function note(text: string) {{ return text }}
}}
agent Coder : Worker {{
  affordance "{HOSTILE}"
  uses skill Notes
  on code(args: Json) {{ playbook "Code." }}
}}
agent Tester : Worker {{ on test(args: Json) {{ return await Coder.code(args) }} }}
team Makers {{ coder: Coder, tests: Tester, find: "mcp://mail/{HOSTILE}" }}
agent Boss : Lead {{
  uses team Makers
  uses mcp mail(read_*)
  on plan(args: Json) {{ playbook "Plan." }}
  on start(args: Json) {{ return await this.plan(note("x")) }}
}}
run Boss.start({{}})
"""


@pytest.fixture(scope="module")
def graph() -> ProgramGraph:
    """The graph of the program."""
    checked = check_program("main.koi", TextFiles({"main.koi": PROGRAM}))
    assert not checked.errors
    return graph_of(checked.files)


def test_everything_is_there(graph: ProgramGraph) -> None:
    """Each kind of thing, and each kind of line between them, with what it is about."""
    nodes = {node.id: node.details for node in graph.nodes}
    edges = {
        (edge.kind, edge.source.partition(":")[2], edge.target.partition(":")[2], edge.labels[:1])
        for edge in graph.edges
    }

    assert ("delegate", "call_mcp:mail") == nodes["role:Lead"]
    assert ("plan (playbook)", "start (code)") == nodes["agent:Boss"]
    assert ("note (needs write)",) == nodes["skill:Notes"]
    assert {"run:run", "team:Makers", "server:mail"} <= nodes.keys()
    assert {
        ("runs", "run", "Boss", ("start",)),
        ("delegates", "Boss", "Coder", ("code",)),
        ("delegates", "Boss", "Tester", ("test",)),
        ("calls", "Tester", "Coder", ("code",)),
        ("calls", "Boss", "Boss", ("plan",)),
        ("calls", "Boss", "Notes", ("note",)),
        ("uses", "Boss", "mail", ("read_*",)),
        ("uses", "Coder", "Notes", ()),
        ("members", "Makers", "Tester", ("tests",)),
        ("has", "Coder", "Worker", ()),
    } <= edges


def test_roles_without_delegate_ask_nobody() -> None:
    """What a role does not allow is not drawn."""
    checked = check_program("main.koi", TextFiles({"main.koi": PROGRAM.replace("can delegate, ", "")}))

    assert not [edge for edge in graph_of(checked.files).edges if edge.kind == "delegates"]


def test_columns_are_whole(graph: ProgramGraph) -> None:
    """A picture without Graphviz is one XML document with the texts in it, and no element that a text brought."""
    root = ElementTree.fromstring(draw_columns(graph))

    kinds = {element.tag.rpartition("}")[2] for element in root.iter()}
    texts = [element.text or "" for element in root.iter() if element.tag.endswith("text")]
    assert {"svg", "defs", "marker", "path", "rect", "g", "title", "text"} == kinds
    assert any("</svg><script>x()</script>" in text for text in texts)


def test_boxes_do_not_overlap(graph: ProgramGraph) -> None:
    """No two boxes of a picture cover the same place."""
    root = ElementTree.fromstring(draw_columns(graph))
    rects = [group.find("{*}rect") for group in root.iter("{http://www.w3.org/2000/svg}g")]
    places = [
        [float(rect.attrib[name]) for name in ("x", "y", "width", "height")] for rect in rects if rect is not None
    ]

    pairs = [(one, other) for at, one in enumerate(places) for other in places[:at]]
    assert len(graph.nodes) == len(places)
    assert not [pair for pair in pairs if _overlap(*pair)]


def _overlap(one: list[float], other: list[float]) -> bool:
    return all(one[axis] < other[axis] + other[axis + 2] and other[axis] < one[axis] + one[axis + 2] for axis in (0, 1))


def test_mermaid_has_no_signs_of_its_texts(graph: ProgramGraph) -> None:
    """Within the quotes of a label stand only letters, plain signs, numbers of others, and line breaks."""
    lines = FORMATS["mermaid"](graph).splitlines()

    labels = [re.search(r'"(.*)"', line) for line in lines if '"' in line]
    plain = re.compile(r"(?:[\w .,:()→…/-]|#\d+;|<br>)*")
    assert len(graph.nodes) + len(graph.edges) + 1 == len(lines)
    assert all(found is not None and plain.fullmatch(found[1]) for found in labels)


@pytest.mark.needs("dot")
def test_graphviz_reads_it(graph: ProgramGraph) -> None:
    """Graphviz finds as many nodes and edges as there are, and makes the picture that `svg` gives."""
    text = FORMATS["dot"](graph)
    done = subprocess.run(["dot", "-Tjson"], input=text, capture_output=True, text=True, encoding="utf-8", check=True)
    found: dict[str, Any] = json.loads(done.stdout)

    assert (len(graph.nodes), len(graph.edges)) == (len(found["objects"]), len(found["edges"]))
    assert {node.id for node in graph.nodes} == {each["name"] for each in found["objects"]}
    assert "script" not in {
        element.tag.rpartition("}")[2] for element in ElementTree.fromstring(FORMATS["svg"](graph)).iter()
    }


def test_programs_are_not_run(project: Project) -> None:
    """The command draws a program with warnings and runs nothing of it; one with errors is told, with code 65."""
    project.write("a.koi", 'import "./b.koi"\nrun A.go({})\n')
    project.write("b.koi", 'role R { can x }\nagent A : R { on go(args) { const unused = 1\nconsole.log("ran") } }\n')
    project.write("c.koi", "agent A : R { on go( }\n")

    drawn, broken = project.koi("graph", "a.koi", "--format", "json"), project.koi("graph", "c.koi")

    assert ["run", "A", "R"] == [node["name"] for node in json.loads(drawn.stdout)["nodes"]]
    assert (65, "") == (broken.returncode, broken.stdout)


def test_a_skill_in_files_is_drawn_by_its_name(tmp_path: Path) -> None:
    """It has neither functions nor a text of its own."""
    (tmp_path / "review").mkdir()
    (tmp_path / "review/SKILL.md").write_text("---\nname: review\ndescription: Reviews.\n---\nRead it twice.\n")
    program = """
import Review : skill from "./review"
role Worker { can execute }
agent Main : Worker { uses skill Review  on hello(args: Json) { playbook "Hi." } }
"""
    (tmp_path / "main.koi").write_text(program)
    drawn = json.loads(Project(tmp_path).fork("-m", "koi_lang", "graph", "main.koi", "--format", "json").stdout)
    assert ("agent:Main", "skill:Review") in {(each["source"], each["target"]) for each in drawn["edges"]}
