"""The environment of values in a run: what they see of the world is recorded, and comes again in a run that goes on."""

from __future__ import annotations

from koi_lang.js.environment import OutputPort
from koi_lang.runtime.replay.recorder import Effects


class RunEnvironment:
    """What values of one run may ask of the world.

    Args:
        output: the host of the run.
        effects: its way to the outside.
    """

    def __init__(self, output: OutputPort, effects: Effects) -> None:
        self.print, self.log = output.print, output.log
        self.observe, self.random_bytes = effects.observe, effects.random_bytes
