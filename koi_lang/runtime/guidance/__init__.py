"""What the files of a project tell agents: its instructions (`AGENTS.md`) and its skills (`SKILL.md`)."""
