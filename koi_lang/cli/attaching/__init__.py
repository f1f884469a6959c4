"""A terminal at a run of another process."""
