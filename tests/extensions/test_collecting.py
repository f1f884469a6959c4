"""What an extension adds, and names that it may not use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
import pytest

from koi_lang.errors import ExtensionError
from koi_lang.extensions import Koi, additions, find_extensions
from koi_lang.extensions.collecting import collect_extensions
from koi_lang.extensions.finding import Extension
from koi_lang.runtime.actions.registered import find_builtin
from tests.playbook.playing import Player, act, done, solo
from tests.projects import Project


def extension(extend: Callable[[Koi], Any], name: str = "one") -> Extension:
    """An extension that needs no package."""
    return Extension(name, f"{name}-package", "1.0", lambda: extend)


def adding(what: str, name: str) -> Callable[[Koi], None]:
    """An extension's function that adds one thing of a kind."""

    def extend(koi: Koi) -> None:
        match what:
            case "action":
                koi.action(name=name)(lambda context: None)
            case "provider":
                koi.provider(name, lambda options, key: None)  # type: ignore[arg-type, return-value]
            case "command":
                koi.command(click.Command(name))
            case "command for rpc":
                koi.rpc_command(lambda given: given, name)

    return extend


def test_an_action_is_what_its_function_says() -> None:
    """Name, description, fields and permission come from the function, as with built-in actions."""

    def extend(koi: Koi) -> None:
        @koi.action("weather:read", aliases={"place": "city"}, safe=True)
        async def forecast(context: Any, city: str, days: int = 3) -> list[str]:
            """Tell what the weather will be.

            More about it.
            """
            return [city] * days

    kind = collect_extensions([extension(extend)]).added.actions["forecast"]

    assert (kind.signature, kind.needs, kind.safe) == ("forecast(city: string, days?: integer)", "weather:read", True)
    assert (kind.description, kind.lasting) == ("Tell what the weather will be.", False)
    assert find_builtin("forecast") is None


def test_a_run_has_the_actions_of_its_extensions(play: Player) -> None:
    """A model is told of an action that its role allows, can use it, and is refused where the role does not."""

    def extend(koi: Koi) -> None:
        @koi.action("weather")
        def forecast(context: Any, city: str) -> str:
            """Tell the weather."""
            return f"rain in {city} for {context.agent.name}"

    answers = [act("forecast", city="Ulm"), act("forecast"), done()]
    allowed = play(solo("weather"), answers, added=collect_extensions([extension(extend)]).added)
    refused = play(solo("think"), answers, added=collect_extensions([extension(extend)]).added)

    assert "- forecast(city: string) Tell the weather." in allowed.requests[0].system
    assert "rain in Ulm for Main" in allowed.feedback[1]
    assert "`city` is missing" in allowed.feedback[2]
    assert "forecast(" not in refused.requests[0].system
    assert "`forecast` needs the permission `weather`" in refused.feedback[1]


def test_code_calls_an_action(play: Player) -> None:
    """`callAction` finds it, too, and a run without the extension does not."""

    def extend(koi: Koi) -> None:
        @koi.action()
        def twice(context: Any, n: int) -> int:
            return 2 * n

    source = """
        role Worker { can execute }
        agent Main : Worker { on go(args) { return await callAction("twice", { n: 21 }) } }
        """

    assert play(source, [], added=collect_extensions([extension(extend)]).added).result == 42
    assert play(source, []).result is None


def test_every_run_has_an_extension_of_its_own(play: Player) -> None:
    """Two runs of a process share no state."""

    def extend(koi: Koi) -> None:
        @koi.action()
        def count(context: Any) -> int:
            koi.state["n"] = koi.state.get("n", 0) + 1
            return int(koi.state["n"])

    answers = [act("count"), done(n="${count.output}")]
    for _ in range(2):
        played = play(solo(), answers, added=collect_extensions([extension(extend)]).added)
        assert "count -> 1" in played.feedback[1]


@pytest.mark.parametrize("what", ["action", "provider", "command", "command for rpc"])
def test_two_extensions_cannot_share_a_name(what: str) -> None:
    """The message names both."""
    both = [extension(adding(what, "same"), name) for name in ("one", "two")]
    expected = f"two extensions add the {what} `same`: `one` of one-package 1.0 and `two` of two-package 1.0"

    with pytest.raises(ExtensionError, match=expected):
        collect_extensions(both)


def test_two_extensions_cannot_be_called_the_same() -> None:
    """Not even where nothing they add clashes: their state would."""
    both = [extension(lambda koi: None), Extension("one", "other", "", lambda: lambda koi: None)]

    with pytest.raises(ExtensionError, match=r"two extensions are called `one`: `one` of one-package 1.0 and `one` of"):
        collect_extensions(both)


@pytest.mark.parametrize(
    ("what", "name", "message"),
    [
        ("action", "print", "the extension `one` adds `print`, a built-in action"),
        ("action", "a b", "the extension `one` adds the action `a b`, which is no name"),
        ("action", "peer::ask", "adds the action `peer::ask`, which is no name"),
        ("provider", "openai", "the extension `one` adds `openai`, a known provider"),
        ("provider", "opanai", "adds the provider `opanai`, which reads like `openai`"),
        ("provider", "scripted", "the extension `one` adds `scripted`, a known provider"),
        ("provider", "Acme", "adds the provider `Acme`, which is no name"),
        ("command", "run", "`one` of one-package 1.0 adds `koi run`, a built-in command"),
        ("command", "-x", "adds the command `-x`, which is no name"),
    ],
)
def test_some_names_are_refused(what: str, name: str, message: str) -> None:
    """What is built in stays what it is, and a name can be written."""
    with pytest.raises(ExtensionError, match=message):
        collect_extensions([extension(adding(what, name))], {"run"})


def test_a_name_is_added_once() -> None:
    """An extension that adds two actions of one name has made a mistake."""

    def extend(koi: Koi) -> None:
        adding("action", "same")(koi)
        adding("action", "same")(koi)

    with pytest.raises(ExtensionError, match="the extension `one` adds the action `same` twice"):
        collect_extensions([extension(extend)])


def test_what_an_extension_raises_is_told() -> None:
    """With its name, package and version, and what to do."""
    with pytest.raises(
        ExtensionError, match=r"the extension `one` of one-package 1.0 failed: ZeroDivisionError"
    ) as told:
        collect_extensions([extension(lambda koi: 1 / 0)])

    assert "leave installed extensions out with `--no-extensions`" in str(told.value.help)


def test_a_field_needs_a_known_type() -> None:
    """A name in an annotation that the module does not have is told when the action is added."""

    def extend(koi: Koi) -> None:
        @koi.action()
        def look(context: Any, where: Nowhere) -> None:  # type: ignore[name-defined] # noqa: F821
            pass

    with pytest.raises(ExtensionError, match="whose parameters cannot be read: name 'Nowhere' is not defined"):
        collect_extensions([extension(extend)])


def test_a_program_brings_its_own(project: Project) -> None:
    """Python modules with `extend_koi` count, wherever in the program they are imported; others do not."""
    project.write("guard.py", "def extend_koi(koi):\n    koi.before_action(lambda call: None)\n")
    project.write("plain.py", "def extend(koi):\n    raise AssertionError\n")
    project.write("parts.koi", 'import guard from "./guard.py"\nskill Parts { export function one() { return 1 } }')
    module = project.load(
        "main.koi", 'import "./parts.koi"\nimport plain from "./plain.py"\nimport math from "python:math"\n'
    )

    assert [hook.name for hook in additions(find_extensions(module, use_installed=False)).hooks] == ["guard.<lambda>"]
