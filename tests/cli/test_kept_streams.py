"""Streams that are kept while a program runs, and added to a corpus: nothing of them is a secret."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from koi_lang.service.host import SessionHost
from tests.cli.test_models import GREETING, PROGRAM, koi
from tests.llm.server import Answer, ModelServer
from tests.projects import Project
from tests.service.hosting import begin, called, hosted_in

KEY = "sk-test-Zq81xV0bT4mW9rLc7nYp"
OTHER = "hunter-2B7f9Kq4Xw8Zt1"
KEEP = {"KOI_KEEP_STREAMS": "1", "OPENAI_API_KEY": KEY, "SERVICE_PASSWORD": OTHER}


def _run(project: Project, *answers: Answer | str, query: str = "", **environment: str) -> str:
    """What a run tells whose provider answers so."""
    project.write("a.koi", PROGRAM)

    async def run() -> str:
        async with ModelServer(answers) as server:
            _, out, err = await koi(project, "run", "a.koi", OPENAI_BASE_URL=f"{server.url}/v1{query}", **environment)
            return out + err

    return asyncio.run(run())


def _kept(project: Project) -> list[Path]:
    return sorted((project.folder / ".koi" / "runs").glob("*.streams/*"))


def _content(folder: Path) -> str:
    """All names and texts below a folder."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return "\n".join(f"{path}\n{path.read_bytes().decode('utf-8', 'replace')}" for path in files)


def test_a_run_becomes_a_corpus(project: Project) -> None:
    """What the provider sent is kept, added with what is read of it, and read alike by the check."""
    told = _run(project, GREETING, **KEEP)
    added = project.fork("-m", "benchmarks.corpus", "add", "last")
    checked = project.fork("-m", "benchmarks.corpus", "check")

    assert "Hello Ada\n" == told
    assert "1 stream added to corpus; look at what they say before you hand them on\n" == added.stdout
    assert (0, "1 stream read as expected\n") == (checked.returncode, checked.stdout)
    (entry,) = (project.folder / "corpus").iterdir()
    about = json.loads((entry / "about.json").read_text())
    expected = json.loads((entry / "expected.json").read_text())
    assert ("openai", "chat", "gpt-4o-mini", "recorded") == tuple(
        about[name] for name in ("provider", "wire", "model", "source")
    )
    assert GREETING == expected["text"]
    assert "Greet" in (entry / "request.json").read_text()
    assert (entry / "stream.txt").read_bytes().startswith(b"data: {")


def test_nothing_is_kept_unasked(project: Project) -> None:
    """Without the variable there are no streams, and adding them says how to keep them."""
    _run(project, GREETING, **{**KEEP, "KOI_KEEP_STREAMS": ""})
    done = project.fork("-m", "benchmarks.corpus", "add", "last")

    assert [] == _kept(project)
    assert done.returncode == 1
    assert "no stream of the run" in done.stderr
    assert "KOI_KEEP_STREAMS=1" in done.stderr


@pytest.mark.parametrize(("words", "kept"), [(("--no-record",), 0), ((), 1)], ids=["alone", "recorded"])
def test_a_conversation_without_a_journal_leaves_no_stream(
    project: Project, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], kept: int
) -> None:
    """Streams are kept beside a journal only, also where a run tells its surface all that happens."""
    project.write("a.koi", PROGRAM)

    async def talk() -> None:
        async with ModelServer([GREETING]) as server:
            for name, value in {**KEEP, "OPENAI_BASE_URL": f"{server.url}/v1"}.items():
                monkeypatch.setenv(name, value)
            await asyncio.to_thread(project.koi, "chat", *words, "a.koi", stdin="hi\n")
            await asyncio.to_thread(project.koi, "run", *words, "a.koi")

    asyncio.run(talk())

    assert 2 * kept == len(_kept(project))


ECHO = f'{{"batch":[{{"intent":"print","message":"{KEY} {OTHER}"}},{{"intent":"return","data":{{}}}}]}}'
PLANTED = {
    "header": Answer((GREETING,), headers={"x-api-key": KEY, "set-cookie": f"session={OTHER}"}),
    "body": Answer((ECHO,)),
    "comment": Answer((GREETING,), raw=f": authorization: Bearer {KEY}\n\n: {OTHER}\n\n"),
    "content type": Answer((GREETING,), kind=f"text/event-stream; key={KEY}"),
    "error": Answer(status=401, error={"error": {"message": f"wrong key {KEY}", "password": OTHER}}),
    "page": Answer(status=500, page=f"<html>{KEY} {OTHER}</html>", headers={"retry-after": "0"}),
    "tool": Answer(calls=(("print", (f'{{"message":"{KEY}', f' {OTHER}"}}')),)),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("place", PLANTED)
def test_a_secret_does_not_land_in_a_corpus(project: Project, place: str) -> None:
    """Neither a key nor another secret of the environment stands in what is kept, wherever the provider sends it."""
    _run(project, PLANTED[place], query=f"?key={KEY}&pass={OTHER}" if place == "header" else "", **KEEP)
    project.fork("-m", "benchmarks.corpus", "add", "last")
    content = _content(project.folder / "corpus") + "".join(map(_content, _kept(project)))

    assert "about.json" in content
    assert KEY not in content
    assert OTHER not in content


@pytest.mark.parametrize("secret", [KEY, OTHER])
def test_a_secret_that_is_spread_over_events_is_not_kept(project: Project, secret: str) -> None:
    """A model may say a secret in pieces, none of which is one; then the stream is left out, and the run goes on."""
    start, end = ECHO.split(KEY)[0] + secret[:9], secret[9:] + '"},{"intent":"return","data":{}}]}'
    told = _run(project, Answer((start, end)), **KEEP)

    assert "a stream is not kept: a secret is spread over several of its lines" in told
    assert [] == _kept(project)


def test_a_stream_that_somebody_has_put_a_secret_into_is_left_out(project: Project) -> None:
    """What is kept is looked at once more when it is added."""
    _run(project, GREETING, **KEEP)
    stream = _kept(project)[0] / "stream.txt"
    stream.write_text(stream.read_text().replace("Hello", KEY[:9]).replace("Ada", f"Ada {KEY}"))
    project.write(".env", f"OPENAI_API_KEY={KEY}\n")
    project.fork("-m", "benchmarks.corpus", "add", "last")

    assert "[redacted]" in _content(project.folder / "corpus")
    assert KEY not in _content(project.folder / "corpus")


HOSTILE = "../../../../tmp/x\x1b]0;y\x07\x00"


def test_hostile_names_stay_inside(project: Project) -> None:
    """Ids and types of a provider become no paths, and control characters no part of what is told."""
    raw = json.dumps({"id": HOSTILE, "choices": [{"index": 0, "delta": {"content": HOSTILE}}], "model": HOSTILE})
    before = set(project.folder.parent.iterdir())
    told = _run(project, Answer((), raw=f"event: ping\nid: {HOSTILE!r}\n\ndata: {raw}\n\n"), **KEEP)
    added = project.fork("-m", "benchmarks.corpus", "add", "last")
    project.fork("-m", "benchmarks.corpus", "check")

    assert before == set(project.folder.parent.iterdir())
    assert {"a.koi", ".koi", "corpus"} >= {path.name for path in project.folder.iterdir()}
    assert "\x1b" not in told + added.stdout + added.stderr


def test_a_stream_that_is_too_long_is_not_kept(project: Project) -> None:
    """Of 9 MB nothing is written, and the run has its answer."""
    thoughts = ("x" * 100_000,) * 90  # before the answer: what comes behind it need not be read
    told = _run(project, Answer((GREETING,), thoughts=thoughts, thoughts_in="reasoning_content"), **KEEP)

    assert "Hello Ada\n" in told
    assert "a stream is not kept: it is larger than 8 MiB" in told
    assert [] == _kept(project)


def test_deleting_a_run_removes_its_streams(project: Project) -> None:
    """They last as long as the journal."""
    _run(project, GREETING, **KEEP)
    assert 1 == len(_kept(project))
    run = _kept(project)[0].parent.stem
    project.koi("runs", "delete", run, "--yes")

    assert [] == _kept(project)


def test_a_stream_is_added_once(project: Project) -> None:
    """What is in the corpus may have been changed by a person, and stays as it is."""
    _run(project, GREETING, **KEEP)
    project.fork("-m", "benchmarks.corpus", "add", "last")
    again = project.fork("-m", "benchmarks.corpus", "add", "last")

    assert "0 streams added" in again.stdout
    assert "left out: it is there already" in again.stderr


def test_streams_of_a_session_lie_beside_its_journal(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever folder its files are in: there they would be for its user to read, and not be found by the corpus."""
    project.write("a.koi", PROGRAM)

    async def main() -> None:
        async with ModelServer([GREETING]) as server:
            for name, value in {**KEEP, "OPENAI_BASE_URL": f"{server.url}/v1"}.items():
                monkeypatch.setenv(name, value)
            await hosted_in(project.folder, greet, "a.koi")

    async def greet(host: SessionHost) -> None:
        await called(await begin(host), "Greeter.hello", name="Ada")

    asyncio.run(main())

    assert 1 == len(_kept(project))
