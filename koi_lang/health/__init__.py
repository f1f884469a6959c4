"""Checks of this machine for problems with running programs."""
