"""A service over HTTP: its API, its live messages, and its pages."""
