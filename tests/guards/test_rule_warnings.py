"""What a run says of rules that can never count."""

from __future__ import annotations

from pathlib import Path

import pytest

from koi_lang.runtime.guards.access_rules import parse_rule
from koi_lang.runtime.guards.permissions import Restrictions, explain_rules
from tests.playbook.playing import solo
from tests.projects import Project


def told(allow: str = "", deny: str = "", ask: str = "", folder: Path = Path("/project")) -> list[str]:
    """What is said of rules that are separated by blanks."""
    restrictions = Restrictions(*(tuple(map(parse_rule, each.split())) for each in (deny, ask)))
    return list(explain_rules(allow.split(), restrictions, folder))


@pytest.mark.parametrize(
    ("rules", "line"),
    [
        ({"allow": "write:../x/**"}, "the rule `write:../x/**` never counts: it leads out of the project"),
        ({"deny": "read:~/x"}, "the rule `read:~/x` never counts: it leads out of the project"),
        ({"allow": "read:**/.env"}, "the rule `read:**/.env` never counts: what it names is closed to agents: "),
        ({"ask": "write:.git/**"}, "the rule `write:.git/**` never counts: what it names is closed to agents: "),
        (
            {"allow": "write:a/*.py", "deny": "*:A/**"},
            "the rule `write:a/*.py` of `allow` never counts: `*:A/**` of `deny` denies all of it",
        ),
        (
            {"allow": "run:rm*", "deny": "run:rm*"},
            "the rule `run:rm*` of `allow` never counts: `run:rm*` of `deny` denies all of it",
        ),
        (
            {"ask": "run:rm*", "deny": "run:rm"},
            "the rule `run:rm*` of `ask` never counts: `run:rm` of `deny` denies all of it",
        ),
        ({"deny": "**"}, "the rule `**` denies everything"),
    ],
)
def test_what_never_counts(rules: dict[str, str], line: str) -> None:
    """Each is told in one line with the reason."""
    (said,) = told(**rules)

    assert said.startswith(line)


def test_rules_that_count() -> None:
    """Nothing is said of a rule that may count for something."""
    allow = "write:src/** read:** run:** web:** shell mcp:files shell=x write:a/** run:git/../x"

    assert [] == told(allow, "write:src/a/** read:.env web:example.com run:rm*", "write:**")


@pytest.mark.parametrize("kind", ["allow", "deny", "ask"])
def test_a_path_of_the_machine_never_counts(tmp_path: Path, kind: str) -> None:
    """The line says what to write for one of the project. A folder of the project that is called so is no such path."""
    inside = told(**{kind: f"write:{tmp_path}/src/** write:{tmp_path}"}, folder=tmp_path)
    (tmp_path / "etc").mkdir()
    outside = told(**{kind: f"read:{Path(__file__)} read:/etc/passwd read:/src/**"}, folder=tmp_path)

    why = "never counts: patterns begin at the folder of the project; write"
    assert [
        f"the rule `write:{tmp_path}/src/**` {why} `write:src/**`",
        f"the rule `write:{tmp_path}` {why} `write:.`",
    ] == inside
    assert [f"the rule `read:{Path(__file__)}` never counts: it leads out of the project"] == outside


def test_a_rule_that_allows_counts_for_no_link(tmp_path: Path) -> None:
    """Paths are looked at with links resolved, so the line says what to write; a name alone counts in any folder."""
    (tmp_path / "real").mkdir()
    (tmp_path / "lnk").symlink_to("real")
    (tmp_path / "away").symlink_to("/usr")

    lines = told(allow="write:lnk/*.py write:lnk/ write:lnk write:away/** write:real/**", folder=tmp_path)

    why = "never counts: a link in it leads elsewhere; write"
    assert [f"the rule `write:lnk/*.py` {why} `write:real/*.py`", f"the rule `write:lnk/` {why} `write:real`"] == lines


def test_a_run_says_it_once(project: Project) -> None:
    """On stderr, before anything is done; `koi audit` shows the rules in force."""
    project.write("a.koi", solo("execute") + "\nrun Main.go({})\n")
    project.write("koi.toml", '[permissions]\nallow = ["write:../**"]\ndeny = ["**"]\n[trust]\ndeploy = "never"\n')
    project.write("answers.json", '[{"batch": [{"actionType": "direct", "intent": "return", "data": {}}]}]')

    outcome = project.koi("run", "a.koi", "--answers", "answers.json")
    audited = project.koi("audit", "a.koi")
    audit = audited.stdout

    assert 0 == outcome.returncode
    assert "the rule `write:../**` never counts: it leads out of the project" in audited.stderr
    assert 1 == outcome.stderr.count("the rule `write:../**` never counts: it leads out of the project")
    assert 1 == outcome.stderr.count("the rule `**` denies everything")
    assert "  rules      deny: **\n             allow: write:../**\n             trust: deploy never\n" in audit
