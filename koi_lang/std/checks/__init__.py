"""Checks of a project by its own tools: tests, linters, type checkers and commands, for `std/checks`."""
