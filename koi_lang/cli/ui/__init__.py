"""The terminal: text, colours, keys, live view and typed input."""
