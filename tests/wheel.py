"""The wheel of this checkout in an environment of its own, made once for all tests that need it."""

from __future__ import annotations

import fcntl
import os
import shutil
import site
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

from tests.limits import LIMIT_S

CHECKOUT = Path(__file__).resolve().parent.parent
EXAMPLE = CHECKOUT / "examples" / "hello-world.koi"


@dataclass(frozen=True, slots=True)
class Installed:
    """An environment that has the wheel and the dependencies; `folder` holds the example and nothing else of ours."""

    wheel: Path
    python: Path
    folder: Path

    def run(self, *arguments: str, said: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the environment's Python in the folder, with something to read on standard input and no keys."""
        environment = {"PATH": os.defpath, "HOME": str(self.folder), **environment}
        return subprocess.run(
            [str(self.python), *arguments],
            input=said, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=LIMIT_S,
        )  # fmt: skip


def installed_once(place: Path) -> Installed:
    """The wheel, built and installed by whoever comes first; all others wait."""
    place.mkdir(exist_ok=True)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "done").exists():
            _install(place)
            (place / "done").touch()
    (wheel,) = place.glob("*.whl")
    return Installed(wheel, place / "environment" / "bin" / "python", place / "elsewhere")


def _install(place: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(place), str(CHECKOUT)],
        check=True, capture_output=True,
    )  # fmt: skip
    (wheel,) = place.glob("*.whl")
    (place / "elsewhere").mkdir()
    shutil.copy(EXAMPLE, place / "elsewhere")
    _make_environment(wheel, place / "environment")


def _make_environment(wheel: Path, place: Path) -> None:
    """An environment with the wheel in it; it borrows the dependencies from the one that runs this.

    Python does not follow `.pth` files in a folder that another `.pth` file names, so that an editable installation of
    the checkout is not borrowed with them.
    """
    venv.create(place, symlinks=True)
    install = ["install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check", str(wheel)]
    python = str(place / "bin" / "python")
    subprocess.run([sys.executable, "-m", "pip", "--python", python, *install], check=True, capture_output=True)
    (own,) = place.glob("lib/python*/site-packages")
    (own / "dependencies.pth").write_text("\n".join(site.getsitepackages()) + "\n")
