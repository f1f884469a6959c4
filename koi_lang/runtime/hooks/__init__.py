"""Hooks of extensions: their types, their runner, and their additions to a run."""
