"""Commands are read as a shell reads them: what bash carries out is what rules that deny look at."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from koi_lang.runtime.guards.access_rules import WantedAccess, parse_rule
from koi_lang.runtime.guards.permissions import Permissions, Restrictions
from koi_lang.runtime.guards.shell_reader import plain_word, read_shell
from tests.guards.test_access_rules import command

# Ways to write `git push` that bash carries out with nothing but itself, a line each.
WRITTEN = r"""
git push
git  push origin
/bin/echo && git push
true; git push
false || git push
true | git push
(git push)
{ git push; }
! git push
if true; then git push; fi
for i in 1; do git push; done
case x in x) git push;; esac
f() { git push; }; f
function g { git push; }; g
git -C . push
git -c a.b=c push
git --git-dir .git push
git 2>/dev/null push
git >/dev/null push
>/dev/null git push
git </dev/null push
git &>/dev/null push
git 2>&1 push
2>&1 git push
g\it pus\h
git $'push'
git $'\x70us\150'
git $"push"
g''it "pu"sh
git pu$@sh
git pu${unset}sh
git pu$(:)sh
git pu``sh
{git,push}
git {push,}
trap 'git push' EXIT
A=1 B='x y' git push
env -i PATH="$PATH" git push
exec git push
command git push
builtin command git push
eval git push
eval "git" 'push'
sh -c 'git push'
bash -c "git push"
sh <<< 'git push'
echo 'git push' | sh
echo git push | sh
xargs git push </dev/null
find . -maxdepth 0 -exec git push \;
timeout 5 git push
nice git push
nohup git push
time git push
echo $(git push)
echo "`git push`"
cat <(git push)
x=$(git push)
echo ${x:-$(git push)}
git ${x:-push}
bash -c 'git pus{h,}'
bash -c '{git,push}'
source <(echo git push)
""".strip().splitlines()
LINES = ["git \\\npush", "gi\\\nt push", "sh <<EOF\ngit push\nEOF", "# x\ngit push", "true\n\ngit push"]
# The same with programs that may be missing, or need another machine or more rights.
OTHERS = r"""
GIT PUSH
flock f git push
flock f -c 'git push'
chrt -b 0 git push
taskset 1 git push
prlimit --nofile=10 git push
setpriv --no-new-privs git push
unshare -Ur git push
runuser -u root -- git push
su root -c 'git push'
sudo -u root git push
ssh host 'git push'
watch git push
script -c 'git push'
busybox sh -c 'git push'
strace git push
git rebase -x 'git push'
git submodule foreach 'git push'
python3 -c "import subprocess;subprocess.run(['git','push'])"
python3.12 -c "import os; os.system('git push')"
perl -e 'system("git push")'
awk 'BEGIN{system("git push")}'
node -e 'require("child_process").execSync("git push")'
sed -n '1e git push' x.txt
git -c alias.x=push x
git -c alias.x='!git push' x
""".strip().splitlines()
PUSH = parse_rule("run:git push*")


def means(text: str) -> bool:
    """Whether the rule that denies pushing means a command."""
    return PUSH.means(WantedAccess("run", text))


def test_every_spelling_is_one_that_bash_carries_out(tmp_path: Path) -> None:
    """So none of them is there only because the reader can read it."""
    git = tmp_path / "git"
    git.write_text('#!/bin/sh\ncase " $* " in *" push "*) echo > pushed;; esac\n', "utf-8")
    git.chmod(0o755)
    texts = [*WRITTEN, *LINES]
    tries = "\n".join(f"(mkdir {at}; cd {at}; bash -c {shlex.quote(text)})" for at, text in enumerate(texts))
    script = f'export PATH="$PWD:$PATH"\n{tries}\n'
    subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, check=False, stdin=subprocess.DEVNULL)

    assert [] == [text for number, text in enumerate(texts) if not (tmp_path / f"{number}/pushed").exists()]


@pytest.mark.parametrize("text", [*WRITTEN, *LINES, *OTHERS])
def test_what_pushes_is_what_a_rule_means(text: str) -> None:
    """However it is written."""
    assert means(text)


@pytest.mark.parametrize(
    "text",
    [
        "git pull",
        "git commit -m 'push later'",
        "git log --grep=pushed",
        "git add push.py",
        "git status # git push",
        "push git",
        "grep -r 'git push' .",
        "echo git; echo push",
        "git status > push",
    ],
)
def test_what_only_tells_of_it_is_not(text: str) -> None:
    """Texts, comments, other orders, other commands, and files that input and output are redirected to."""
    assert not means(text)


@pytest.mark.parametrize(
    ("text", "commands", "files"),
    [
        ("a 'b c' \"d $e f\" > g", [["a", "b c", "d  f"]], ["g"]),
        ("A=1 a 2>&1 >>b | c", [["a"], ["c"]], ["1", "b"]),
        ("a $(b $(c)) `d`", [["c"], ["b", ""], ["d"], ["a", "", ""]], []),
        ("while read x; do a; done < b", [["read", "x"], ["a"]], ["b"]),
        ("a \\; $'b\\tc' 1>d", [["a", ";", "b\tc"]], ["d"]),
        ("((1 + 2)); a", [["1", "+", "2"], ["a"]], []),
        ("", [], []),
    ],
)
def test_commands_of_a_text(text: str, commands: list[list[str]], files: list[str]) -> None:
    """Quotes are gone, what stands in others comes first, and redirections are apart."""
    found = read_shell(text)

    words = [[*map(plain_word, each)] for each in found.words]
    assert (commands, files, True) == (words, [*map(plain_word, found.files)], found.is_whole)


@pytest.mark.parametrize("text", ["git 'push", 'echo "a', "echo $(a", "echo `a", "echo ${a", "echo $'a", "(" * 3000])
def test_who_cannot_be_read_is_asked_about(text: str, tmp_path: Path) -> None:
    """A rule that allows all commands does not count where another one denies some of them."""
    asking = Permissions(["run:**"], restrictions=Restrictions((PUSH,)))
    wanted = command(text, tmp_path)

    assert not read_shell(text).is_whole
    assert asking.restrictions.find_denial(wanted.access) or not asking.is_allowed(wanted)
    assert Permissions(["run:**"]).is_allowed(wanted)
    assert asking.is_allowed(command("git status", tmp_path))
