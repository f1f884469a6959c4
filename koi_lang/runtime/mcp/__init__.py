"""Servers of tools that agents use: from what a program declares to live connections."""
