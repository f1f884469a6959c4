"""Programs of the repository as an editor has them open, without an editor."""

from __future__ import annotations

from pathlib import Path

from koi_lang.lsp.documents import uri_of
from koi_lang.lsp.workspace import Snapshot, Workspace
from koi_lang.program.files import DiskFiles
from tests.support import HERE

ROOT = HERE.parent
PROGRAMS = sorted([*ROOT.glob("examples/*.koi"), *(HERE / "koi").rglob("*.koi")])


def opened(path: Path, text: str | None = None) -> tuple[Workspace, Snapshot]:
    """A workspace with one document open: a file of the repository, perhaps with another text."""
    programs = Workspace(DiskFiles(), "utf-16")
    programs.roots = [path.parent.as_posix()]
    uri = uri_of(path.as_posix())
    programs.open(uri, path.read_text("utf-8") if text is None else text, 1)
    document = programs.documents.of(uri)
    assert document is not None
    return programs, programs.snapshot(document)
