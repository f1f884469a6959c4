"""Scripts in Node that use the JavaScript client."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from typing import Any

from koi_lang.web.pages import STATIC
from tests.limits import LIMIT_S

CLIENT = STATIC / "client"
HEAD = """
import { KoiClient, KoiError } from "CLIENT/index.js";
const [url, token] = process.argv.slice(1);
const koi = new KoiClient({ url, token });
const told = (value) => console.log(JSON.stringify(value));
const refused = (work) => work.then(() => null, (error) => [error instanceof KoiError, error.code, error.status]);
"""


class NodeScript:
    """A script in Node that may use `koi`, a client of a service."""

    def __init__(self, url: str, token: str, script: str) -> None:
        text = (HEAD + script).replace("CLIENT", CLIENT.as_uri())
        node = shutil.which("node")
        assert node is not None, "tests of this module are marked"
        self._process = subprocess.Popen(
            [node, "--input-type=module", "-e", text, url, token],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._timer = threading.Timer(LIMIT_S, self._process.kill)
        self._timer.start()

    def read(self) -> Any:
        """The next value that it prints."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, self._process.communicate()[1]
        return json.loads(line)

    def end(self) -> Any:
        """The last value that it prints, once it has ended."""
        out, err = self._process.communicate()
        self._timer.cancel()
        assert self._process.returncode == 0, err
        return json.loads(out.splitlines()[-1])
