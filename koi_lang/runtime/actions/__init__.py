"""Built-in actions: one decorated function each."""
