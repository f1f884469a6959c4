"""JavaScript's value rules on Python values."""
