"""Redaction of secrets in what is shown and written."""
