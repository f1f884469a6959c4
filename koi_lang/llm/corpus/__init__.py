"""A corpus: what providers sent, kept as it arrived, with what is to be read of it."""
