"""Frozen plans made of recordings: values and steps explained, ambiguities named, plans held against recordings."""
