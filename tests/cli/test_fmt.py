"""`koi fmt`: what it writes, what it leaves alone, and its exit codes."""

from __future__ import annotations

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
