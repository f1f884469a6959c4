"""What only some commands need, by name: it is loaded when it is asked for first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koi_lang.loading import on_demand

if TYPE_CHECKING:
    from getpass import getpass as getpass

    from koi_lang.cli.chat.editor import Editor as Editor
    from koi_lang.cli.chat.talking import talk as talk
    from koi_lang.cli.keyboard import Draft as Draft
    from koi_lang.cli.keyboard import Keyboard as Keyboard
    from koi_lang.cli.messages import show_error as show_error
    from koi_lang.cli.models import pick as pick
    from koi_lang.cli.picking import pick_one as pick_one
    from koi_lang.cli.serving import served as served
    from koi_lang.cli.serving import service_of as service_of
    from koi_lang.cli.watching import watched as watched
    from koi_lang.diagnostics import nearest as nearest
    from koi_lang.extensions.collecting import commands as commands
    from koi_lang.llm.scripted import read_answers as read_answers
else:
    __getattr__ = on_demand(
        __name__,
        {
            "getpass": ("getpass",),
            "koi_lang.cli.chat.editor": ("Editor",),
            "koi_lang.cli.chat.talking": ("talk",),
            "koi_lang.cli.keyboard": ("Draft", "Keyboard"),
            "koi_lang.cli.messages": ("show_error",),
            "koi_lang.cli.models": ("pick",),
            "koi_lang.cli.picking": ("pick_one",),
            "koi_lang.cli.serving": ("served", "service_of"),
            "koi_lang.cli.watching": ("watched",),
            "koi_lang.diagnostics": ("nearest",),
            "koi_lang.extensions.collecting": ("commands",),
            "koi_lang.llm.scripted": ("read_answers",),
        },
    )
