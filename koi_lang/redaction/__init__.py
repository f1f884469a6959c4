"""Redaction of secrets in shown and written texts."""
