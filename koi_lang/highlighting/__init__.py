"""Colours for programs: the words of the language by purpose, and the lexers for them."""
