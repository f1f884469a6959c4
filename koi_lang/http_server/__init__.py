"""Servers over HTTP: listening, access, and shutdown."""
