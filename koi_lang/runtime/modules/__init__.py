"""Modules that programs consist of: compiled `.koi` files, and Python files imported by path."""
