"""A service over HTTP: its API, what is told live, and its pages."""
