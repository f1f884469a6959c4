"""`koi init`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from shlex import quote

import click

from koi_lang.errors import UsageError, reason
from koi_lang.settings import read_settings, trust_in_folder
from koi_lang.system.installation import this_installation
from koi_lang.system.resources import project_templates

COMMON = "common"
# What a folder that was cloned often has already.
IGNORED = ".gitignore"
# What `koi init` says of each template, in the order of the help.
TEMPLATES = {
    "chat": "a conversation with one agent",
    "team": "an editor, in words, with members that are code",
    "coder": "an agent that works on the files of the folder",
    "mcp": "tools for editors and assistants, and a client",
    "batch": "many tickets at the same time, with an evaluation",
}
NEXT = {
    "chat": ("koi chat main.koi", "talks to the agent; Ctrl-D ends"),
    "team": ("koi audit main.koi", "shows what models may do"),
    "coder": ("koi chat main.koi Mender", "works on the folder with you"),
    "mcp": ("koi run client.koi", "runs a program that uses the tools"),
    "batch": ("koi eval labels.eval.koi --answers labels.answers.json", "measures how often it is right"),
}


@click.command(epilog="Templates: " + "; ".join(f"{name}: {what}" for name, what in TEMPLATES.items()) + ".")
@click.argument("name", required=False)
@click.option(
    "--template", type=click.Choice(list(TEMPLATES)), default="chat", help="What to begin with; chat if none."
)
def command(name: str | None, template: str) -> None:
    """Begin a project: in a new folder NAME, or in the current one. Nothing that exists is overwritten.

    It runs, and passes its test, without a key.
    """
    if name is not None and not name.strip():
        raise UsageError("the name is empty", help="Write `koi init NAME`, or `koi init` for the current folder.")
    folder = Path.cwd() if name is None else Path(name)
    files = dict(template_files(template))
    _require_free(folder, files)
    if (folder / IGNORED).is_file():
        click.echo(f"`{IGNORED}` is left as it is; it should list `.env`", err=True)
        del files[IGNORED]
    _write(folder, files)
    settings = read_settings(folder.resolve())
    if settings.files.keys() <= files.keys():  # others may be a stranger's
        trust_in_folder(settings).save(is_trusted=True)
    click.echo("\n".join(_next_steps(name, template, files)))


def template_files(template: str) -> Mapping[str, bytes]:
    """The files of a new project by their paths in it: those of all projects, and those of a template."""
    folders = [project_templates() / COMMON, project_templates() / template]
    paths = [(path, folder) for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]
    source = quote(this_installation().requirement()).encode()
    return {
        path.relative_to(folder).as_posix(): path.read_bytes().replace(b"KOI_REQUIREMENT", source)
        for path, folder in paths
    }


def _require_free(folder: Path, files: Mapping[str, bytes]) -> None:
    """Raise UsageError when the folder cannot be one, or has one of the files."""
    try:
        is_file = folder.exists() and not folder.is_dir()
    except OSError as error:
        raise UsageError(f"`{folder}` cannot be a folder: {reason(error)}", help="Choose another name.") from error
    if is_file:
        raise UsageError(f"`{folder}` is a file", help="Choose another name.")
    there = [name for name in files if (folder / name).exists() or (folder / name).is_symlink()]
    taken = [name for name in there if name != IGNORED or not (folder / name).is_file()]
    if taken:
        listed = ", ".join(f"`{name}`" for name in taken)
        raise UsageError(f"{listed} would be overwritten", help="Write `koi init NAME` to begin in a new folder.")


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write all files, or none: what was written is taken away where one of them fails. Raises UsageError."""
    written: list[Path] = []
    try:
        for name, data in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as file:
                written.append(path)
                file.write(data)
    except OSError as error:
        for path in written:
            path.unlink(missing_ok=True)
        help = "See that the folder can be written to, and begin again."
        raise UsageError(f"`{folder}` cannot become a project: {reason(error)}", help=help) from error


def _next_steps(name: str | None, template: str, files: Mapping[str, bytes]) -> list[str]:
    """What to try next."""
    where = "this folder" if name is None else f"`{name}`"
    steps = {
        "koi run main.koi": "runs it, without a model as far as the steps are spelt out",
        "koi test": "runs the tests in main.test.koi",
        **dict([NEXT[template]]),
        "koi connect": "keeps the key of a model",
        "koi docs editors": "brings it into your editor",
        "koi docs debugging": "stops at a line, and steps back",
    }
    width = max(map(len, steps))
    enter = [] if name is None else [f"  cd {quote(name)}"]
    return [
        f"{where} has {len(files)} files: {', '.join(sorted(files))}",
        *enter,
        *(f"  {step:<{width}}  {what}" for step, what in steps.items()),
    ]
