"""How long tests wait for what should have happened long ago."""

from __future__ import annotations

# Only ends a test that hangs: nothing that works takes as long, even where every core has a dozen other things to do.
LIMIT_S = 300.0
