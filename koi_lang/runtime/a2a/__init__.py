"""Agents of other programs, which speak the A2A protocol, as members of teams."""
