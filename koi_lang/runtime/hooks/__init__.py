"""Hooks of extensions: their types, their runner, and what they add to a run."""
