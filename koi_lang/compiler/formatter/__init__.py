"""The one layout of Koi programs: tokens are laid out anew, with the syntax tree as guide."""

from __future__ import annotations

from koi_lang.compiler.formatter.lines import lay_out
from koi_lang.compiler.formatter.pieces import read_pieces
from koi_lang.compiler.formatter.same_meaning import is_same
from koi_lang.compiler.lalr import parse_tokens
from koi_lang.compiler.parser import parse
from koi_lang.diagnostics import CompileError
from koi_lang.errors import KoiError
from koi_lang.source import Source

__all__ = ["FormattingError", "format_source"]


class FormattingError(KoiError):
    """The formatter would have changed what a program means: a mistake of ours, so nothing was changed."""

    def __init__(self, path: str) -> None:
        help = "please report this with the file; it is left as it is."
        super().__init__(f"koi would have changed the meaning of `{path}` by formatting it", help=help)


def format_source(source: Source) -> str:
    """The text of a program in the layout of Koi; formatting it again changes nothing.

    Raises:
        CompileError: the program cannot be read.
        FormattingError: the result would not mean the same, which is a mistake of the formatter.
    """
    program, problems = parse(source)
    if problems:
        raise CompileError(problems)
    tree = parse_tokens(source.text)
    if tree is None:
        raise FormattingError(source.path)
    newline = "\r\n" if source.text.partition("\n")[0].endswith("\r") else "\n"
    text = newline.join([*lay_out(read_pieces(source.text, tree)), ""])
    after, problems = parse(Source(source.path, text))
    if problems or not is_same(program, after):
        raise FormattingError(source.path)
    return text
