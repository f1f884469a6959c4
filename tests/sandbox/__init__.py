"""Commands that are confined."""
