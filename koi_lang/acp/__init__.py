"""Programs as agents of editors, by the Agent Client Protocol."""
