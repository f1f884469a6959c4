"""The printer of generated modules: layout, line breaks and the source map."""
