"""The interface of an extension, and its additions."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import wraps
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, TypeVar

from koi_lang.errors import ExtensionError
from koi_lang.llm.providers import is_known, suggest_provider
from koi_lang.runtime.actions.lookup import find_builtin
from koi_lang.runtime.actions.registered import MAX_SHOWN, ActionKind, ToolKind, kind_of
from koi_lang.runtime.hooks.additions import ExtensionState
from koi_lang.runtime.hooks.types import TIMEOUT_S, Hook, Kind
from koi_lang.system.interpolation import USUAL_CODE

if TYPE_CHECKING:
    import click

    from koi_lang.llm.connect import Make
    from koi_lang.llm.connection import Provider

Function = TypeVar("Function", bound=Callable[..., Any])
ACTION = re.compile(r"[A-Za-z_]\w*")
NAME = re.compile(r"[a-z][a-z0-9_-]*")
HELP = "Choose another name."


class Koi:
    """The additions of one extension to one run.

    Attributes:
        name: of the extension.
        state: JSON values that the journal keeps.
        actions: by name.
        hooks: in order of registration.
        providers: by name.
        commands: of the command line, by name.
        rpc: functions for programs that drive Koi over rpc, by name of the command.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.state = ExtensionState(name)
        self.actions: dict[str, ActionKind] = {}
        self.hooks: list[Hook] = []
        self.providers: dict[str, Provider | Make] = {}
        self.commands: dict[str, click.Command] = {}
        self.rpc: dict[str, Callable[[Mapping[str, Any]], Any]] = {}

    # ------------------------------------------------------------ actions

    def action(
        self,
        needs: str | None = None,
        *,
        name: str = "",
        aliases: Mapping[str, str] | None = None,
        safe: bool = False,
        shown: int = MAX_SHOWN,
        tool: ToolKind = "other",
        code: Collection[str] = USUAL_CODE,
    ) -> Callable[[Function], Function]:
        """Add a function as an action, as built-in ones are made: its parameters after the context are the fields.

        Args:
            needs: the permission that the role of an agent must have; None needs nothing.
            name: where it is not that of the function.
            aliases: other names of fields.
            safe: whether carrying it out twice does no harm.
            shown: most characters of its result, as JSON, that a model is told at once.
            tool: its kind for editors: `read`, `search`, `edit`, `execute`, `fetch`, `think` or `other`.
            code: names of fields whose texts are code, such as that of a file: `args` and `state` are no names of
                `${…}` in them. Fields such as `content` and `command` are, where nothing is said.
        """

        def enter(function: Function) -> Function:
            try:
                about = {"safe": safe, "shown": shown, "tool": tool, "code": code}
                kind = kind_of(_waiting(function), needs, name=name, aliases=aliases, **about)
            except (NameError, TypeError) as error:
                message = f"the extension `{self.name}` adds an action whose parameters cannot be read: {error}"
                raise ExtensionError(message, help="Annotate them with names that the module has.") from error
            self._require(ACTION, kind.name, "action")
            if find_builtin(kind.name) is not None:
                raise ExtensionError(f"the extension `{self.name}` adds `{kind.name}`, a built-in action", help=HELP)
            self._enter(self.actions, kind.name, kind, "action")
            return function

        return enter

    # ------------------------------------------------------------ hooks

    def before_action(self, function: Function, *, timeout_s: float = TIMEOUT_S) -> Function:
        """Ask a function before every action: it gets an `ActionCall` and gives a decision, or None to allow."""
        return self._hook("before_action", function, timeout_s)

    def after_action(self, function: Function, *, timeout_s: float = TIMEOUT_S) -> Function:
        """Show a function the result of every action: it gets an `ActionCall` and the result, and may `Replace` it."""
        return self._hook("after_action", function, timeout_s)

    def before_model(self, function: Function, *, timeout_s: float = TIMEOUT_S) -> Function:
        """Ask a function before every request to a model: it gets a `ModelCall` and gives a decision, or None."""
        return self._hook("before_model", function, timeout_s)

    def after_model(self, function: Function, *, timeout_s: float = TIMEOUT_S) -> Function:
        """Show a function the text of every answer, which it may `Replace`; actions then wait for the whole answer."""
        return self._hook("after_model", function, timeout_s)

    def _hook(self, kind: Kind, function: Function, timeout_s: float) -> Function:
        known = getattr(function, "__name__", type(function).__name__)
        self.hooks.append(Hook(f"{self.name}.{known}", kind, function, timeout_s))
        return function

    # ------------------------------------------------------------ providers and commands

    def provider(self, name: str, how: Provider | Make) -> None:
        """Add a provider for `llm { provider: "name" }`.

        Args:
            how: a row as in the table of providers, or a function that makes a model of the options of an `llm` block
                and a function that finds keys.
        """
        self._require(NAME, name, "provider")
        if is_known(name):
            raise ExtensionError(f"the extension `{self.name}` adds `{name}`, a known provider", help=HELP)
        meant = suggest_provider(name)
        if meant is not None:
            message = f"the extension `{self.name}` adds the provider `{name}`, which reads like `{meant}`"
            raise ExtensionError(message, help=HELP)
        self._enter(self.providers, name, how, "provider")

    def command(self, command: click.Command, name: str = "") -> click.Command:
        """Add `koi NAME`; built-in commands cannot be replaced."""
        known = name or command.name or ""
        self._require(NAME, known, "command")
        self._enter(self.commands, known, command, "command")
        return command

    def rpc_command(self, function: Function, name: str = "") -> Function:
        """Add a command for programs that drive Koi: it gets an object and gives a JSON value."""
        known = name or function.__name__
        self._require(NAME, known, "command for rpc")
        self._enter(self.rpc, known, function, "command for rpc")
        return function

    def _require(self, form: re.Pattern[str], name: str, what: str) -> None:
        if not form.fullmatch(name):
            help = "Begin with a letter, and go on with letters, digits and `_`; only names of actions have capitals."
            raise ExtensionError(f"the extension `{self.name}` adds the {what} `{name}`, which is no name", help=help)

    def _enter(self, table: dict[str, Any], name: str, value: Any, what: str) -> None:
        if name in table:
            raise ExtensionError(f"the extension `{self.name}` adds the {what} `{name}` twice", help=HELP)
        table[name] = value


def _waiting(function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """A function, plain or async, as an async one of the same name, description and parameters."""

    @wraps(function)
    async def carried_out(*given: Any, **fields: Any) -> Any:
        value = function(*given, **fields)
        return await value if isawaitable(value) else value

    return carried_out
