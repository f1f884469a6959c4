"""Rules for files, commands and pages: what allows is read narrowly, what denies widely."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from koi_lang.errors import SettingsError
from koi_lang.runtime.guards.access_rules import WantedAccess, parse_rule
from koi_lang.runtime.guards.commands import command_permission, place_of
from koi_lang.runtime.guards.file_access import file_permission, page_permission
from koi_lang.runtime.guards.permissions import Permission, Permissions, Restrictions
from koi_lang.sessions.options import RunOptions
from koi_lang.settings import read_settings


def access(text: str) -> WantedAccess:
    """`kind:subject` as what somebody wants to do."""
    return WantedAccess(*text.split(":", 1))  # type: ignore[arg-type]


def permissions(allow: str = "", deny: str = "", ask: str = "") -> Permissions:
    """Those of rules that are separated by blanks."""
    restrictions = Restrictions(tuple(map(parse_rule, deny.split())), tuple(map(parse_rule, ask.split())))
    return Permissions(allow.split(), restrictions=restrictions)


@pytest.mark.parametrize(
    ("rule", "wanted", "covers"),
    [
        ("write:src/**", "write:src/a/b.py", True),
        ("write:src/**", "write:srcs/a.py", False),
        ("write:src/**", "write:SRC/a.py", False),
        ("write:src/*.py", "write:src/a/b.py", False),
        ("write:src/*", "write:src/a.py", True),
        ("write:src/*", "write:src/a/b.py", False),
        ("write:src/*/", "write:src/a/b.py", False),
        ("write:src", "write:src/a/b.py", True),
        ("write:*.md", "write:docs/x.md", True),
        ("write:**", "write:a", True),
        ("write:**", "read:a", False),
        ("run:pytest *", "run:pytest tests", True),
        ("run:pytest *", "run:pytest tests; rm -rf .", False),
        ("run:pytest *", "run:pytest $(id)", False),
        ("run:*", "run:a | b", False),
        ("run:**", "run:a | b", True),
        ("run:a | b", "run:a | b", True),
        ("web:*.python.org", "web:docs.python.org", True),
        ("web:python.org", "web:evil.org", False),
        ("web:python.org", "web:python.org.evil.org", False),
        ("web:python.org", "web:PYTHON.org.", True),
        ("**", "web:x", True),
    ],
)
def test_what_allows_is_read_narrowly(rule: str, wanted: str, covers: bool) -> None:
    """Letter case counts, `*` stays in its folder, and joined commands match no pattern."""
    assert covers == parse_rule(rule).covers(access(wanted))


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [
        ("*:migrations/**", "write:app/../migrations/1.sql".replace("app/../", "")),
        ("write:Migrations/**", "write:migrations/1.sql"),
        ("write:migrations", "write:app/MIGRATIONS/1.sql"),
        ("write:docs/*.md", "write:docs/a:b.md"),
        ("write:docs/a:b.md", "write:docs/a:b.md"),
        ("write:docs/*.md", "write:docs/\u2100.md"),
        ("read:*.log", "read:x.log:stream"),
        ("*:migrations/**", "run:sed -i s/a/b/ ./migrations/1.sql"),
        ("*:migrations/**", "run:cat<migrations/1.sql"),
        ("*:migrations/**", "run:tool --file=migrations/1.sql"),
        *(
            ("*:migrations/**", f"run:{command}")
            for command in (
                "cp -tmigrations x",
                "sed -n 'wmigrations/new' x",
                "sed '1s/.*/a/gwmigrations/1.sql' x",
                "sed -n '1rmigrations/1.sql' x",
                "sed --expression=Wmigrations/x x",
                "echo wmigrations/x | sed -nf- x",
                "vim -es '+w!migrations/x' +q x",
                "vim '+0rmigrations/1.sql' x",
                "tar -xf x -Cmigrations",
                "tar -xvfmigrations/x",
                "sort -omigrations/1.sql x",
                "xargs -amigrations/1.sql echo",
                "curl -d@migrations/1.sql x",
            )
        ),
        ("run:rm *", "run:ls; rm -rf x"),
        ("run:rm *", "run:ls && /bin/rm x"),
        ("run:rm *", "run:RM x"),
        ("run:rm *", "run:sh -c 'rm -f x'"),
        ("run:rm *", "run:bash -c 'ls; rm -f x'"),
        ("run:rm *", "run:env -i A=1 rm x"),
        ("run:rm *", "run:A=1 B=2 rm x"),
        ("run:rm *", "run:if true; then rm x; fi"),
        ("run:rm *", "run:timeout 5 /bin/rm x"),
        ("run:git push*", "run:git -C . push"),
        ("run:git push*", "run:sudo git --no-pager -c a.b=c -C . push origin"),
        ("run:rm *", "run:git -c alias.x='!rm -f x' x"),
        ("run:rm *", "run:r''m x"),
        ("run:rm *", "run:'rm' x"),
        ("run:rm *", "run:rm\tx"),
        ("run:rm *", "run:find . -exec rm x +"),
        *(
            (rule, f"run:{command}")
            for rule in ("run:rm", "run:rm *", "run:rm*")
            for command in (
                "rm",
                "rm x",
                "rm -rf x",
                "echo x | xargs rm",
                "xargs -n 1 rm < list",
                "/bin/r? x",
                "/bin/[r]m x",
                "python3 -c \"import os; os.system('rm x')\"",
                "node -e 'require(`child_process`).execSync(`rm x`)'",
                "bun -e 'require(`child_process`).execSync(`rm x`)'",
                "bun x rm x",
                "ls | awk '{system(\"rm \" $1)}'",
            )
        ),
        ("run:git*", "run:gitk --all"),
        ("run:git push", "run:/usr/bin/gi? -C . push origin"),
        ("web:*", "web:example.com"),
        ("run:*", "run:a | b"),
    ],
)
def test_what_denies_is_read_widely(rule: str, wanted: str) -> None:
    """In any letter case, in any part of a command, and in whatever there looks like a path."""
    assert parse_rule(rule).means(access(wanted))


@pytest.mark.parametrize(
    "command",
    [
        "git rm x",
        "git commit -m 'rm old files'",
        "echo rm x",
        "grep -r 'rm x' .",
        "rmdir x",
        "python manage.py rm",
        "python3 rm.py",
        "ls *",
        "[ -f rm ]",
        "make [rm",
    ],
)
def test_words_of_another_command_are_none(command: str) -> None:
    """What only tells of a command, or is called like it, is not what a rule denies."""
    assert not parse_rule("run:rm *").means(WantedAccess("run", command))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("wirte:src/**", "unknown kind `wirte`"),
        ("src/**", "is no rule"),
        ("write:", "is no rule"),
        (":x", "unknown kind ``"),
        ("write:!src/**", "`!` takes nothing out of it"),
        ("read:data/[abc.py", "fits nothing"),
        ("*:" + "{a,b}" * 7, "stands for more than 64 patterns"),
    ],
)
def test_what_is_no_rule_is_refused(text: str, message: str) -> None:
    """With what was probably meant."""
    with pytest.raises(SettingsError, match=message) as caught:
        parse_rule(text)

    assert caught.value.help


@pytest.mark.parametrize("kind", ["read", "write", "run", "web"])
def test_a_kind_alone_covers_all_of_it(kind: str) -> None:
    """`run` allows, or denies, every command, as `run:**` does."""
    assert parse_rule(f"{kind}:**") == parse_rule(kind)


def command(text: str, root: Path, cwd: str | None = None) -> Permission:
    """Leave to run a command in a folder."""
    return command_permission(text, place_of(cwd, root))


@pytest.mark.parametrize(
    ("text", "cwd"),
    [
        ("cat 1.sql", "migrations"),
        ("cat 1.sql", "link"),
        ("cat src/../migrations/1.sql", None),
        ("cat ../migrations/1.sql", "src"),
        ("cat link/1.sql", None),
        ("cat m*/1.sql", None),
        ("cat $PWD/migrations/1.sql", None),
        ("cat {root}/migrations/1.sql", None),
    ],
)
def test_a_rule_means_files_however_a_command_names_them(tmp_path: Path, text: str, cwd: str | None) -> None:
    """From its folder, by dots, links, patterns and from the root."""
    for name in ("migrations", "src"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.sql").write_text("")
    (tmp_path / "link").symlink_to("migrations")
    known = permissions("shell", "*:migrations/**")

    assert (
        known.restrictions.find_denial(command(text.format(root=tmp_path), tmp_path, cwd).access) == "*:migrations/**"
    )
    assert known.restrictions.find_denial(command("cat 1.sql", tmp_path, "src").access) == ""


def test_deny_goes_before_allow(tmp_path: Path) -> None:
    """Whoever allowed it, and also what was allowed for always."""
    known = permissions("write:** shell run:**", "*:migrations/** web:*")
    known.allow("write=migrations/")

    assert known.restrictions.find_denial(file_permission("write", "migrations/1.sql").access) == "*:migrations/**"
    assert known.restrictions.find_denial(command("touch migrations/x", tmp_path).access) == "*:migrations/**"
    assert known.restrictions.find_denial(page_permission("example.com").access) == "web:*"
    assert known.restrictions.find_denial(file_permission("write", "src/a.py").access) == ""
    assert known.is_allowed(file_permission("write", "src/a.py"))


@pytest.mark.parametrize("rule", ["run:python*", "run:.venv/bin/python*"])
def test_a_usual_spelling_opens_nothing_that_is_denied(tmp_path: Path, rule: str) -> None:
    """Rules that deny one spelling of a command count for it, although the other one is allowed."""
    wanted = command_permission(".venv/bin/python -m pytest", place_of(None, tmp_path), "python -m pytest")

    assert rule == permissions("run:python -m pytest shell", rule).restrictions.find_denial(wanted.access)


def test_everything_can_be_denied(tmp_path: Path) -> None:
    """`**` means all kinds, and what belongs to none."""
    known = permissions("shell", "**")

    for wanted in (file_permission("read", "a"), page_permission("x"), command("ls", tmp_path)):
        assert known.restrictions.find_denial(wanted.access) == "**"


@pytest.mark.parametrize("rule", ["**", "*", "*:**"])
def test_everything_can_be_allowed(tmp_path: Path, rule: str) -> None:
    """The same rules allow all kinds, but for what another rule denies."""
    known = permissions(rule, "write:keys/**")

    for wanted in (file_permission("write", "a/b"), page_permission("x"), command("ls; rm x", tmp_path)):
        assert known.is_allowed(wanted)
    assert known.restrictions.find_denial(file_permission("write", "keys/a").access)


def test_always_is_for_the_folder(tmp_path: Path) -> None:
    """For what is below it, too; for files at the top of the project only for these; nothing in a name is a pattern."""
    assert file_permission("write", "src/a.py").lasting_rule == "write=src/"
    assert file_permission("write", "README.md").lasting_rule == "write=README.md"
    known = permissions("write=src/ write=*/ write=README.md")

    allowed = [path for path in ("src/b/c.py", "srcs/a", "x/a", "README.md", "LICENSE", "*/a") if
               known.is_allowed(file_permission("write", path))]  # fmt: skip

    assert allowed == ["src/b/c.py", "README.md", "*/a"]


@pytest.mark.parametrize(
    ("text", "path", "counts"),
    [
        ("write:src//**", "src/a.py", True),
        ("write:src/./**", "src/a.py", True),
        ("write:src/.", "src/a.py", True),
        ("write:.//src/**", "src/a.py", True),
        ("write:.", "a/b.py", True),
        ("write:./", "b.py", True),
        ("write:src//**", "src2/a.py", False),
        ("write:a/.b", "a/b", False),
        ("write:a/.b/", "a/.b/c", True),
        (r"write:\{src/**", "{src/a", True),
        ("write:{{x}}/**", "{{x}}/a", True),
    ],
)
def test_empty_parts_of_paths_mean_nothing(text: str, path: str, counts: bool) -> None:
    """A rule counts as the path that it means, whether it allows or denies."""
    assert counts == parse_rule(text).covers(WantedAccess("write", path))
    assert counts == parse_rule(text).means(WantedAccess("write", path))


def test_addresses_in_rules_for_all_stay() -> None:
    """The two slashes of an address are no empty part of a path."""
    assert parse_rule("*:curl https://a/**").means(WantedAccess("run", "curl https://a/b"))


@pytest.mark.parametrize("text", ["write:{src/**", "*:a}/b", "read:{a,{b}/c"])
def test_an_open_brace_is_refused(text: str) -> None:
    """It would be a sign of a name, which nobody means."""
    with pytest.raises(SettingsError, match="is no rule: a brace in it has no other"):
        parse_rule(text)


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ("*:lnk/**", "real [1]/a/r.txt"),
        ("read:lnk", "real [1]/r.txt"),
        ("read:/lnk/*.txt", "real [1]/r.txt"),
        ("read:one.txt", "real [1]/r.txt"),
        ("read:top/**", "any.txt"),
    ],
)
def test_rules_of_a_project_hold_behind_links(tmp_path: Path, rule: str, path: str) -> None:
    """What denies, or has the person asked, counts for what a link in the project leads to in it."""
    (tmp_path / "real [1]").mkdir()
    for name, target in (("lnk", "real [1]"), ("one.txt", "real [1]/r.txt"), ("top", "."), ("away", "/usr")):
        (tmp_path / name).symlink_to(target)
    (tmp_path / "round").symlink_to("round")
    lists = json.dumps([rule, "read:away/x", "read:round/x", "read:a\0"])
    (tmp_path / "koi.toml").write_text(f"[permissions]\ndeny = {lists}\nask = {lists}\n")

    found = RunOptions(settings=read_settings(tmp_path)).restrictions_here

    assert found.denies_file("read", path)
    assert [5, 5] == [len(found.deny), len(found.ask)]
    assert found.find_denial(WantedAccess("read", path)).startswith(f"{rule} → ")
    assert any(each.means(WantedAccess("read", path)) for each in found.ask)
