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
from itertools import chain
from typing import Literal

from koi_lang.diagnostics import nearest
from koi_lang.errors import AgentError, SettingsError
from koi_lang.grants import matches
from koi_lang.runtime.guards.file_names import readings_of
from koi_lang.runtime.guards.shell_reader import expand_braces, read_shell
from koi_lang.system.globs import compile_glob, has_wildcards

Kind = Literal["read", "write", "run", "web"]
KINDS: tuple[Kind, ...] = ("read", "write", "run", "web")
FILES = ("read", "write")
# Stands for all kinds, or for everything of a kind.
ANY, EVERYTHING = "*", "**"
# Anything that lets a command be more than it looks like.
COMPOUND = re.compile(r"[;&|<>`$\n\r\\(){}]")
# What stands around words of a command, and between a name and its value.
AROUND_WORDS = re.compile(r"[\s;&|<>`$(){}'\"=,:\\]+")
# Programs that carry out what they read, or are given as a text.
SHELLS = frozenset("sh bash dash zsh ksh fish ash eval source .".split())
# Programs that start the command which their words go on with, or hold: `timeout 5 rm x`, `su -c 'rm x'`.
STARTERS = SHELLS | frozenset(
    "sudo doas su runuser env nohup exec command builtin xargs find parallel time nice ionice chrt taskset timeout "
    "setsid setpriv prlimit unshare nsenter chroot flock stdbuf busybox watch script ssh trap strace ltrace".split()
)
# Programs that are given the text of another one, and what in it may be the words of a command.
INTERPRETER = re.compile(r"(?:python|perl|ruby|node|deno|bun|php|lua|tclsh|[gm]?awk|g?sed|vim?|emacs)[\d.]*")
PROGRAM_WORD = re.compile(r"[\w./-]+")
# What git is told to carry out commands for.
GIT_STARTERS = frozenset({"rebase", "submodule", "bisect", "filter-branch", "difftool", "mergetool"})
BLANK = re.compile(r"\s")
# What stands between names within a word: `/bin/git`, `alias.x=push`, `{git,push}`.
NAMES = re.compile(r"[/=,{}]")
# Of commands that stand in words of others.
MAX_DEPTH = 5


@dataclass(frozen=True, slots=True)
class AccessRule:
    """One rule.

    Attributes:
        kind: `*` for all.
        pattern: of paths, of commands, or of hosts; `**` for all.
    """

    kind: str
    pattern: str

    @property
    def text(self) -> str:
        """As it is written."""
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
        if self.pattern in (ANY, EVERYTHING) or _means_command(self.pattern.casefold(), access.subject.casefold()):
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
    try:
        compile_glob(pattern)
    except AgentError as error:
        raise SettingsError(f"`{text}` in `{section}` is no rule: {error.message}", help=error.help) from error
    return AccessRule(kind, pattern.removeprefix("./"))


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
    """Whether a pattern means a command, or one that it is joined of or starts; in small letters, both.

    A pattern of one word means each command of that name. One of several means each command in which they stand in
    this order, whatever stands between them. `*` at its end stands for words that follow.
    """
    wanted = [word for word in pattern.split() if word.strip(ANY)]
    for words, is_started in _commands_in(text):
        starts = range(len(words) if is_started or _name_of(words[0]) in STARTERS else 1)
        if len(wanted) == 1 and any(_fits_name(wanted[0], words[at]) for at in starts):
            return True
        if len(wanted) > 1 and _stand_in_order([*wanted[:-1], wanted[-1].rstrip(ANY)], words):
            return True
        if any(matches(pattern, " ".join((_name_of(words[at]), *words[at + 1 :]))) for at in starts):
            return True
    return matches(pattern, text.strip())


def _fits_name(pattern: str, word: str) -> bool:
    """Whether a word starts a program of a name, also where the shell finds its file by a wildcard."""
    name = _name_of(word)
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


def _commands_in(text: str, depth: int = 0) -> Iterator[tuple[list[str], bool]]:
    """The words of each command of a text, also of those that stand in words of programs that start others.

    With each list, whether any word of it may be the name of a command.
    """
    read = read_shell(text).commands
    commands = [[each for word in words for each in expand_braces(word)] for words in read]
    is_input = any(_name_of(words[0]) in SHELLS for words in commands)
    for words in commands:
        yield words, False
        name = _name_of(words[0])
        if INTERPRETER.fullmatch(name):
            yield [name, *PROGRAM_WORD.findall(" ".join(words[1:]))], False
            programs = [word for word in words[1:] if not PROGRAM_WORD.fullmatch(word)]
            yield [name, *PROGRAM_WORD.findall(" ".join(programs))], True
        is_started = is_input or name in STARTERS or (name == "git" and not GIT_STARTERS.isdisjoint(words))
        for word in words if depth < MAX_DEPTH else ():
            inner = word if is_started and BLANK.search(word) else word.partition("!")[2]
            yield from _commands_in(inner, depth + 1) if inner else ()


def _name_of(program: str) -> str:
    return program.rpartition("/")[2]


def words_in(command: str) -> list[str]:
    """The words of a command, each once, as they stand there, and as a shell joins quoted parts."""
    read = read_shell(command)
    words = (each for word in chain(*read.commands, read.files) for each in expand_braces(word))
    joined = (part for word in words for part in AROUND_WORDS.split(word))
    return [*filter(None, dict.fromkeys((*AROUND_WORDS.split(command), *joined)))]


def paths_in(command: str) -> Iterator[str]:
    """The words of a command that may be paths below the project, as the system reads them."""
    for word in words_in(command):
        if path := word.removeprefix("./").strip("/"):
            yield from read_path(path)
