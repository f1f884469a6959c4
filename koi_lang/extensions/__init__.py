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

from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING

from koi_lang.extensions.finding import Extension, find_installed, of_program
from koi_lang.lazy import lazy_module, lazy_names
from koi_lang.runtime.hooks.additions import NOTHING_ADDED, Additions

if TYPE_CHECKING:
    from koi_lang.extensions import collecting
    from koi_lang.extensions.koi import Koi as Koi
    from koi_lang.runtime.actions.registered import ActionContext as ActionContext
    from koi_lang.runtime.hooks.additions import ExtensionState as ExtensionState
    from koi_lang.runtime.hooks.types import ActionCall as ActionCall
    from koi_lang.runtime.hooks.types import Allow as Allow
    from koi_lang.runtime.hooks.types import Ask as Ask
    from koi_lang.runtime.hooks.types import Deny as Deny
    from koi_lang.runtime.hooks.types import ModelCall as ModelCall
    from koi_lang.runtime.hooks.types import Replace as Replace
    from koi_lang.runtime.hooks.types import Rewrite as Rewrite
else:
    collecting = lazy_module("koi_lang.extensions.collecting")
    # What an extension needs is loaded when it is asked for: most runs have no extension.
    __getattr__ = lazy_names(
        __name__,
        {
            "koi_lang.extensions.koi": ("Koi",),
            "koi_lang.runtime.actions.registered": ("ActionContext",),
            "koi_lang.runtime.hooks.additions": ("ExtensionState",),
            "koi_lang.runtime.hooks.types": ("ActionCall", "Allow", "Ask", "Deny", "ModelCall", "Replace", "Rewrite"),
        },
    )


def additions(extensions: Sequence[Extension]) -> Additions:
    """The additions of extensions to a new run.

    Raises:
        ExtensionError: one cannot be loaded. It may have been there to deny something, so the run must not start.
    """
    return collecting.collect_extensions(extensions).added if extensions else NOTHING_ADDED


def find_extensions(module: ModuleType | None, *, use_installed: bool = True) -> list[Extension]:
    """The extensions of the runs of a program; without a program, installed ones. Raises ExtensionError.

    The installed ones come first, so that their hooks are asked first. All folders that Python searches are read.
    """
    return [*(find_installed() if use_installed else ()), *(() if module is None else of_program(module))]
