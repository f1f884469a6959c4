"""The events of a run to a tree of spans: a place in the run that is entered and left is a span."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from koi_lang.lazy import lazy_module
from koi_lang.otel import conventions as names
from koi_lang.otel.conventions import Attributes

if TYPE_CHECKING:
    from opentelemetry import context as contexts
    from opentelemetry import trace
    from opentelemetry.context import Context
else:
    contexts = lazy_module("opentelemetry.context")
    trace = lazy_module("opentelemetry.trace")

Path = tuple[str, ...]
# Longer texts are cut: collectors refuse requests that are too large.
MAX_TEXT_CHARS = 32_768


@dataclass(slots=True)
class SpanNode:
    """A place in the run that has been entered and not been left.

    Attributes:
        path: where it is.
        context: of what surrounds the run, for a span without a parent.
        span: None until it is known that something new happens there: what is gone over again when a run is resumed
            makes no spans.
        failed_with: the class of the error that ended something inside of it last.
    """

    path: Path
    name: str
    kind: str
    began_ns: int
    attributes: Attributes
    parent: SpanNode | None
    context: Context | None = None
    span: trace.Span | None = None
    children: dict[Path, SpanNode] = field(default_factory=dict)
    failed_with: str = names.OTHER_ERROR


class SpanTree:
    """The spans of one run that are open.

    Args:
        redact: takes secrets out of a text.
        outer: what spans without a parent are in where this process has no span of its own; None where nothing is.
    """

    def __init__(self, tracer: trace.Tracer, redact: Callable[[str], str], outer: Context | None = None) -> None:
        self._tracer = tracer
        self._redact = redact
        self._outer = outer
        self._nodes: dict[Path, SpanNode] = {}
        self._roots: dict[Path, SpanNode] = {}

    def redact(self, text: str) -> str:
        """A text as it may leave the process."""
        hidden = self._redact(text)
        return hidden if len(hidden) <= MAX_TEXT_CHARS else hidden[:MAX_TEXT_CHARS] + "…"

    def find(self, path: Path) -> SpanNode | None:
        """The innermost open place at or around a path."""
        for length in range(len(path), -1, -1):
            node = self._nodes.get(path[:length])
            if node is not None:
                return node
        return None

    def open_at(self, path: Path) -> SpanNode | None:
        """The open place of exactly this path."""
        return self._nodes.get(path)

    def enter(
        self, path: Path, name: str, attributes: Attributes, at_ns: int, *, kind: str = "INTERNAL", is_new: bool = True
    ) -> SpanNode:
        """Open a place.

        Args:
            at_ns: nanoseconds since 1970.
            is_new: whether it happens now, and has not happened in an earlier part of the run.
        """
        parent = self.find(path[:-1]) if path else None
        node = SpanNode(path, self.redact(name), kind, at_ns, self._redact_attributes(path, attributes), parent)
        if parent is None:
            has_span = trace.get_current_span().get_span_context().is_valid
            node.context = self._outer if self._outer is not None and not has_span else contexts.get_current()
        siblings = self._roots if parent is None else parent.children
        siblings[path] = self._nodes[path] = node
        if is_new:
            self._start(node)
        return node

    def _redact_attributes(self, path: Path, attributes: Attributes) -> Attributes:
        shown = {name: self.redact(value) if isinstance(value, str) else value for name, value in attributes.items()}
        return {**shown, names.PATH: self.redact("/".join(path))} if path else shown

    def _start(self, node: SpanNode) -> trace.Span:
        """Begin the span of a place, and of the places around it."""
        if node.span is None:
            context = node.context
            if node.parent is not None:
                context = trace.set_span_in_context(self._start(node.parent))
            kind = trace.SpanKind[node.kind]
            node.span = self._tracer.start_span(
                node.name, context, kind, node.attributes, start_time=node.began_ns, record_exception=False
            )
        return node.span

    def set(self, node: SpanNode, attributes: Attributes) -> None:
        """Say more about a place."""
        shown = self._redact_attributes((), attributes)
        if node.span is None:
            node.attributes.update(shown)
        else:
            node.span.set_attributes(shown)

    def note(self, node: SpanNode | None, name: str, attributes: Attributes, at_ns: int) -> None:
        """Tell something that happens at a place and takes no time."""
        if node is not None:
            self._start(node).add_event(name, self._redact_attributes((), attributes), at_ns)

    def leave(
        self, path: Path, at_ns: int, *, error: tuple[str, str] | None = None, is_cancelled: bool = False
    ) -> None:
        """Close a place, and open ones inside, which were cancelled then.

        Args:
            error: its class and its message.
        """
        node = self._nodes.pop(path, None)
        if node is None:
            return
        (self._roots if node.parent is None else node.parent.children).pop(path, None)
        for child in tuple(node.children):
            self.leave(child, at_ns, is_cancelled=True)
        if error is not None:
            self._fail(node, *error)
        if node.span is None:
            return
        if is_cancelled:
            node.span.set_attribute(names.CANCELLED, True)
        node.span.end(at_ns)

    def _fail(self, node: SpanNode, kind: str, message: str) -> None:
        if node.parent is not None:
            node.parent.failed_with = kind
        if node.span is not None:
            node.span.set_attribute(names.ERROR, kind)
            node.span.set_status(trace.Status(trace.StatusCode.ERROR, self.redact(message)))

    def leave_all(self, at_ns: int) -> None:
        """Close all open spans."""
        for path in tuple(self._roots):
            self.leave(path, at_ns, is_cancelled=True)
