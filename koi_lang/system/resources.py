"""Files that belong to the product: the grammar and the standard skills, in a checkout or in an installed wheel."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent


def resource(*parts: str) -> Path:
    """The path of a bundled file: inside the installed package, else beside the package in a checkout."""
    inside = PACKAGE.joinpath(*parts)
    return inside if inside.exists() else PACKAGE.parent.joinpath(*parts)


def grammar() -> Path:
    """The grammar of the language."""
    return resource("grammar", "koi.lark")


def standard_skills() -> Path:
    """The folder behind `import "std/…"`."""
    return resource("stdlib_skills")


def project_templates() -> Path:
    """The folder of templates for new projects."""
    return PACKAGE / "project_templates"


def manual() -> Path:
    """The folder with the pages of the manual."""
    return resource("docs")
