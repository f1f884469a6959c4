"""A secret that is not in the journal is never sent as `[redacted]` by a run that goes on."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from koi_lang.errors import JournalError
from koi_lang.redaction.redactor import HIDDEN, redactor
from koi_lang.runtime.journal.entries import JournalEntry
from koi_lang.runtime.journal.history import History, lasting_entries
from tests.journal.again import Recorder, Tape, entry_of_line
from tests.playbook.playing import Player, act, done

TOKEN = "sk-0123456789abcdefghij"
ROLE = "role R { can execute }\n"


class Server(ThreadingHTTPServer):
    """A server that gives a token and keeps what is sent to it."""

    sent: list[str]


class Giving(BaseHTTPRequestHandler):
    """Gives the token at `/token` and takes it anywhere else."""

    server: Server

    def do_POST(self) -> None:
        """Keep the request, and answer."""
        body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
        if self.path != "/token":
            self.server.sent.append(f"{self.headers.get('x-key')} {self.path} {body}")
        answer = json.dumps({"token": TOKEN}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    """A server on this machine."""
    server = Server(("127.0.0.1", 0), Giving)
    server.sent = []
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def written(tape: Tape) -> list[JournalEntry]:
    """The entries of a run as a journal holds them: without secrets."""
    return [entry_of_line(entry, redactor()) for entry in tape.entries]


def cut_behind(entries: list[JournalEntry], name: str) -> list[JournalEntry]:
    """The entries up to the end of the first effect of a name."""
    return entries[: next(entry.n for entry in entries if entry.kind == "done" and entry.data["intent"] == name)]


def code(play: Player, body: str) -> Recorder:
    """The recorder of a program whose `Main.go` has some code."""
    return Recorder(play, f"{ROLE}agent Main : R {{ on go(x: Json) {{ {body} }} }}", services={"redact": redactor()})


LOGIN = """
    const { token } = await (await fetch(x.url + "/token", { method: "METHOD" })).json()
    await fetch(x.url + "/use", { method: "POST", headers: { "x-key": token }, body: "body " + token })
"""


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_token_is_had_again_or_asked_for(play: Player, server: Server, method: str) -> None:
    """What is safe is asked for again; else the run stops, and nothing is sent in place of the token."""
    recorder = code(play, LOGIN.replace("METHOD", method))
    payload = {"url": f"http://127.0.0.1:{server.server_port}"}
    cut = cut_behind(written(recorder.run(payload)), "fetch")
    past = History(lasting_entries(cut), "resume", redactor())
    if method == "POST":
        with pytest.raises(JournalError, match="what it gave held a secret"):
            recorder.over(past, payload)
    else:
        recorder.over(past, payload)

    assert [f"{TOKEN} /use body {TOKEN}"] * (1 if method == "POST" else 2) == server.sent
    assert TOKEN not in str(cut)


def test_a_replay_goes_on_with_what_there_is(play: Player, server: Server) -> None:
    """Nothing is sent, so nothing has to be known."""
    recorder, payload = code(play, LOGIN.replace("METHOD", "POST")), {"url": f"http://127.0.0.1:{server.server_port}"}
    entries = written(recorder.run(payload))
    server.sent.clear()
    again = recorder.over(History(entries, "replay", redactor()), payload)

    assert ("", []) == (again.played.told, server.sent)


ASKING = """
    const key = (await this.callAction("call_llm", { instruction: "Say a key.", data: "now" })).result
    await fetch(x.url + "/use", { method: "POST", headers: { "x-key": key } })
"""


def test_an_answer_with_a_secret_is_asked_for_again(play: Player, server: Server) -> None:
    """The text of a model that code passes on is not passed on without its secret."""
    recorder, payload = code(play, ASKING), {"url": f"http://127.0.0.1:{server.server_port}"}
    recorder = Recorder(recorder.play, recorder.source, [TOKEN], recorder.services)
    entries = written(recorder.run(payload))
    cut = entries[: next(entry.n for entry in entries if entry.kind == "model_answered")]
    recorder.over(History(lasting_entries(cut), "resume", redactor()), payload)

    assert [f"{TOKEN} /use "] * 2 == server.sent


PLAYBOOK = f'{ROLE}agent Main : R {{ on go(x: Json) {{ playbook "Go." }} }}'


def test_an_action_is_not_carried_out_without_its_secret(play: Player) -> None:
    """A model wrote the token into an action that had not begun: that is in doubt, a journal that says so or not."""
    steps = [act("registry_set", key="k", value=1), act("registry_set", key=TOKEN, value=TOKEN)]
    answers = [{"batch": [*steps, done()]}]
    program = PLAYBOOK.replace("can execute", "can registry:write")
    recorder = Recorder(play, program, answers, {"redact": redactor(), "folder": play.folder})
    entries = written(recorder.run())
    cut = cut_behind(entries, "registry_set")
    with pytest.raises(JournalError, match="for a secret that a model or a caller had said"):
        recorder.over(History(lasting_entries(cut), "resume", redactor()))

    assert HIDDEN in str(cut)


def test_a_text_that_only_looks_redacted_is_none(play: Player, server: Server) -> None:
    """A server that says `[redacted]` itself is believed: what the journal says of an entry counts."""
    recorder = code(play, 'const t = await fetch(x.url + "/use", { method: "POST", body: "[redacted]" }); return 1')
    payload = {"url": f"http://127.0.0.1:{server.server_port}"}
    entries = written(recorder.run(payload))
    again = recorder.over(History(lasting_entries(entries[:2]), "resume", redactor()), payload)

    assert (1, ["None /use [redacted]"] * 2) == (again.played.result, server.sent)
