"""Neovim with the files of `editors/nvim`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from editors.generate.files import CHECKOUT
from tests.projects import Project

pytestmark = pytest.mark.needs("nvim")
KOI = Path(sys.executable).with_name("koi")
PROGRAM = '''\
/** Documentation */
role Worker { can execute, can registry:read }
agent Host : Worker {
  state { role = null }
  private on greet(args: { name: string }) {
    const { role, content } = message // «
    if (a && /b+/.test(role)) return `Hi ${args.name}` timeout 5s
    playbook """
      Ask { "intent": "prompt_user" } and say {{args.name}} that it is done.
    """
  }
}
run Host.greet({ role: Object.keys({}) })
'''
# A line, a word of it, and its group; empty for a plain name.
GROUPS = (
    (1, "Documentation", "koiDocumentation"), (2, "role", "koiKeywordDeclarations"), (2, "Worker", "koiName"),
    (2, "registry:read", "koiPermission"), (3, "agent", "koiKeywordDeclarations"), (4, "state", "koiKeywordMembers"),
    (4, "role", ""), (4, "null", "koiKeywordConstants"), (5, "on", "koiKeywordMembers"), (5, "greet", "koiHandler"),
    (5, "string", "koiType"), (6, "role", ""), (6, "//", "koiComment"), (7, "if", "koiKeywordControl"),
    (7, "b+", "koiRegex"), (7, "role", ""), (7, "Hi", "koiTemplate"), (7, "args", "koiTemplateHole"),
    (7, "5s", "koiNumber"), (8, "playbook", "koiKeywordMembers"), (9, "Ask", "koiProse"), (9, "intent", "koiPlanKey"),
    (9, "prompt_user", "koiAction"), (9, "args", "koiHole"), (9, "done", "koiProse"),
    (13, "run", "koiKeywordDeclarations"), (13, "role", ""), (13, "Object", "koiKeywordGlobals"),
)  # fmt: skip
ASK = """
local found = {}
for _, wanted in ipairs(vim.json.decode(vim.env.WANTED)) do
  local line, word = wanted[1], wanted[2]
  local column = vim.fn.getline(line):find(word, 1, true)
  table.insert(found, { line, word, vim.fn.synIDattr(vim.fn.synID(line, column, 1), "name") })
end
print(vim.json.encode({ vim.bo.filetype, vim.bo.commentstring, found }))
"""
WAIT = """
vim.wait(30000, function() return #vim.diagnostic.get(0) > 0 end, 20)
local told = vim.tbl_map(function(each) return { each.lnum, each.code } end, vim.diagnostic.get(0))
print(vim.json.encode(told))
"""


def told_by(project: Project, script: str, *before: str, **environment: str) -> object:
    """What a script prints in a Neovim that has opened `main.koi`; nothing else may be told."""
    project.write("ask.lua", script)
    settings = ["--cmd", f"set rtp^={CHECKOUT / 'editors' / 'nvim'}", *before]
    words = [
        "nvim",
        "--headless",
        "--clean",
        *settings,
        "-c",
        "syntax on",
        "main.koi",
        "-c",
        "luafile ask.lua",
        "-c",
        "qa!",
    ]
    done = project.run(*words, **environment)
    assert done.returncode == 0
    return json.loads(done.stderr)


def test_words_are_in_their_groups(project: Project) -> None:
    """The file type is found, and words are keywords only in their places."""
    project.write("main.koi", PROGRAM)

    found = told_by(project, ASK, "--cmd", "let g:koi_lsp = v:false", WANTED=json.dumps(GROUPS))

    assert found == ["koi", "// %s", [list(group) for group in GROUPS]]


@pytest.mark.thorough
def test_the_language_server_is_started(project: Project) -> None:
    """Opening a program is enough to see what is wrong with it."""
    project.write("main.koi", "role Worker { can execute }\nagent Host : Wroker { }\n")

    found = told_by(project, WAIT, "--cmd", f"let g:koi_path = '{KOI}'")

    assert [[1, "E0201"]] == found


def test_lua_files_compile() -> None:
    """Also those that only nvim-dap, which is not here, would load."""
    files = sorted((CHECKOUT / "editors" / "nvim").rglob("*.lua"))
    script = "; ".join(f"assert(loadfile('{path}'))" for path in files)
    done = subprocess.run(
        ["nvim", "--headless", "--clean", "-c", f"lua {script}", "-c", "qa!"], capture_output=True, text=True
    )

    assert len(files) > 2
    assert done.stderr == ""
