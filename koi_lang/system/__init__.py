"""Differences of systems: file locks, process groups, waiting for input."""
