"""A file of 2,000 lines in an editor to what opening, typing and completion take of `koi lsp`, and its memory."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from lsprotocol import types

from benchmarks.measuring import Figure, repeat
from tests.lsp.editor import Editor

AGENT = """
agent Worker{i} : Lead {{
  uses team Office
  state {{ count: number = 0 }}
  affordance "Does work number {i}."

  on work{i}(args: {{ amount: number, name: string }}): {{ total: number }} {{
    const doubled = args.amount * 2
    this.state.count += doubled
    if (doubled > 100) {{
      console.log("large", doubled, args.name)
    }}
    return {{ total: doubled }}
  }}

  on plan{i}(args: {{ name: string }}) {{
    playbook \"\"\"
    Greet {{{{args.name}}}} and say that the count is {{{{state.count}}}}.
    Return a short text.
    \"\"\"
  }}
}}
"""
AGENTS, CHANGES = 86, 9
TICKS_S = os.sysconf("SC_CLK_TCK")
TYPED = '    await send peers.event("'


def figures(folder: Path) -> list[Figure]:
    """CPU of opening and of a change, time of a completion right behind a change, and the most memory."""
    members = ", ".join(f"w{index}: Worker{index}" for index in range(AGENTS))
    text = f"role Lead {{ can delegate, can execute }}\nteam Office {{ {members} }}\n"
    text += "".join(AGENT.format(i=index) for index in range(AGENTS))
    opening = repeat(3, lambda: _opening_s(folder, text))
    editor = Editor(folder)
    editor.start()
    process = _ServerProcess(editor)
    editor.open("long.koi", text)
    uri, line = editor.uri("long.koi"), text[: text.index("console.log")].count("\n")
    changing, completing = [], []
    for _ in range(CHANGES):
        changing.append(process.cpu_s(lambda: _type(editor, uri, line, "    // typed\n")))
        completing.append(_completion_s(editor, uri, line))
    memory = process.peak_mb()
    editor.stop()
    return [
        Figure("CPU of `koi lsp` that opens 2,000 lines", 0.8, opening, "s"),
        Figure("CPU of problems after a change in them", 0.3, changing, "s"),
        Figure("completion right after a change", 0.1, completing, "s"),
        Figure("memory of `koi lsp` with them", 150, [memory], "MB"),
    ]


def _opening_s(folder: Path, text: str) -> float:
    editor = Editor(folder)
    editor.start()
    taken_s = _ServerProcess(editor).cpu_s(lambda: editor.open("long.koi", text))
    editor.stop()
    return taken_s


def _type(editor: Editor, uri: str, line: int, text: str) -> None:
    place = types.Range(types.Position(line, 0), types.Position(line, 0))
    editor.change(uri, types.TextDocumentContentChangePartial(place, text))
    editor.problems(uri)


def _completion_s(editor: Editor, uri: str, line: int) -> float:
    """The time of a completion that is asked for together with a change."""
    start, end = types.Position(line, 0), types.Position(line, len(TYPED))
    editor.change(uri, types.TextDocumentContentChangePartial(types.Range(start, start), TYPED))
    began_s = time.perf_counter()
    asked = types.CompletionParams(types.TextDocumentIdentifier(uri), end)
    offered = editor.run(editor.client.text_document_completion_async(asked))
    took_s = time.perf_counter() - began_s
    assert len(offered) > AGENTS
    editor.change(uri, types.TextDocumentContentChangePartial(types.Range(start, end), ""))
    editor.problems(uri)
    return took_s


class _ServerProcess:
    """What the operating system knows of the server of an editor."""

    def __init__(self, editor: Editor) -> None:
        server = editor.client._server
        assert server is not None
        self._folder = Path(f"/proc/{server.pid}")

    def cpu_s(self, work: Callable[[], object]) -> float:
        """What the server computes while something is done, in steps of 10 ms."""
        before = self._used_s()
        work()
        return self._used_s() - before

    def _used_s(self) -> float:
        fields = (self._folder / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_S

    def peak_mb(self) -> float:
        """The most memory that it has had."""
        lines = (self._folder / "status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
