"""Guidance from the files of a project: its instructions (`AGENTS.md`) and its skills (`SKILL.md`)."""
