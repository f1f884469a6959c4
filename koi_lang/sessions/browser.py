"""The person's browser, and servers that are signed in to with it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from koi_lang import settings
from koi_lang.lazy import lazy_module
from koi_lang.runtime.mcp.sign_in import SignIn
from koi_lang.setup.keys.lookup import Keys

if TYPE_CHECKING:
    import webbrowser
else:
    webbrowser = lazy_module("webbrowser")

# Where none of these is set on Linux, a browser would have to run in the terminal.
DISPLAYS = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")


def open_page(url: str) -> bool:
    """Open a page; whether there is a browser for it."""
    if sys.platform == "linux" and not any(map(settings.variable, DISPLAYS)):
        return False
    return webbrowser.open_new_tab(url)


def sign_in_with(keys: Keys) -> SignIn:
    """Signing in with the browser of this machine; tokens are kept beside the keys, and are hidden as these are."""
    return SignIn(keys.store, open_page, keys.learn)
