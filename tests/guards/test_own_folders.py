"""Folders of Koi itself in a project: closed to the actions of agents."""

from __future__ import annotations

from pathlib import Path

import pytest

from koi_lang.errors import PermissionDeniedError
from koi_lang.runtime.guards.paths import project_path
from koi_lang.runtime.guards.working_files import working_path
from koi_lang.settings import read_settings
from koi_lang.setup.keys.lookup import Keys
from koi_lang.std.code.project_files import View, files_below


@pytest.mark.parametrize("kind", ["CACHE", "CONFIG"])
def test_no_agent_gets_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Neither by a path, nor by a link, nor by looking for files."""
    monkeypatch.setenv(f"KOI_{kind}_DIR", str(tmp_path / "own"))
    for name in ("own/x.txt", "other/y.txt"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("x")
    (tmp_path / "link").symlink_to("own")
    for find in (working_path, project_path):
        for path in ("own/x.txt", "own/new/z.txt", "link/x.txt"):
            with pytest.raises(PermissionDeniedError, match="Koi keeps its own files there"):
                find(tmp_path, path)

    assert ["other/y.txt"] == files_below(View(tmp_path.resolve(), lambda path: True, lambda: None))


def test_keys_of_a_folder_that_nobody_trusts_are_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are not used, and stand in no journal all the same."""
    monkeypatch.delenv("KOI_TRUST_FOLDER", raising=False)
    (tmp_path / ".env").write_text("SHOP_API_KEY=Zq3W4x5E6c7R8v9T\n")
    keys = Keys(read_settings(tmp_path))

    assert keys("SHOP_API_KEY") is None
    assert "[redacted]" == keys.redactor()("Zq3W4x5E6c7R8v9T")
