"""The printer of generated modules: layout, line breaks and the text as a whole."""
