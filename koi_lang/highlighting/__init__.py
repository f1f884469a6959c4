"""Colours for programs: the words of the language by what they do, and what reads them."""
