"""Commands that other programs start: by an option, an argument, a variable or their input."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from koi_lang.errors import PermissionDeniedError
from koi_lang.runtime.guards.access_rules import WantedAccess, parse_rule
from koi_lang.runtime.guards.commands import place_of, require_open_arguments
from koi_lang.runtime.guards.started_commands import read_commands

# Ways to have `rm a` carried out by a program that is found everywhere.
USUAL = r"""
tar -cf /dev/null --checkpoint=1 --checkpoint-action=exec='rm a' x.txt
tar -cf /dev/null --checkpoint=1 --checkpoint-act=exec='rm a' x.txt
tar -cf x.tar -I 'rm a' x.txt
tar cIf 'rm a' x.tar x.txt
tar -cIrm -f a x.txt; tar -cf a '-Irm a' x.txt
tar -cf x.tar --use-compress-program 'rm a' x.txt
tar -cf x.tar --use-compress='rm a' x.txt
tar -cf x.tar x.txt; tar -xf x.tar --to-command='rm a'
TAR_OPTIONS="--checkpoint=1 --checkpoint-action=exec='rm a'" tar -cf x.tar x.txt
/lib64/ld-linux-x86-64.so.2 /bin/rm a
find . -maxdepth 0 -exec rm a \;
find . -name a -exec sh -c 'rm "$1"' x {} +
sort -S 1K --compress-program='rm a' -o x big.txt /usr/share/dict/words big.txt; rm a
split --filter='rm a' x.txt
sed '1e rm a' x.txt
sed 1erm\ a x.txt
sed 's/x/rm a/e' x.txt
awk 'BEGIN{system("rm a")}'
awk 'BEGIN{"rm a" | getline}'
awk 'BEGIN{print | "rm a"}'
make -f /dev/null SHELL='rm a' x; rm a
make --eval='$(shell rm a)' -f /dev/null x
make --eval=$'x:\n\trm a' -f /dev/null x
printf 'x:\n\trm a' | make -f - x
make -f - x <<< $'x:\n\trm a'
git -c core.pager='rm a' -p help -a; git -c alias.x='!rm a' x
git -c alias.x='!rm a' x
git init -q; git -c core.fsmonitor='rm a' status
git init -q; git config alias.x '!rm a'; git x
git init -q; GIT_EDITOR='rm a' git -c user.name=x -c user.email=x@x commit --allow-empty
git init -q; GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.x GIT_CONFIG_VALUE_0='!rm a' git x
git -c protocol.ext.allow=always clone 'ext::rm a' y
git -c protocol.ext.allow=always ls-remote 'ext::sh -c rm% a'
ssh-agent rm a
choom -n 0 rm a
GIT_SSH_COMMAND='rm a;' git clone ssh://h/x y
x='rm a'; $x
set -- rm a; "$@"
export x='rm a'; eval "$x"
shopt -s expand_aliases; alias y='rm a'; eval y
env -S 'rm a'
env -S'rm a'
env --split-string='rm a'
hash -p /bin/rm y; y a
mapfile -c1 -C 'rm a;' y < x.txt
echo rm a | sh
sh <<< 'rm a'
sh <(echo rm a)
printf 'x\nrm a\n' | sh
echo -e 'x\nr\x6d a' | sh
echo 'rm a' | xargs -I{} sh -c {}
python3 -c "import os; os.system('rm a')"
echo 'import os; os.system("rm a")' | python3
python3 <<< 'import os; os.system("rm a")'
perl -e 'exec qw(rm a)'
vim -es -c '!rm a' -c q
printf '!rm a\n' | ed -s; ed <<< '!rm a'; rm a
gdb -batch -ex 'shell rm a'
gdb -batch -ex '!rm a'
strace rm a
$(which rm) a
""".strip().splitlines()
DOCUMENTS = [
    "sh <<X\nrm a\nX", "sh << 'X'\n  rm a\nX", "sh <<-X\n\trm a\n\tX\n", "cat <<X\n$(rm a)\nX", "cat <<X\n`rm a`\nX",
    "cat <<X | sh\nrm a\nX", "python3 - <<X\nimport os\nos.system('rm a')\nX", "cat <<'X'\na\\\nX\nrm a\nX",
    "cat <<X <<Y\nx\nX\ny\nY\nrm a", 'cat <<X\n"$(rm a)"\nX', ": $((1<<2)); rm a", ": $[1<<2]\nrm a\n: 2]",
    "z[1<<2]=3\nrm a\n: 2]=3", "z[1 <<b ]=3\nrm a\nb", "let z=1<<b\nx\nb\nrm a", "make -f - x <<'X'\nx:\n\trm a\nX",
    ": $((1<<X\n+1)); rm a\nX", "((1<<X\n+1)); rm a\nX", "y=1; : ${y:1<<X\n}; rm a\nX", "z[1<<X\n+1]=3; rm a\nX",
    "cat <<X$y\nb\nX$y\nrm a\nX", "cat <<X\r\nb\nX\r\nrm a\nX", "cat <<X | tee y; rm a\nX", "cat <<'X Y'\nX Y\nrm a",
    "(cat <<X); rm a\nb\nX", 'echo "$(cat <<X\nb\nX\nrm a)"', "[[ b =~ (b<<X\n) ]]; rm a\nX", "cat <<\\X\nb\nX\nrm a",
    "true # \\\nrm a", "<<< x rm a", "<<<x\\ y rm a",
]  # fmt: skip
# The same with programs that may be missing, or need another machine, more rights or a terminal.
OTHERS = r"""
rg --pre=rm x; gcc -wrapper rm a.c
gcc -wrapper rm,a x.c
rg --pre rm x
rustc -C linker=rm a.rs
apt-get -o APT::Update::Pre-Invoke::=rm update
mvn exec:exec -Dexec.executable=rm
systemd-inhibit rm a
rsync -e 'rm a' x h:
rsync --rsh='rm a' x h:
rsync --rsync-path 'rm a;' x h:
ssh -o ProxyCommand='rm a' h
ssh -o 'ProxyCommand rm a' h
ssh -oProxyCommand='rm a' h
scp -o ProxyCommand='rm a' x h:
scp -S rm x h:
busybox rm a
toybox rm a
man -P 'rm a' x
man --pager='rm a' x
less '+!rm a' x
LESSOPEN='|rm a' less x
PAGER='rm a' man x
zip -T -TT 'rm a' x.zip x
parallel rm ::: a
parallel 'rm a' ::: x
echo rm a | parallel
ltrace rm a
ld.so --preload y /bin/rm a
/lib/ld-musl-x86_64.so.1 /bin/rm a
cmake -E rm a
coreutils --coreutils-prog=rm a
tcpdump -i lo -G 1 -z rm -w a
nc -l -p 1 -e 'rm a'
socat - EXEC:'rm a'
socat - 'SYSTEM:rm a'
git grep --open-files-in-pager='rm a' x
git rebase -x 'rm a' HEAD~1
git bisect run rm a
git fetch --upload-pack='rm a' x
git difftool -x 'rm a'
npm exec -- rm a
npx -c 'rm a'
uv run rm a
docker run -v .:/w x rm /w/a
go build -toolexec 'rm a'
psql -c '\! rm a'
sqlite3 x '.shell rm a'
m4 <<< 'syscmd(`rm a'\'')'
emacs --batch --eval '(shell-command "rm a")'
$SHELL -c 'rm a'
/bin/s? -c 'rm a'
sudo -u x tar -I 'rm a' -cf x x
crontab <<< '* * * * * rm a'
at now <<< 'rm a'
echo 'rm a' | ssh h
""".strip().splitlines()
REMOVE = parse_rule("run:rm")


def means(text: str) -> bool:
    """Whether the rule that denies removing means a command."""
    return REMOVE.means(WantedAccess("run", text))


def test_what_removes_does_so(tmp_path: Path) -> None:
    """So most of the spellings are not there only because the reader can read them; some need a program too many."""
    texts = [*USUAL, *DOCUMENTS]
    for at in range(len(texts)):
        (tmp_path / f"{at}").mkdir()
        for name in ("a", "x.txt"):
            (tmp_path / f"{at}/{name}").write_text("x\n", "utf-8")
    tries = "\n".join(f"(cd {at}; timeout 10 bash -c {shlex.quote(text)})" for at, text in enumerate(texts))
    variables = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "SHELL": "/bin/sh", "TERM": "dumb"}
    subprocess.run(
        ["bash", "-c", tries], cwd=tmp_path, env=variables, capture_output=True, check=False, stdin=subprocess.DEVNULL
    )
    without_effect = [text for at, text in enumerate(texts) if (tmp_path / f"{at}/a").exists()]

    assert [] == [text for text in without_effect if shutil.which(text.split()[0]) or "=" in text.split()[0]]


@pytest.mark.parametrize("text", [*USUAL, *DOCUMENTS, *OTHERS])
def test_what_removes_is_what_a_rule_means(text: str) -> None:
    """By whatever program it is started."""
    assert means(text)


@pytest.mark.parametrize(
    "text",
    [
        "git commit -m 'rm the old ones'",
        "tar czf rm.tgz rm",
        "tar -cf x.tar --exclude=rm .",
        "git switch -c rm",
        "rsync -a rm h:",
        "sort rm",
        "man rm",
        "make rm",
        "grep -rn 'rm -rf' src",
        "cat > notes.md <<'X'\nrm is denied: `rm a`\nX",
        "cat > notes.md <<X\nrm a\nX",
        "git commit -m \"$(cat <<'X'\nrm a\nX\n)\"",
        "git commit -m 'rm it' && python3 x.py",
        "less rm",
        "docker ps --filter name=rm",
        "npm install rm",
        "[ -f rm ]",
        "python3 rm.py",
        "echo rm || true",
    ],
)
def test_what_only_names_it_is_not(text: str) -> None:
    """Files, targets, branches and messages of that name, and texts that nothing carries out."""
    assert not means(text)


@pytest.mark.parametrize(
    "text", ["sh -c 'git \"push'", "sudo " * 30 + "rm a", "cat <<X\nrm a", "tar -I 'a \"b' -cf x x"]
)
def test_who_cannot_be_read_inside_is_asked_about(text: str) -> None:
    """A text that is carried out for sure has to be whole, too, and may start only so many others."""
    assert not read_commands(text).is_whole


@pytest.mark.parametrize("text", ['git commit -m "don\'t"', "env A='it isn\"t' ls", "echo 'a \"b' > x"])
def test_texts_that_are_not_carried_out_need_not_be_whole(text: str) -> None:
    """They are no commands for sure."""
    assert read_commands(text).is_whole


def test_reading_takes_no_longer_than_a_text_is_long() -> None:
    """However much in it may start something."""
    for part in ("exec=", "sh -c 'x ", "sudo ", "a|b!c:", "x=rm ", "'$(", "python3 -c \"os.system('a')\" "):
        assert read_commands(f"tar -I '{part * 2000}'").commands


# ---------------------------------------------------------------- files that a shell fills in

QUOTED = [
    "git commit -m 'x * y'", 'git commit -m "x * y"', "git commit -m x\\ \\*\\ y", "python3 -c 'print(2 * 3)'",
    "python3 -c \"print(2 * 3)\"", "echo 'sub.?nv is not read'", "echo 'a [s]ub.[e]nv b'", "echo $'x * y'",
    "git commit -m 'use server.{{pem,key}} instead'".replace("{{", "{").replace("}}", "}"), "x='* y' ls",
    "MESSAGE=\"x * y\" make", "cat > n.md <<'X'\n* one\n* two\nX", "cat > n.md <<X\n* one\nX", "echo \"* $HOME *\"",
    "env A=1 python3 -c 'print(2 * 3)'", "timeout 5 git commit -m 'x * y'", "awk '{print $1 * $2}' x",
    "git commit -m 'wow! x * y'", "grep 'a *b' x", "python3 - <<X\nprint(2 * 3)\nX", "git -c user.name='x y' log",
]  # fmt: skip
FILLED = [
    "cat *", "sh -c 'cat *'", "bash -c \"cat s*\"", "sh <<X\ncat *\nX", "sh <<< 'cat *'", "echo 'cat *' | sh",
    "env -S 'cat *'", "eval 'cat *'", "cat serv?r.pem", "cat [s]erver.pem", "cat server.{pem,key}", "cat 'ser'*",
    "x='*'; cat $x", "x=*; cat ${x}", "find . -name '*.pem' -exec cat {} +", "watch 'cat *'", "tar -I 'cat *' -cf x x",
    "python3 -c \"import os; os.system('cat *')\"", "git -c alias.x='!cat *' x", "cat \"$PWD\"/*", "cat $PWD/s*",
    "echo $(cat *)", "cat <<X\n$(cat *)\nX", "timeout 5 sh -c 'cat *'", "xargs sh -c 'cat *'", "cat < s*", "cat 'un *",
]  # fmt: skip


def look_at(command: str, folder: Path) -> None:
    """Look at the arguments of a command beside files that are closed."""
    for name in ("server.pem", "sub.env", "a*.pem"):
        (folder / name).write_text("x")
    require_open_arguments(command, place_of(None, folder))


@pytest.mark.parametrize("command", QUOTED)
def test_quoted_signs_fill_in_nothing(tmp_path: Path, command: str) -> None:
    """The shell leaves them as they are, and so does its reader."""
    look_at(command, tmp_path)


@pytest.mark.parametrize("command", FILLED)
def test_signs_that_a_shell_fills_in_are_filled_in(tmp_path: Path, command: str) -> None:
    """Also in the text of an inner shell, in parts that stand beside quoted ones, and in variables that are used."""
    with pytest.raises(PermissionDeniedError, match="closed to agents"):
        look_at(command, tmp_path)


# ---------------------------------------------------------------- texts that nobody would write

PARTS = [
    "rm a", "X", "X\n", "X\r\n", "<<X", "<<X\n", "<<'X'", "<<-X", "<<\\X", '<<"X"', "\n", "\\\n", "\t", ";", " ", "$((",
    "))", "((", "(", ")", "$(", "`", "${y:", "}", "{ ", "; }", "[[ ", "]]", "a[", "]", "=", "'", '"', "\\", "cat ",
    "echo ", "true ", "|", "&&", "# ", "$'", "\\'", "eval ", "y=", "let ", "1", "<<<", "<(", "$", "case x in x)", ";;",
    " esac", "if true; then ", "fi", " 2>&1 ", "X$y", "$y",
]  # fmt: skip


@pytest.mark.thorough
def test_what_bash_carries_out_of_any_text_is_seen(tmp_path: Path) -> None:
    """A rule means it, or it cannot be read; what a text has put together while it runs is left out."""
    (tmp_path / "rm").write_text("#!/bin/sh\n: > removed\n")
    (tmp_path / "rm").chmod(0o755)
    random, variables = Random(7), {"PATH": str(tmp_path)}
    removing, missed = list[str](), list[str]()
    for _ in range(10_000):
        text = "".join(random.choices(PARTS, k=random.randint(2, 14)))
        if "rm a" not in text or any(each in text for each in ("`", "$(", "<(", "eval", "echo")):
            continue
        words = ("/bin/bash", "-c", text)
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(words, cwd=tmp_path, env=variables, capture_output=True, stdin=subprocess.DEVNULL, timeout=5)
        if (tmp_path / "removed").exists():
            (tmp_path / "removed").unlink()
            removing.append(text)
            missed += [] if means(text) or not read_commands(text).is_whole else [text]

    assert len(removing) > 50
    assert [] == missed
