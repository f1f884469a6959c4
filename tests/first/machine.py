"""Commands of koi on a machine of their own, in this process, so that a server of the test can answer them."""

from __future__ import annotations

import asyncio
import io
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from koi_lang.llm.providers import PROVIDERS
from koi_lang.program import loader
from tests.in_process import exit_code_of
from tests.llm.server import ModelServer
from tests.projects import Project

KEY = "mark-0123456789abcdefghMARK"  # looks like no known kind of key
NOBODY = "127.0.0.1:9"
GREETING = '{"batch":[{"intent":"print","message":"Hello Ada"},{"intent":"return","data":{}}]}'
GREETER = '''
    role Worker { can execute }
    agent Greeter : Worker {
      llm default = { provider: "openai", model: "gpt-4o-mini" }
      on hello(args: Json) { playbook """Greet {{args.name}}.""" }
    }
    run Greeter.hello({ name: "Ada" })
    '''
ANYBODY = GREETER.replace('llm default = { provider: "openai", model: "gpt-4o-mini" }', "")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command left behind."""

    code: int
    out: str
    err: str


class Machine:
    """The folders and the environment of somebody; `folder` is where they are."""

    def __init__(self, project: Project, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.project, self.base, self.patch = project, base, monkeypatch
        self.folder, self.config, self.cache = project.folder, base / "config", base / "cache"
        for name in [name for row in PROVIDERS for name in (*row.keys, f"{row.name.upper()}_BASE_URL")]:
            monkeypatch.delenv(name, raising=False)
        self.set(KOI_CONFIG_DIR=str(self.config), KOI_CACHE_DIR=str(self.cache), OLLAMA_HOST=NOBODY)
        self.set(PYTHON_KEYRING_BACKEND="keyring.backends.fail.Keyring")
        monkeypatch.chdir(self.folder)

    def set(self, **environment: str) -> None:
        """Set variables of the environment."""
        for name, value in environment.items():
            self.patch.setenv(name, value)

    def use(self, server: ModelServer) -> None:
        """Have OpenAI answered by a server."""
        self.set(OPENAI_BASE_URL=f"{server.url}/v1")

    async def koi(self, *words: str, said: str = "") -> Outcome:
        """The outcome of a command, in a thread, while servers of the test go on."""
        return await asyncio.to_thread(self.now, *words, said=said)

    def now(self, *words: str, said: str = "") -> Outcome:
        """The outcome of a command that needs no server."""
        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.setattr(sys, "stdin", io.StringIO(said))
            patch.setattr(sys, "argv", ["koi", *words])
            try:
                code = exit_code_of(*words)
            finally:
                loader.unload()
        return Outcome(code, out.getvalue(), err.getvalue())

    def files(self) -> dict[str, bytes]:
        """Every file that exists now, by its path from the base."""
        found = (path for path in self.base.rglob("*") if path.is_file())
        return {os.path.relpath(path, self.base): path.read_bytes() for path in found}
