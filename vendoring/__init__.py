"""Modules of others that the web pages stand on, bundled once and kept in the repository."""
