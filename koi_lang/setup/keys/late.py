"""What only the search for a key needs, by name: it is loaded when it is asked for first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koi_lang.lazy import on_demand

if TYPE_CHECKING:
    from keyring import delete_password as delete_password
    from keyring import get_keyring as get_keyring
    from keyring import get_password as get_password
    from keyring import set_password as set_password

    from koi_lang.llm.providers import PROVIDERS as PROVIDERS
else:
    __getattr__ = on_demand(
        __name__,
        {
            "keyring": ("delete_password", "get_keyring", "get_password", "set_password"),
            "koi_lang.llm.providers": ("PROVIDERS",),
        },
    )
