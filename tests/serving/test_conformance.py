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
from tests.npm import npm_program
from tests.serving.conftest import Listening, Place, listening

# The last version that runs on Node 20; the scenarios for servers are those of 0.1.16.
SUITE = ("@modelcontextprotocol/conformance", "0.1.13", "conformance")
PROGRAM = Path(__file__).with_name("conformance.koi")
CLIENT = Path(__file__).with_name("conformance_client.py")
# The first test may have to install the suite; a scenario for clients waits up to 30 seconds.
pytestmark = [pytest.mark.needs("node", "npm"), pytest.mark.timeout(600)]
VERDICT = re.compile(r"^([✓✗]) ([\w/-]+): ", re.MULTILINE)

# What Koi does not offer, and why.
STAYS_OUT = {
    "tools-call-sampling": "agents ask models of their own, not that of the client",
    "json-schema-2020-12": "types of handlers have no definitions that could be referred to",
}
# Of the scenarios for signing in, one of each kind; what does not pass of the others:
# `auth/metadata-var2` and `-var3`, whose metadata names another issuer, so that the library refuses it;
# `auth/scope-step-up`, where a person would have to be asked again in the middle of a run;
# `auth/basic-cimd`, for clients that have a page of their own on the web.
SIGN_IN = (
    "metadata-default", "scope-from-www-authenticate", "token-endpoint-auth-basic", "pre-registration",
    "2025-03-26-oauth-metadata-backcompat",
)  # fmt: skip
CORE = ("initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry")
# These pass on warnings only, where a server has no tool that breaks its own stream off.
EMPTY = {"server-sse-polling"}


@pytest.fixture(scope="module")
def served(place: Place) -> Iterator[Listening]:
    """The program of these tests over HTTP, without a token: the suite shows none."""
    yield from listening(place, str(PROGRAM), "--http", "127.0.0.1:0", "--no-token")


def verdicts(*words: str, folder: Path) -> dict[str, bool]:
    """Whether each scenario passes that the suite carries out."""
    command = [str(npm_program(*SUITE)), *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=400, check=False)
    found = {name: mark == "✓" for mark, name in VERDICT.findall(done.stdout)}
    assert found, done.stdout + done.stderr
    return found


def test_a_server(served: Listening, tmp_path: Path) -> None:
    """All scenarios for servers pass but those that are named above."""
    found = verdicts("server", "--url", served.url, "--suite", "all", folder=tmp_path)

    assert 32 == len(found)
    assert sorted(STAYS_OUT) == sorted(name for name, passes in found.items() if not passes)
    assert EMPTY <= found.keys()


@pytest.mark.parametrize("scenario", [*CORE, *(f"auth/{name}" for name in SIGN_IN)])
def test_a_client(scenario: str, tmp_path: Path) -> None:
    """A program that calls the tools of a server does what the suite expects of a client."""
    command = f"{sys.executable} {CLIENT}"
    words = [str(npm_program(*SUITE)), "client", "--command", command, "--scenario", scenario]
    environment = {**os.environ, "KOI_WORDS": json.dumps(forks.koi())}
    done = subprocess.run(
        words, capture_output=True, text=True, cwd=tmp_path, timeout=200, check=False, env=environment
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "OVERALL: PASSED" in done.stdout + done.stderr
