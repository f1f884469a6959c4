"""A terminal at a run of another process: one of this machine, or one of a service."""
