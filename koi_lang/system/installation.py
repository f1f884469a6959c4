"""How this Koi was installed, and the commands that install it again: with an extra, or in its newest version."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from koi_lang.lazy import lazy_module
from koi_lang.system.resources import PACKAGE
from koi_lang.version import DISTRIBUTION, __version__

if TYPE_CHECKING:
    import shutil
    from importlib import metadata
else:
    shutil, metadata = lazy_module("shutil"), lazy_module("importlib.metadata")

# The extra that brings a package; the packages of most surfaces are among the dependencies, too.
EXTRAS = {
    "openai": "openai",
    "anthropic": "anthropic",
    "starlette": "serve",
    "uvicorn": "serve",
    "websockets": "serve",
    "prompt_toolkit": "chat",
    "markdown_it": "chat",
    "rich": "chat",
    "pygls": "lsp",
    "lsprotocol": "lsp",
    "IPython": "jupyter",
    "a2a": "a2a",
    "ag_ui": "agui",
    "pydantic": "agui",
    "opentelemetry": "otel",
}
# Files by which programs that make an environment for one application are known.
ISOLATING = {"pipx_metadata.json": "pipx", "uv-receipt.toml": "uv tool"}


@dataclass(frozen=True, slots=True)
class Installation:
    """Where Koi was installed from, and by what.

    Attributes:
        source: a folder, or an address as pip takes it; empty for an index of packages.
        is_editable: whether the folder is used as it stands.
        installer: the command that installs: `pip`, `uv pip`, `uv tool` or `pipx`; of a Python that is not the one on
            PATH, `/path/of/python -m pip`.
    """

    source: str
    is_editable: bool = False
    installer: str = "pip"

    def requirement(self, *extras: str) -> str:
        """What an installer is told: the folder or the address, or the version that an index has."""
        names = f"[{','.join(extras)}]" if extras else ""
        if not self.source:
            return f"{DISTRIBUTION}{names}=={__version__}"
        return f"{DISTRIBUTION}{names} @ {self.source}" if "://" in self.source else f"{self.source}{names}"

    def install_command(self, *extras: str) -> str:
        """The command line that installs this Koi, with extras."""
        return self._command(self.requirement(*extras))

    def update_command(self) -> str:
        """The command line that installs the newest version from where this one came from."""
        if not self.source:
            verb = "upgrade" if self.installer in ISOLATING.values() else "install --upgrade"
            return f"{self.installer} {verb} {DISTRIBUTION}"
        again = self._command(self.requirement(), *([] if self.is_editable else ["--force-reinstall"]))
        is_clone = "://" not in self.source and (Path(self.source) / ".git").exists()
        return f"git -C {shlex.quote(self.source)} pull && {again}" if is_clone else again

    def _command(self, requirement: str, *options: str) -> str:
        if self.installer in ISOLATING.values():
            options = ("--force",)
        words = [*options, *(["--editable"] if self.is_editable else []), requirement]
        return f"{self.installer} install {shlex.join(words)}"


def this_installation() -> Installation:
    """How the Koi that runs was installed; one that is only a folder counts as a clone to be installed."""
    try:
        distribution = metadata.distribution(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return Installation(str(PACKAGE.parent), is_editable=True)
    isolating = (name for file, name in ISOLATING.items() if (Path(sys.prefix) / file).is_file())
    by_uv = (distribution.read_text("INSTALLER") or "").strip() == "uv"
    python = Path(sys.executable)
    is_active = all(shutil.which(name) == str(python.with_name(name)) for name in (python.name, "pip"))
    pip = "pip" if is_active else shlex.join([str(python), "-m", "pip"])
    installer = next(isolating, "uv pip" if by_uv else pip)
    origin = json.loads(distribution.read_text("direct_url.json") or "{}")
    url, is_editable = str(origin.get("url", "")), bool(origin.get("dir_info", {}).get("editable"))
    if "vcs_info" in origin:
        revision = origin["vcs_info"].get("requested_revision")
        return Installation(f"{origin['vcs_info']['vcs']}+{url}{f'@{revision}' if revision else ''}", False, installer)
    source = unquote(urlsplit(url).path) if url.startswith("file:") else url
    return Installation(source, is_editable, installer)


def help_for(module: str) -> str:
    """What to do about a module of an extra that is not installed; empty for any other module."""
    extra = EXTRAS.get(module.partition(".")[0])
    return f"install it: `{this_installation().install_command(extra)}`." if extra else ""
