"""The JavaScript client in Node, against a service as a process."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.client.node_script import CLIENT, NodeScript
from tests.limits import LIMIT_S
from tests.npm import npm_program
from tests.service.conftest import desk_in
from tests.service.serving_process import ROOT, ServiceProcess

pytestmark = pytest.mark.needs("node")

PROGRAM = """
role Worker { can think, can execute }
agent Adder : Worker {
  on add(args: { a: number, b: number }) { return args.a + args.b }
  on fail(args: Json) { throw new Error("no tea") }
  on say(args: { message: string }) { return `heard ${args.message}` }
  on nap(args: Json) { await new Promise((done) => setTimeout(done, 60000)) }
  on count(args: { to: number }) {
    for (let n = 0; n < args.to; n++) { console.log(n); await new Promise((done) => setTimeout(done, 30)) }
    return args.to
  }
}
"""


@pytest.fixture(scope="module")
def adder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service of code and of the desk, for tests that end nothing."""
    folder = tmp_path_factory.mktemp("client")
    (folder / "adder.koi").write_text(PROGRAM)
    service = ServiceProcess(folder, ("adder.koi", *desk_in(folder)))
    service.start()
    yield service
    service.end()


def test_a_question_is_answered(adder: ServiceProcess) -> None:
    """A run is started and followed, its question is answered, and the loop ends with its call."""
    script = """
    const run = await koi.runs.start({ program: "desk", handler: "Editor.start", payload: { topic: "tea" } });
    const printed = [];
    for await (const message of run.events()) {
      if (message.event?.type === "printed") printed.push(message.event.message);
      if (message.type === "question") await run.answer({ request: message.id, answer: message.options[0] });
    }
    told([printed, run.ended.ok, (await run.result()).published, (await run.get()).ok]);
    """
    printed, *ended = NodeScript(adder.url, adder.token, script).end()

    assert [True, True, True] == ended
    assert "Tea reached Europe" in printed[0]


def test_a_session_goes_on(adder: ServiceProcess) -> None:
    """Further calls and messages have their results; one that waits has it at once; files come and go."""
    script = """
    const run = await koi.runs.start({ program: "adder", handler: "Adder.add", payload: { a: 1, b: 2 } }, { wait: 30 });
    const results = [run.details.result, await run.result()];
    await run.callHandler({ handler: "Adder.add", payload: { a: 5, b: 5 } });
    results.push(await run.result());
    const types = [];
    await run.sendMessage({ message: "hi", handler: "Adder.say" });
    for await (const { event } of run.events()) if (event) types.push(event.type);
    results.push(await run.result(), await koi.run(run.id).result());
    await run.callHandler({ handler: "Adder.add", payload: { a: 3, b: 4 } }, { wait: 30 });
    const calls = [];
    for (const _ of "twice") {
      for await (const { event } of run.events()) if (event?.type === "call_ended") calls.push(event.result);
    }
    await run.putFile("notes/a b.txt", "tea");
    const text = await (await run.getFile("notes/a b.txt")).text();
    await run.deleteFile("notes/a b.txt");
    const [latest] = (await koi.runs.list({ limit: 1 })).runs;
    told([results, types, calls, text, (await run.listFiles()).files, latest.id === run.id]);
    """
    results, types, *files = NodeScript(adder.url, adder.token, script).end()

    assert [3, 3, 10, "heard hi", "heard hi"] == results
    assert ["call_started", "handler_started", "handler_ended", "call_ended"] == types
    assert [[7], "tea", [], True] == files


def test_errors_have_a_code(adder: ServiceProcess) -> None:
    """What is refused, what has failed and what is not reached throw one class, which says why in a word."""
    script = """
    const start = (handler, payload) => koi.runs.start({ program: "adder", handler, payload });
    const run = await start("Adder.nap", {});
    await run.cancel();
    const failed = await (await start("Adder.fail", {})).result().catch((error) => [error.code, error.message]);
    told([
      await refused(start("Adder.none", {})),
      await refused(new KoiClient({ url, token: "other" }).status()),
      await refused(new KoiClient({ url: "http://127.0.0.1:9" }).health()),
      await refused((async () => new KoiClient({ url: "desk" }))()),
      await refused(koi.run("none").get()),
      await refused(koi.run("none").events().next()),
      await refused((async () => run.putFile("../a", ""))()),
      await refused(run.result()),
      failed,
    ]);
    """
    assert [
        [True, "unknown_handler", 404],
        [True, "no_token", 401],
        [True, "unreachable", 0],
        [True, "invalid_request", 0],
        [True, "unknown_run", 404],
        [True, "unknown_run", 404],
        [True, "invalid_request", 0],
        [True, "cancelled", 0],
        ["failed", "no tea"],
    ] == NodeScript(adder.url, adder.token, script).end()


def test_a_killed_service_is_waited_for(start_service: Callable[..., ServiceProcess]) -> None:
    """A run is followed over a kill of the service: each entry comes once; a request with a key begins one run."""
    service = start_service(adder=PROGRAM)
    script = """
    const run = await koi.runs.start({ handler: "Adder.count", payload: { to: 40 } });
    const states = [], numbers = [], printed = [];
    for await (const { n, event } of run.events({ onState: (state) => states.push(state) })) {
      if (n) numbers.push(n);
      if (event?.type === "printed" && printed.push(event.message) === 5) told("kill");
    }
    const again = koi.runs.start({ handler: "Adder.add", payload: { a: 1, b: 1 } });
    told([states, numbers, printed, await run.result(), await (await again).result()]);
    """
    node = NodeScript(service.url, service.token, script)
    assert "kill" == node.read()
    service.end(9)
    service.start()
    states, numbers, printed, *results = node.end()

    assert ["open", "lost", "open"] == states[:2] + states[-1:]
    assert sorted(set(numbers)) == numbers
    assert [str(n) for n in range(40)] == printed
    assert [40, 2] == results


def test_a_request_is_sent_again_with_its_key(start_service: Callable[..., ServiceProcess]) -> None:
    """What begins a run is sent again while the service is away, and begins one run."""
    service = start_service(adder=PROGRAM)
    script = """
    await koi.health();
    told("kill");
    let run;
    const body = { handler: "Adder.add", payload: { a: 1, b: 1 } };
    while (!run?.details.ok) run = await koi.runs.start(body, { idempotencyKey: "k", wait: 5 });
    told(run.details.result);
    """
    node = NodeScript(service.url, service.token, script)
    assert "kill" == node.read()
    service.end(9)
    service.start()

    assert 2 == node.end()
    assert 1 == len(service.get("api/runs")["runs"])


@pytest.mark.needs("npm")
def test_types_fit_the_client(tmp_path: Path) -> None:
    """TypeScript takes a program that uses the client, and refuses one with a field that there is not."""
    tsc = npm_program("typescript", "7.0.2", "tsc")
    program = """
    import { KoiClient, KoiError, type Message } from "./client/index.js";
    const koi = new KoiClient({ url: "a", token: "b" });
    const run = await koi.runs.start({ handler: "Main.chat", payload: { a: 1 } }, { wait: 30 });
    const show = (message: Message): string =>
      message.type === "event" && message.event.type === "printed" ? message.event.message : "";
    for await (const message of run.events()) {
      show(message);
      if (message.type === "question") await run.answer({ request: message.id, answer: message.options[0] ?? "" });
      if (message.type === "approval_request") await run.approve({ request: message.id, decision: "yes" });
    }
    const words: number = await run.result<number>();
    const usd: number | null = (await koi.run(run.id).getCost()).usd;
    const error = new KoiError("a");
    const other = await run.branch({ at: 1 });
    for (const each of (await koi.runs.list({ state: "failed" })).runs) each.title.trim();
    console.log(words, usd, error.code, other.id);
    """
    (tmp_path / "client").symlink_to(CLIENT)
    (tmp_path / "right.mts").write_text(program)
    (tmp_path / "wrong.mts").write_text(program.replace('decision: "yes"', 'decision: "maybe"'))
    command = [tsc, "--strict", "--noEmit", "--target", "es2022"]
    command += ["--module", "nodenext", "--lib", "es2022,dom,dom.asynciterable"]
    right, wrong = (
        subprocess.run([*command, f"{name}.mts"], cwd=tmp_path, capture_output=True, text=True, check=False)
        for name in ("right", "wrong")
    )

    assert "" == right.stdout
    assert "maybe" in wrong.stdout


@pytest.mark.needs("npm")
def test_the_example_of_the_manual_works(service: ServiceProcess, tmp_path: Path) -> None:
    """The folder is installed with npm, and the program of the manual runs as it stands there."""
    (example,) = re.findall(r"```js\n(.*?)```", (ROOT / "docs" / "client.md").read_text("utf-8"), re.DOTALL)
    (tmp_path / "package.json").write_text("{}")
    subprocess.run(["npm", "install", "--silent", "--offline", CLIENT], cwd=tmp_path, check=True, timeout=LIMIT_S)
    (tmp_path / "example.mjs").write_text(example.replace("http://127.0.0.1:8000", service.url))
    done = subprocess.run(
        ["node", "example.mjs"],
        cwd=tmp_path, env={**os.environ, "KOI_SERVE_TOKEN": service.token}, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert "" == done.stderr
    assert done.stdout.startswith("Tea reached Europe on Dutch ships")
    assert "published: true" in done.stdout
