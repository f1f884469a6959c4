"""Diagnostics of the compiler to those of the protocol."""

from __future__ import annotations

from collections.abc import Callable

from lsprotocol import types

from koi_lang.diagnostics import Diagnostic, LabeledSpan
from koi_lang.lsp.documents import uri_of
from koi_lang.lsp.positions import PositionMap
from koi_lang.source import Source

SEVERITIES = {"error": types.DiagnosticSeverity.Error, "warning": types.DiagnosticSeverity.Warning}
# What nothing uses, which editors show faded.
UNUSED = frozenset({"E0241", "E0242", "E0243", "E0246"})
MapOf = Callable[[Source], PositionMap]


def to_protocol(diagnostic: Diagnostic, map_of: MapOf) -> types.Diagnostic:
    """One diagnostic; help and causes follow the message, `data` says how it is explained."""
    notes = [f"cause: {cause}" for cause in diagnostic.causes]
    notes += [f"help: {diagnostic.help}"] if diagnostic.help else []
    related = [_to_related(other, map_of) for other in diagnostic.others]
    return types.Diagnostic(
        map_of(diagnostic.place.source).range(diagnostic.place.span),
        "\n".join([diagnostic.message + (f": {diagnostic.place.label}" if diagnostic.place.label else ""), *notes]),
        SEVERITIES[diagnostic.severity],
        diagnostic.code,
        source="koi",
        tags=[types.DiagnosticTag.Unnecessary] if diagnostic.code in UNUSED else None,
        related_information=related or None,
        data={"explain": f"koi check --explain {diagnostic.code}"},
    )


def _to_related(place: LabeledSpan, map_of: MapOf) -> types.DiagnosticRelatedInformation:
    location = types.Location(uri_of(place.source.path), map_of(place.source).range(place.span))
    return types.DiagnosticRelatedInformation(location, place.label or "here")
