"""The lexer for Pygments."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest
from pygments import lex
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.token import Comment, Error, Keyword, Name, Number, Operator, String, _TokenType

from editors.generate.files import CHECKOUT
from koi_lang.highlighting.lexer import KoiLexer
from tests.projects import Project

PROGRAMS = sorted(
    path for path in chain(*((CHECKOUT / name).rglob("*.koi") for name in ("examples", "stdlib_skills", "tests/koi")))
)
# A program with one piece in «…», and what that is.
PIECES: tuple[tuple[str, _TokenType], ...] = (
    ("// «a comment»", Comment.Single),
    ("/** «what for» */", String.Doc),
    ("«agent» A : W {", Keyword.Declaration),
    ("agent «A» : W {", Name.Class),
    ("role W { can «registry:read» }", Name.Attribute),
    ("  private on «lend»(args: Json) {", Name.Function),
    ("  on lend(args: { title: «string» }) {", Keyword.Type),
    ("  const { «role», content } = message", Name),
    ("  «run»(1)", Name.Function),
    ("  await «send» peers.event(1)", Keyword),
    ("  await send «peers».event(1)", Name.Builtin.Pseudo),
    ("  timeout «5s»", Number),
    ("  for (const x «of» list) { }", Operator.Word),
    ("  const x = «/a+[/]b/gi».test(y)", String.Regex),
    ("  if (a && «/b/».test(c)) { }", String.Regex),
    ("  const x = yield «/a b/g»", String.Regex),
    ("  «return» /a b/.test(x)", Keyword),
    ("  return x / «2» / 3", Number),
    ("  const text = `Hello ${«name»}`", Name),
    ('  const text = "a«\\n»b"', String.Escape),
    ('playbook """\n  Ask the «user».\n"""', String),
    ('playbook """\n  Say «{{»args.title}}.\n"""', String.Interpol),
    ('playbook """\n  Say {{JSON.stringify({ a: args.«b» })}}.\n"""', Name),
    ('playbook """\n  Then «prompt_user» about it.\n"""', Name.Builtin),
    ('playbook """\n  { "intent": «"print"», "message": "x" }\n"""', Name.Builtin),
    ('playbook """\n  { «"actionType"»: "direct" }\n"""', Name.Attribute),
    ('playbook """\n  A { brace: "x\n"""\n«return» 1', Keyword),
    ('playbook """"\n  """three""" «quotes»\n""""', String),
    ('prompt Empty = """"""\n«role» A { can execute }', Keyword.Declaration),
    ('«test» "adds" { }', Keyword.Declaration),
)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
@pytest.mark.sampled(30)
def test_programs_are_read_whole(path: Path) -> None:
    """Every character of a program is in a token, and no token is an error."""
    text = path.read_text("utf-8")
    found = list(lex(text, KoiLexer(stripnl=False, ensurenl=False)))

    assert [] == [value for kind, value in found if kind is Error]
    assert "".join(value for _, value in found) == text


@pytest.mark.parametrize(("marked", "expected"), PIECES)
def test_pieces_are_what_they_are(marked: str, expected: _TokenType) -> None:
    """Code, prose, holes, plans and comments are set apart, and words are keywords only in their places."""
    before, text, _ = marked.replace("»", "«").split("«")
    reached, kinds = 0, set()
    for kind, value in lex(marked.replace("«", "").replace("»", ""), KoiLexer(stripnl=False, ensurenl=False)):
        reached += len(value)
        if len(before) < reached and reached - len(value) < len(before) + len(text):
            kinds.add(kind)

    assert {expected} == kinds


def test_pygments_finds_the_lexer() -> None:
    """By the name of a block in Markdown, and by the name of a file."""
    assert isinstance(get_lexer_by_name("koi"), KoiLexer)
    assert isinstance(get_lexer_for_filename("main.koi"), KoiLexer)


def test_colours_need_neither_compiler_nor_runtime(project: Project) -> None:
    """Whoever shows a program, such as a site of documentation, loads nothing that reads or runs it."""
    script = """
        import sys
        from koi_lang.highlighting.lexer import KoiLexer
        list(KoiLexer().get_tokens("role A { can execute }"))
        print(*(name for name in sys.modules if name.startswith("koi_lang") or name in ("lark", "openai")))
        """

    loaded = project.python(script).stdout.split()

    expected = {"koi_lang", "koi_lang.highlighting", "koi_lang.highlighting.lexer"}
    assert expected | {"koi_lang.system", "koi_lang.system.resources"} == {*loaded}
