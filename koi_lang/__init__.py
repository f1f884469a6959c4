"""Koi: a small language for programs made of AI agents, compiled to Python modules."""

__version__ = "0.1.0"
