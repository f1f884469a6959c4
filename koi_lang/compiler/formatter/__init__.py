"""The one layout of Koi programs: tokens are laid out anew, with the syntax tree as guide."""

from __future__ import annotations

from koi_lang.compiler.declaration_cache import DeclarationCache
from koi_lang.compiler.formatter.import_order import sort_imports
from koi_lang.compiler.formatter.lines import lay_out
from koi_lang.compiler.formatter.pieces import read_pieces
from koi_lang.compiler.formatter.same_meaning import descriptions, is_same_text, is_same_tree
from koi_lang.compiler.lalr import parse_tokens
from koi_lang.compiler.parser import parse
from koi_lang.diagnostics import CompileError
from koi_lang.errors import KoiError
from koi_lang.source import Source

__all__ = ["FormattingError", "format_source"]


class FormattingError(KoiError):
    """The formatter would have changed what a program means: a mistake of ours, so nothing was changed."""

    def __init__(self, path: str) -> None:
        help = "Please report this mistake of koi together with the file, which is left as it is."
        super().__init__(f"the layout of `{path}` would not mean the same", help=help)


def format_source(source: Source) -> str:
    """The text of a program in the layout of Koi; formatting it again changes nothing.

    Raises:
        CompileError: the program cannot be read.
        FormattingError: the result would not mean the same, which is a mistake of the formatter.
    """
    cache = DeclarationCache()
    program, problems = parse(source, cache)
    if problems:
        raise CompileError(problems)
    ordered, expected = sort_imports(source, program)
    tree = parse_tokens(ordered.text)
    if tree is None:
        raise FormattingError(source.path)
    text = _line_end(source.text).join([*lay_out(read_pieces(ordered.text, tree)), ""])
    result = Source(source.path, text)
    read, problems = parse(result, cache)
    is_kept = is_same_text(ordered.text, text) and is_same_tree(expected, read) and not problems
    if not is_kept or descriptions(source, program) != descriptions(result, read):
        raise FormattingError(source.path)
    return text


def _line_end(text: str) -> str:
    """The line end of a text: that of its first line."""
    return "\r\n" if text.partition("\n")[0].endswith("\r") else "\n"
