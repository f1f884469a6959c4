"""Requests of a run to its models, and the streams of their answers."""
