"""Extensions: Python functions that add actions, hooks, providers of models and commands to runs.

An extension is a function `extend_koi(koi)`. It is found in the Python modules that a program imports, and in installed
packages that name it as an entry point of the group `koi.extensions`. It is called once for every run.

```python
from koi_lang.extensions import Deny, Koi

def extend_koi(koi: Koi) -> None:
    @koi.before_action
    def only_read(call):
        if call.intent == "registry_set":
            return Deny("the registry is closed today")
```
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from koi_lang.extensions.finding import installed, of_program
from koi_lang.runtime.additions import NOTHING_ADDED, Additions

if TYPE_CHECKING:
    from koi_lang.extensions.koi import Koi as Koi
    from koi_lang.runtime.actions.table import ActionContext as ActionContext
    from koi_lang.runtime.additions import State as State
    from koi_lang.runtime.hooks import ActionCall as ActionCall
    from koi_lang.runtime.hooks import Allow as Allow
    from koi_lang.runtime.hooks import Ask as Ask
    from koi_lang.runtime.hooks import Deny as Deny
    from koi_lang.runtime.hooks import ModelCall as ModelCall
    from koi_lang.runtime.hooks import Replace as Replace
    from koi_lang.runtime.hooks import Rewrite as Rewrite

# What an extension needs, by module: loaded when it is asked for, since most runs have no extension.
PLACES = {
    "koi_lang.extensions.koi": ("Koi",),
    "koi_lang.runtime.actions.table": ("ActionContext",),
    "koi_lang.runtime.additions": ("State",),
    "koi_lang.runtime.hooks": ("ActionCall", "Allow", "Ask", "Deny", "ModelCall", "Replace", "Rewrite"),
}


def __getattr__(name: str) -> Any:
    for place, names in PLACES.items():
        if name in names:
            return getattr(import_module(place), name)
    raise AttributeError(f"module `koi_lang.extensions` has no `{name}`")


def additions(module: ModuleType | None, *, use_installed: bool = True) -> Additions:
    """What a new run of a program has from extensions; without a program, from installed ones.

    The installed ones come first, so that their hooks are asked first.

    Raises:
        ExtensionError: one cannot be loaded. It may have been there to deny something, so the run must not start.
    """
    found = [*(installed() if use_installed else ()), *(() if module is None else of_program(module))]
    if not found:
        return NOTHING_ADDED
    from koi_lang.extensions.collecting import collected

    return collected(found).added
