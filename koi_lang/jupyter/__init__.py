"""Koi in notebooks: `%load_ext koi_lang.jupyter`, then cells that begin with `%%koi`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koi_lang.lazy import lazy_module

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from koi_lang.jupyter import magic
else:
    magic = lazy_module("koi_lang.jupyter.magic")


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Add the magic; called by `%load_ext`."""
    shell.register_magics(magic.KoiMagics)
