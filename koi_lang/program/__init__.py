"""A program on disk: found, compiled, cached, loaded as a module, and described."""
