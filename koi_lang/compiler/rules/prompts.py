"""Playbooks and the prompts they are made of."""

from __future__ import annotations

from collections.abc import Iterator

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.compositions import ACTING, TemplateError, acts, directives
from koi_lang.compiler.rules.program import AnalysedProgram, is_variable, place_of
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.compiler.symbols import Symbol
from koi_lang.compiler.walk import Enclosing
from koi_lang.source import Span

SECOND = "its handler has one already"
JOINED = 'make one of both: `playbook "…" + "…"`.'
APART = 'move it into a handler of its own, such as `greet`, and call that: `await this.handle("greet", args)`.'


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
        if prompt in report.program.recursive_prompts:
            name = prompt.name.name
            report.add(prompt.name.span, f"the prompt `{name}` contains itself", help="take one of the names out.")
            return


@rule("E0314", "warning")
def ignored_playbook(file: Analysis, report: Report) -> None:
    """A playbook stands where it is not executed.

    A handler is either a playbook, which the model works through, or code, which runs as written. A handler that has
    both is code, and the playbook in it is left out, as it was in Koi 1.1. To combine them, write two handlers: the
    one in code calls the other.

    Wrong:

        in handler: console.log("hello")  playbook "Greet the user."

    Right:

        in agent:
          on hello(args) { console.log("hello")  await this.handle("greet", args) }
          on greet(args) { playbook "Greet the user." }
    """
    for playbook, around in file.index.of(n.Playbook):
        reason = _reason(playbook, around.function)
        if reason is not None:
            word = Span(playbook.span.start, playbook.span.start + len("playbook"))
            help = JOINED if reason is SECOND else APART
            report.add(word, f"this playbook is left out: {reason}", help=help)


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


@rule("E0319", "error")
def prompt_not_awaited(file: Analysis, report: Report) -> None:
    """Code uses the text of a prompt without waiting for it.

    A prompt that is composed with `callAction`, `registry` or `fetch`, or contains such a one, carries out actions
    before it is a text, so code waits for it with `await`. All other prompts are texts at once.

    Wrong:

        role Worker { can registry }
        prompt Notes = compose { template: "{{callAction('registry_keys', {})}}" }
        agent Clerk : Worker { on show(args) { console.log(Notes) } }

    Right:

        role Worker { can registry }
        prompt Notes = compose { template: "{{callAction('registry_keys', {})}}" }
        agent Clerk : Worker { on show(args) { console.log(await Notes) } }
    """
    if not any(word in each.unit.source.text for each in report.program.files for word in ACTING):
        return
    acting = [name for name in file.table.names("prompt") if _acts(name, file, report.program)]
    waited = {n.strip_parentheses(wait.value) for wait, _ in file.index.of(n.Await)}
    called = {call.callee: call for call, _ in file.index.of(n.Call)}
    joined = {n.strip_parentheses(part) for part in _text_parts(file)}
    for name, around in file.index.of(n.Name):
        call = called.get(name)
        is_missing = call in joined if call is not None else name not in waited
        if name.name in acting and is_missing and _is_prompt(name, around, file):
            help = f"write `await {name.name}{'(…)' if call is not None else ''}`."
            message = f"`{name.name}` carries out actions before it is a text, and this does not wait for it"
            report.add(name.span, message, help=help)


def _acts(name: str, file: Analysis, program: AnalysedProgram) -> bool:
    """Whether a prompt, or one inside of it, carries out actions."""
    symbols = program.collect_prompts([n.Name(Span(0, 0), name)], file)
    return any(isinstance(symbol.node, n.Prompt) and _calls_action(symbol.node) for symbol in symbols)


def _calls_action(prompt: n.Prompt) -> bool:
    template = prompt.value.template if isinstance(prompt.value, n.Compose) else None
    if template is None or not any(word in template.value for word in ACTING):
        return False
    try:
        return acts(directives(template, frozenset()))
    except TemplateError:
        return False  # which is told as an error of its own


def _is_prompt(name: n.Name, around: Enclosing, file: Analysis) -> bool:
    """Whether a name in code stands for a prompt that is used there as a text."""
    resolution = None if around.root is None else file.code.get(around.root)
    return resolution is not None and name in resolution.outer.get(name.name, ())


def _text_parts(file: Analysis) -> Iterator[n.Expression]:
    """What becomes part of a text: in templates and beside operators."""
    for template, _ in file.index.of(n.Template):
        yield from (part for part in template.parts if isinstance(part, n.Expression))
    for operation, _ in file.index.of(n.Operation):
        yield from operation.operands


def _calls(file: Analysis) -> Iterator[tuple[n.Name, tuple[n.Expression, ...], Symbol]]:
    """Every call of a prompt in playbooks and in code, with its arguments."""
    in_playbooks = ((call.name, call.arguments) for call, _ in file.index.of(n.PromptCall))
    for name, arguments in [*in_playbooks, *_calls_in_code(file)]:
        symbol = file.table.find("prompt", name.name)
        if symbol is not None:
            yield name, arguments, symbol


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
    return None if steps[0] is playbook else SECOND
