"""Keys to what they do in the input of a conversation."""

from __future__ import annotations

from typing import Protocol

from prompt_toolkit.filters import Condition, is_searching
from prompt_toolkit.key_binding import ConditionalKeyBindings, KeyBindings, KeyBindingsBase, KeyPressEvent
from prompt_toolkit.keys import Keys

from koi_lang.runtime.playbook.steering import How

HELP = (
    "Enter sends, also while the agent works; Alt-Enter is heard at the end (/queue); Ctrl-J is a new line",
    "Ctrl-R looks through what was typed before: Enter takes it, Ctrl-C does not",
    "Ctrl-V attaches the image in the clipboard (/image), and so does a file that is dropped or pasted",
    "@PATH puts a file beside the message; !COMMAND runs a command of yours, and the agent gets its output",
    "Alt-Up takes back what is queued (/back)",
    "Esc, Ctrl-C end the work (/abort), and queued text comes back; Ctrl-D ends the conversation (/quit)",
)


class KeyTarget(Protocol):
    """The input that keys act on."""

    @property
    def text(self) -> str:
        """What stands in it."""

    @property
    def mark(self) -> str:
        """The mark of an image that stands before the cursor; empty where there is none."""

    @property
    def is_busy(self) -> bool:
        """Whether an agent works."""

    def take(self, how: How) -> None:
        """Hand over what stands in it."""

    def order(self, text: str) -> None:
        """Hand over a command, and leave it as it is."""

    def paste(self, text: str) -> None:
        """Put in a pasted text, or attach the images that it names."""

    def interrupt(self) -> None:
        """Empty it, else end the work, else the conversation."""


def bindings(editor: KeyTarget) -> KeyBindingsBase:
    """The keys that mean something else than in other inputs; a search of the history has its own."""
    keys = KeyBindings()
    works = Condition(lambda: editor.is_busy)

    @keys.add("enter")
    def send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            editor.take("steer")

    @keys.add("escape", "enter")
    def queue(event: KeyPressEvent) -> None:
        editor.take("follow_up")

    @keys.add("c-j")
    def new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("escape", filter=works)
    def abort(event: KeyPressEvent) -> None:
        editor.order("/abort")

    @keys.add("escape", "up")
    def take_back(event: KeyPressEvent) -> None:
        editor.order("/back")

    @keys.add("c-v")
    def attach(event: KeyPressEvent) -> None:
        editor.order("/image")

    @keys.add(Keys.BracketedPaste)
    def paste(event: KeyPressEvent) -> None:
        editor.paste(event.data)

    @keys.add("backspace", filter=Condition(lambda: bool(editor.mark)))
    def delete(event: KeyPressEvent) -> None:
        event.current_buffer.delete_before_cursor(len(editor.mark))

    @keys.add("c-c")
    def interrupt(event: KeyPressEvent) -> None:
        editor.interrupt()

    @keys.add("c-d", filter=Condition(lambda: not editor.text))
    def end(event: KeyPressEvent) -> None:
        editor.order("/quit")

    return ConditionalKeyBindings(keys, ~is_searching)
