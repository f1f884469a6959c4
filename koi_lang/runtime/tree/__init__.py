"""The tree of a project: which of its files are kept, what has changed of them, and putting them back."""
