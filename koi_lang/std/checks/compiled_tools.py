"""The tools of projects in Go and Rust."""

from __future__ import annotations

from pathlib import Path

from koi_lang.std.checks.cargo_report import read_cargo
from koi_lang.std.checks.go_report import read_go
from koi_lang.std.checks.tools import CheckTool, find_program


def find_go_tests(folder: Path) -> CheckTool | None:
    """What runs the tests of all packages of a module."""
    if not (folder / "go.mod").is_file():
        return None
    return CheckTool(
        "go test",
        ("go", "test"),
        find_program(folder, "go"),
        "Install Go.",
        read_go,
        ("-json",),
        is_report_printed=True,
        counts_tests=True,
        suffixes=(".go",),
        takes_files=False,
        whole=("./...",),
    )


def find_cargo_tests(folder: Path) -> CheckTool | None:
    """What runs the tests of a package, all of them, whatever fails first."""
    if not (folder / "Cargo.toml").is_file():
        return None
    return CheckTool(
        "cargo test",
        ("cargo", "test"),
        find_program(folder, "cargo"),
        "Install Rust, which brings `cargo`.",
        read_cargo,
        ("--no-fail-fast", "--message-format=json"),
        is_report_printed=True,
        counts_tests=True,
        suffixes=(".rs",),
        takes_files=False,
    )
