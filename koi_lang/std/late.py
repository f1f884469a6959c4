"""What only some parts of the standard library need, by name: it is loaded when it is asked for first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koi_lang.lazy import on_demand

if TYPE_CHECKING:
    from wcwidth import clip as clip
    from wcwidth import width as width
    from wcwidth import wrap as wrap

    from koi_lang.std.http_client import answered as answered
else:
    __getattr__ = on_demand(
        __name__,
        {
            "wcwidth": ("clip", "width", "wrap"),
            "koi_lang.std.http_client": ("answered",),
        },
    )
