"""Agents, teams and skills, as declared and as they live in a run."""
