"""The person's configuration: keys, preferences, and models."""
