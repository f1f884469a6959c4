"""Commands that send their traces to a collector, to a dead one, or to none."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from koi_lang.otel import provider, tracing
from koi_lang.otel.variables import is_wanted
from tests import forks
from tests.limits import LIMIT_S
from tests.otel.collecting import Collector, listening
from tests.projects import Project

PROGRAM = """
    role Worker { can execute }
    agent Main : Worker {
      on start(args: { topic: string }) { playbook "Write about {{args.topic}}." }
    }
    run Main.start({ topic: "tea" })
    """
ANSWERS = {"Write about": [{"intent": "return", "data": "done"}] * 4}
# Started anew each time: the threads that deliver traces do not survive a fork.
KOI = (sys.executable, *forks.KOI)
RUN = ("run", "main.koi", "--answers", "answers.json")
TREE = {"invoke_workflow main", "invoke_agent Main", "chat scripted", "execute_tool return"}


@pytest.fixture
def written(project: Project) -> Project:
    """A folder with a program and answers for its model."""
    project.write("main.koi", PROGRAM)
    project.write("answers.json", json.dumps(ANSWERS))
    return project


def to(collector: Collector, **more: str) -> Mapping[str, str]:
    """The variables that send traces to a collector."""
    return {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.port}", **more}


def run(project: Project, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the program."""
    return project.run(*KOI, *RUN, **environment)


def test_a_collector_gets_the_trace(written: Project) -> None:
    """It comes as protobuf, whole, before the command ends, in the name of `koi`, and with the headers that are set."""
    with listening() as collector:
        done = run(written, **to(collector, OTEL_EXPORTER_OTLP_HEADERS="x-key=abc"))

    assert (done.returncode, done.stderr) == (0, "")
    assert TREE == {name for name, *_ in collector.spans}
    assert (collector.services, len(collector.traces)) == ({"koi"}, 1)
    assert collector.headers[0]["x-key"] == "abc"
    parents = {id: name for name, _, id, _ in collector.spans}
    assert {name: parents.get(parent, "") for name, _, _, parent in collector.spans} == {
        "invoke_workflow main": "",
        "invoke_agent Main": "invoke_workflow main",
        "chat scripted": "invoke_agent Main",
        "execute_tool return": "invoke_agent Main",
    }


def test_standard_variables_count(written: Project) -> None:
    """The name of the service, attributes, what is captured, and the span of the process that started this one."""
    trace, outer = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    with listening() as collector:
        run(
            written,
            **to(
                collector,
                OTEL_SERVICE_NAME="desk",
                OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT="true",
                TRACEPARENT=f"00-{trace}-{outer}-01",
            ),
        )
    roots = [name for name, _, _, parent in collector.spans if parent.hex() == outer]
    (asked,) = [told for name, told, *_ in collector.spans if name == "chat scripted"]

    assert (collector.services, {each.hex() for each in collector.traces}) == ({"desk"}, {trace})
    assert roots == ["invoke_workflow main"]
    assert "tea" in asked["gen_ai.input.messages"]


@pytest.mark.parametrize(
    "more", [{}, {"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "otlp"}, {"OTEL_TRACES_EXPORTER": "none"}]
)
def test_traces_are_only_made_where_they_are_wanted(monkeypatch: pytest.MonkeyPatch, more: Mapping[str, str]) -> None:
    """Installing the SDK alone sends nothing anywhere, and the standard variables switch it off."""
    if more:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    for name, value in more.items():
        monkeypatch.setenv(name, value)

    assert not is_wanted()


def test_nothing_is_loaded_unasked(project: Project) -> None:
    """Without a variable no module of traces is imported, and with one only by what runs a program."""
    project.write("main.koi", 'role W { can execute }\nagent A : W { on b() { console.log("hi") } }\nrun A.b()')
    script = """
        import sys
        from koi_lang.cli import main
        try:
            main(["run", "main.koi"])
        except SystemExit:
            print(sorted(name for name in sys.modules if name.startswith(("opentelemetry", "koi_lang.otel."))))
        """

    assert project.python(script).stdout.splitlines()[-1] == "['koi_lang.otel.tracing', 'koi_lang.otel.variables']"


@contextmanager
def silent_port() -> Iterator[int]:
    """A port where somebody listens, takes what comes, and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_dead_collector_breaks_nothing(written: Project) -> None:
    """One that hangs or is not there is told of in one line, and the run ends long before an hour is over."""
    with silent_port() as port:
        given = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}", "OTEL_EXPORTER_OTLP_TIMEOUT": "3600"}
        hanging = run(written, **given)
    gone = run(written, **given)

    for done in (hanging, gone):
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr == f"warning: 4 spans could not be delivered to `http://127.0.0.1:{port}`\n"


def told_of(monkeypatch: pytest.MonkeyPatch, **given: str) -> list[str]:
    """What a run of which no trace can be made tells the person once."""
    told: list[str] = []
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert [] == tracing.trace_run("main.koi", str, lambda name, line: told.append(line))
    return told


def test_what_is_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the SDK is not installed one sentence says what to install."""
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(provider, "find_spec", lambda name: None if name.endswith(".sdk") else find_spec(name))
    (line,) = told_of(monkeypatch, OTEL_TRACES_EXPORTER="otlp")

    assert "[otel]" in line


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "zipkin"),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "otlp_proto_grpc"),
    ],
)
def test_an_exporter_that_is_not_there_is_told(
    monkeypatch: pytest.MonkeyPatch, given: Mapping[str, str], name: str
) -> None:
    """The run goes on without traces."""
    (line,) = told_of(monkeypatch, **given)

    assert f"no traces are written: there is no exporter `{name}`" in line


def test_a_session_sends_its_calls(written: Project) -> None:
    """`koi rpc`, as all that lasts, sends a trace a call."""
    lines = [json.dumps({"type": "prompt", "id": number, "message": "tea"}) for number in range(2)]
    with listening() as collector:
        process = subprocess.Popen(
            [*KOI, "rpc", "main.koi", "--answers", "answers.json"],
            cwd=written.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **to(collector)},
        )
        assert process.stdin is not None
        assert process.stdout is not None
        for line in lines:
            process.stdin.write(line + "\n")
            process.stdin.flush()
            next(text for text in process.stdout if '"call_ended"' in text)
        process.communicate(timeout=LIMIT_S)

    assert sorted(name for name, *_ in collector.spans) == sorted([*(TREE - {"invoke_workflow main"})] * 2)
    assert len(collector.traces) == 2
