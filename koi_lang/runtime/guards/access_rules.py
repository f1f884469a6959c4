"""Rules of the person for files, commands and pages: `write:src/**`, `run:pytest *`, `web:docs.python.org`.

A rule that allows is read narrowly: names count to the letter, and a pattern covers simple commands only. One that
denies, or has the person asked, is read widely: letter case does not count, every part of a command is looked at, and
so is whatever in it looks like a path.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from typing import Literal

from koi_lang.diagnostics import nearest
from koi_lang.errors import AgentError, SettingsError
from koi_lang.grants import matches
from koi_lang.runtime.guards.file_names import readings_of
from koi_lang.runtime.guards.shell_reader import PLAIN, read_shell
from koi_lang.runtime.guards.started_commands import name_of, read_commands
from koi_lang.system.globs import compile_glob, has_wildcards
from koi_lang.system.open_folders import resolve_links

Kind = Literal["read", "write", "run", "web"]
KINDS: tuple[Kind, ...] = ("read", "write", "run", "web")
FILES = ("read", "write")
# Stands for all kinds, or for everything of a kind.
ANY, EVERYTHING = "*", "**"
# Anything that lets a command be more than it looks like.
COMPOUND = re.compile(r"[;&|<>`$\n\r\\(){}]")
# What stands around words of a command, and between a name and its value.
AROUND_WORDS = re.compile(r"[\s;&|<>`$(){}'\"=,:\\]+")
BLANK = re.compile(r"\s")
# What editors read and write by a command of one letter: `wfile`, `s/a/b/gwfile`, `1rfile`, `+w!file`.
IN_EDITOR = re.compile(r"(?<![A-Za-z])[gpimIM\d]*[rRwW]!?(.+)")
# What a path means no more with: `a//b`, `a/./b`; the two of `https://` stay.
EMPTY_PARTS = re.compile(r"(?<!:)/(?:\.?/)+")
# What may mean more than itself in a pattern of paths.
SIGN = re.compile(r"[*?\[\]{}\\]")
BRACE = re.compile(r"(?<!\\)[{}]")
# What stands between names within a word: `/bin/git`, `alias.x=push`, `{git,push}`.
NAMES = re.compile(r"[/=,{}]")


@dataclass(frozen=True, slots=True)
class AccessRule:
    """One rule.

    Attributes:
        kind: `*` for all.
        pattern: of paths, of commands, or of hosts; `**` for all.
        origin: the written rule whose links lead to what this names; empty for one that is written itself.
    """

    kind: str
    pattern: str
    origin: str = field(default="", compare=False)

    @property
    def text(self) -> str:
        """As it is written, with what its links lead to."""
        if self.origin:
            return f"{self.origin} → {self.pattern.strip('/')}"
        return EVERYTHING if self.kind == ANY and self.pattern == EVERYTHING else f"{self.kind}:{self.pattern}"

    @property
    def is_everything(self) -> bool:
        """Whether it means all that can be done."""
        return self.kind == ANY and self.pattern in (ANY, EVERYTHING)

    def covers(self, access: WantedAccess) -> bool:
        """Whether it allows something, read narrowly."""
        if self.kind not in (ANY, access.kind):
            return False
        if access.kind == "run" and access.is_outside:
            return self.pattern == EVERYTHING
        if access.kind == "run":
            is_simple = not COMPOUND.search(access.subject)
            return self.pattern in (EVERYTHING, access.subject) or (is_simple and matches(self.pattern, access.subject))
        if access.kind == "web":
            return _fits_host(self.pattern, access.subject)
        return _fits_path(self.pattern, access.subject, is_narrow=True)

    def means(self, access: WantedAccess) -> bool:
        """Whether it denies something, or has the person asked, read widely."""
        if self.kind not in (ANY, access.kind):
            return False
        if access.kind == "web":
            return _fits_host(self.pattern, access.subject)
        if access.kind != "run":
            return _means_path(self.pattern, access.subject)
        if self.pattern in (ANY, EVERYTHING) or _means_command(self.pattern.casefold(), access.subject):
            return True
        return self.kind == ANY and any(_means_path(self.pattern, path) for path in access.paths())


@dataclass(frozen=True, slots=True)
class WantedAccess:
    """A wanted access of an agent.

    Attributes:
        subject: a path from the folder of the project, a command, or a host.
        named: gives files that a command names, as paths from there, beside those that its words are.
        is_outside: whether it is a command in a folder outside of the project, of which patterns say nothing.
    """

    kind: Kind
    subject: str
    named: Callable[[], Iterable[str]] = field(default=tuple, compare=False)
    is_outside: bool = False

    @property
    def rule(self) -> str:
        """The rule that allows this, and nothing else where no sign of it means more than itself."""
        return self.kind if self.is_outside else f"{self.kind}:{self.subject}"

    def paths(self) -> Iterator[str]:
        """The words of a command that may be paths from the folder of the project."""
        yield from paths_in(self.subject)
        yield from self.named()


@lru_cache(512)
def parse_rule(text: str, section: str = "[permissions]") -> AccessRule:
    """Parse a rule; a kind without a pattern covers all of that kind.

    Args:
        section: where it stands, for the message.

    Raises:
        SettingsError: it is no rule; says what is wrong with it.
    """
    if text.strip() in (EVERYTHING, ANY):
        return AccessRule(ANY, EVERYTHING)
    kind, mark, pattern = (part.strip() for part in text.partition(":"))
    if kind in KINDS and not mark:
        return AccessRule(kind, EVERYTHING)
    help = 'Write a kind and a pattern, such as "write:src/**", "run:pytest *" or "web:docs.python.org".'
    if not mark or not pattern:
        raise SettingsError(f"`{text}` in `{section}` is no rule", help=help)
    if pattern.startswith("!"):
        help = "Name what is meant in another rule, which may be one of `deny`. `\\!` is the character."
        raise SettingsError(f"`{text}` in `{section}` is no rule: `!` takes nothing out of it", help=help)
    if kind not in (*KINDS, ANY):
        raise SettingsError(
            f"`{text}` in `{section}` has an unknown kind `{kind}`", help=_kind_help(kind, section, pattern)
        )
    if kind not in (*FILES, ANY):
        return AccessRule(kind, pattern)
    braces = BRACE.findall(pattern)
    if braces.count("{") != braces.count("}"):
        help = "Write it as in `write:{src,tests}/**`; `\\{` is the character."
        raise SettingsError(f"`{text}` in `{section}` is no rule: a brace in it has no other", help=help)
    try:
        compile_glob(pattern)
    except AgentError as error:
        raise SettingsError(f"`{text}` in `{section}` is no rule: {error.message}", help=error.help) from error
    plain = EMPTY_PARTS.sub("/", f"{pattern}/" if pattern == "." or pattern.endswith("/.") else pattern)
    return AccessRule(kind, plain.removeprefix("./") or "/")


def _kind_help(kind: str, section: str, pattern: str) -> str:
    """What to write in place of a rule of an unknown kind; tools of MCP servers have rules beside their server."""
    if kind == "mcp":
        server, tool = [*pattern.split(":", 1), "*"][:2]
        verdict = section.rpartition(" ")[2] if " " in section else "allow"
        return f'Write `{verdict} = ["{tool}"]` below `[mcp.{server}]` in `koi.toml`.'
    near = "run" if kind == "shell" else nearest(kind, KINDS)
    return f"Did you mean `{near}`?" if near else "Kinds are `read`, `write`, `run`, `web`, and `*` for all of them."


def is_access_rule(text: str) -> bool:
    """Whether a text is a rule of this form."""
    try:
        return bool(parse_rule(text))
    except SettingsError:
        return False


def rules_in(texts: Iterable[str]) -> list[AccessRule]:
    """Those of some rules that are of this form, in order; `shell` and `mcp:` have forms of their own."""
    own = (*KINDS, ANY, EVERYTHING)
    return [parse_rule(text) for text in texts if text.partition(":")[0] in own and is_access_rule(text)]


# ---------------------------------------------------------------- how patterns are read


def literal_parts(pattern: str) -> list[str]:
    """The parts of a pattern of paths before the first with a wildcard."""
    return list(takewhile(lambda part: not has_wildcards(part), filter(None, pattern.split("/"))))


def behind_links(rule: AccessRule, folder: Path) -> Iterator[AccessRule]:
    """The rule for what links on the way of another rule lead to in the project; none without such links."""
    if rule.kind not in (*FILES, ANY) or rule.pattern.startswith("~") or ".." in rule.pattern.split("/"):
        return
    base, parts = folder.resolve(), [part for part in rule.pattern.split("/") if part]
    literal = literal_parts(rule.pattern)
    try:
        target = resolve_links(base.joinpath(*literal))
    except (OSError, RuntimeError, ValueError):  # links in a circle lead nowhere, and no file has such a name
        return
    if target != base.joinpath(*literal) and target.is_relative_to(base):
        names = [SIGN.sub(r"\\\g<0>", name) for name in target.relative_to(base).parts]
        yield AccessRule(rule.kind, "/".join(["", *names, *parts[len(literal) :]]) or "/", rule.text)


def _fits_path(pattern: str, path: str, *, is_narrow: bool = False) -> bool:
    """Whether a path, or a folder around it, is one that a pattern names; a bare name counts in every folder.

    Args:
        is_narrow: whether a wildcard in the last part stands for files alone, not for all that is in a folder.
    """
    parts, (fits, is_file) = path.split("/"), _path_pattern(pattern)
    last = len(parts) - 1 if is_narrow and is_file else 0
    return any(fits("/".join(parts[:count])) for count in range(len(parts), last, -1))


@lru_cache(512)
def _path_pattern(pattern: str) -> tuple[Callable[[str], bool], bool]:
    """Says of paths whether a pattern names them, and whether its last part is a wildcard; `a/**` names `a`, too."""
    wanted = pattern.rstrip("/") or EVERYTHING
    whole = wanted.removeprefix("/") if "/" in wanted or wanted == EVERYTHING else f"**/{wanted}"
    fits, folder = compile_glob(whole), whole.removesuffix(f"/{EVERYTHING}")
    is_file = has_wildcards(wanted.rpartition("/")[2])
    if folder == whole:
        return fits, is_file
    is_folder = compile_glob(folder)
    return lambda path: fits(path) or is_folder(path), is_file


def _means_path(pattern: str, path: str) -> bool:
    """The same however a system may read the path; wildcards stay."""
    return any(_fits_path(wanted, each) for wanted in read_path(pattern) for each in read_path(path))


@lru_cache(512)
def read_path(path: str) -> list[str]:
    """A path as systems may read it, each reading once; a part that would be nothing stays as it is."""
    parts = path.split("/")
    return ["/".join(seen or part for seen, part in zip(each, parts, strict=True)) for each in readings_of(parts)]


def _fits_host(pattern: str, host: str) -> bool:
    wanted = pattern.lower().rstrip(".")
    return matches(wanted, host.lower().rstrip("."))


def _means_command(pattern: str, text: str) -> bool:
    """Whether a pattern in small letters means a command, or one that it is joined of or starts.

    A pattern of one word means each command of that name. One of several means each command in which they stand in
    this order, whatever stands between them. `*` at its end stands for words that follow.
    """
    wanted = [word for word in pattern.split() if word.strip(ANY)]
    for names, words in (
        (each.names, [word.casefold() for word in each.words]) for each in read_commands(text).commands
    ):
        starts = range(min(names, len(words)))
        if len(wanted) == 1 and any(_fits_name(wanted[0], words[at]) for at in starts):
            return True
        if len(wanted) > 1 and _stand_in_order([*wanted[:-1], wanted[-1].rstrip(ANY)], words):
            return True
        is_within = matches(f"*{pattern}", " ".join(words))
        if is_within and any(matches(pattern, " ".join((name_of(words[at]), *words[at + 1 :]))) for at in starts):
            return True
    return matches(pattern, text.strip().casefold())


def _fits_name(pattern: str, word: str) -> bool:
    """Whether a word starts a program of a name, also where the shell finds its file by a wildcard."""
    name = name_of(word)
    if matches(pattern, name):
        return True
    if not has_wildcards(name) or not name.strip("*"):
        return False
    try:
        return compile_glob(name)(pattern.rstrip(ANY))
    except AgentError:  # no pattern, so a name with odd signs
        return False


def _stand_in_order(wanted: Sequence[str], words: Sequence[str]) -> bool:
    """Whether words match some patterns in order; a word with blanks is a text."""
    if _fits_name(wanted[0], words[0]):
        wanted, words = wanted[1:], words[1:]
    rest = (each for word in words if not BLANK.search(word) for each in (word, *NAMES.split(word)))
    return all(any(matches(pattern, word) for word in rest) for pattern in wanted)


def words_in(command: str) -> list[str]:
    """The words of a command, each once, as they stand there, and as a shell joins quoted parts."""
    joined = (part for word in read_shell(command).all_words() for part in AROUND_WORDS.split(word.translate(PLAIN)))
    return [*filter(None, dict.fromkeys((*AROUND_WORDS.split(command), *joined)))]


def paths_in(command: str) -> Iterator[str]:
    """The words of a command that may be paths below the project, as the system reads them."""
    for word in words_in(command):
        for text in (word, *option_values(word), *IN_EDITOR.findall(word)):
            if path := text.removeprefix("./").strip("/"):
                yield from read_path(path)


def option_values(word: str) -> Iterator[str]:
    """The possible values behind options of one letter: `x/y` of `-ox/y` and of `-vox/y`."""
    if word.startswith("-") and not word.startswith("--"):
        yield from (word[at:] for at in range(len("-o"), len(word.partition("/")[0]) + 1))
