"""The tree of a project: its stored files, their changes, and their restoration."""
