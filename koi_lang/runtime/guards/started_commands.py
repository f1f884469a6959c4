"""The commands of a text, those included that its programs start: by their words, options, variables and input."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Literal

from koi_lang.runtime.guards.shell_reader import decode_escapes, expand_braces, plain_word, read_shell

StartKind = Literal["words", "input", "text", "program", "values", "patterns", "bundle"]
START_KINDS: Sequence[StartKind] = ("words", "input", "text", "program", "values", "patterns", "bundle")
# What gives the output of a command to another one.
FEEDING = re.compile(r"(?<!\|)\|(?!\|)|[<>]\(|<<")
# Names or words in programs of other languages, the texts in these, and what starts a command there.
PROGRAM_WORD = re.compile(r"[\w./-]+")
PROGRAM_TEXT = re.compile(r"'([^'\n]*)'|\"([^\"\n]*)\"|`([^`\n]*)`")
STARTS_COMMANDS = re.compile(r"system|popen|exec|spawn|subprocess|shell|`|qx|%x|!")
# `1erm a` of sed.
LINE_COMMAND = re.compile(r"\d*e(?=\w)")
# What stands before a command in the value of an option: `exec=rm a`, `!rm a`, `SYSTEM:rm a`.
BEFORE_COMMAND = re.compile(r"^[\w.:!=|-]*[=!:|]")
# What stands in place of blanks in such a value: `-wrapper rm,a`, `ext::rm% a`.
BETWEEN_WORDS = re.compile(r",|% ")
VARIABLE = re.compile(r"\$\{?(\w+)")
# A name that the shell is to fill in.
UNKNOWN_NAME = re.compile(r".*(?:[*?]|\[.+\]).*|", re.DOTALL)
# Of commands that stand in words of others, and of those that may start others in the words of one.
MAX_DEPTH = 5
MAX_STARTERS = 20
MIN_LONG_OPTION = len("--ab")
ANY_WORD = 1 << 30


@dataclass(frozen=True, slots=True)
class StartedCommand:
    """One command.

    Attributes:
        words: not empty; of a program in another language those that may be words of a command.
        names: how many of its first words may be the name of a program.
    """

    words: Sequence[str]
    names: int = 1


@dataclass(slots=True)
class CommandReading:
    """The commands of a text.

    Attributes:
        commands: all that may be commands, read widely.
        patterns: the words in which a shell fills in files, with quoted signs marked.
        is_whole: whether all could be read that a shell carries out for sure.
    """

    commands: list[StartedCommand] = field(default_factory=list)
    patterns: list[str] = field(default_factory=list)
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class StartingProgram:
    """How some programs start others.

    Attributes:
        names: of the programs, as patterns.
        kinds: `words`: any of their words may be the name of a command, or be one; `text`: they have a shell carry out
            such a word; `input`: they do, and what they read, too; `program`: they are given a text in another
            language, or read one with `input`; `values`: a word `NAME=COMMAND` has one; `patterns`: they fill in files
            themselves; `bundle`: their first word may be options without `-`.
        options: those with commands as values; without `-` the first signs of a word that goes on with one, with `=`
            behind it those whose value has to have a `=`.
        verbs: words of which one makes `words` count; empty for always.
    """

    names: Sequence[str]
    kinds: frozenset[StartKind]
    options: Sequence[str] = ()
    verbs: frozenset[str] = frozenset()

    def starts_words(self, words: Sequence[str]) -> bool:
        """Whether words of a command may be those of another one."""
        return "words" in self.kinds and (not self.verbs or not self.verbs.isdisjoint(words))

    def values_of(self, arguments: Sequence[str]) -> Iterator[str]:
        """The values of options that are commands, however these are joined and abbreviated."""
        for at, word in enumerate(arguments):
            name = word.partition("=")[0]
            values = [word.partition("=")[2]] if "=" in word else arguments[at + 1 : at + 2]
            is_bundle = at == 0 and "bundle" in self.kinds and not word.startswith("-")
            for option in self.options:
                letter = option[1]
                if option[0] != "-":
                    yield from (word.removeprefix(option),) if word.startswith(option) else ()
                elif len(option.rstrip("=")) > len("-x"):
                    is_same = option.startswith(name) if name[2:] and option[1] == "-" else option == name
                    is_option = is_same and (option == name or len(name) >= MIN_LONG_OPTION)
                    yield from values if is_option else ()
                elif letter in word and (is_bundle or (word.startswith("-") and not word.startswith("--"))):
                    behind = arguments[1:] if is_bundle else arguments[at + 1 : at + 2]
                    yield from (
                        each for each in (word.partition(letter)[2], *behind) if "=" in each or not option.endswith("=")
                    )

    @property
    def has_shell(self) -> bool:
        """Whether texts in its words, or those that it reads, are for a shell."""
        return "text" in self.kinds or ("input" in self.kinds and "program" not in self.kinds)


def _row(kinds: str, names: str, options: str = "", verbs: str = "") -> StartingProgram:
    its_kinds = frozenset(kind for kind in START_KINDS if kind in kinds.split())
    return StartingProgram(names.split(), its_kinds, options.split(), frozenset(verbs.split()))


# All that is looked through.
STARTERS: Sequence[StartingProgram] = (
    _row("words input", "sh bash dash zsh ksh* mksh fish ash csh tcsh rbash eval source ."),
    _row("words input", "ssh slogin", "-o"),
    _row("words input", "su at batch parallel unshare chroot nsenter newgrp sg cmd cmd.exe crontab"),
    _row("words text", "trap watch entr hyperfine tmux screen"),
    _row("words", "env", "-S --split-string"),
    _row("words", "flock script runuser", "-c --command"),
    _row("words patterns", "find gfind"),
    _row("words", "sudo doas pkexec gosu su-exec systemd-run run0 machinectl start-stop-daemon capsh runcon which"),
    _row("words", "set nohup exec command builtin xargs fd fdfind time nice ionice chrt taskset timeout gtimeout"),
    _row("words", "setsid setpriv prlimit stdbuf hash setarch linux32 linux64 i386"),
    _row("words", "numactl cgexec cpulimit tini dumb-init unbuffer rlwrap faketime fakeroot eatmydata systemd-inhibit"),
    _row("words", "strace ltrace perf valgrind catchsegv proot bwrap firejail xvfb-run dbus-run-session dbus-launch"),
    _row("words", "ld.so* ld-*.so* qemu-* busybox toybox xterm gnome-terminal konsole setlock chpst ts"),
    _row("words", "npx bunx pnpx uvx nix-shell flatpak lxc-attach distrobox direnv wsl wsl.exe start nodemon"),
    _row(
        "words",
        "choom uclampset coresched ssh-agent gpg-agent sshpass torsocks torify tsocks proxychains* caffeinate arch",
    ),
    _row(
        "words", "chronic ifne sem tsp run-parts schroot fakechroot sandbox-exec systemd-cat daemon daemonize setuidgid"
    ),
    _row("words", "rr heaptrack gdbserver watchexec reflex gamemoderun primusrun optirun padsp aoss softlimit envdir"),
    _row("words text", "pee"),
    _row("words", "npm pnpm yarn", "--call -c", verbs="exec x dlx"),
    _row("words", "uv poetry pipenv pdm hatch rye pipx conda mamba micromamba mise asdf", verbs="run exec x"),
    _row("words", "docker podman nerdctl kubectl docker-compose", "--entrypoint", verbs="run exec"),
    _row("words", "cmake", verbs="-E"),
    _row(
        "words",
        "git",
        "-c= --exec -x --extcmd -u --upload-pack --receive-pack -O --open-files-in-pager --to-cmd --cc-cmd "
        "--sendmail-cmd --header-cmd --config ext::",
        verbs="rebase submodule bisect filter-branch difftool mergetool config",
    ),
    _row("", "git-*", "--exec -u --upload-pack --receive-pack"),
    _row(
        "bundle",
        "tar gtar bsdtar star",
        "-I --use-compress-program --checkpoint-action --to-command --info-script --new-volume-script --rmt-command "
        "--rsh-command -F",
    ),
    _row("", "rsync", "-e --rsh --rsync-path"),
    _row("", "scp sftp sshfs", "-S -o -D"),
    _row("", "cpio gcpio", "--rsh-command --rmt-command"),
    _row("", "sort gsort", "--compress-program"),
    _row("", "split gsplit", "--filter"),
    _row("", "coreutils", "--coreutils-prog"),
    _row("", "man", "-P --pager -H --html"),
    _row("", "zip", "-TT --unzip-command"),
    _row("", "wget", "--use-askpass --execute -e"),
    _row("", "tcpdump", "-z"),
    _row("", "nc ncat netcat", "-c -e --exec --sh-exec"),
    _row("", "go", "-exec -toolexec -vettool"),
    _row("", "gcc g++ cc c++ clang* tcc", "-wrapper"),
    _row("", "rustc", "-C= --codegen"),
    _row("", "rg", "--pre --hostname-bin"),
    _row("", "apt apt-get aptitude dpkg", "-o= --option"),
    _row("", "mvn gradle", "-D="),
    _row("", "mapfile readarray complete compgen", "-C"),
    _row("", "fc", "-e"),
    _row("", "nano pico", "-s --speller"),
    _row("", "ccache sccache distcc", "--prefix"),
    _row("values", "export declare typeset readonly local alias"),
    _row("values input", "make gmake bmake ninja", "-E --eval"),
    _row("program words", "gdb lldb"),
    _row("program input words", "bun"),
    _row("program input", "python* pypy* perl* ruby* node* deno php* lua* luajit* tclsh* wish* expect jshell"),
    _row("program input", "awk gawk mawk nawk sed gsed ed ex vi vim* nvim view emacs* m4 gnuplot octave* guile"),
    _row("program input", "r rscript julia ghc ghci runghc ocaml elixir iex erl scala groovy clj sbcl swipl"),
    _row("program input", "psql mysql mariadb sqlite3 ftp lftp telnet dc bc socat bind pwsh* powershell* osascript"),
)
# No name is in two rows; one in full counts before a pattern.
STARTER_NAMES = {name: row for row in STARTERS for name in row.names if "*" not in name}
STARTER_PATTERNS = [(name, row) for row in STARTERS for name in row.names if "*" in name]

# For a program of which only the running shell knows what it is: `$SHELL -c 'rm x'`, `/bin/s? -c 'rm x'`.
UNKNOWN = _row("words text program", "")


@lru_cache(1024)
def _starter_of(word: str) -> StartingProgram | None:
    name = name_of(word).casefold()
    if UNKNOWN_NAME.fullmatch(name):
        return UNKNOWN
    its_pattern = (row for pattern, row in STARTER_PATTERNS if fnmatchcase(name, pattern))
    return STARTER_NAMES.get(name) or next(its_pattern, None)


def name_of(program: str) -> str:
    """The name of a program from its path."""
    return program.rpartition("/")[2]


@lru_cache(32)
def read_commands(text: str) -> CommandReading:
    """Read the commands of a text, and those in words, options, variables and input of others."""
    reading = CommandReading()
    _CommandReader(reading, text, set()).read()
    return reading


@dataclass(frozen=True, slots=True)
class _CommandReader:
    """Reads one text into a reading, each text once.

    Attributes:
        read_before: those that were read, and how.
        is_carried_out: whether a shell carries it out for sure, so that it fills in files.
        depth: how many texts it stands in.
    """

    reading: CommandReading
    text: str
    read_before: set[tuple[str, bool]]
    is_carried_out: bool = True
    depth: int = 0

    def read(self) -> None:
        """Read all of it."""
        if not self.text.strip() or (self.text, self.is_carried_out) in self.read_before:
            return
        if self.depth > MAX_DEPTH:
            self.reading.is_whole &= not self.is_carried_out
            return
        self.read_before.add((self.text, self.is_carried_out))
        found = read_shell(self.text)
        if self.is_carried_out:
            names = frozenset(VARIABLE.findall(self.text))
            used = (plain_word(value) for name, value in found.values if name in names)
            self.reading.patterns += [*found.all_words(), *used, *(() if found.is_whole else self.text.split())]
            self.reading.is_whole &= found.is_whole
        commands = [[plain_word(each) for word in words for each in expand_braces(word)] for words in found.words]
        started = [self.starters_in(words) for words in commands]
        readers = [row for each in started for row, _ in each if "input" in row.kinds]
        has_shell = any(row.has_shell for row in readers)
        is_fed = FEEDING.search(self.text) is not None
        has_language = is_fed and any("program" in row.kinds for row in readers)
        for words, starters in zip(commands, started, strict=True):
            self.read_command(words, starters, is_input=has_shell, is_fed=is_fed)
            if has_language or any("program" in row.kinds for row, _ in starters):
                self._read_program(words[0], words[1:])
        if has_shell:
            self._read_inner(found.documents, is_carried_out=True)
        if has_language:
            self._read_program("", found.documents)
        values = [plain_word(value).strip("'\"") for _, value in found.values]
        self._read_inner(each for value in values for each in (value, BEFORE_COMMAND.sub("", value, count=1)))

    def starters_in(self, words: list[str]) -> list[tuple[StartingProgram, list[str]]]:
        """The program of a command and those that it may start, each with the words behind it."""
        first = _starter_of(words[0])
        if first is None:
            return []
        found = [(first, words[1:])]
        for at, word in enumerate(words[1:], 1) if first.starts_words(words) else ():
            row = _starter_of(word)
            if row is None or (row is UNKNOWN and word):  # a pattern among other words
                continue
            if len(found) == MAX_STARTERS:
                self.reading.is_whole = False
                break
            found.append((row, words[at + 1 :]))
        return found

    def read_command(
        self, words: list[str], starters: list[tuple[StartingProgram, list[str]]], *, is_input: bool, is_fed: bool
    ) -> None:
        has_words = any(row.starts_words(arguments) for row, arguments in starters)
        self.reading.commands.append(StartedCommand(words, ANY_WORD if has_words or (is_input and is_fed) else 1))
        self._read_inner(word.partition("!")[2] for word in words)
        if words[0].startswith("-"):  # options in a variable
            self._read_inner(BEFORE_COMMAND.sub("", word) for word in words)
        if has_words or is_input:
            odd = [word for word in words if not PROGRAM_WORD.fullmatch(word)]
            self._read_inner(odd, is_carried_out=is_input or any(row.has_shell for row, _ in starters))
            self._read_inner(map(decode_escapes, odd if is_input and is_fed else ()))
            self._read_inner(word.partition("=")[2] for word in odd)
            self._read_inner(word[2:] for word in odd if word.startswith("-"))
        for row, arguments in starters:
            if "values" in row.kinds:
                self._read_inner(word.partition("=")[2] for word in arguments)
            if "patterns" in row.kinds:
                self.reading.patterns += arguments
            for value in row.values_of(arguments):
                self._read_inner((value, BEFORE_COMMAND.sub("", value, count=1)), is_carried_out=True)
                if BETWEEN_WORDS.search(value):
                    self._read_inner((BETWEEN_WORDS.sub(" ", value),))
                self._read_inner((value.partition(" ")[2],))

    def _read_program(self, name: str, words: Sequence[str]) -> None:
        """Add the words of a program in another language, and what its texts may be as commands."""
        self.reading.commands.append(StartedCommand([name, *PROGRAM_WORD.findall(" ".join(words))]))
        programs = " ".join(word for word in words if not PROGRAM_WORD.fullmatch(word))
        parts = PROGRAM_WORD.findall(programs)
        both = (each for part in parts for each in dict.fromkeys((LINE_COMMAND.sub("", part, count=1), part)))
        self.reading.commands.append(StartedCommand([name, *both], ANY_WORD))
        if STARTS_COMMANDS.search(programs):
            self._read_inner(("".join(found) for found in PROGRAM_TEXT.findall(programs)), is_carried_out=True)

    def _read_inner(self, texts: Iterable[str], *, is_carried_out: bool = False) -> None:
        for text in texts:
            is_sure = self.is_carried_out and is_carried_out
            _CommandReader(self.reading, text, self.read_before, is_sure, self.depth + 1).read()
