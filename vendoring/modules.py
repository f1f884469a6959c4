"""What is kept of others: versions, and what each bundled file offers."""

from __future__ import annotations

from dataclasses import dataclass

# The second half is what the first needs: pinned, so that the same files come out.
VERSIONS = {
    "@codemirror/language": "6.13.1",
    "@codemirror/state": "6.7.6",
    "@codemirror/view": "6.43.15",
    "@dagrejs/dagre": "3.1.3",
    "@lezer/highlight": "1.2.5",
    "@preact/signals": "2.11.4",
    "dompurify": "3.4.18",
    "highlight.js": "11.12.0",
    "htm": "3.1.1",
    "katex": "0.19.1",
    "marked": "18.2.1",
    "preact": "11.2.0",
    "uplot": "1.6.32",
    "@codemirror/streamparser": "6.0.0",
    "@lezer/common": "1.5.5",
    "@marijn/find-cluster-break": "1.0.4",
    "@preact/signals-core": "1.14.5",
    "crelt": "1.0.7",
    "style-mod": "4.1.5",
    "w3c-keyname": "2.2.8",
}
ESBUILD = "0.28.2"
# For tests alone: what checks that a page can be used by everybody.
AXE = "4.14.1"


@dataclass(frozen=True, slots=True)
class Module:
    """One file of the folder.

    Attributes:
        file: its name.
        entry: the module that is bundled: what the file exports.
    """

    file: str
    entry: str


LANGUAGES = (
    *("bash", "c", "cpp", "csharp", "css", "diff", "dockerfile", "go", "ini", "java", "javascript", "json", "kotlin"),
    *("makefile", "markdown", "php", "python", "ruby", "rust", "shell", "sql", "swift", "typescript", "xml", "yaml"),
)
HIGHLIGHTING = "\n".join(
    [
        'import hljs from "highlight.js/lib/core";',
        *(f'import {name} from "highlight.js/lib/languages/{name}";' for name in LANGUAGES),
        *(f'hljs.registerLanguage("{name}", {name});' for name in LANGUAGES),
        "export default hljs;",
    ]
)
MODULES = (
    Module(
        "preact.js",
        """
        import { h } from "preact";
        import htm from "htm";
        export { h, render, hydrate, Fragment, Component, createContext, createRef } from "preact";
        export * from "preact/hooks";
        export { signal, computed, effect, batch, untracked, useSignal, useComputed, useSignalEffect } from "@preact/signals";
        export const html = htm.bind(h);
        """,  # noqa: E501
    ),
    Module("marked.js", 'export { Marked, Renderer } from "marked";'),
    Module("dompurify.js", 'export { default } from "dompurify";'),
    # Languages that models write most; others stand without colours.
    Module("highlight.js", HIGHLIGHTING),
    # MathML alone: the browser draws it, so neither fonts nor a style sheet are needed.
    Module("katex.js", 'export { default } from "katex/dist/katex.mjs";'),
    Module("uplot.js", 'export { default } from "uplot";'),
    Module("uplot.css", '@import "uplot/dist/uPlot.min.css";'),
    Module("dagre.js", 'import * as dagre from "@dagrejs/dagre"; export default dagre;'),
    # In a document it writes `<style>` elements, which the pages forbid: it is mounted in a shadow root (`root`).
    Module(
        "codemirror.js",
        """
        export { Compartment, EditorState, RangeSet, RangeSetBuilder } from "@codemirror/state";
        export { StateEffect, StateField } from "@codemirror/state";
        export { EditorView, Decoration, GutterMarker, ViewPlugin, WidgetType } from "@codemirror/view";
        export { drawSelection, gutter, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
        export { HighlightStyle, StreamLanguage, defaultHighlightStyle } from "@codemirror/language";
        export { syntaxHighlighting } from "@codemirror/language";
        export { tags } from "@lezer/highlight";
        """,
    ),
)
