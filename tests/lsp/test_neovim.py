"""`koi lsp` in a real Neovim, with the client that it has built in."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.limits import LIMIT_S
from tests.lsp.test_serving import GREETER

pytestmark = pytest.mark.needs("nvim")

# Opens a file, waits for its diagnostics, asks for hover, renames, and writes what came of it as JSON.
SCRIPT = """
local out = {}
local function finish()
  vim.fn.writefile({ vim.fn.json_encode(out) }, "out.json")
  vim.cmd("qa!")
end
local ok, err = pcall(function()
  vim.cmd("edit greeter.koi")
  local id = vim.lsp.start_client({ name = "koi", cmd = COMMAND, root_dir = vim.fn.getcwd() })
  vim.lsp.buf_attach_client(0, id)
  assert(vim.wait(20000, function() return #vim.diagnostic.get(0) > 0 end, 20), "no diagnostics")
  local found = vim.diagnostic.get(0)[1]
  out.code, out.line, out.column, out.message = found.code, found.lnum, found.col, found.message
  local place = { textDocument = vim.lsp.util.make_text_document_params(0), position = { line = 7, character = 6 } }
  local hover = vim.lsp.buf_request_sync(0, "textDocument/hover", place, 20000)
  out.hover = hover[id].result.contents.value
  place.newName = "Welcomer"
  local renamed = vim.lsp.buf_request_sync(0, "textDocument/rename", place, 20000)
  vim.lsp.util.apply_workspace_edit(renamed[id].result, "utf-16")
  out.lines = vim.api.nvim_buf_get_lines(0, 0, -1, false)
  vim.lsp.stop_client(id)
end)
out.failed = not ok and tostring(err) or nil
finish()
"""


def test_neovim_shows_problems_hovers_and_renames(tmp_path: Path) -> None:
    """Diagnostics arrive by themselves; a hover tells of the agent; a rename changes the buffer everywhere."""
    command = "{ " + ", ".join(json.dumps(word) for word in (sys.executable, "-m", "koi_lang", "lsp")) + " }"
    (tmp_path / "greeter.koi").write_text(GREETER.replace("run Greeter.hello", "run Greeter.helo"), "utf-8")
    (tmp_path / "script.lua").write_text(SCRIPT.replace("COMMAND", command), "utf-8")

    subprocess.run(
        ["nvim", "--headless", "-u", "NONE", "-i", "NONE", "-c", "luafile script.lua"],
        cwd=tmp_path, check=True, capture_output=True, timeout=LIMIT_S,
    )  # fmt: skip
    out = json.loads((tmp_path / "out.json").read_text("utf-8"))

    assert "failed" not in out, out
    assert ("E0207", 7, 12) == (out["code"], out["line"], out["column"])
    assert "did you mean `hello`?" in out["message"]
    assert "Greets whoever asks." in out["hover"]
    assert ["agent Welcomer : Worker {", "run Welcomer.helo({})"] == [out["lines"][3], out["lines"][7]]
