"""A corpus of recorded streams of providers, with the expected readings."""
