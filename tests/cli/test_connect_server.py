"""`koi connect` for MCP servers: somebody signs in with a browser, and nothing secret is shown or written."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import forks
from tests.limits import LIMIT_S
from tests.mcp.test_sign_in import Gate, guarded
from tests.projects import Project

# A browser that follows where pages lead.
BROWSER = f"import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout={LIMIT_S}).read()"
PROGRAM = """
role Caller { can call_mcp }
mcp far = { type: "http", url: %s }
agent Main : Caller { uses mcp far  on go() { console.log(await far.echo({ text: "a" })) } }
run Main.go()
"""


@pytest.fixture
def gate(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """A server that wants a person to sign in; keys are kept in a file of the test."""
    browser = project.write("browser.py", BROWSER)
    monkeypatch.setenv("BROWSER", f"{sys.executable} {browser} %s")
    monkeypatch.setenv("KOI_CONFIG_DIR", str(project.folder / "config"))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    with guarded(project.folder) as found:
        project.write("main.koi", PROGRAM % json.dumps(found.url))
        yield found


def tokens(project: Project) -> list[str]:
    """The tokens that are kept."""
    (entry,) = json.loads((project.folder / "config" / "keys.json").read_text("utf-8")).values()
    found = json.loads(entry["key"])["tokens"]
    return [found["access_token"], found["refresh_token"]]


def test_signing_in_and_out(project: Project, gate: Gate) -> None:
    """The command signs in with a browser, a run then needs nobody, and `koi disconnect` forgets the tokens."""
    before = project.koi("run", "main.koi", "--quiet")
    connected = project.koi("connect", gate.url)
    after = project.koi("run", "main.koi", "--quiet", "--record")
    forgotten = project.koi("disconnect", gate.url)

    assert f"Sign in with `koi connect {gate.url}`" in before.stderr
    assert "127.0.0.1 is connected and offers 1 tool; its tokens are in `" in connected.stdout, connected.stderr
    assert ("{ result: 'a' }\n", 0) == (after.stdout, after.returncode)
    assert "the tokens were removed from the file" in forgotten.stdout
    assert "wants you to sign in" in project.koi("run", "main.koi", "--quiet").stderr


def test_nothing_secret_is_told(project: Project, gate: Gate) -> None:
    """Tokens stand in the file of keys and nowhere else: not in output, messages with `--debug`, or journals."""
    told = [project.koi("connect", gate.url), project.koi("run", "main.koi", "--debug", "--verbose", "--record")]
    (journal,) = (project.folder / ".koi" / "runs").glob("*.jsonl")
    texts = [text for done in told for text in (done.stdout, done.stderr)] + [journal.read_text("utf-8")]

    assert [] == [token for token in tokens(project) for text in texts if token in text]
    assert ["registered", "asked"] == gate.noted


def test_a_server_by_its_name(project: Project, gate: Gate) -> None:
    """A server that `.mcp.json` describes is signed in to by its name."""
    project.write(".mcp.json", json.dumps({"mcpServers": {"far": {"type": "http", "url": gate.url}}}))

    assert "far is connected and offers 1 tool" in project.koi("connect", "far").stdout


def test_a_server_that_is_a_process(project: Project) -> None:
    """A server that is started here has nothing to sign in to."""
    project.write(".mcp.json", json.dumps({"mcpServers": {"near": {"command": "near"}}}))

    assert "`near` is no MCP server that is reached over HTTP" in project.koi("connect", "near").stderr


def test_a_browser_elsewhere(project: Project, gate: Gate, tmp_path: Path) -> None:
    """With `--no-browser` the page is shown, and the address that a browser came to at last is read."""
    words = forks.koi("connect", gate.url, "--no-browser")
    pipe = subprocess.PIPE
    with subprocess.Popen(
        words, cwd=project.folder, env=project.environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True
    ) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        page = line.rpartition(" ")[2].strip()
        out, _ = process.communicate(f"{ended_at(page)}\n", timeout=LIMIT_S)

    assert "is connected and offers 1 tool" in out


def ended_at(page: str) -> str:
    """Where a browser on another machine ends, which cannot reach this one."""

    class Stop(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: object) -> None:
            return None

    with pytest.raises(urllib.error.HTTPError) as stopped:
        urllib.request.build_opener(Stop).open(page, timeout=LIMIT_S)
    stopped.value.close()
    return str(stopped.value.headers["Location"])


def test_no_browser_at_all(project: Project, gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no browser, the message says what to do."""
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    done = project.koi("connect", gate.url)

    assert f"Sign in with `koi connect {gate.url} --no-browser`" in done.stderr
    assert 68 == done.returncode
