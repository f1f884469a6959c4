"""SDKs that are imported in a thread, while others import parts of them, too."""

from __future__ import annotations

import subprocess
import sys

import pytest

from koi_lang.llm.sdk_imports import CONNECTIONS, SDKS

FIRST = "import sys, {sdk}; print(*[name for name in {names!r} if name.partition('.')[0] not in sys.modules])"


@pytest.mark.parametrize("sdk", sorted(set(SDKS.values())))
def test_no_import_begins_within_a_package(sdk: str) -> None:
    """Of two threads one would wait with a part of a package, the other with the package, and one get it half done."""
    script = FIRST.format(sdk=sdk, names=CONNECTIONS)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert [] == [name for name in done.stdout.split() if "." in name]
