"""Files that begin with a byte order mark, as editors and shells of Windows write them, are read without it."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest

from koi_lang import settings
from koi_lang.cli.attaching.tokens import token_for
from koi_lang.cli.connect import _read_key
from koi_lang.evaluation.case_run import read_case_answers
from koi_lang.mcp_server.prompts_and_resources import Sources
from koi_lang.runtime.tree.walking import Walker
from koi_lang.std.checks.junit import read_cases
from koi_lang.std.checks.tool_runs import _read_report
from koi_lang.std.http_client import _response_fields
from koi_lang.system.open_folders import OpenFolders

MARK = "\ufeff"


READERS: dict[str, tuple[str, Callable[[Path], Any], Any]] = {
    "keys": ("A_KEY=one\n", lambda file: settings.variables_in(str(file)), {"A_KEY": "one"}),
    "token": ("abc\n", token_for, "abc"),
    "answers of cases": ('{"cases": {"a": []}}', lambda file: read_case_answers(file).by_case, {"a": []}),
    "sources": (
        "run A.b()",
        lambda file: Sources({"koi:a": file}, str).read("koi:a").model_dump()["contents"][0]["text"],
        "run A.b()",
    ),
}


@pytest.mark.parametrize(("text", "read", "expected"), READERS.values(), ids=READERS)
def test_files_of_people(text: str, read: Callable[[Path], Any], expected: Any, tmp_path: Path) -> None:
    """Keys, tokens, recorded answers and programs."""
    (tmp_path / "file").write_text(MARK + text, "utf-8")

    assert expected == read(tmp_path / "file")


def test_the_first_rule_of_gitignore_counts(tmp_path: Path) -> None:
    """As it does for git; what it names would be shown to models otherwise."""
    (tmp_path / ".gitignore").write_text(f"{MARK}secret.txt\n", "utf-8")
    (tmp_path / "secret.txt").write_text("")

    with OpenFolders(tmp_path) as folders:
        assert [] == [*Walker(tmp_path, frozenset(), lambda: None).walk(folders.root).files]


def test_reports_of_tools(tmp_path: Path) -> None:
    """Some write one before their XML, which no parser takes there."""
    (tmp_path / "report.xml").write_text(f"{MARK}<testsuites/>", "utf-8")
    tool: Any = SimpleNamespace(is_report_printed=False)

    assert [] == read_cases(_read_report(tool, tool, str(tmp_path / "report.xml")))


def test_keys_that_are_piped_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """PowerShell puts one before what it pipes."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{MARK}sk-1\n"))

    assert "sk-1" == _read_key("openai")


@pytest.mark.parametrize("kind", ["text/plain", "text/plain; charset=utf-8", "text/plain; charset=UTF8"])
def test_answers_of_servers(kind: str) -> None:
    """Also where a server names the encoding."""
    request = httpx2.Request("GET", "http://127.0.0.1/")
    answer = httpx2.Response(200, headers={"content-type": kind}, request=request)
    asked: Any = None

    assert "a,b" == _response_fields(answer, f"{MARK}a,b".encode(), asked)["text"]
