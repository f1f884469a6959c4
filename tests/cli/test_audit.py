"""`koi audit`: servers, commands, hosts and budgets as they hold in a folder."""

from __future__ import annotations

import json
from textwrap import dedent
from typing import Any

import pytest

from tests.projects import Project

PROGRAM = """
    import "std/http"
    role Keeper { can call_mcp, can delegate, can execute, can web_access }
    role Idle { can rest }
    mcp files = { command: "./no-such-program", args: ["--root", "."], ask: ["write_*"], env: { A_TOKEN: "s3cret" } }
    team Shelf { reader: mcp://files/read_text_file }
    agent Main : Keeper {
      uses mcp files(read_*), git, gone
      uses team Shelf
      uses skill Http
      budget { tokens: 1000 }
      on go(args: Json) { playbook "Print hello." budget { turns: 1, time: 90s } }
      on other(args: Json) { playbook "Print hello." }
      on code(args: Json) { return 1 }
    }
    agent Other : Idle { uses mcp files uses team Shelf on go(args: Json) { return 1 } }
    """
SETTINGS = """
    [shell]
    allow = ["git status", "ls *"]
    [http]
    allow = ["127.0.0.1:8080"]
    [limits]
    usd = 1.5
    requests = 5000
    [mcp.git]
    url = "https://example.org/mcp"
    deny = ["push"]
    allow = ["pull*"]
    """


@pytest.fixture
def folder(project: Project) -> Project:
    """A folder with a program and settings that say what it may do."""
    project.write("a.koi", PROGRAM)
    project.write("koi.toml", SETTINGS)
    return project


def audit(folder: Project, *words: str) -> dict[str, Any]:
    """What is told of each agent, by name."""
    return {each["agent"]: each for each in json.loads(folder.koi("audit", "--json", "a.koi", *words).stdout)}


def test_servers_are_listed_with_what_is_granted(folder: Project) -> None:
    """How each is reached and what rules say of its tools, without starting it; no value of a variable."""
    files, git, gone, member = audit(folder)["Main"]["mcp"]

    assert ("stdio", "./no-such-program", ["--root", "."], ["A_TOKEN"]) == tuple(
        files[key] for key in ("transport", "command", "args", "env")
    )
    assert (["read_*"], ["write_*"], []) == (files["granted"], files["ask"], files["allowed"])
    assert ("http", "https://example.org/mcp", ["push"]) == (git["transport"], git["url"], git["deny"])
    assert (["*", "resource:*", "prompt:*"], ["pull*"]) == (git["granted"], git["allowed"])
    assert "there is no MCP server `gone`" == gone["problem"]
    assert ("mcp://files/read_text_file", ["read_text_file"]) == (member["member"], member["granted"])
    assert "s3cret" not in folder.koi("audit", "--json", "a.koi").stdout


def test_who_only_answers_does_nothing(folder: Project) -> None:
    """The model of an `answer` never acts, so nothing is listed for it, whatever the role of its agent allows."""
    handlers = 'on ask(args: Json) { answer "Say hello." } on code(args: Json) { return 1 }'
    uses = "uses mcp files(read_*) uses team Shelf uses skill Http"
    folder.write("a.koi", f"{dedent(PROGRAM)}agent Ann : Keeper {{ {uses} {handlers} }}")

    ann = audit(folder)["Ann"]

    assert ["ask"] == ann["answers"]
    assert not any(ann[name] for name in ("actions", "state", "delegates", "skills", "functions", "mcp"))
    assert ("deny", False) == (ann["commands"]["others"], ann["hosts"]["public"])


def test_what_a_role_lacks_is_not_listed(folder: Project) -> None:
    """Servers need `call_mcp`, members `delegate`, commands `execute`, hosts a skill that reaches them."""
    other = audit(folder, "--allow", "shell")["Other"]

    assert ([], []) == (other["mcp"], other["delegates"])
    assert {"allowed": [], "others": "deny"} == other["commands"]
    assert {"public": False, "allowed": []} == other["hosts"]


NEEDING = """
    import "std/files"
    import "std/http"
    role Reader { can read }
    role Scribe { can write, can web_access }
    skill Sums { export function add(a: number) { return a }  needs publish export function publish() { return 1 } }
    agent Looker : Reader { uses skill FileChanges, Sums, HttpRequests  on go() { playbook "Go." } }
    agent Author : Scribe { uses skill FileChanges, Sums, HttpRequests  on go() { playbook "Go." } }
    """
CHANGES = ["writeFile", "appendFile", "editFile", "moveFile", "removeFile"]


def test_functions_stand_under_the_permission_that_they_need(project: Project) -> None:
    """What the role permits apart from what it does not; only what is permitted is listed as a skill."""
    project.write("a.koi", NEEDING)
    told, text = audit(project), project.koi("audit", "a.koi").stdout
    changes, requests = (
        [f"FileChanges.{name}" for name in CHANGES],
        ["HttpRequests.httpRequest", "HttpRequests.postJson"],
    )

    assert ({"": ["Sums.add"]}, ["Sums.add"]) == (told["Looker"]["functions"], told["Looker"]["skills"])
    assert {"write": changes, "publish": ["Sums.publish"], "web_access": requests} == told["Looker"]["refused"]
    assert {"write": changes, "": ["Sums.add"], "web_access": requests} == told["Author"]["functions"]
    assert {"publish": ["Sums.publish"]} == told["Author"]["refused"]
    assert (
        f"  skills     Sums.add\n  refused    write: {', '.join(changes)}\n             publish: Sums.publish\n" in text
    )
    assert f"  skills     Sums.add\n             write: {', '.join(changes)}\n             web_access: " in text


def test_commands_and_hosts_of_the_folder(folder: Project) -> None:
    """`koi.toml` and `--allow` say what needs no question."""
    main, freed = audit(folder)["Main"], audit(folder, "--allow", "shell")["Main"]

    assert {"allowed": ["git status", "ls *"], "others": "ask"} == main["commands"]
    assert "allow" == freed["commands"]["others"]
    assert {"public": True, "allowed": ["127.0.0.1:8080"]} == main["hosts"]


@pytest.mark.parametrize(
    ("rules", "line"),
    [
        ('allow = ["run:**"]', "all, without asking"),
        (
            'allow = ["run:**"]\ndeny = ["run:git push*"]',
            "all, without asking, but for what other rules deny or ask about",
        ),
        ('allow = ["run:pytest *", "write:src/**"]\ndeny = ["run:rm *"]', "pytest *; asks first for all others"),
        ('deny = ["run:rm *"]', "asks first for each"),
        ('deny = ["run:**"]', "none: the rule `run:**` of the person denies it"),
        ('deny = ["run:*"]\nallow = ["run:ls"]', "none: the rule `run:*` of the person denies it"),
        ('deny = ["**"]', "none: the rule `**` of the person denies it"),
        ('deny = ["*:*"]', "none: the rule `*:*` of the person denies it"),
        ('allow = ["run:rm *", "run:ls"]\ndeny = ["run:rm"]', "ls; asks first for all others"),
        ('allow = ["run:**"]\n[trust]\nrun = "ask"', "asks first for each"),
        ('[trust]\nrun = "act"', "all, without asking, but for what other rules deny or ask about"),
        ('[trust]\nrun = "never"', 'none: the rule `[trust] run = "never"` of the person denies it'),
    ],
)
def test_rules_of_commands_are_heeded(project: Project, rules: str, line: str) -> None:
    """What `[permissions]` allows of commands needs no question, and is not said to need one; what it denies is not."""
    project.write("a.koi", 'role R { can execute }\nagent A : R { on go() { playbook "Go." } }\n')
    project.write("koi.toml", f"[permissions]\n{rules}\n")
    text = project.koi("audit", "a.koi").stdout

    assert f"  commands   {line}\n  rules      " in text
    assert line.startswith("none") is (" shell," not in text)


DENIED = """
    import "std/http"
    mcp files = { command: "x" }
    role R { can execute, can web_access, can call_mcp }
    agent A : R { uses mcp files uses skill HttpRequests on go() { playbook "Go." } }
    """


@pytest.mark.parametrize(
    ("rules", "hosts", "granted"),
    [("", True, ["*"]), ('deny = ["web:**"]', False, ["*"]), ('deny = ["**"]', False, [])],
)
def test_what_rules_deny_wholly_is_not_listed(project: Project, rules: str, hosts: bool, granted: list[str]) -> None:
    """Neither hosts nor tools of servers."""
    project.write("a.koi", DENIED)
    project.write("koi.toml", f"[permissions]\n{rules}\n")
    agent = audit(project)["A"]

    assert (hosts, granted) == (agent["hosts"]["public"], [*agent["mcp"][0]["granted"]][:1])


def test_rules_of_the_command_line_reach_servers(folder: Project) -> None:
    """`--allow` agrees to tools, to all of a server, or to its requests for a model."""
    files = audit(folder, "--allow", "mcp:files:write_a", "--allow", "mcp:files:model")["Main"]["mcp"][0]
    whole = audit(folder, "--allow", "mcp:files")["Main"]["mcp"][0]

    assert (["write_a"], True) == (files["allowed"], files["may_ask_model"])
    assert (["*", "resource:*", "prompt:*"], False) == (whole["allowed"], whole["may_ask_model"])


@pytest.mark.parametrize(
    ("rule", "help"), [("mcp:file:write_a", "did you mean `files`?"), ("mcp:zebra", "it uses `files`, `git`, `gone`")]
)
def test_a_rule_that_names_no_server_is_told(folder: Project, rule: str, help: str) -> None:
    """A misspelled server is said in one line; rules that count say nothing."""
    name = rule.split(":")[1]

    told = folder.koi("audit", "a.koi", "--allow", rule, "--allow", "mcp:files").stderr

    assert f"the rule `{rule}` allows nothing, since the program uses no MCP server `{name}`; {help}\n" == told


CLOSED = {
    '[permissions]\ndeny = ["run:**"]': {"shell", "run_command", "list_commands"},
    '[permissions]\ndeny = ["**"]': {
        "shell",
        "run_command",
        "read_file",
        "grep",
        "write_file",
        "edit_file",
        "web_fetch",
    },
    '[permissions]\ndeny = ["write:src/**", "read:*.md"]': set[str](),
    '[trust]\nshell = "never"': {"shell", "run_command"},
    '[trust]\nwrite = "never"': {"write_file", "edit_file"},
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("settings", CLOSED)
def test_actions_that_are_denied_as_a_whole_are_not_offered(project: Project, settings: str) -> None:
    """Whatever denies all files, commands or pages leaves no action for them, for the audit and for models."""
    role = "role R { can read, can write, can execute, can web_access }"
    agent = 'agent A : R { on go() { playbook "Work." } }'
    project.write("a.koi", f'import "std/code"\n{role}\n{agent}\nrun A.go()\n')
    project.write("koi.toml", settings)

    actions = {*audit(project)["A"]["actions"]}
    prompt = project.koi("prompt", "a.koi", "A.go").stdout

    assert set() == CLOSED[settings] & actions
    assert {"read_file", "write_file", "run_command"} - CLOSED[settings] <= actions
    assert [] == [name for name in CLOSED[settings] if f"{name}(" in prompt]


def test_rules_of_settings_that_name_no_server_are_told(project: Project) -> None:
    """A misspelt table that only has rules denies nothing, which a run and an audit say; hyphens are no mistake."""
    agent = "agent A : R { uses mcp my_files; on go() { console.log(1) } }"
    project.write("a.koi", f'mcp my_files = {{ command: "none" }}\nrole R {{ can think }}\n{agent}\nrun A.go()\n')
    project.write(
        "koi.toml",
        '[mcp.files]\ndeny = ["*"]\n[mcp.my-files]\ndeny = ["x"]\n[mcp.other]\ncommand = "x"\ndeny = ["y"]\n',
    )

    run, audited = project.koi("run", "a.koi"), project.koi("audit", "a.koi")

    why = "since the program uses no MCP server `files`; did you mean `my_files`?"
    for done in (run, audited):
        assert [f"`deny` of the MCP server `files` counts for nothing, {why}"] == done.stderr.splitlines()[-1:]


def test_a_run_tells_such_a_rule_and_goes_on(folder: Project) -> None:
    """The line stands beside the output, as for other options that are misspelled."""
    folder.write("b.koi", "role Plain { can think }\nagent A : Plain { on go() { console.log(1) } }\nrun A.go()\n")

    outcome = folder.koi("run", "b.koi", "--allow", "mcp:files:write_a")

    line = "the rule `mcp:files:write_a` allows nothing, since the program uses no MCP server `files`; it uses none\n"
    assert (0, "1\n", line) == (outcome.returncode, outcome.stdout, outcome.stderr)


def test_budgets_as_declared_and_as_they_hold(folder: Project) -> None:
    """A playbook's budget, then its agent's, then the default; `turns` of the folder count before all of them."""
    before = audit(folder)["Main"]["budgets"]
    folder.write("koi.toml", "[limits]\nturns = 7\n")
    after = audit(folder)["Main"]["budgets"]

    go = {"tokens": 1000, "time_s": 90, "turns": 1}
    assert {"declared": go, "limits": go} == before["handlers"]["go"]
    assert {"declared": {"tokens": 1000}, "limits": {"tokens": 1000, "turns": 50}} == before["handlers"]["other"]
    assert {"declared": {"tokens": 1000}, "limits": {"tokens": 1000}} == before["handlers"]["code"]
    assert {"usd": 1.5, "requests": 5000} == before["run"]
    assert {"declared": go, "limits": {**go, "turns": 7}} == after["handlers"]["go"]


def test_an_agent_is_one_short_block(folder: Project) -> None:
    """A person reads a row for each kind of thing, and one for each server."""
    main, other, sources = folder.koi("audit", "a.koi").stdout.split("\n\n")

    assert sources.startswith("The first of these that applies decides: plan mode, role, narrowing, ")

    assert [
        "  mcp        files (stdio ./no-such-program --root .); read_*; asks first for write_*",
        "             git (http https://example.org/mcp); everything; denied push; allowed without asking pull*",
        "             gone: there is no MCP server `gone`. It is neither declared in the program, as `mcp gone = { "
        f"command: … }}`, nor described in `.mcp.json` or `koi.toml` of `{folder.folder}`; these describe `git`.",
        "             mcp://files/read_text_file (stdio ./no-such-program --root .); asks first for write_*",
        "  commands   git status, ls *; asks first for all others",
        "  hosts      public ones, 127.0.0.1:8080",
        "  budgets    go: 1 turn, 1,000 tokens, 90 seconds; other: 50 turns, 1,000 tokens; code: 1,000 tokens; "
        "the whole run: 5,000 requests, $1.5",
    ] == main.splitlines()[5:]
    assert "  mcp        none\n  commands   none\n  hosts      none\n" in other


def test_limits_of_the_command_line_bound_what_is_shown(folder: Project) -> None:
    """`--max-usd` and its neighbours count as they would in a run, for what is allowed and for what it costs."""
    words = ("a.koi", "--json", "--max-usd", "0.25", "--max-requests", "3")
    budgets = audit(folder, *words[1:])["Main"]["budgets"]
    costs = json.loads(folder.koi("audit", "--cost", "-m", "openai/gpt-5.4-mini", *words).stdout)

    assert {"usd": 0.25, "requests": 3} == budgets["run"]
    assert all(each["usd"] <= 0.25 and each["requests"] <= 3 for each in costs["handlers"].values())


def test_a_server_that_cannot_be_read_says_what_lets_it_look(folder: Project) -> None:
    """A description that code computes, or that came with a folder, is read with an option, or once it is trusted."""
    folder.write("tool.py", "def make(): return './server'\n")
    program = PROGRAM.replace('command: "./no-such-program"', "command: tool.make()")
    folder.write("a.koi", f'import tool from "./tool.py"\n{program}')
    computed, trusted = audit(folder)["Main"]["mcp"][0], audit(folder, "--run-code")["Main"]["mcp"][0]
    strange = folder.koi("audit", "a.koi", KOI_TRUST_FOLDER="").stdout

    assert "add `--run-code`" in computed["help"]
    assert "./server" == trusted["command"]
    assert "its folder is not trusted. `koi trust` shows what the settings of the folder do" in strange


def test_what_a_folder_says_cannot_look_like_an_audit(folder: Project) -> None:
    """Descriptions of servers that came with a folder add no lines, and write nothing over others."""
    folder.write("koi.toml", '[mcp.git]\ncommand = "x"\nargs = ["a\\nBoss : All { all }", "\\u001b[2Jb"]\n')

    told = folder.koi("audit", "a.koi").stdout

    assert "git (stdio x a Boss : All { all } b); everything\n" in told


def test_secrets_of_a_server_are_not_shown(folder: Project) -> None:
    """Neither credentials in an address nor what a variable puts into an argument."""
    folder.write("koi.toml", '[mcp.git]\nurl = "https://ann:swordfish@example.org"\n')
    folder.write(".env", "SHELF_TOKEN=abcdefgh-12345678\n")
    folder.write(".mcp.json", '{"mcpServers": {"gone": {"command": "x", "args": ["${SHELF_TOKEN}"]}}}')

    told = [folder.koi("audit", "a.koi", *words).stdout for words in ((), ("--json",))]

    assert [(2, False, False)] * 2 == [(t.count("[redacted]"), "swordfish" in t, "abcdefgh" in t) for t in told]


def test_broken_settings_and_rules_end_in_a_message(folder: Project) -> None:
    """What the audit would get wrong is an error, not left out."""
    wrong = folder.koi("audit", "a.koi", "--allow", "nothing")
    folder.write("koi.toml", '[shell]\nallow = "ls"\n')
    broken = folder.koi("audit", "a.koi")

    assert (2, "", "error: `--allow nothing` allows nothing") == (
        wrong.returncode,
        wrong.stdout,
        wrong.stderr.split("\n")[0],
    )
    assert (2, "") == (broken.returncode, broken.stdout)
    assert broken.stderr.startswith("error: `allow` in `[shell]` of `koi.toml` is no list of texts")


def test_narrowed_calls_are_followed(project: Project) -> None:
    """An audit shows who answers a narrowed call as what, and what a model may do in it."""
    project.write(
        "a.koi",
        """
        role Worker { can execute, can delegate, can registry }
        role Reader { can registry: read }
        agent Hand : Worker { on look(args) { playbook "Look." } }
        agent Boss : Worker {
          uses team Crew
          on start(args) {
            await send peers.event("look").as(Reader).as(Worker).any()(args)
            await Hand.handle("look", args, { as: args.quick ? Reader : Worker })
            return await this.handle("start", args, { as: Worker })
          }
        }
        team Crew { hand: Hand, boss: Boss }
        """,
    )
    sent, chosen, own = audit(project)["Boss"]["narrowed"]
    may = sent["agents"][0]["actions"]

    assert ("look", ["Reader", "Worker"], ["Hand"]) == (sent["event"], sent["as"], [a["agent"] for a in sent["agents"]])
    assert ("registry_get" in may, "registry_set" in may, "shell" in may) == (True, False, False)
    assert ([], ["Worker"], []) == (chosen["as"], own["as"], audit(project)["Hand"]["narrowed"])
    told = project.koi("audit", "a.koi").stdout
    assert "narrowed   Hand.look as Reader and Worker: print, " in told
    assert "Hand.look as a role that the program chooses: print, " in told


def test_costs_are_told(project: Project) -> None:
    """`--cost` tells a bound for each handler and the run, as text and as JSON, and needs no key for that."""
    project.write(
        "cost.koi",
        """
        role R { can advise }
        agent A : R { on go() { playbook "Work." budget { turns: 2, requests: 3 } }  on stop() { return 1 } }
        run A.go()
        """,
    )

    text = project.koi("audit", "--cost", "cost.koi", "-m", "openai/gpt-5.4-mini")
    data = json.loads(project.koi("audit", "--cost", "--json", "cost.koi", "-m", "openai/gpt-5.4-mini").stdout)

    unchosen = project.koi("audit", "--cost", "cost.koi").stdout
    assert "A.go\n  at most 3 requests\n" in unchosen
    assert "not known: a model to be configured\n" in unchosen
    assert "A.go\n  at most $2.49, 3 requests, 1,200,000 tokens\n" in text.stdout
    assert "A.stop\n  nothing: no model is asked\n" in text.stdout
    assert (3, 1_200_000, "") == tuple(data["run"][name] for name in ("requests", "tokens", "unbounded"))
