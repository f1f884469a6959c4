"""What only some commands need, by name: it is loaded when it is asked for first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koi_lang.lazy import lazy_names

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor as ThreadPoolExecutor
    from getpass import getpass as getpass

    from koi_lang.cli.chat.editor import Editor as Editor
    from koi_lang.cli.chat.start import talk as talk
    from koi_lang.cli.connect_server import connect_server as connect_server
    from koi_lang.cli.connect_server import forget_server as forget_server
    from koi_lang.cli.connect_server import is_server as is_server
    from koi_lang.cli.messages import show_diagnostics as show_diagnostics
    from koi_lang.cli.messages import show_error as show_error
    from koi_lang.cli.models import pick as pick
    from koi_lang.cli.ui.keyboard import Keyboard as Keyboard
    from koi_lang.cli.ui.keyboard import LineEditor as LineEditor
    from koi_lang.cli.ui.keyboard import in_background as in_background
    from koi_lang.cli.ui.keyboard import set_terminal_modes as set_terminal_modes
    from koi_lang.cli.ui.keyboard import terminal_modes as terminal_modes
    from koi_lang.cli.ui.live_view import status_for as status_for
    from koi_lang.cli.ui.selection import pick_one as pick_one
    from koi_lang.diagnostics import nearest as nearest
    from koi_lang.extensions.collecting import commands as commands
    from koi_lang.llm.scripted import read_answers as read_answers
    from koi_lang.mcp_server.service import serve as serve
    from koi_lang.mcp_server.service import service_of as service_of
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "concurrent.futures": ("ThreadPoolExecutor",),
            "getpass": ("getpass",),
            "koi_lang.cli.chat.editor": ("Editor",),
            "koi_lang.cli.chat.start": ("talk",),
            "koi_lang.cli.connect_server": ("connect_server", "forget_server", "is_server"),
            "koi_lang.cli.ui.keyboard": (
                "LineEditor",
                "Keyboard",
                "in_background",
                "set_terminal_modes",
                "terminal_modes",
            ),
            "koi_lang.cli.messages": ("show_diagnostics", "show_error"),
            "koi_lang.cli.models": ("pick",),
            "koi_lang.cli.ui.selection": ("pick_one",),
            "koi_lang.mcp_server.service": ("serve", "service_of"),
            "koi_lang.cli.ui.live_view": ("status_for",),
            "koi_lang.diagnostics": ("nearest",),
            "koi_lang.extensions.collecting": ("commands",),
            "koi_lang.llm.scripted": ("read_answers",),
        },
    )
