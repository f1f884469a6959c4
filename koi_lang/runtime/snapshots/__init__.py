"""Kept trees of a project: their contents and lists in `.koi/snapshots`, how they are shared, and how they go."""
