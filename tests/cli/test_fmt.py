"""`koi fmt`: what it writes, what it leaves alone, and its exit codes."""

from __future__ import annotations

import os

import pytest

from koi_lang.errors import KoiError
from koi_lang.program.formatting import format_file, replace_file
from tests.projects import Project

LOOSE = "role   Worker{can execute}\n"
FORMATTED = "role Worker { can execute }\n"
BROKEN = "role Worker { can }\n"


def test_a_file_is_laid_out(project: Project) -> None:
    """The file is replaced, and nothing goes to standard output."""
    file = project.write("a.koi", LOOSE)

    done = project.koi("fmt", "a.koi")

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "a.koi: formatted\n")
    assert file.read_text("utf-8") == FORMATTED


def test_a_file_with_errors_stays_as_it_is(project: Project) -> None:
    """The errors are told, other files are laid out all the same, and the exit code is 65."""
    broken, other = project.write("a.koi", BROKEN), project.write("b.koi", LOOSE)

    done = project.koi("fmt", ".")

    assert (done.returncode, broken.read_text("utf-8"), other.read_text("utf-8")) == (65, BROKEN, FORMATTED)
    assert "--> a.koi:1:" in done.stderr


def test_check_lists_what_is_not_formatted(project: Project) -> None:
    """`--check` changes nothing; its exit code says whether anything would be changed."""
    loose, formatted = project.write("a.koi", LOOSE), project.write("b.koi", FORMATTED)

    done = project.koi("fmt", "--check", ".")

    assert (done.returncode, done.stdout, loose.read_text("utf-8")) == (1, "a.koi\n", LOOSE)
    assert project.koi("fmt", "--check", formatted.name).returncode == 0


def test_diff_shows_what_would_be_changed(project: Project) -> None:
    """`--diff` prints a unified difference and changes nothing."""
    file = project.write("a.koi", LOOSE)

    done = project.koi("fmt", "--diff", "a.koi")

    assert (done.returncode, file.read_text("utf-8")) == (0, LOOSE)
    assert done.stdout == f"--- a.koi\n+++ a.koi\n@@ -1 +1 @@\n-{LOOSE}+{FORMATTED}"


def test_standard_input(project: Project) -> None:
    """`--stdin` prints the program laid out; one with errors prints nothing."""
    done, broken = project.koi("fmt", "--stdin", stdin=LOOSE), project.koi("fmt", "--stdin", stdin=BROKEN)

    assert (done.returncode, done.stdout) == (0, FORMATTED)
    assert (broken.returncode, broken.stdout) == (65, "")


def test_links_and_permissions_stay(project: Project) -> None:
    """A link leads to the file as before, and the file has the mode that it had; nothing is left beside it."""
    file = project.write("real.koi", LOOSE)
    file.chmod(0o640)
    (project.folder / "link.koi").symlink_to("real.koi")

    project.koi("fmt", "link.koi")

    assert (os.readlink(project.folder / "link.koi"), file.read_text("utf-8")) == ("real.koi", FORMATTED)
    assert (file.stat().st_mode & 0o777, sorted(os.listdir(project.folder))) == (0o640, ["link.koi", "real.koi"])


def test_what_is_not_utf8_stays_as_it_is(project: Project) -> None:
    """It is told as `koi check` tells it, with exit code 65."""
    file = project.write("a.koi", "")
    file.write_bytes(b"// \xff\n")

    done = project.koi("fmt", "a.koi")

    assert (done.returncode, file.read_bytes()) == (65, b"// \xff\n")
    assert "this file is not UTF-8 text" in done.stderr


def test_a_file_that_changes_meanwhile_is_left_alone(project: Project) -> None:
    """What somebody else has written since the file was read is not overwritten."""
    file = project.write("a.koi", LOOSE)
    laid_out = format_file(str(file))
    file.write_text("// new\n", "utf-8")

    with pytest.raises(KoiError, match="changed by somebody else"):
        replace_file(laid_out)

    assert (file.read_text("utf-8"), os.listdir(project.folder)) == ("// new\n", ["a.koi"])
