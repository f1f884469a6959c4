"""Playbooks and the prompts they are made of."""

from __future__ import annotations

from collections.abc import Iterator

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.rules.program import is_variable, place_of
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.compiler.symbols import Symbol
from koi_lang.source import Span


@rule("E0311", "error")
def prompt_arguments(file: Analysis, report: Report) -> None:
    """A prompt is called with too many or too few arguments.

    A prompt with parameters is called with a value for each of them; without parentheses it receives the payload and
    the state of the agent.

    Wrong:

        role Worker { can execute }
        prompt Greeting(name: string) = "Say hello to {{name}}."
        agent Greeter : Worker { on hello(args) { playbook Greeting(args.first, args.last) } }

    Right:

        role Worker { can execute }
        prompt Greeting(name: string) = "Say hello to {{name}}."
        agent Greeter : Worker { on hello(args) { playbook Greeting(args.first) } }
    """
    for name, arguments, symbol in _calls(file):
        parameters = _parameters(symbol)
        if parameters is None or len(parameters) == len(arguments):
            continue
        count = len(parameters)
        takes = "no arguments" if count == 0 else "one argument" if count == 1 else f"{count} arguments"
        written = ", ".join(parameter.name.name for parameter in parameters)
        help = f"write `{name.name}({written})`."
        message = f"`{name.name}` takes {takes}, and gets {len(arguments) or 'none'}"
        report.add(name.span, message, others=[place_of(symbol, "declared here")], help=help)


@rule("E0312", "error")
def plain_prompt_called(file: Analysis, report: Report) -> None:
    """A prompt without parameters is called.

    Such a prompt is a text, not a function. Name it without parentheses, or give it parameters.

    Wrong:

        role Worker { can execute }
        prompt Rules = "Be brief."
        agent Greeter : Worker { on hello(args) { playbook Rules(args.name) } }

    Right:

        role Worker { can execute }
        prompt Rules = "Be brief."
        agent Greeter : Worker { on hello(args) { playbook Rules } }
    """
    for name, _, symbol in _calls(file):
        if _parameters(symbol) is None:
            declaration = f"prompt {name.name}(name: string) = …"
            help = f"write `{name.name}` without parentheses, or declare parameters: `{declaration}`."
            message = f"`{name.name}` is a text and cannot be called"
            report.add(name.span, message, others=[place_of(symbol, "has no parameters")], help=help)


@rule("E0313", "error")
def endless_prompt(file: Analysis, report: Report) -> None:
    """A prompt is made of itself.

    Its text would never end. This may happen over several prompts that name each other.

    Wrong:

        prompt Rules = "Be brief." + Tone
        prompt Tone = "Be kind." + Rules

    Right:

        prompt Rules = "Be brief." + Tone
        prompt Tone = "Be kind."
    """
    for prompt, _ in file.index.of(n.Prompt):
        if report.program.contains_itself(prompt, file):
            name = prompt.name.name
            report.add(prompt.name.span, f"the prompt `{name}` contains itself", help="take one of the names out.")
            return


@rule("E0314", "warning")
def ignored_playbook(file: Analysis, report: Report) -> None:
    """A playbook stands where it is not executed.

    A handler is either a playbook, which the model works through, or code, which runs as written. A handler that has
    both is code, and the playbook in it is left out. To combine them, write two handlers: the one in code sends to the
    other.

    Wrong:

        role Worker { can execute }
        agent Greeter : Worker { on hello(args) { console.log("hello")  playbook "Greet the user." } }

    Right:

        role Worker { can execute }
        agent Greeter : Worker { on hello(args) { playbook "Print a hello, then greet the user." } }
    """
    for playbook, around in file.index.of(n.Playbook):
        reason = _reason(playbook, around.function)
        if reason is not None:
            word = Span(playbook.span.start, playbook.span.start + len("playbook"))
            report.add(word, f"this playbook is left out: {reason}", help="move it into a handler of its own.")


@rule("E0315", "warning")
def use_playbook(file: Analysis, report: Report) -> None:
    """`use playbook` has no effect.

    It is accepted, because programs exist that have it. A text that several handlers share is a prompt.

    Wrong:

        role Worker { can execute }
        agent Greeter : Worker { on hello(args) { use playbook Rules  return args } }

    Right:

        role Worker { can execute }
        prompt Rules = "Greet the user."
        agent Greeter : Worker { on hello(args) { playbook Rules } }
    """
    for statement, _ in file.index.of(n.UsePlaybook):
        help = f"remove it, or write `playbook {statement.name}` as the only step of the handler."
        report.add(statement.span, "`use playbook` has no effect", help=help)


def _calls(file: Analysis) -> Iterator[tuple[n.Name, tuple[n.Expression, ...], Symbol]]:
    """Every call of a prompt in playbooks and in code, with its arguments."""
    for name, arguments in [*_calls_in_playbooks(file), *_calls_in_code(file)]:
        symbol = file.table.find("prompt", name.name)
        if symbol is not None:
            yield name, arguments, symbol


def _calls_in_playbooks(file: Analysis) -> Iterator[tuple[n.Name, tuple[n.Expression, ...]]]:
    return ((call.name, call.arguments) for call, _ in file.index.of(n.PromptCall))


def _calls_in_code(file: Analysis) -> Iterator[tuple[n.Name, tuple[n.Expression, ...]]]:
    for call, around in file.index.of(n.Call):
        has_spread = any(isinstance(item, n.Spread) for item in call.arguments)
        if isinstance(call.callee, n.Name) and not has_spread and not is_variable(call.callee, around, file):
            yield call.callee, call.arguments


def _parameters(symbol: Symbol) -> tuple[n.PromptParameter, ...] | None:
    """The parameters of a prompt; None when it is a text."""
    return symbol.node.parameters if isinstance(symbol.node, n.Prompt) else None


def _reason(playbook: n.Playbook, function: n.Handler | n.Function | None) -> str | None:
    """Why a playbook is not executed; None when it is."""
    if not isinstance(function, n.Handler) or playbook not in function.body.statements:
        return "it does not stand directly in a handler"
    steps = [step for step in function.body.statements if not isinstance(step, (n.Affordance, n.UsePlaybook))]
    if not all(isinstance(step, n.Playbook) for step in steps):
        return "its handler has code as well"
    return None if steps[0] is playbook else "its handler has one already"
