"""The words of events: files that change, and messages over HTTP."""

from __future__ import annotations

import pytest

from koi_lang.schedules.job import ScheduleError
from koi_lang.schedules.triggers import FileTrigger, HookTrigger, parse_trigger


@pytest.mark.parametrize(
    ("words", "trigger"),
    [
        ("file docs/**/*.md", FileTrigger("docs/**/*.md")),
        ("File  ./notes//my notes.txt ", FileTrigger("notes/my notes.txt")),
        ("hook /github", HookTrigger("/github")),
        ("hook /shop/orders.v2", HookTrigger("/shop/orders.v2")),
    ],
)
def test_words_mean_events(words: str, trigger: FileTrigger | HookTrigger) -> None:
    """The first word says the kind of an event, the rest which."""
    assert trigger == parse_trigger(words)


@pytest.mark.parametrize(
    ("words", "message", "help"),
    [
        ("", "the event is empty", "for files that change"),
        ("files docs", "`files` is no event", "did you mean `file`?"),
        ("file", "`file` says no files", "docs/**/*.md"),
        ("file ../secrets/*", "leads out of the folder", "relative to the folder"),
        ("file /etc/passwd", "leads out of the folder", "relative to the folder"),
        ("file ~/x", "leads out of the folder", "relative to the folder"),
        ("file docs/../x", "has `..` in it", "relative to the folder"),
        ("file docs\\x", "has `\\` in it", "relative to the folder"),
        ("file docs/**.md", "is no pattern of files", "stands alone between slashes"),
        ("file docs/[ab.md", "fits nothing", "write one such as"),
        ("hook", "`hook` says no path", "/github"),
        ("hook github", "`github` is no path of a hook", "did you mean `/github`?"),
        ("hook /a/../b", "is no path of a hook", "letters and digits"),
        ("hook /a b?", "is no path of a hook", "did you mean `/a-b`?"),
        ("hook //a", "is no path of a hook", "did you mean `/a`?"),
        ("hook /" + 300 * "a", "is no path of a hook", ""),
    ],
)
def test_wrong_words_are_explained(words: str, message: str, help: str) -> None:
    """What means no event says why, and what to write."""
    with pytest.raises(ScheduleError) as caught:
        parse_trigger(words)

    assert message in str(caught.value)
    assert help in caught.value.help
