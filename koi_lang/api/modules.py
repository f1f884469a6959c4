"""`koi_lang.load` and `koi_lang.install`: modules whose functions open their programs where they need them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from koi_lang.lazy import lazy_module
from koi_lang.program.loader import load as load
from koi_lang.runtime.outside_calls import opens_programs

if TYPE_CHECKING:
    from koi_lang.api import entry
    from koi_lang.api.program import Program
    from koi_lang.program import import_hook
else:
    entry, import_hook = lazy_module("koi_lang.api.entry"), lazy_module("koi_lang.program.import_hook")


@opens_programs
def open_program(file: str) -> Program:
    """A program as `koi_lang.open` gives it, which is loaded with the first one."""
    return entry.open(file)


def install() -> None:
    """Make `import name` find `name.koi` from now on; doing it twice changes nothing."""
    import_hook.install()
