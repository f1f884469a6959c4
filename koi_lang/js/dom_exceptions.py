"""The global `DOMException`: errors that are told apart by their names, such as `AbortError`."""

from __future__ import annotations

from typing import ClassVar

from koi_lang.js.conversions import text
from koi_lang.js.errors import ErrorValue
from koi_lang.js.method_tables import Constructor, holder
from koi_lang.js.own_properties import is_record
from koi_lang.js.undefined import Value, undefined

_CODES = {
    "IndexSizeError": 1, "HierarchyRequestError": 3, "WrongDocumentError": 4, "InvalidCharacterError": 5,
    "NoModificationAllowedError": 7, "NotFoundError": 8, "NotSupportedError": 9, "InUseAttributeError": 10,
    "InvalidStateError": 11, "SyntaxError": 12, "InvalidModificationError": 13, "NamespaceError": 14,
    "InvalidAccessError": 15, "TypeMismatchError": 17, "SecurityError": 18, "NetworkError": 19, "AbortError": 20,
    "URLMismatchError": 21, "QuotaExceededError": 22, "TimeoutError": 23, "InvalidNodeTypeError": 24,
    "DataCloneError": 25,
}  # fmt: skip


class DomError(ErrorValue):
    """An error whose name says what it is; `code` is the number that the name had once."""

    kind = "DOMException"
    __koi_members__: ClassVar[dict[str, str]] = {**ErrorValue.__koi_members__, "code": "code"}

    def __init__(self, message: str = "", name: str = "Error", cause: Value = undefined) -> None:
        super().__init__(message, cause)
        self.name = name

    @property
    def code(self) -> int:
        """The number of the name; 0 for names that never had one."""
        return _CODES.get(self.name, 0)

    @property
    def label(self) -> str:
        """How it is shown: its class, with its name beside that."""
        return f"DOMException [{self.name}]: {self.message}"


def abort_error() -> DomError:
    """The reason of an abort that was given none."""
    return DomError("This operation was aborted", "AbortError")


def timeout_error() -> DomError:
    """The reason of an abort by the clock."""
    return DomError("The operation was aborted due to timeout", "TimeoutError")


def data_clone_error(what: str) -> DomError:
    """The refusal to copy something."""
    return DomError(f"{what} could not be cloned.", "DataCloneError")


def _build(message: Value = undefined, options: Value = undefined) -> DomError:
    name, cause = options, undefined
    if is_record(options):
        name, cause = options.get("name", undefined), options.get("cause", undefined)
    written = "" if message is undefined else text(message)
    return DomError(written, "Error" if name is undefined else text(name), cause)


DOMEXCEPTION = Constructor("DOMException", _build, None, holder(DomError))
