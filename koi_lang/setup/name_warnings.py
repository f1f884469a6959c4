"""A checked program and the lists of models that are kept, turned into warnings about names that are not in them."""

from __future__ import annotations

from collections.abc import Iterator

from koi_lang.compiler import nodes as n
from koi_lang.compiler.compile import Checked
from koi_lang.diagnostics import Diagnostic, LabeledSpan
from koi_lang.errors import KoiError
from koi_lang.llm.model_choice import written_choice
from koi_lang.llm.model_name_check import fits, nearest_models
from koi_lang.settings import ProjectSettings
from koi_lang.setup.availability import connection_of, lists
from koi_lang.setup.keys.lookup import Keys
from koi_lang.source import Source

CODE = "E0419"


def mistyped_models(checked: Checked, settings: ProjectSettings) -> tuple[Diagnostic, ...]:
    """A warning for each model of an `llm` block that its provider does not list; nobody is asked."""
    keys = Keys(settings)
    return tuple(
        warning
        for file in checked.files
        for llm, _ in file.index.of(n.Llm)
        for warning in _warnings(llm, file.unit.source, keys)
    )


def _warnings(llm: n.Llm, source: Source, keys: Keys) -> Iterator[Diagnostic]:
    given = {each.key: each.value for each in llm.options.properties if isinstance(each, n.Property)}
    model, provider = given.get("model"), given.get("provider")
    if not isinstance(model, n.Text) or "base_url" in given or not isinstance(provider, n.Text | None):
        return
    try:
        maker, name = written_choice({"provider": provider.value if provider else "", "model": model.value})
        known = None if maker == "auto" else lists().find(connection_of(maker, keys))
    except KoiError:  # an unknown provider has its own message, and without a key there is no list
        return
    if known is not None and name and not fits(name, known.names) and (near := nearest_models(name, known.names)):
        help = f"did you mean {' or '.join(f'`{each}`' for each in near)}?"
        place = LabeledSpan(source, model.span)
        yield Diagnostic(CODE, "warning", f"`{maker}` lists no model `{name}`", place, help=help)
