"""The dashboard as a full screen: what is chosen, what is typed, and when it is drawn anew."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Size
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import BufferControl, ConditionalContainer, FormattedTextControl, HSplit, Layout, Window
from prompt_toolkit.layout.processors import BeforeInput, ConditionalProcessor, PasswordProcessor

from koi_lang.cli.dashboard.screen import (
    ANSWER_KEYS,
    KEYS,
    RUN_KEYS,
    DashboardPlace,
    Sheet,
    list_lines,
    places,
    request_lines,
    run_lines,
)
from koi_lang.cli.dashboard.snapshot import DashboardSnapshot, DashboardSource, OpenRequest, RunLine
from koi_lang.cli.ui.approval_question import decision_in
from koi_lang.cli.ui.text import WEAK, Theme, fit_text, one_line
from koi_lang.errors import KoiError
from koi_lang.runtime.concurrency.tasks import together

# How long a key that may begin a longer one is waited for.
KEY_S = 0.05
GONE = "it is not open any more"
UNCLEAR = "answer y, a, n, or `n because …`"


class Dashboard:
    """A full screen over a source."""

    def __init__(self, source: DashboardSource, look: Theme, first: DashboardSnapshot) -> None:
        self._source = source
        self._look = look
        self._snapshot = first
        self._chosen: DashboardPlace | None = None
        self._is_open = self._has_chosen = False
        # What was opened stays what it was, whatever else comes and goes.
        self._request: OpenRequest | None = None
        self._scroll = 0
        self._note = ""
        self._trouble = ""
        self._asked = asyncio.Event()
        self._input = Buffer(multiline=False, accept_handler=self._accept)
        self._choose(0)
        self._app = self._make_app()

    async def run(self) -> None:
        """Show it until the person leaves. Raises KoiError when the source cannot be looked at any more."""
        async with together() as self._group:
            await self._source.begin(self._group, self._asked.set)
            self._asked.set()
            looking = self._group.create_task(self._look_again_and_again())
            try:
                await self._app.run_async(handle_sigint=False)
            finally:
                await self._source.close()
                looking.cancel()

    async def _look_again_and_again(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self._source.pause_s):
                    await self._asked.wait()
            except TimeoutError:
                pass
            self._asked.clear()
            try:
                self._snapshot, self._trouble = await self._source.look(), ""
            except KoiError as error:
                self._trouble = one_line(error.message)
            self._choose(0)
            self._app.invalidate()

    # ------------------------------------------------------------ the screen

    def _make_app(self) -> Application[None]:
        is_answering = Condition(lambda: self._request is not None)
        is_secret = Condition(lambda: self._request is not None and bool(self._request.message.get("secret")))
        hidden = ConditionalProcessor(PasswordProcessor(), is_secret)
        self._typing = BufferControl(self._input, input_processors=[hidden, BeforeInput("> ")])
        self._body = FormattedTextControl(self._draw, focusable=True, show_cursor=False)
        foot = FormattedTextControl(self._draw_foot)
        rows = HSplit(
            [
                Window(self._body, wrap_lines=False),
                ConditionalContainer(Window(self._typing, height=1), is_answering),
                Window(foot, height=1),
            ]
        )
        app: Application[None] = Application(
            Layout(rows, focused_element=self._body), key_bindings=self._keys(is_answering), full_screen=True
        )
        app.timeoutlen = app.ttimeoutlen = KEY_S
        return app

    def _size(self) -> Size:
        return self._app.output.get_size()

    def _sheet(self) -> Sheet:
        size = self._size()
        return Sheet(self._look, size.columns, size.rows - (2 if self._request else 1), time.time())

    def _draw(self) -> ANSI:
        sheet = self._sheet()
        assert sheet.rows is not None, "a screen has an end"
        lines = self._lines(sheet)
        if self._is_open:
            self._scroll = max(0, min(self._scroll, len(lines) - sheet.rows))
            lines = lines[self._scroll :]
        return ANSI("\n".join(lines[: sheet.rows]))

    def _lines(self, sheet: Sheet) -> list[str]:
        run = self._run
        if self._request is not None:
            return request_lines(self._request, run, sheet)
        if self._is_open and run is not None:
            return run_lines(run, sheet)
        return list_lines(self._snapshot, self._chosen, sheet)

    def _draw_foot(self) -> ANSI:
        keys = ANSWER_KEYS if self._request else RUN_KEYS if self._is_open else KEYS
        gone = GONE if self._request is not None and not self._is_still_open(self._request) else ""
        text = "  ".join(filter(None, (self._trouble, self._note or gone, keys)))
        return ANSI(self._look.paint(fit_text(text, self._size().columns, self._look.more), WEAK))

    # ------------------------------------------------------------ what is chosen

    @property
    def _run(self) -> RunLine | None:
        """The run that is chosen, or whose request is."""
        chosen = self._chosen
        return next((run for run in self._snapshot.runs if chosen is not None and run.run == chosen.run), None)

    def _choose(self, further: int) -> None:
        """Choose what is some lines further down; without any, what was chosen, as long as it is there.

        Until the person has chosen something, that is the first line, where new questions come in.
        """
        known = places(self._snapshot)
        self._has_chosen = self._has_chosen or further != 0
        if not known:
            self._chosen = None
        elif self._chosen not in known or not (self._has_chosen or self._is_open):
            self._chosen, self._has_chosen = known[0], False
        else:
            self._chosen = known[max(0, min(known.index(self._chosen) + further, len(known) - 1))]

    def _is_still_open(self, request: OpenRequest) -> bool:
        return any(each.key == request.key for each in self._snapshot.open)

    def _open(self) -> None:
        chosen = self._chosen
        if chosen is None:
            return
        found = (each for each in self._snapshot.open if each.key == (chosen.run, chosen.request))
        self._request = next(found, None) if chosen.request else None
        self._is_open = True
        self._scroll = 0
        self._note = ""
        self._app.layout.focus(self._typing if self._request else self._body)

    def _close(self) -> None:
        self._is_open = False
        self._request = None
        self._scroll = 0
        self._input.reset()
        self._app.layout.focus(self._body)

    # ------------------------------------------------------------ what is typed

    def _keys(self, is_answering: Condition) -> KeyBindings:
        keys, in_list = KeyBindings(), ~is_answering

        def bind(*names: str, filter: Any = True) -> Any:
            def add(handler: Any) -> Any:
                for name in names:
                    keys.add(name, filter=filter, eager=name == "escape")(handler)
                return handler

            return add

        bind("up", "k", filter=in_list)(lambda event: self._move(-1))
        bind("down", "j", filter=in_list)(lambda event: self._move(1))
        bind("pageup")(lambda event: self._move(-self._size().rows // 2))
        bind("pagedown")(lambda event: self._move(self._size().rows // 2))
        bind("home", filter=in_list)(lambda event: self._move(-10_000))
        bind("end", filter=in_list)(lambda event: self._move(10_000))
        bind("up", filter=is_answering)(lambda event: self._move(-1))
        bind("down", filter=is_answering)(lambda event: self._move(1))
        bind("enter", filter=in_list)(lambda event: self._open())
        bind("escape")(lambda event: self._close() if self._is_open else event.app.exit())
        bind("r", filter=in_list)(lambda event: self._asked.set())
        bind("q", filter=in_list)(lambda event: event.app.exit())

        @keys.add("c-c")
        @keys.add("c-d", filter=in_list)
        def leave(event: KeyPressEvent) -> None:
            event.app.exit()

        return keys

    def _move(self, further: int) -> None:
        if self._is_open:
            self._scroll += further
        else:
            self._note = ""
            self._choose(further)

    def _accept(self, buffer: Buffer) -> bool:
        """Send what was typed; keeps it where it is no answer."""
        request, text = self._request, buffer.text.strip()
        if request is None or (not text and request.is_approval):
            return True
        decision = decision_in(text) if request.is_approval else None
        if request.is_approval and decision is None:
            self._note = UNCLEAR
            return True
        if decision is not None:
            sending = self._source.approve(request, decision.answer, decision.reason)
        else:
            sending = self._source.answer(request, text)
        self._group.create_task(self._send(sending))
        self._close()
        return False

    async def _send(self, sending: Any) -> None:
        self._note = "sending"
        try:
            await sending
            self._note = "sent"
        except KoiError as error:
            self._note = one_line(error.message)
        self._asked.set()
