"""Runs of a service at a terminal."""
