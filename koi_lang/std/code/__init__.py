"""Files of a project for the part `code` of the standard library: read, search, change and outline them."""
