"""The variables that ask for traces."""

from __future__ import annotations

from koi_lang import settings

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


def is_wanted() -> bool:
    """Whether a variable asks for traces: an exporter is named, or where one would send them."""
    if (settings.variable("OTEL_SDK_DISABLED") or "").lower() == "true":
        return False
    named = settings.variable("OTEL_TRACES_EXPORTER")
    return named != "none" if named else any(settings.variable(name) for name in ENDPOINTS)


def is_content_wanted() -> bool:
    """Whether spans are to carry inputs and outputs of models, tools and agents."""
    return (settings.variable(CONTENT) or "").lower() in ("true", "span_only", "span_and_event")
