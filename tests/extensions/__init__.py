"""Hooks and extensions."""
