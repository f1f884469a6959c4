"""Agents with `expose a2a`, for agents of other programs."""
