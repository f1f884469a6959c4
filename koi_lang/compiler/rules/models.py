"""What `llm` blocks name that does not exist, or that has no effect."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.compiler.runtime_facts import MAKERS, PROVIDERS, WITHOUT_SEED
from koi_lang.diagnostics import SLIP_IN_FOUR, nearest
from koi_lang.llm.reserved_fields import RESERVED, reserved_help
from koi_lang.settings.efforts import EFFORTS, effort_help

OPEN = ("auto", "")


@rule("E0418", "error")
def unknown_provider(file: Analysis, report: Report) -> None:
    """An `llm` block names a provider that does not exist, but for a few letters.

    `koi models` lists the providers; `local` is for servers of your own, and `rehearsal` and `scripted` work without a
    network. For anything else that speaks the interface of OpenAI, write `provider: "openai"` with its `base_url`. A
    name that is like none of these may be one that an extension adds; whether it is there turns out when the program
    runs.

    Wrong:

        in agent: llm default = { provider: "antropic", model: "haiku" }

    Right:

        in agent: llm default = { provider: "anthropic", model: "haiku" }
    """
    for llm, _ in file.index.of(n.Llm):
        for text in _wrong(llm.options):
            maker, mark, model = text.value.partition("/")
            meant = f"{nearest(maker, PROVIDERS)}{mark}{model}"
            help, fixes = f"did you mean `{meant}`?", report.replacement(report.inside(text), meant)
            report.add(text.span, f"there is no provider `{maker}`", help=help, fixes=fixes)


@rule("E0443", "error")
def unknown_effort(file: Analysis, report: Report) -> None:
    """An `llm` block asks for an effort that does not exist.

    How much a model thinks before it answers is `none`, `low`, `medium` or `high`; without `effort` the model decides.
    One that cannot be asked for just that gets the nearest level that it has, and the run says so.

    Wrong:

        in agent: llm default = { model: "openai/gpt-5.4", effort: "hihg" }

    Right:

        in agent: llm default = { model: "openai/gpt-5.4", effort: "high" }
    """
    for property in _model_properties(file):
        if property.key == "effort" and _is_no_effort(property.value):
            given = property.value.value if isinstance(property.value, n.Text) else None
            message = "an effort is a text" if given is None else f"there is no effort `{given}`"
            report.add(property.value.span, message, help=effort_help(given))


@rule("E0444", "warning")
def option_without_effect(file: Analysis, report: Report) -> None:
    """An `llm` block has an option that its provider does not take.

    It is left out. `seed`, the number that random choices follow from, is not known to `anthropic`, `bedrock`,
    `gemini`, `deepseek` and `moonshot`. What depends on the model is told when the program runs.

    Wrong:

        in agent: llm default = { model: "anthropic/haiku", seed: 7 }

    Right:

        in agent: llm default = { model: "openai/gpt-4o-mini", seed: 7 }
    """
    for options in _model_options(file):
        given = {each.key: each for each in options.properties if isinstance(each, n.Property)}
        provider, seed = _provider_of(options), given.get("seed")
        if provider in WITHOUT_SEED and seed is not None:
            help = "leave it out, or choose another provider."
            report.add(seed.value.span, f"`{provider}` takes no `seed`", help=help)


@rule("E0445", "error")
def reserved_field(file: Analysis, report: Report) -> None:
    """`extra_body` of an `llm` block has a field that every request says itself.

    It holds what a provider knows beside the options of `llm`, such as `service_tier`. The model, what is said to it,
    tools, limits and the form of the answer are no part of that.

    Wrong:

        in agent: llm default = { model: "openai/gpt-5.4", extra_body: { model: "gpt-4o" } }

    Right:

        in agent: llm default = { model: "openai/gpt-5.4", extra_body: { service_tier: "flex" } }
    """
    for property in _model_properties(file):
        if property.key == "extra_body":
            _report_reserved(property.value, report)


def _report_reserved(extra: n.Expression, report: Report) -> None:
    for property in extra.properties if isinstance(extra, n.Object) else ():
        if isinstance(property, n.Property) and isinstance(property.key, str) and property.key.lower() in RESERVED:
            help = reserved_help(property.key)
            report.add(property.span, f"`extra_body` may not have `{property.key}`", help=help)


def _provider_of(options: n.Object) -> str:
    """The provider that options name with certainty; empty where it is chosen later on."""
    given = {each.key: each.value for each in options.properties if isinstance(each, n.Property)}
    provider, model = given.get("provider"), given.get("model")
    if isinstance(provider, n.Text) and not _is_open(provider):
        return provider.value.lower()
    maker, mark, _ = model.value.lower().partition("/") if isinstance(model, n.Text) else ("", "", "")
    return maker if mark and (provider is None or _is_open(provider)) else ""


def _model_properties(file: Analysis) -> Iterator[n.Property]:
    """The properties of all models that are named in a file."""
    for options in _model_options(file):
        yield from (each for each in options.properties if isinstance(each, n.Property))


def _model_options(file: Analysis) -> Iterator[n.Object]:
    """The options of all models that are named in a file, also of those in a `fallback`."""
    for llm, _ in file.index.of(n.Llm):
        yield from _with_fallbacks(llm.options)


def _with_fallbacks(options: n.Object) -> Iterator[n.Object]:
    """The options of a model, and of those in its `fallback`."""
    yield options
    for property in options.properties:
        if isinstance(property, n.Property) and property.key == "fallback" and isinstance(property.value, n.Array):
            yield from (item for item in property.value.items if isinstance(item, n.Object))


def _is_no_effort(value: n.Expression) -> bool:
    if isinstance(value, n.Text):
        return value.value not in EFFORTS
    return isinstance(value, (n.Literal, n.Object, n.Array))


def _wrong(options: n.Object) -> Iterator[n.Text]:
    """The texts that name a provider that does not exist, those of `fallback` included."""
    given = {each.key: each.value for each in options.properties if isinstance(each, n.Property)}
    provider = given.get("provider")
    model = given.get("model")
    fallback = given.get("fallback")
    if isinstance(provider, n.Text):
        is_known, name = provider.value.lower() in (*PROVIDERS, *OPEN), provider.value.lower()
        yield from () if is_known or not get_close_matches(name, PROVIDERS, n=1, cutoff=SLIP_IN_FOUR) else (provider,)
    if isinstance(model, n.Text) and (provider is None or _is_open(provider)) and _is_mistyped(model.value):
        yield model
    for other in fallback.items if isinstance(fallback, n.Array) else ():
        if isinstance(other, n.Object):
            yield from _wrong(other)
        elif isinstance(other, n.Text) and _is_mistyped(other.value):
            yield other


def _is_open(provider: n.Expression) -> bool:
    return isinstance(provider, n.Text) and provider.value.lower() in OPEN


def _is_mistyped(model: str) -> bool:
    """Whether what stands before the `/` is nearly a provider; else it may be the maker of a model."""
    maker, mark, _ = model.lower().partition("/")
    is_maker = not mark or maker in (*PROVIDERS, *MAKERS)
    return not is_maker and bool(get_close_matches(maker, PROVIDERS, n=1, cutoff=SLIP_IN_FOUR))
