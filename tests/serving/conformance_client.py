"""A program in Koi as the client that the conformance suite starts: with the address of a server as the last word."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import tempfile
import urllib.request
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

# A browser that follows where pages lead.
BROWSER = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=300).read()"
# Where the suite expects a client to be described.
DESCRIPTION = "https://conformance-test.local/client-metadata.json"
# What starts a `koi` command; whoever starts this may know a faster way.
KOI = json.loads(os.environ.get("KOI_WORDS", "null")) or [sys.executable, "-m", "koi_lang"]
ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
role Caller {{ can call_mcp }}
mcp server = {{ type: "http", url: {url} }}
agent Main : Caller {{
  uses mcp server
  on go() {{
    // Whatever the scenario is, the server is asked for its tools.
    try {{ await server.no_such_tool() }} catch (e) {{ console.log(e.message) }}
    {call}
  }}
}}
run Main.go()
"""
# A program whose call needs more than what was agreed to at first.
AGREEING = """
role Caller { can call_mcp }
agent Main : Caller {
  uses mcp server
  on go() { console.log(await server["test-tool"]()) }
}
run Main.go()
"""
QUESTION = b"sign in to the MCP server"
IDENTITY = {"token": "id_token", "url": "token_endpoint", "client_id": "client_id"}
CALLS = {
    "tools_call": "console.log(await server.add_numbers({ a: 5, b: 3 }))",
    "elicitation-sep1034-client-defaults": "console.log(await server.test_client_elicitation_defaults())",
    "sse-retry": "console.log(await server.test_reconnection())",
    "http-invalid-tool-headers": "console.log(await server.valid_tool({ region: 'here' }))",
    "sep-2322-client-request-state": """
    const both = await Promise.all([server.test_mrtr_echo_state(), server.test_mrtr_unrelated()])
    console.log(both, await server.test_mrtr_no_state(), await server.test_mrtr_no_result_type())
    """,
}


def calls_of(scenario: str) -> str:
    """The calls that a scenario is about: those that the suite names, or what is known of it."""
    named = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}")).get("toolCalls", [])
    calls = [f"console.log(await server.{each['name']}({json.dumps(each['arguments'])}))" for each in named]
    return "\n    ".join([*calls, CALLS.get(scenario, "")])


def main() -> int:
    """Run the program for the scenario of the environment; whoever is asked presses Enter.

    Where it is about signing in, that is done first, with a browser that agrees.
    """
    scenario, url = os.environ.get("MCP_CONFORMANCE_SCENARIO", ""), sys.argv[-1]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "client.koi"
        path.write_text(PROGRAM.format(url=json.dumps(url), call=calls_of(scenario)), "utf-8")
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "KOI_CACHE_DIR": folder}
        if scenario.startswith("auth/"):
            return sign_in(folder, url, environment)
        words = [*KOI, "run", str(path), "--quiet"]
        return subprocess.run(words, input="\n" * 20, text=True, cwd=folder, env=environment, check=False).returncode


def issuer_of(url: str) -> str:
    """The issuer that a server names for itself."""
    parts = urlsplit(url)
    address = urlunsplit((parts.scheme, parts.netloc, f"/.well-known/oauth-protected-resource{parts.path}", "", ""))
    with urllib.request.urlopen(address, timeout=60) as answer:
        return str(json.load(answer)["authorization_servers"][0])


def sign_in(folder: str, url: str, environment: dict[str, str]) -> int:
    """Sign in to a server, and list its tools; a client that was registered by hand is given by the suite."""
    context = json.loads(environment.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    client = {name: context[name] for name in ("client_id", "client_secret") if name in context}
    scenario = environment.get("MCP_CONFORMANCE_SCENARIO")
    if scenario == "auth/basic-cimd":
        client = {"client_id": DESCRIPTION}
    if scenario == "auth/client-credentials-jwt":
        client |= {"private_key": context["private_key_pem"], "algorithm": context["signing_algorithm"]}
    if scenario == "auth/wif-jwt-bearer":
        client |= {"grant": "jwt_bearer", "assertion": context["valid_jwt"], "issuer": issuer_of(url)}
    if scenario == "auth/enterprise-managed-authorization":
        identity = {name: context[f"idp_{each}"] for name, each in IDENTITY.items()}
        client |= {"grant": "jwt_bearer", "identity": identity, "issuer": issuer_of(url)}
    if str(scenario).startswith("auth/client-credentials"):
        client |= {"grant": "client_credentials", "issuer": issuer_of(url)}
    described = {"type": "http", "url": url, **({"oauth": client} if client else {})}
    Path(folder, ".mcp.json").write_text(json.dumps({"mcpServers": {"server": described}}), "utf-8")
    browser = Path(folder, "browser.py")
    browser.write_text(BROWSER, "utf-8")
    own = {"KOI_CONFIG_DIR": folder, "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}
    all = {**environment, **own, "BROWSER": f"{sys.executable} {browser} %s"}
    words = [*KOI, "connect", "server"]
    status = subprocess.run(words, cwd=folder, env=all, check=False).returncode
    if scenario != "auth/scope-step-up":
        return status
    Path(folder, "client.koi").write_text(AGREEING, "utf-8")
    # A process of its own, so that the terminal is that of the command.
    return agree([sys.executable, "-m", "koi_lang", "run", "client.koi"], folder, all)


def agree(words: list[str], folder: str, environment: dict[str, str]) -> int:
    """The exit code of a command in a terminal, where somebody answers each question with yes."""
    mine, terminal = pty.openpty()
    with subprocess.Popen(words, stdin=terminal, stdout=terminal, stderr=terminal, cwd=folder, env=environment) as koi:
        os.close(terminal)
        shown = b""
        with suppress(OSError):  # what Linux raises where nobody has the terminal open any more
            while told := os.read(mine, 4096):
                shown += told
                if QUESTION in shown:
                    shown = b""
                    os.write(mine, b"y\r")
    os.close(mine)
    return koi.returncode


if __name__ == "__main__":
    sys.exit(main())
