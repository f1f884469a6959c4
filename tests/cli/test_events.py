"""What a run tells about itself: the order of events, JSON lines, and secrets that stay hidden."""

from __future__ import annotations

import json

import pytest

from koi_lang.redaction.redactor import HIDDEN, redactor
from tests.projects import Project

PROGRAM = '''
    role Boss { can delegate, can execute }
    role Hand { can execute }
    team T { worker: Worker }
    agent Worker : Hand { on double(args: { n: number }) { return { value: args.n * 2 } } }
    agent Lead : Boss {
      uses team T
      on start(args: Json) { playbook """Double {{args.n}} and print it. The password is SECRET.""" }
    }
    run Lead.start({ n: 21 })
    '''
ANSWERS = [
    {
        "batch": [
            {"id": "d", "actionType": "delegate", "intent": "worker::double", "data": {"n": 21}},
            {"intent": "print", "message": "${d.output.value}"},
        ]
    },
    {"intent": "return", "data": {"state_updates": {"total": 42}}},
]
# Every event of the run above, in order.
ORDER = """
    run_started
    handler_started Lead
    model_asked Lead
    model_wrote Lead
    model_wrote Lead
    model_answered Lead
    action_started Lead
    handler_started Worker
    handler_ended Worker
    action_ended Lead
    action_started Lead
    printed
    action_ended Lead
    model_asked Lead
    model_wrote Lead
    model_answered Lead
    action_started Lead
    state_changed Lead
    action_ended Lead
    handler_ended Lead
    run_ended
    """.split("\n")


@pytest.fixture
def written(project: Project) -> Project:
    """A project with the program and the answers of its model."""
    project.write("a.koi", PROGRAM)
    project.write("answers.json", json.dumps(ANSWERS))
    return project


def test_events_come_in_this_order(written: Project) -> None:
    """`koi run --json` writes one event a line; the order of a run with a delegate is fixed."""
    done = written.koi("run", "--json", "--answers", "answers.json", "a.koi")
    events = [json.loads(line) for line in done.stdout.splitlines()]

    assert [line.strip() for line in ORDER if line.strip()] == [f"{e['type']} {e['agent']}".strip() for e in events]
    assert list(range(1, len(events) + 1)) == [event["seq"] for event in events]
    assert {1} == {event["v"] for event in events}


def test_json_replaces_the_output(written: Project) -> None:
    """What the program prints is an event; standard output holds nothing but JSON lines."""
    done = written.koi("run", "--json", "--answers", "answers.json", "a.koi")

    printed = [event["message"] for event in map(json.loads, done.stdout.splitlines()) if event["type"] == "printed"]

    assert (["42"], "") == (printed, done.stderr)


def test_verbose_shows_events_beside_the_output(written: Project) -> None:
    """Events go to stderr, the output stays on stdout."""
    done = written.koi("run", "--verbose", "--answers", "answers.json", "a.koi")

    assert "42\n" == done.stdout
    assert "action_started Lead" in done.stderr
    assert "Double ⟨" not in done.stderr


def test_verbose_says_where_the_texts_are(written: Project) -> None:
    """The texts of models are left out; the command in the last line shows them."""
    told = written.koi("run", "--verbose", "--answers", "answers.json", "a.koi").stderr.splitlines()[-1]
    command = told.split("`")[1]
    unrecorded = written.koi("run", "--verbose", "--no-record", "--answers", "answers.json", "a.koi")

    assert command.startswith("koi runs show ")
    assert "Double ⟨" in written.koi(*command.split()[1:]).stdout
    assert "koi runs show" not in unrecorded.stderr


def test_debug_shows_prompts_without_secrets(written: Project) -> None:
    """`--debug` shows all that a model is told; values of secret variables are replaced."""
    words = ("-m", "koi_lang", "run", "--debug", "--answers", "answers.json", "a.koi")
    text = (written.folder / "a.koi").read_text().replace("SECRET", "hunter2-hunter2")
    (written.folder / "a.koi").write_text(text)

    done = written.fork(*words, SOME_PASSWORD="hunter2-hunter2")

    assert f"Double ⟨args.n⟩ and print it. The password is {HIDDEN}." in done.stderr
    assert "hunter2" not in done.stderr


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("key sk-abcdefghijklmnop1234 end", f"key {HIDDEN} end"),
        ("Authorization: Bearer abc.def.ghi-123", f"Authorization: Bearer {HIDDEN}"),
        ("https://ada:pass@example.org/x", f"https://{HIDDEN}@example.org/x"),
        ("ghp_0123456789abcdefghijABCDEF", HIDDEN),
        ("github_pat_0123456789abcdefghijABCDEF", HIDDEN),
        ("(glpat-0123456789abcdefghij)", f"({HIDDEN})"),
        ("xoxb-0123456789-abcdefghij", HIDDEN),
        ("sk_live_0123456789abcdefghij hf_0123456789abcdefghij", f"{HIDDEN} {HIDDEN}"),
        ("my own value: topsecretvalue", f"my own value: {HIDDEN}"),
        ("a task-list and sk-1", "a task-list and sk-1"),
        ("short: abc", "short: abc"),
    ],
)
def test_secrets_are_replaced(text: str, expected: str) -> None:
    """Known values and the usual shapes of tokens vanish; ordinary words stay."""
    redact = redactor({"MY_TOKEN": "topsecretvalue", "OTHER_KEY": "abc", "HOME": "ordinary words"})

    assert expected == redact(text)
