"""Settings for Helix."""

from __future__ import annotations

import tomllib

import click

from editors.generate.files import CHECKOUT
from koi_lang.cli import koi

SETTINGS = tomllib.loads((CHECKOUT / "editors" / "helix" / "languages.toml").read_text("utf-8"))


def test_every_command_is_there() -> None:
    """The server, the formatter and the debugger are started by commands and options that `koi` has."""
    (language,) = SETTINGS["language"]
    server = SETTINGS["language-server"][language["language-servers"][0]]
    context = click.Context(koi)
    for started in (server, language["formatter"], language["debugger"]):
        name, *options = started["args"]
        known = {option for each in koi.get_command(context, name).params for option in each.opts}

        assert started["command"] == "koi"
        assert {*options} <= known


def test_debugging_takes_what_the_debugger_knows() -> None:
    """A template fills fields of `launch` that the debugger has."""
    for template in SETTINGS["language"][0]["debugger"]["templates"]:
        assert {*template["args"]} <= {"program", "run", "args", "model", "answers", "cwd", "env", "stopOnEntry"}
