"""What a person has configured: keys, preferences, and which models answer."""
